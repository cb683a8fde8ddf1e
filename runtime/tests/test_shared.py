"""Exchanges through memory that the ranks of one node share; here ranks are threads."""

import os
import platform
import random
import threading
import time

import numpy as np
import pytest

from distributed_dl_training import _shared
from distributed_dl_training._core import PeerLostError
from distributed_dl_training._shared import SharedGather, share


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_shared, "_FOLDER", str(tmp_path))
    return tmp_path


class Ranks:
    """Threads, and how they agree on where the memory is."""

    def __init__(self, size):
        self.size = size
        self.said = {}
        self._barrier = threading.Barrier(size)

    def share(self, rank):
        def broadcast(path):
            return self._gather(rank, path)[0]

        return share(rank, self.size, broadcast, lambda mine: all(self._gather(rank, mine)))

    def _gather(self, rank, mine):
        self.said[rank] = mine
        self._barrier.wait()
        said = [self.said[each] for each in range(self.size)]
        self._barrier.wait()
        return said

    def run(self, body):
        """Run ``body`` once per rank, at the same time; return results or exceptions."""
        results = [None] * self.size

        def one(rank):
            try:
                results[rank] = body(rank)
            except Exception as error:
                results[rank] = error

        threads = [
            threading.Thread(target=one, args=(rank,), daemon=True) for rank in range(self.size)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive(), "a rank hangs"
        return results


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "with fences"])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_each_hears_what_all_say(folder, monkeypatch, size, in_order):
    """Numbers come again, lengths change, and one rank may be ahead of others that still read."""
    if platform.machine() in ("x86_64", "AMD64"):  # others cannot do without fences
        monkeypatch.setattr(_shared, "_IN_ORDER", in_order)
    ranks = Ranks(size)
    rounds, steps = 700, [16, 48, 8192]

    def body(rank):
        memory = ranks.share(rank)
        chance = random.Random(rank)
        arrays = [np.zeros(step * size, np.uint8) for step in steps]
        assert all(memory.takes(array) for array in arrays)
        assert not memory.takes(np.zeros(size * 8192 + 1, np.uint8))
        gathers = [SharedGather(memory, array, lambda: None) for array in arrays]
        for at in range(rounds):
            which = at * 7 % 11 % len(steps)
            array, step = arrays[which], steps[which]
            array[rank * step : (rank + 1) * step] = (at + 3 * rank) % 251
            pending = gathers[which].start()
            if chance.random() < 0.02:
                time.sleep(0.001)
            while not pending.done():
                time.sleep(0)
            heard = array.reshape(size, step)
            assert (heard == heard[:, :1]).all()
            assert heard[:, 0].tolist() == [(at + 3 * other) % 251 for other in range(size)]
        for each in gathers:
            each.free()
        return "heard"

    assert ranks.run(body) == ["heard"] * size
    assert os.listdir(str(folder)) == []


@pytest.mark.parametrize("size", [2, 8])
def test_who_asks_is_seen_until_answered(folder, size):
    """Each sees what is asked of it alone, however often numbers begin anew."""
    ranks = Ranks(size)

    def body(rank):
        memory = ranks.share(rank)
        for number in (1, 2, 255, 256, 257, 300):
            assert not memory.is_asked()
            ranks._gather(rank, None)
            if rank != 1:
                memory.ask(1, number)
            ranks._gather(rank, None)
            for other in [other for other in range(size) if other != 1 and rank == 1]:
                assert memory.is_asked()
                memory.answered(other, number)
            assert not memory.is_asked()
            ranks._gather(rank, None)
        gather = SharedGather(memory, np.full(size * 8192, rank, np.uint8), lambda: None)
        pending = gather.start()
        while not pending.done():
            time.sleep(0)
        return memory.is_asked()

    assert ranks.run(body) == [False] * size


def full(file, start, nbytes):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("why", ["no folder", "no room", "a folder that is another for one rank"])
def test_nothing_is_shared_where_one_rank_cannot(folder, monkeypatch, why):
    ranks = Ranks(3)
    really_open = os.open

    def elsewhere(path, flags, *mode):
        if threading.current_thread().name.endswith("of 1"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return really_open(path, flags, *mode)

    if why == "no folder":
        monkeypatch.setattr(_shared, "_FOLDER", str(folder / "gone"))
    elif why == "no room":
        monkeypatch.setattr(os, "posix_fallocate", full)
    else:
        monkeypatch.setattr(os, "open", elsewhere)

    def body(rank):
        threading.current_thread().name = f"thread of {rank}"
        return ranks.share(rank)

    assert ranks.run(body) == [None] * 3
    monkeypatch.undo()
    assert os.listdir(str(folder)) == []


def test_waiting_carries_on_what_is_under_way(folder):
    """Where others have not come at once; and what that tells of a lost rank is raised."""
    asked = []

    def carry_on():
        asked.append(None)
        if len(asked) > 4:
            raise PeerLostError("deliberate")

    ranks = Ranks(2)

    def body(rank):
        memory = ranks.share(rank)
        if rank:
            return
        gather = SharedGather(memory, np.zeros(32, np.uint8), carry_on)
        for _ in range(2):
            del asked[:]
            pending = gather.start()
            assert [pending.done() for _ in range(9)] == 9 * [False] and asked == []
            assert [pending.done() for _ in range(11)] == 11 * [False] and len(asked) == 2
        assert [pending.done() for _ in range(29)] == 29 * [False] and len(asked) == 4
        with pytest.raises(PeerLostError, match="deliberate"):
            pending.done()
        counted = []
        pending = SharedGather(memory, np.zeros(32, np.uint8), lambda: counted.append(0)).start()
        assert not any(pending.done() for _ in range(120))
        assert len(counted) == 9 + 21  # each tenth time, and from the hundredth on each time

    assert ranks.run(body) == [None, None]
