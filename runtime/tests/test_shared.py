"""Exchanges through memory that the ranks of one node share; here ranks are threads."""

import os
import platform
import random
import threading
import time

import numpy as np
import pytest

from distributed_dl_training import _shared
from distributed_dl_training._core import Op, PeerLostError
from distributed_dl_training._shared import SharedReduction, share

from fakes import Group


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

    def share(self, rank, several_nodes=False):
        def broadcast(path):
            return self._gather(rank, path)[0]

        agree = lambda mine: all(self._gather(rank, mine))  # noqa: E731
        return share(rank, self.size, several_nodes, broadcast, agree)

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


def bits(rank, at):
    """Return words of a rank: bits that differ between ranks, and some that do not."""
    return np.array([0b1100 | 1 << rank, at], np.int64)


@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "with fences"])
@pytest.mark.parametrize("size", [1, 2, 3, 9, 17])
def test_words_and_values_of_all_ranks(folder, monkeypatch, size, in_order):
    """Numbers come again, lengths change, and one rank may be ahead of others that still read.

    17 ranks are more than all read themselves.
    """
    if platform.machine() in ("x86_64", "AMD64"):  # others cannot do without fences
        monkeypatch.setattr(_shared, "_IN_ORDER", in_order)
    ranks = Ranks(size)
    rounds, counts = 600 if size < 9 else 60, [0, 1, 300]

    def body(rank):
        memory = ranks.share(rank)
        assert memory.direct == (size < 17)
        assert memory.takes(8192) and not memory.takes(8193)
        chance, transfers = random.Random(rank), []
        for count in counts:
            words = np.zeros(2, np.int64)
            values = np.zeros(count, np.float64) if count else None
            op = Op.SUM if count else None
            made = SharedReduction(memory, words, values, op, [], lambda: None)
            transfers.append((made, words, values))
        for at in range(rounds):
            transfer, words, values = transfers[at * 7 % 11 % len(counts)]
            transfer.reset()
            words[:] = bits(rank, at)
            if values is not None:
                values[:] = at + rank
            memory.writers[:] = [None, None]  # as the words are new
            transfer.start()
            assert transfer.started
            if chance.random() < 0.02:
                time.sleep(0.001)
            while not transfer.done():
                time.sleep(0)
            assert words.tolist() == [0b1100 if size > 4 else bits(rank, at)[0] & all_of(size), at]
            if values is not None:
                assert set(transfer.result(values)) == {size * at + size * (size - 1) / 2.0}
        return "heard"

    def all_of(count):
        common = -1
        for rank in range(count):
            common &= int(bits(rank, 0)[0])
        return common

    assert ranks.run(body) == ["heard"] * size
    assert os.listdir(str(folder)) == []


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float16", "float32"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_result_has_the_type_of_the_values(folder, size, dtype):
    ranks = Ranks(size)

    def body(rank):
        values = np.full(3, rank + 1, dtype)
        words = np.zeros(1, np.int64)
        transfer = SharedReduction(ranks.share(rank), words, values, Op.SUM, [], lambda: None)
        transfer.reset()
        transfer.start()
        while not transfer.done():
            time.sleep(0)
        result = transfer.result(values)
        return result.dtype.name, result.tolist()

    total = size * (size + 1) // 2
    assert ranks.run(body) == [(dtype, [total] * 3)] * size


def test_words_that_come_again_are_not_written_again(folder):
    """They are there from the last time, unless another exchange came between."""

    def body(rank):
        memory = ranks.share(rank)
        words = [bits(rank, at) for at in (1, 2)]
        values = np.ones(1)
        transfers = [
            SharedReduction(memory, each, values, Op.SUM, [], lambda: None) for each in words
        ]
        for which in (0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0):
            transfer = transfers[which]
            words[which][:] = bits(rank, 1 + which)
            transfer.reset()
            transfer.start()
            while not transfer.done():
                time.sleep(0)
            assert words[which].tolist() == [0b1100, 1 + which]
            assert transfer.result(values).tolist() == [5.0]
        return "heard"

    ranks = Ranks(5)
    assert ranks.run(body) == ["heard"] * 5


def test_an_exchange_that_is_taken_from_its_thread_starts_nothing(folder):
    """And the number that it would have had is the next one's."""

    def body(rank):
        memory = ranks.share(rank)
        words = bits(rank, 1)
        left, taken = (SharedReduction(memory, words, None, None, [], int) for _ in range(2))
        left.disarm()
        left.start()
        assert not left.started
        taken.start()
        while not taken.done():
            time.sleep(0)
        return taken._number

    ranks = Ranks(2)
    assert ranks.run(body) == [1, 1]


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (3, 2), (17, 1)], ids=str)
def test_several_nodes(folder, sizes):
    """The first rank of each node reduces with the others, by what the layer below has."""
    leaders = Group(len(sizes))
    nodes = [Ranks(size) for size in sizes]

    def run(node):
        def body(rank):
            memory = nodes[node].share(rank, True)
            assert not memory.direct
            words, values = np.zeros(1, np.int64), np.zeros(3, np.float32)
            make = leaders.engines[node].prepare_reductions
            cross = make(words, values, Op.SUM) if rank == 0 else []
            transfer = SharedReduction(memory, words, values, Op.SUM, cross, lambda: None)
            found = []
            for at in range(40):
                transfer.reset()
                memory.writers[:] = [None, None]
                words[0], values[:] = (8 | 1 << node) << at % 4, at + rank
                transfer.start()
                while not transfer.done():
                    time.sleep(0)
                assert words[0] == 8 << at % 4
                found.append(transfer.result(values).tolist())
            return found

        return nodes[node].run(body)

    results = [None] * len(sizes)

    def keep(node):
        results[node] = run(node)

    threads = [threading.Thread(target=keep, args=(node,)) for node in range(len(sizes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count, first = sum(sizes), sum(size * (size - 1) / 2 for size in sizes)
    want = [[count * at + first] * 3 for at in range(40)]
    assert results == [[want] * size for size in sizes]


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


def test_waiting_lets_the_layer_below_make_progress(folder):
    """Where others have not come at once; and what that tells of a lost rank is raised."""
    calls = []

    def progress():
        calls.append(None)
        if len(calls) > 2:
            raise PeerLostError("deliberate")

    ranks = Ranks(2)

    def body(rank):
        memory = ranks.share(rank)
        if rank:
            return
        transfer = SharedReduction(memory, bits(0, 0), None, None, [], progress)
        transfer.start()
        assert [transfer.done() for _ in range(9)] == 9 * [False] and calls == []
        assert [transfer.done() for _ in range(20)] == 20 * [False] and len(calls) == 2
        with pytest.raises(PeerLostError, match="deliberate"):
            transfer.done()
        counted = []
        again = SharedReduction(memory, bits(0, 0), None, None, [], lambda: counted.append(0))
        again.start()
        assert not any(again.done() for _ in range(120))
        assert len(counted) == 9 + 21  # each tenth time, and from the hundredth on each time

    assert ranks.run(body) == [None, None]
