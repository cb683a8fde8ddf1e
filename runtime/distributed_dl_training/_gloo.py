"""The engine gloo: flat arrays through torch's own Gloo, imported only when needed.

It uses torch's process groups directly, in a part of the store of its own.  The default group of
torch.distributed belongs to the program: it is neither made nor used nor destroyed here.
"""

import os
import socket
import time
from datetime import timedelta
from itertools import accumulate
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy

from distributed_dl_training import _memory
from distributed_dl_training._core import (
    Array,
    Engine,
    EngineUnavailableError,
    Op,
    Pending,
    Threads,
    Transfer,
)
from distributed_dl_training._heartbeat import Heartbeat, connect, meet
from distributed_dl_training._losses import Losses
from distributed_dl_training._rendezvous import Shared, World, distributed, limit
from distributed_dl_training._works import gather_integers

# What Gloo reduces itself, by kind and item size, and what is widened to int32 for it.
NATIVE = ("i1", "i4", "i8", "u1", "f4", "f8")
_WIDENED = ("i2", "u2")
# Seconds at most in a call of ``done``.
_GLANCE = timedelta(seconds=0.05)
# Seconds for ranks that shut down together, and for those that are to read why the job ends.
_GOODBYE = 5.0
_LAST_WORDS = 0.6
# Bytes that are gathered at a time to be multiplied by hand.
_CHUNK = 1 << 22


class _Collective(Transfer):
    """A collective of Gloo's threads; ``finish`` is called once when its data is there."""

    def __init__(
        self,
        engine: "GlooEngine",
        call: Callable[..., Any],
        *arguments: Any,
        finish: Optional[Callable[[], None]] = None,
    ) -> None:
        super().__init__(call, *arguments)
        self._engine = engine
        self._finish = finish

    def done(self) -> bool:
        # To sleep until Gloo's thread is done leaves it the processor; to look again would not.
        if not self._engine.wait(self.requests[0], _GLANCE):
            return False
        if self._finish is not None:
            self._finish()
            self._finish = None
        return True


class GlooEngine:
    """Ranks of one process group.  See :class:`distributed_dl_training._core.Engine`.

    Many methods, because that interface has many; the private ones are what NcclEngine, which has
    a third group, does otherwise or shares.
    """

    name = "gloo"
    threads = Threads.MULTIPLE
    devices = False
    halves = False  # Gloo rounds float16 after each rank that it adds

    def __init__(self, world: World, world_size: int) -> None:
        """Connect to the other ranks; collective.

        Raises EngineUnavailableError if they cannot be reached.
        """
        self.rank = world.rank
        self.size = world.size
        self.world_size = world_size
        self._world = world
        self._subsets = 0
        self._closed = False
        self._groups: List[Any] = []
        try:
            self._data = self._new_group("data")
            self._control = self._new_group("control")
            self._heartbeat = Heartbeat(connect(world, limit()), self.rank, self.size)
            self._losses = Losses(self._heartbeat, self._groups)
            # Everybody has written where the others will look.
            self._data.barrier().wait()
        except RuntimeError as error:
            raise EngineUnavailableError(
                f"{self.name}: rank {self.rank} of {self.size} cannot reach the others: {error}"
            ) from error
        hosts = _gather_text(self, socket.gethostname())
        nodes = sorted(set(hosts), key=hosts.index)
        mine = hosts[self.rank]
        self.local_rank = hosts[: self.rank].count(mine)
        self.local_size = hosts.count(mine)
        self.cross_rank = nodes.index(mine)
        self.cross_size = len(nodes)

    def prepare_reductions(
        self, words: Array, values: Optional[Array], op: Optional[Op]
    ) -> List[Transfer]:
        pairs = [(words, "BAND")]
        if values is not None and op is not None:
            pairs.append((values, op.name))
        return [
            _Collective(self, self._control.allreduce, [tensor_over(array)], _options(name))
            for array, name in pairs
        ]

    def start_gather(self, data: Array, counts: Sequence[int], result: Array) -> Pending:
        return self._start_gather(self._control, data, counts, result)

    def allreduce(self, values: Array, op: Op) -> None:
        kind = values.dtype.kind + str(values.itemsize)
        if kind in NATIVE or not isinstance(values, numpy.ndarray):
            self._reduce(values, op)
        elif kind in _WIDENED:
            # Sums and products modulo 2**32 are right modulo 2**16.
            wide = values.astype(numpy.int32)
            self._reduce(wide, op)
            values[:] = wide
        elif kind in ("u4", "u8"):
            _reduce_unsigned(self, values, op)
        elif values.dtype.kind == "c" and op is Op.SUM:
            self._reduce(values.view("f4" if kind == "c8" else "f8"), op)
        elif values.dtype.kind == "c" and op is Op.PRODUCT:
            _multiply_gathered(self, values)
        else:
            raise TypeError(f"{self.name} cannot reduce dtype {values.dtype} with op={op.value}")

    def broadcast(self, data: Array, root: int) -> None:
        self.wait(self._start_broadcast(data, root))

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        result = _memory.empty(sum(counts), numpy.uint8, data)
        if max(counts) * self.size <= 2 * sum(counts):
            gather = self._start_gather(self._group_of(data), data, counts, result)
            self.wait(gather.requests[0])
            gather.done()
            return result
        # Filled up to the longest it would be far more bytes: one broadcast for each rank.
        ends = list(accumulate(counts))
        works = []
        for root, end in enumerate(ends):
            block = result[end - counts[root] : end]
            if root == self.rank:
                block[:] = data
            if counts[root]:
                works.append(self._start_broadcast(block, root))
        for work in works:
            self.wait(work)
        return result

    def alltoall(self, data: Array, sent: Sequence[int], received: Sequence[int]) -> Array:
        result = _memory.empty(sum(received), numpy.uint8, data)
        group = self._group_of(data)
        self.wait(
            group.alltoall_base(tensor_over(result), tensor_over(data), list(received), list(sent))
        )
        return result

    def reducescatter(self, values: Array, counts: Sequence[int], op: Op) -> Array:
        self.allreduce(values, op)
        start = sum(counts[: self.rank])
        return values[start : start + counts[self.rank]].copy()

    def subset(self, ranks: Sequence[int]) -> Optional[Engine]:
        self._subsets += 1
        if self.rank not in ranks:
            return None
        prefix = f"{self._world.prefix}/{self._subsets}"
        place = list(ranks).index(self.rank)
        world = World(place, len(ranks), self._world.store, prefix)
        return type(self)(world, self.world_size)

    def answer(self, status: str) -> None:
        self._heartbeat.status = status

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        return self._heartbeat.probe(seconds)

    def same_group(self, comm: Any) -> bool:
        if comm is not None and not isinstance(comm, (list, tuple)):
            raise TypeError(f"the engine {self.name} takes no communicator: {type(comm).__name__}")
        return comm is None or list(comm) == list(range(self.size))

    def alive(self) -> bool:
        return not self._closed

    def abort(self, code: int) -> None:
        if self.world_size > 1:
            self._heartbeat.tell_lost(f"rank {self.rank} has ended the job, exit code {code}")
            if self.rank == 0:  # the store, which may end with this rank, is where others read it
                time.sleep(_LAST_WORDS)
            os._exit(code)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._heartbeat.close()
        # The rank that holds the store stays until the others need it no more.
        meet(self._part("end"), self.size, _GOODBYE if self.rank == 0 else 0.0)
        del self._groups[:], self._data, self._control

    def finalize(self) -> None:
        """Let go of the store."""
        Shared.store = None

    def wait(self, work: Any, longest: Optional[timedelta] = None) -> bool:
        """Wait for ``work``, and tell whether it is complete; raises PeerLostError."""
        return self._losses.wait(work, longest)

    def _part(self, name: str) -> Any:
        return distributed().PrefixStore(f"{self._world.prefix}/{name}", self._world.store)

    def _new_group(self, name: str) -> Any:
        dist = distributed()
        made = dist.ProcessGroupGloo(self._part(name), self.rank, self.size, limit())
        self._groups.append(made)
        return made

    def _group_of(self, data: Array) -> Any:
        """Return what carries data that lies where this lies."""
        return self._data

    def _reduce(self, values: Array, op: Op) -> None:
        self.wait(self._group_of(values).allreduce([tensor_over(values)], _options(op.name)))

    def _start_broadcast(self, data: Array, root: int) -> Any:
        options = distributed().BroadcastOptions()
        options.rootRank = root
        return self._group_of(data).broadcast([tensor_over(data)], options)

    def _start_gather(
        self, group: Any, data: Array, counts: Sequence[int], result: Array
    ) -> _Collective:
        """Gather chunks, all filled up to the longest: Gloo takes only equal ones."""
        longest, padded = max(counts), data
        if min(counts) == longest:
            chunks = [result[at * longest : (at + 1) * longest] for at in range(self.size)]
        else:
            padded = _memory.empty(longest, numpy.uint8, data)
            padded[: data.size] = data
            chunks = [_memory.empty(longest, numpy.uint8, data) for _ in counts]

        def finish() -> None:
            if padded is not data:
                _memory.pack([chunk[:count] for chunk, count in zip(chunks, counts)], result)

        targets = [[tensor_over(chunk) for chunk in chunks]]
        gather = _Collective(self, group.allgather, targets, [tensor_over(padded)], finish=finish)
        gather.start()
        return gather


def _options(operation: str) -> Any:
    """Return what tells Gloo by which operation to reduce."""
    options = distributed().AllreduceOptions()
    options.reduceOp = getattr(distributed().ReduceOp, operation)
    return options


def _reduce_unsigned(engine: GlooEngine, values: Array, op: Op) -> None:
    """Reduce uint32 or uint64 by way of the signed integers of their size.

    Sums and products are the same bits.  For the order the highest bit is turned over.
    """
    signed = values.view(f"i{values.itemsize}")
    ordered = op in (Op.MIN, Op.MAX)
    if ordered:
        signed ^= numpy.iinfo(signed.dtype).min
    engine._reduce(signed, op)
    if ordered:
        signed ^= numpy.iinfo(signed.dtype).min


def _multiply_gathered(engine: GlooEngine, values: Array) -> None:
    """Multiply complex numbers, which Gloo cannot: in rank order, the same on every rank."""
    step = max(1, _CHUNK // engine.size // values.itemsize)
    for start in range(0, values.size, step):
        chunk = values[start : start + step]
        counts = [chunk.nbytes] * engine.size
        everything = engine.allgather(chunk.view(numpy.uint8), counts).view(chunk.dtype)
        numpy.multiply.reduce(everything.reshape(engine.size, -1), axis=0, out=chunk)


def _gather_text(engine: GlooEngine, text: str) -> List[str]:
    """Return every rank's text, in rank order; collective."""
    data = numpy.frombuffer(text.encode("utf-8"), dtype=numpy.uint8)
    counts = gather_integers(engine, [data.size])
    joined = engine.allgather(data, counts).tobytes()
    return [joined[e - n : e].decode("utf-8") for n, e in zip(counts, accumulate(counts))]


def tensor_over(data: Array) -> Any:
    """Return a tensor over the same memory."""
    if not isinstance(data, numpy.ndarray):
        return data.tensor
    import torch

    # torch warns of memory that must not be written, also where it is only read.
    return torch.from_numpy(data if data.flags.writeable else data.copy())
