"""Cases of ``torch_contract.py``: gradients of the collectives, by Horovod's rules.

Each case names the line of Horovod 0.28.1, horovod/torch/mpi_ops.py, that states its rule.  What is
wanted is calculated from all ranks' weights, without a collective.
"""

from typing import Any, List

import torch

import distributed_dl_training.torch as hvd

from torch_samples import DEVICE, even_and_odd, refused, same


def leaf(*shape: int) -> Any:
    return torch.ones(*shape, dtype=torch.float64, device=DEVICE).requires_grad_()


def weights(rows: int, rank: int, ranks: int) -> Any:
    """Return what a rank multiplies a result by: exact sums and averages."""
    return torch.arange(1.0, rows + 1, dtype=torch.float64, device=DEVICE) * (rank + 1) * ranks


def of_all(rows: int) -> List[Any]:
    return [weights(rows, rank, hvd.size()) for rank in range(hvd.size())]


def total(rows: int) -> Any:
    return torch.stack(of_all(rows)).sum(0)


def case_gradient_of_allreduce() -> None:
    """Line 209: reduced by the same operation, with the same factors."""
    rank, size = hvd.rank(), hvd.size()
    for op, scale in ((hvd.Sum, 1.0), (hvd.Average, float(size))):
        x = leaf(6)
        (hvd.allreduce(x, op=op, name="x") * weights(6, rank, size)).sum().backward()
        same(x.grad, total(6) / scale)
        x = leaf(6)
        reduced = hvd.allreduce(x, op=op, prescale_factor=0.5, postscale_factor=4.0)
        (reduced * weights(6, rank, size)).sum().backward()
        same(x.grad, total(6) * 2 / scale)
        # Line 437: the same, of a group.
        y, z = leaf(6), leaf(2, 3)
        first, second = hvd.grouped_allreduce([y, z], op=op, name="g")
        (first * weights(6, rank, size)).sum().add((second * (rank + 1)).sum()).backward()
        same(y.grad, total(6) / scale)
        same(z.grad, torch.full_like(z, sum(range(1, size + 1)) / scale))
    if size > 1:
        with refused(NotImplementedError):
            hvd.allreduce(leaf(2), op=hvd.Max).sum().backward()


def case_gradient_of_allgather() -> None:
    """Lines 642-647: averaged over the ranks, then this rank's rows."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(rank + 1)
    rows = size * (size + 1) // 2
    (hvd.allgather(x, name="x") * weights(rows, rank, size)).sum().backward()
    start = rank * (rank + 1) // 2
    same(x.grad, (total(rows) / size)[start : start + rank + 1])


def case_gradient_of_grouped_allgather() -> None:
    """Lines 732-743: the same, for each tensor."""
    rank, size = hvd.rank(), hvd.size()
    x, y = leaf(rank + 1), leaf(2, 3)
    rows = size * (size + 1) // 2
    first, second = hvd.grouped_allgather([x, y], name="g")
    (first * weights(rows, rank, size)).sum().add((second * (rank + 1)).sum()).backward()
    start = rank * (rank + 1) // 2
    same(x.grad, (total(rows) / size)[start : start + rank + 1])
    same(y.grad, torch.full_like(y, sum(range(1, size + 1)) / size))
    x, whole = leaf(1), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    floats, integers = hvd.grouped_allgather([x, whole])  # those of integers have no gradient
    floats.sum().backward()
    assert integers.shape[0] == 2 * size and x.grad.item() == 1.0


def case_gradient_of_broadcast() -> None:
    """Lines 825-828: averaged over the ranks on the root, zero elsewhere."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(6)
    (hvd.broadcast(x, size - 1, name="x") * weights(6, rank, size)).sum().backward()
    same(x.grad, total(6) / size * (rank == size - 1))


def case_gradient_of_alltoall() -> None:
    """Lines 978-979: back to where the rows came from."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(size * (size + 1) // 2)
    rows, received = hvd.alltoall(x, splits=list(range(1, size + 1)))
    assert received.tolist() == [rank + 1] * size and received.device.type == "cpu"
    (rows * (rank + 1)).sum().backward()
    assert x.grad.tolist() == [each for each in range(1, size + 1) for _ in range(each)]
    x = leaf(size * (2 if rank else 6))  # equal shares of what differs between ranks
    rows = hvd.alltoall(x)
    assert rows.shape[0] == 6 + 2 * (size - 1)
    (rows * (rank + 1)).sum().backward()
    assert x.grad.tolist() == [each for each in range(1, size + 1) for _ in range(2 if rank else 6)]


def case_alltoall_async_is_a_pair() -> None:
    """Lines 914 and 1250: the counts too, whether splits were given or not."""
    rank, size = hvd.rank(), hvd.size()
    rows, received = hvd.synchronize(hvd.alltoall_async(torch.full((size,), rank, device=DEVICE)))
    assert rows.tolist() == list(range(size)) and received.tolist() == [1] * size


def case_gradient_of_reducescatter() -> None:
    """Lines 1084-1090: gathered, times the number of ranks with Sum, times both factors."""
    rank, size = hvd.rank(), hvd.size()
    for op, scale in ((hvd.Sum, float(size)), (hvd.Average, 1.0)):
        x, y, z = leaf(size * 2), leaf(size * 2), leaf(size, 3)
        (hvd.reducescatter(x, op=op, name="x") * (rank + 1)).sum().backward()
        want = torch.tensor([each * scale for each in range(1, size + 1) for _ in range(2)])
        same(x.grad, want.to(x))
        # Lines 1198-1206: the same, of a group.
        first, second = hvd.grouped_reducescatter(
            [y, z], op=op, prescale_factor=0.5, postscale_factor=4.0
        )
        (first * (rank + 1)).sum().add(second.sum()).backward()
        same(y.grad, want.to(y) * 2)
        same(z.grad, torch.full_like(z, 2 * scale))


def case_gradients_of_a_process_set() -> None:
    """Averages and sizes are those of the set (lines 642, 825 and 1085)."""
    if hvd.size() < 4:
        return
    halves = even_and_odd()
    half = halves[hvd.rank() % 2]
    ranks = half.ranks
    x = leaf(2)
    (hvd.allgather(x, process_set=half) * (hvd.rank() + 1)).sum().backward()
    same(x.grad, torch.full_like(x, sum(each + 1 for each in ranks) / len(ranks)))
    x = leaf(len(ranks))
    hvd.reducescatter(x, op=hvd.Sum, process_set=half).sum().backward()
    same(x.grad, torch.full_like(x, float(len(ranks))))
    hvd.barrier()
    for each in halves:
        hvd.remove_process_set(each)


def case_contrastive_loss() -> None:
    """A loss over everybody's rows, averaged by the optimizer, trains as one rank alone does."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.arange(1.0, size + 1, dtype=torch.float64, device=DEVICE)
    alone = leaf(1)
    (alone * rows).pow(2).sum().backward()
    weight = leaf(1)
    gathered = hvd.allgather(weight * rows[rank : rank + 1])
    gathered.pow(2).sum().backward()
    # Each rank has its own rows' share, and the optimizer's average is over the ranks.
    same(hvd.allreduce(weight.grad, op=hvd.Sum), alone.grad)


def case_sync_batch_norm() -> None:
    """Statistics, outputs and gradients are those of one batch of all ranks' rows."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.arange(6.0 * size * 3, dtype=torch.float64, device=DEVICE).view(-1, 3, 2).sin()
    factors = torch.arange(1.0, 1.0 + rows.numel(), dtype=torch.float64, device=DEVICE).view_as(
        rows
    )
    plain = torch.nn.BatchNorm1d(3).to(rows)
    whole = rows.clone().requires_grad_()
    want = plain(whole)
    (want * factors).sum().backward()
    own = slice(rank * (rows.shape[0] // size), (rank + 1) * (rows.shape[0] // size))
    synced = hvd.SyncBatchNorm(3).to(rows)
    mine = rows[own].clone().requires_grad_()
    got = synced(mine)
    (got * factors[own]).sum().backward()
    assert torch.allclose(got, want[own]) and torch.allclose(mine.grad, whole.grad[own], atol=1e-9)
    assert torch.allclose(synced.running_mean, plain.running_mean)
    assert torch.allclose(synced.running_var, plain.running_var)
    total = hvd.allreduce(synced.weight.grad, op=hvd.Sum)
    assert torch.allclose(total, plain.weight.grad)
    synced.eval()
    plain.eval()
    assert torch.allclose(synced(mine), plain(mine))
