"""Engines without MPI: ranks are threads of this process."""

import functools
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from distributed_dl_training._core import Op, PeerLostError, Threads, Transfer

_COMBINE = {Op.SUM: np.add, Op.PRODUCT: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum}


class Group:
    """What the ranks of one group share: what each has handed in, by number of the call."""

    def __init__(self, size: int, threads: Threads = Threads.MULTIPLE) -> None:
        self.changed = threading.Condition()
        self.given: Dict[Any, Dict[int, Any]] = {}
        self.broken = False
        self.silent = False  # whether ranks give no answers
        self.groups: Dict[Any, Group] = {}
        self.engines = [FakeEngine(self, rank, size, threads) for rank in range(size)]

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
            thread.join(60)
            assert not thread.is_alive(), "a rank hangs"
        assert not any(engine.codes for engine in self.engines), "a watchdog ended a process"
        return results

    def give(self, key: Any, rank: int, data: Any) -> None:
        with self.changed:
            self.given.setdefault(key, {})[rank] = data
            self.changed.notify_all()

    def complete(self, key: Any) -> bool:
        if self.broken:
            raise PeerLostError("deliberate")
        return len(self.given[key]) == len(self.engines)


class _Pending:
    def __init__(self, group: Group, key: Any, finish: Callable[[List[Any]], None]) -> None:
        self.group, self.key, self.finish = group, key, finish

    def done(self) -> bool:
        with self.group.changed:
            if not self.group.complete(self.key):
                return False
            given = self.group.given[self.key]
        self.finish([given[rank] for rank in sorted(given)])
        return True


class _Reduction(Transfer):
    def __init__(self, engine: "FakeEngine", values: Any, op: Optional[Op]) -> None:
        super().__init__(self._begin, None)
        self.engine, self.values, self.op = engine, values, op

    def _begin(self, _: None) -> _Pending:
        engine, values = self.engine, self.values
        combine = np.bitwise_and if self.op is None else _COMBINE[self.op]

        def finish(parts: List[Any]) -> None:
            assert len({(part.size, part.dtype) for part in parts}) == 1
            values[:] = functools.reduce(combine, parts)

        key = engine._key("control" if self.op is None else "values", f"reduce {self.op}")
        engine.group.give(key, engine.rank, values.copy())
        return _Pending(engine.group, key, finish)

    def done(self) -> bool:
        return self.requests[0].done()


class FakeEngine:
    """One rank; see ``_core.Engine``, which has so many methods.

    log: what has been reduced, as (op, bytes).
    """

    name = "fake"
    devices = False
    halves = False
    cross_rank, cross_size = 0, 1

    def __init__(self, group: Group, rank: int, size: int, threads: Threads) -> None:
        self.group = group
        self.rank = self.local_rank = rank
        self.size = self.local_size = self.world_size = size
        self.threads = threads
        self.closed = False
        self.calls = {"control": 0, "values": 0, "data": 0}
        self.log: List[Any] = []
        self.status: Dict[int, Optional[str]] = {}
        self.codes: List[int] = []

    def _key(self, kind: str, call: str) -> Any:
        assert not self.closed
        self.calls[kind] += 1
        return kind, self.calls[kind], call

    def prepare_reductions(self, words: Any, values: Any, op: Optional[Op]) -> List[Transfer]:
        transfers: List[Transfer] = [_Reduction(self, words, None)]
        return transfers if values is None else [*transfers, _Reduction(self, values, op)]

    def start_gather(self, data: Any, counts: Sequence[int], result: Any) -> _Pending:
        def finish(parts: List[Any]) -> None:
            assert [part.size for part in parts] == list(counts)
            result[:] = np.concatenate(parts)

        key = self._key("control", "gather")
        self.group.give(key, self.rank, data.copy())
        return _Pending(self.group, key, finish)

    def _exchange(self, call: str, data: Any) -> List[Any]:
        key = self._key("data", call)
        self.group.give(key, self.rank, data)
        with self.group.changed:
            while not self.group.complete(key):
                self.group.changed.wait()
        given = self.group.given[key]
        return [given[rank] for rank in range(self.size)]

    def allreduce(self, values: Any, op: Op) -> None:
        assert values.ndim == 1 and values.size and values.dtype.isnative
        assert values.dtype not in (np.dtype("f2"), np.dtype("?"))
        self.log.append((op, values.nbytes))
        parts = self._exchange(f"allreduce {op} {values.size}", values.copy())
        values[:] = functools.reduce(_COMBINE[op], parts)

    def broadcast(self, data: Any, root: int) -> None:
        data[:] = self._exchange("broadcast", data.copy())[root]

    def allgather(self, data: Any, counts: Sequence[int]) -> Any:
        parts = self._exchange("allgather", data.copy())
        assert [part.size for part in parts] == list(counts)
        return np.concatenate(parts)

    def subset(self, ranks: Sequence[int]) -> Optional["FakeEngine"]:
        key = self.calls["data"], tuple(ranks)
        with self.group.changed:
            made = self.group.groups.setdefault(key, Group(len(ranks), self.threads))
        self._exchange("subset", np.zeros(1))
        return made.engines[list(ranks).index(self.rank)] if self.rank in ranks else None

    def answer(self, status: str) -> None:
        with self.group.changed:
            self.group.engines[0].status[self.rank] = status
            self.group.changed.notify_all()

    def probe(self, seconds: float) -> Dict[int, Optional[str]]:
        """Ask as MPI's engine does: who looks within so many seconds has answered."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        known = self.group.engines[0].status
        with self.group.changed:
            own = known.get(self.rank, "")
            for rank in others:
                known.pop(rank, None)

            def answered() -> bool:
                known[self.rank] = own  # whom another asks meanwhile answers, too
                return self.group.silent or all(rank in known for rank in others)

            end = time.monotonic() + seconds
            while not answered() and time.monotonic() < end:
                self.group.changed.wait(0.005)
            return {rank: None if self.group.silent else known.get(rank) for rank in others}

    def same_group(self, comm: Any) -> bool:
        return comm is None

    def alive(self) -> bool:
        return not self.closed

    def abort(self, code: int) -> None:
        """End all ranks but not the process, which runs other tests: end the calling thread."""
        self.codes.append(code)
        with self.group.changed:
            self.group.broken = True
            self.group.changed.notify_all()
        raise SystemExit(code)

    def close(self) -> None:
        self._exchange("close", np.zeros(1))
        self.closed = True

    def finalize(self) -> None:
        pass


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once ``condition`` holds."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)
