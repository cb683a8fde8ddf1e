"""Engines without MPI: ranks are threads of this process."""

import functools
import threading
from typing import Any, Callable, List, Sequence

import numpy as np

from distributed_dl_training._core import Op

_COMBINE = {Op.SUM: np.add, Op.PRODUCT: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum}


class Group:
    """What the ranks of one group share: a place for each one's data, and a barrier."""

    def __init__(self, size: int) -> None:
        self.slots: List[Any] = [None] * size
        self.barrier = threading.Barrier(size, timeout=10)
        self.engines = [FakeEngine(self, rank, size) for rank in range(size)]

    def run(self, body: Callable[["FakeEngine"], Any]) -> List[Any]:
        """Run ``body`` once per rank, at the same time; return results or exceptions."""
        results: List[Any] = [None] * len(self.engines)

        def one(engine: "FakeEngine") -> None:
            try:
                results[engine.rank] = body(engine)
            except Exception as error:
                results[engine.rank] = error

        threads = [threading.Thread(target=one, args=(engine,)) for engine in self.engines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results


class FakeEngine:
    """One rank; see ``_core.Engine``."""

    threads_supported = True

    def __init__(self, group: Group, rank: int, size: int) -> None:
        self.group = group
        self.rank = self.local_rank = rank
        self.size = self.local_size = self.world_size = size
        self.closed = False
        self.calls = 0

    def _exchange(self, data: Any) -> List[Any]:
        self.calls += 1
        self.group.slots[self.rank] = data.copy()
        self.group.barrier.wait()
        everything = list(self.group.slots)
        self.group.barrier.wait()
        return everything

    def allreduce(self, values: Any, op: Op) -> None:
        assert values.ndim == 1 and values.size and values.dtype.isnative
        values[:] = functools.reduce(_COMBINE[op], self._exchange(values))

    def broadcast(self, data: Any, root: int) -> None:
        data[:] = self._exchange(data)[root]

    def allgather(self, data: Any, counts: Sequence[int]) -> Any:
        parts = self._exchange(data)
        assert [part.size for part in parts] == list(counts)
        return np.concatenate(parts)

    def same_group(self, comm: Any) -> bool:
        return comm is None

    def alive(self) -> bool:
        return not self.closed

    def abort(self, code: int) -> None:
        raise AssertionError(f"abort({code})")

    def close(self) -> None:
        self.closed = True

    def finalize(self) -> None:
        pass
