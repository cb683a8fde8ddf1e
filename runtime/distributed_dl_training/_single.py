"""The engine of a job of one process: everything is there already."""

from typing import Any, Dict, List, Optional, Sequence

from distributed_dl_training._core import Array, Engine, Op, Pending, Threads, Transfer


class _Done(Transfer):
    def done(self) -> bool:
        return True


class SingleEngine:
    """One rank.  See :class:`distributed_dl_training._core.Engine` for its many methods."""

    name = "single"
    rank = local_rank = cross_rank = 0
    size = local_size = cross_size = world_size = 1
    threads = Threads.MULTIPLE
    devices = True
    halves = False

    def prepare_reductions(
        self, words: Array, values: Optional[Array], op: Optional[Op]
    ) -> List[Transfer]:
        return [_Done(id, words)]

    def start_gather(self, data: Array, counts: Sequence[int], result: Array) -> Pending:
        result[:] = data
        return _Done(id, data)

    def allreduce(self, values: Array, op: Op) -> None:
        pass

    def broadcast(self, data: Array, root: int) -> None:
        pass

    def allgather(self, data: Array, counts: Sequence[int]) -> Array:
        return data.copy()

    def alltoall(self, data: Array, sent: Sequence[int], received: Sequence[int]) -> Array:
        return data.copy()

    def reducescatter(self, values: Array, counts: Sequence[int], op: Op) -> Array:
        return values

    def subset(self, ranks: Sequence[int]) -> Optional[Engine]:
        return SingleEngine()

    def answer(self, status: str) -> None:
        pass

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        return {}

    def same_group(self, comm: Any) -> bool:
        return comm is None or list(comm) == [0]

    def alive(self) -> bool:
        return True

    def abort(self, code: int) -> None:
        pass

    def close(self) -> None:
        pass

    def finalize(self) -> None:
        pass
