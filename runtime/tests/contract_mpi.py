"""Cases of the contract that only the MPI engine has: communicators, messages cut in pieces."""

import os
from typing import Any

import numpy as np

from distributed_dl_training import _hierarchical, _mpi

from contract import only, refused, sample
from contract_errors import case_mismatch
from frameworks import Framework


@only(engine="mpi")
def case_mpi_ranks(t: Framework) -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    assert (t.hvd.rank(), t.hvd.size()) == (world.rank, world.size)
    assert t.hvd.mpi_threads_supported() == (MPI.Query_thread() == MPI.THREAD_MULTIPLE)


@only(engine="mpi")
def case_init_again(t: Framework) -> None:
    from mpi4py import MPI

    hvd = t.hvd
    hvd.init()
    hvd.init(comm=MPI.COMM_WORLD)
    hvd.init(comm=list(range(hvd.size())))
    for comm, kind in ((MPI.COMM_NULL, ValueError), ("world", TypeError)):
        refused(kind, hvd.init, comm=comm)
    if hvd.size() > 1:
        refused(ValueError, hvd.init, comm=MPI.COMM_SELF)
        refused(ValueError, hvd.init, comm=list(reversed(range(hvd.size()))))
    t.same(hvd.allreduce(t.tensor(1.0), op=hvd.Sum), np.array(float(hvd.size())))


@only(engine="mpi")
def case_long_messages(t: Framework) -> None:
    """With the limit at 24 bytes, every path that splits a message is taken."""
    hvd = t.hvd
    size, me = hvd.size(), hvd.rank()
    longest, _mpi.LONGEST = _mpi.LONGEST, 24
    try:
        case_mismatch(t)
        for dtype in ("i1", "f8", "c16"):
            parts = [sample(r, dtype, (7 + r, 2)) for r in range(size)]
            t.same(hvd.allgather(t.tensor(parts[me])), np.concatenate(parts))
            nine = t.tensor(sample(me, dtype, (9,)))
            t.same(hvd.broadcast(nine, 0), sample(0, dtype, (9,)))
            whole = np.asarray(sum(sample(r, dtype, (9,)) for r in range(size))).astype(dtype)
            t.same(hvd.allreduce(nine, op=hvd.Sum), whole)
            splits = [9 // size] * (size - 1) + [9 - 9 // size * (size - 1)]
            piece = slice(sum(splits[:me]), sum(splits[: me + 1]))
            want = np.concatenate([sample(r, dtype, (9,))[piece] for r in range(size)])
            t.same(t.alltoall(nine, splits), want)
            shares = [9 // size + (r < 9 % size) for r in range(size)]
            mine = whole[sum(shares[:me]) : sum(shares[: me + 1])]
            t.same(hvd.reducescatter(nine, op=hvd.Sum), mine)
    finally:
        _mpi.LONGEST = longest


@only(engine="mpi")
def case_subcommunicators(t: Framework) -> None:
    from mpi4py import MPI

    hvd = t.hvd
    world = MPI.COMM_WORLD
    hvd.shutdown()
    color = world.rank % 2
    sub = world.Split(color=color, key=-world.rank)  # ranks in reverse order
    hvd.init(comm=sub)
    assert (hvd.rank(), hvd.size()) == (sub.rank, sub.size)
    members = [rank for rank in range(world.size) if rank % 2 == color]
    request = sub.isend("mine", dest=(sub.rank + 1) % sub.size, tag=0)  # traffic of the program
    got = hvd.allreduce(t.tensor(float(world.rank)), op=hvd.Sum)
    t.same(got, np.array(float(sum(members))))
    assert sub.recv(source=(sub.rank - 1) % sub.size, tag=0) == "mine"
    request.wait()
    t.same(hvd.allgather(t.tensor([world.rank])), np.array(members[::-1]))
    for _ in range(color * 3):  # the groups need not keep in step with each other
        hvd.barrier()
    if sub.size < world.size:
        refused(ValueError, hvd.init)
    sub.Free()  # ours is a copy
    t.same(hvd.broadcast(t.tensor(world.rank), 0), np.array(members[-1]))
    hvd.shutdown()
    assert not hvd.is_initialized()

    half = list(range((world.size + 1) // 2))
    mine = half if world.rank in half else [r for r in range(world.size) if r not in half]
    hvd.init(comm=mine)
    hvd.init(comm=mine)
    t.same(hvd.allgather(t.tensor([world.rank])), np.array(mine))
    hvd.shutdown()
    for wrong in ([(world.rank + 1) % world.size] if world.size > 1 else [], [world.size]):
        try:
            hvd.init(comm=wrong)
        except ValueError:
            pass
        else:
            raise AssertionError("no ValueError")
    hvd.init()


@only(engine="mpi", framework="numpy")
def case_communicators_are_freed(t: Framework) -> None:
    """MPICH has 2048 communicators: an engine takes four, and must give them back."""
    from mpi4py import MPI

    for _ in range(520):
        _mpi.MpiEngine(MPI.COMM_SELF).close()
    t.hvd.barrier()


@only(engine="mpi", framework="numpy")
def case_questions(t: Framework) -> None:
    """All answer whoever asks, often and in turn."""
    from mpi4py import MPI

    engine = _mpi.MpiEngine()
    if engine.size > 1:
        world = MPI.COMM_WORLD.Dup()
        for number in range(300):
            asks = number % engine.size
            if engine.rank == asks:
                said = engine.probe(20.0)
                assert sorted([*said, asks]) == list(range(engine.size))
                for rank, text in said.items():  # who has not seen yet that all have come here
                    assert text in (f"{rank} in {number}", f"{rank} in {number - 1}"), said
            over = world.Ibarrier()
            while not over.Test():
                engine.answer(f"{engine.rank} in {number}")
        world.Barrier()
        world.Free()
    engine.close()


@only(engine="mpi")
def case_no_threads(t: Framework) -> None:
    """Where a variable says so MPI is started without MPI_THREAD_MULTIPLE."""
    from mpi4py import MPI

    if os.environ.get("DDLT_TEST_NO_THREADS"):
        assert MPI.Query_thread() < MPI.THREAD_MULTIPLE, MPI.Query_thread()
        assert not t.hvd.mpi_threads_supported()
    t.same(t.hvd.allreduce(t.tensor(1.0), op=t.hvd.Sum), np.array(float(t.hvd.size())))


class OnNodes:
    """A communicator whose ranks lie on nodes as told."""

    def __init__(self, comm: Any, node: int) -> None:
        self.comm = comm
        self.node = node

    def Split_type(self, kind: int) -> Any:
        return self.comm.Split(color=self.node, key=self.comm.Get_rank())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)


@only(engine="mpi")
def case_nodes_of_any_shape(t: Framework) -> None:
    """As many leaders as the smallest node has ranks, chunks of any length, several at a time."""
    from mpi4py import MPI

    size, me = t.hvd.size(), t.hvd.rank()
    chunk, _hierarchical._CHUNK = _hierarchical._CHUNK, 64
    try:
        # Blocks of two; one rank apart from all others; neighbours apart; racks of two and three.
        for shape, rack in (
            (lambda rank: rank // 2, 0),
            (lambda rank: int(rank == 0), 0),
            (lambda rank: rank % 2, 0),
            (lambda rank: rank, 2),
            (lambda rank: max(rank - 1, 0), 2),
            (lambda rank: rank, 3),
        ):
            nodes = _hierarchical.Nodes(MPI, OnNodes(MPI.COMM_WORLD, shape(me)), rack=rack)
            assert (nodes._racks is not None) <= (1 < rack < nodes.cross_size)
            mine = [rank for rank in range(size) if shape(rank) == shape(me)]
            assert (nodes.local_rank, nodes.local_size) == (mine.index(me), len(mine))
            for count in (1, 2, 8, 16, 17, 1000):
                values = sample(me, "i8", count)
                nodes.allreduce(values, MPI.INT64_T, MPI.SUM)
                np.testing.assert_array_equal(
                    values, sum(sample(r, "i8", count) for r in range(size))
                )
            nodes.free()
    finally:
        _hierarchical._CHUNK = chunk
