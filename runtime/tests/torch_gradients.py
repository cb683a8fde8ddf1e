"""Cases of ``torch_contract.py``: gradients of the collectives, by Horovod's rules.

Each case names the line of Horovod 0.28.1, horovod/torch/mpi_ops.py, that states its rule.  What is
wanted is calculated from all ranks' weights, without a collective.
"""

import functools
from typing import Any, Callable, List

import torch

import distributed_dl_training.torch as hvd

from torch_samples import COMPLEX, DEVICE, FLOATS, even_and_odd, refused, same

Case = Callable[[Any], None]
# Horovod has gradients of what it carries, horovod/torch/adapter_v2.cc:86-90: float16, 32 and 64.
# The others are this runtime's own, by the same rules.
DTYPES = [*FLOATS, *COMPLEX]


def each_dtype(case: Case) -> Callable[[], None]:
    """Let a case run for every dtype that has gradients."""

    @functools.wraps(case)
    def run() -> None:
        for dtype in DTYPES:
            case(dtype)

    return run


def leaf(dtype: Any, *shape: int) -> Any:
    return torch.ones(*shape, dtype=dtype, device=DEVICE).requires_grad_()


def weights(dtype: Any, rows: int, rank: int, ranks: int) -> Any:
    """Return what a rank multiplies a result by: sums and averages are exact in each dtype."""
    return torch.arange(1.0, rows + 1, device=DEVICE).to(dtype) * (rank + 1) * ranks


def total(dtype: Any, rows: int) -> Any:
    """Return the sum of all ranks' weights."""
    every = [weights(torch.float64, rows, rank, hvd.size()) for rank in range(hvd.size())]
    return torch.stack(every).sum(0).to(dtype)


def backward(*results: Any) -> None:
    """Let the gradients of a sum be calculated, of its real part if it is complex."""
    totals = [each.sum() for each in results]
    parts: List[Any] = [each.real if each.is_complex() else each for each in totals]
    sum(parts[1:], parts[0]).backward()


@each_dtype
def case_gradient_of_allreduce(dtype: Any) -> None:
    """Line 209: reduced by the same operation, with the same factors."""
    rank, size = hvd.rank(), hvd.size()
    for op, scale in ((hvd.Sum, 1.0), (hvd.Average, float(size))):
        x = leaf(dtype, 6)
        backward(hvd.allreduce(x, op=op, name="x") * weights(dtype, 6, rank, size))
        same(x.grad, total(dtype, 6) / scale)
        x = leaf(dtype, 6)
        reduced = hvd.allreduce(x, op=op, prescale_factor=0.5, postscale_factor=4.0)
        backward(reduced * weights(dtype, 6, rank, size))
        same(x.grad, total(dtype, 6) * 2 / scale)
        # Line 437: the same, of a group.
        y, z = leaf(dtype, 6), leaf(dtype, 2, 3)
        first, second = hvd.grouped_allreduce([y, z], op=op, name="g")
        backward(first * weights(dtype, 6, rank, size), second * (rank + 1))
        same(y.grad, total(dtype, 6) / scale)
        same(z.grad, torch.full_like(z, sum(range(1, size + 1)) / scale))
    if size > 1 and dtype not in COMPLEX:
        with refused(NotImplementedError):
            backward(hvd.allreduce(leaf(dtype, 2), op=hvd.Max))


@each_dtype
def case_gradient_of_allgather(dtype: Any) -> None:
    """Lines 642-647: averaged over the ranks, then this rank's rows."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(dtype, rank + 1)
    rows = size * (size + 1) // 2
    backward(hvd.allgather(x, name="x") * weights(dtype, rows, rank, size))
    start = rank * (rank + 1) // 2
    same(x.grad, (total(dtype, rows) / size)[start : start + rank + 1])


@each_dtype
def case_gradient_of_grouped_allgather(dtype: Any) -> None:
    """Lines 732-743: the same, for each tensor."""
    rank, size = hvd.rank(), hvd.size()
    x, y = leaf(dtype, rank + 1), leaf(dtype, 2, 3)
    rows = size * (size + 1) // 2
    first, second = hvd.grouped_allgather([x, y], name="g")
    backward(first * weights(dtype, rows, rank, size), second * (rank + 1))
    start = rank * (rank + 1) // 2
    same(x.grad, (total(dtype, rows) / size)[start : start + rank + 1])
    same(y.grad, torch.full_like(y, sum(range(1, size + 1)) / size))
    x, whole = leaf(dtype, 1), torch.zeros(2, dtype=torch.int64, device=DEVICE)
    floats, integers = hvd.grouped_allgather([x, whole])  # those of integers have no gradient
    backward(floats)
    assert integers.shape[0] == 2 * size and x.grad.item() == 1.0


@each_dtype
def case_gradient_of_broadcast(dtype: Any) -> None:
    """Lines 825-828: averaged over the ranks on the root, zero elsewhere."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(dtype, 6)
    backward(hvd.broadcast(x, size - 1, name="x") * weights(dtype, 6, rank, size))
    same(x.grad, total(dtype, 6) / size * (rank == size - 1))


@each_dtype
def case_gradient_of_alltoall(dtype: Any) -> None:
    """Lines 978-979: back to where the rows came from."""
    rank, size = hvd.rank(), hvd.size()
    x = leaf(dtype, size * (size + 1) // 2)
    rows, received = hvd.alltoall(x, splits=list(range(1, size + 1)))
    assert received.tolist() == [rank + 1] * size and received.device.type == "cpu"
    backward(rows * (rank + 1))
    assert x.grad.tolist() == [each for each in range(1, size + 1) for _ in range(each)]
    x = leaf(dtype, size * (2 if rank else 6))  # equal shares of what differs between ranks
    rows = hvd.alltoall(x)
    assert rows.shape[0] == 6 + 2 * (size - 1)
    backward(rows * (rank + 1))
    assert x.grad.tolist() == [each for each in range(1, size + 1) for _ in range(2 if rank else 6)]


def case_alltoall_async_is_a_pair() -> None:
    """Lines 914 and 1250: the counts too, whether splits were given or not."""
    rank, size = hvd.rank(), hvd.size()
    rows, received = hvd.synchronize(hvd.alltoall_async(torch.full((size,), rank, device=DEVICE)))
    assert rows.tolist() == list(range(size)) and received.tolist() == [1] * size


@each_dtype
def case_gradient_of_reducescatter(dtype: Any) -> None:
    """Lines 1084-1090: gathered, times the number of ranks with Sum, times both factors."""
    rank, size = hvd.rank(), hvd.size()
    for op, scale in ((hvd.Sum, float(size)), (hvd.Average, 1.0)):
        x, y, z = leaf(dtype, size * 2), leaf(dtype, size * 2), leaf(dtype, size, 3)
        backward(hvd.reducescatter(x, op=op, name="x") * (rank + 1))
        want = torch.tensor([each * scale for each in range(1, size + 1) for _ in range(2)])
        same(x.grad, want.to(x))
        # Lines 1198-1206: the same, of a group.
        first, second = hvd.grouped_reducescatter(
            [y, z], op=op, prescale_factor=0.5, postscale_factor=4.0
        )
        backward(first * (rank + 1), second)
        same(y.grad, want.to(y) * 2)
        same(z.grad, torch.full_like(z, 2 * scale))


@each_dtype
def case_gradients_of_a_process_set(dtype: Any) -> None:
    """Averages and sizes are those of the set (lines 642, 825 and 1085)."""
    if hvd.size() < 4:
        return
    halves = even_and_odd()
    half = halves[hvd.rank() % 2]
    ranks = half.ranks
    x = leaf(dtype, 2)
    backward(hvd.allgather(x, process_set=half) * (hvd.rank() + 1))
    same(x.grad, torch.full_like(x, sum(each + 1 for each in ranks) / len(ranks)))
    x = leaf(dtype, len(ranks))
    backward(hvd.reducescatter(x, op=hvd.Sum, process_set=half))
    same(x.grad, torch.full_like(x, float(len(ranks))))
    hvd.barrier()
    for each in halves:
        hvd.remove_process_set(each)


def case_contrastive_loss() -> None:
    """A loss over everybody's rows, averaged by the optimizer, trains as one rank alone does."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.arange(1.0, size + 1, dtype=torch.float64, device=DEVICE)
    alone = leaf(torch.float64, 1)
    (alone * rows).pow(2).sum().backward()
    weight = leaf(torch.float64, 1)
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
