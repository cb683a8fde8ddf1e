"""Exchanges through memory that the ranks of one node share; here ranks are threads."""

import random
import threading
import time

import numpy as np
import pytest

from distributed_dl_training._core import PeerLostError
from distributed_dl_training._shared import SharedGather, SharedMemory, share


class Node:
    """MPI as far as it is used: one memory, and an exchange of Python objects."""

    LOR = "logical or"

    class Exception(RuntimeError):
        pass

    def __init__(self, size, cannot=()):
        self.size = size
        self.cannot = cannot
        self.memory = bytearray(b"\xff") * (1 << 18)
        self.barrier = threading.Barrier(size)
        self.given = {}
        self.asked = 0  # how often for progress
        self.lost = False
        self.Win = self

    def Allocate_shared(self, nbytes, unit, comm):
        if comm.rank in self.cannot:
            raise NotImplementedError("no shared memory")
        assert unit == 1 and nbytes <= len(self.memory) and bool(nbytes) == (comm.rank == 0)
        return Window(self.memory)


class Window:
    def __init__(self, memory):
        self.memory = memory
        self.freed = False

    def Shared_query(self, rank):
        assert rank == 0
        return self.memory, 1

    def Lock_all(self):
        pass

    def Sync(self):
        assert not self.freed

    def Unlock_all(self):
        pass

    def Free(self):
        self.freed = True


class Comm:
    def __init__(self, node, rank):
        self.node, self.rank = node, rank

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.node.size

    def Iprobe(self):
        self.node.asked += 1
        if self.node.lost:
            raise Node.Exception("a rank is gone")
        return False

    def allreduce(self, value, op):
        assert op == Node.LOR
        self.node.given[self.rank] = value
        self.node.barrier.wait()
        return any(self.node.given.values())


def run(node, body):
    """Run ``body`` once per rank, at the same time; return results."""
    results = [None] * node.size

    def one(rank):
        results[rank] = body(share(node, Comm(node, rank)), rank)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(node.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a rank hangs"
    return results


@pytest.mark.parametrize("size", [2, 3, 8])
def test_each_hears_what_all_say(size):
    """Numbers come again, lengths change, and one rank may be ahead of others that still read."""
    rounds, steps = 700, [16, 48, 8192]

    def body(memory, rank):
        chance = random.Random(rank)
        arrays = [np.zeros(step * size, np.uint8) for step in steps]
        assert all(memory.takes(array) for array in arrays)
        assert not memory.takes(np.zeros(size * 8192 + 1, np.uint8))
        gathers = [SharedGather(memory, array) for array in arrays]
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
        memory.free()
        return True

    assert run(Node(size), body) == [True] * size


def test_nothing_is_shared_where_one_rank_cannot():
    assert run(Node(3, cannot=[1]), lambda memory, rank: memory) == [None] * 3


def test_waiting_carries_on_what_mpi_has_under_way():
    """Where others have not come at once; and what it tells of a lost rank is raised."""
    node = Node(1)
    node.size = 2
    memory = SharedMemory(node, Comm(node, 0))
    gather = SharedGather(memory, np.zeros(32, np.uint8))
    for _ in range(2):
        node.asked = 0
        pending = gather.start()
        assert not pending.done() and node.asked == 0
        assert not pending.done() and not pending.done() and node.asked == 2
    node.lost = True
    with pytest.raises(PeerLostError, match="MPI: a rank is gone"):
        pending.done()
