"""Cases of ``torch_contract.py``: what becomes of tensors.

Lines alone are of Horovod 0.28.1, horovod/torch/mpi_ops.py: what states the rule of a case.
"""

import functools
import warnings
from typing import Any, List
from unittest import mock

import numpy as np
import torch

import distributed_dl_training.numpy as hvd_numpy
import distributed_dl_training.torch as hvd
from distributed_dl_training import _collectives, _device, _session, _works
from distributed_dl_training._nccl import NcclEngine
from distributed_dl_training.torch import _tensors

from torch_samples import (
    COMPLEX,
    DEVICE,
    FLOATS,
    INTEGERS,
    OF_HOROVOD,
    added,
    generator,
    mine,
    refused,
    same,
    sample,
    samples,
    stays,
)


def case_allreduce_dtypes() -> None:
    """Those of Horovod are among them: ``OF_HOROVOD`` has the line for each."""
    assert {*OF_HOROVOD} <= {*FLOATS, *INTEGERS}
    for dtype in FLOATS + INTEGERS + COMPLEX:
        for shape in ((), (0,), (5,), (2, 3)):
            total = added(samples(dtype, *shape))
            same(hvd.allreduce(mine(dtype, *shape), op=hvd.Sum), total)
            if dtype in FLOATS + COMPLEX and hvd.size() in (1, 2, 4):
                same(hvd.allreduce(mine(dtype, *shape)), total / hvd.size())
    for dtype in FLOATS + INTEGERS:
        stacked = torch.stack([each.cpu().double() for each in samples(dtype, 9)])
        for op, want in ((hvd.Min, stacked.amin(0)), (hvd.Max, stacked.amax(0))):
            same(hvd.allreduce(mine(dtype, 9), op=op), want.to(dtype).to(DEVICE))
        integers = torch.stack([each.cpu().long() for each in samples(dtype, 9)])
        product = integers.prod(0).to(dtype).to(DEVICE)  # too large, it is the rest of a division
        same(hvd.allreduce(mine(dtype, 9), op=hvd.Product), product)
    flags = torch.tensor([True, False, hvd.rank() == 0])
    same(hvd.allreduce(flags, op=hvd.Max), torch.tensor([True, False, True]))
    same(hvd.allreduce(flags, op=hvd.Min), torch.tensor([True, False, hvd.size() == 1]))


def case_bfloat16_is_rounded_once() -> None:
    if stays():  # there it is not, see ``torch_device.case_halves``
        return
    # Half a unit in the last place from each rank: rounded after each rank, they would be lost.
    small = torch.tensor([1.0 if hvd.rank() == 0 else 2.0**-8], dtype=torch.bfloat16)
    exact = 1.0 + (hvd.size() - 1) * 2.0**-8
    same(hvd.allreduce(small, op=hvd.Sum), torch.tensor([exact]).bfloat16())
    odd = torch.tensor([float("nan"), float("inf"), -0.0], dtype=torch.bfloat16)
    got = hvd.allreduce(odd, op=hvd.Sum)
    assert got[0].isnan() and got[1].isinf() and got[2] == 0
    values = torch.randn(70000, generator=generator(1)).bfloat16()
    factor = float(hvd.size())
    same(hvd.allreduce(values, op=hvd.Sum), (values.float() * factor).bfloat16())


def case_one_element_of_any_stride() -> None:
    """Contiguous to torch, and the bytes of those that numpy lacks are still to be reached."""
    for dtype in FLOATS:
        one = torch.tensor(2.0, dtype=dtype).expand(1)
        assert one.is_contiguous() and one.stride() == (0,)
        same(hvd.allreduce(one, op=hvd.Sum), torch.tensor([2.0 * hvd.size()], dtype=dtype))
        same(hvd.allgather(one), torch.full((hvd.size(),), 2.0, dtype=dtype))
        same(hvd.broadcast_(one, 0), one)


def case_layouts_and_in_place() -> None:
    """In place: 296-301 and 883-886.  Horovod refuses what is not contiguous: 101-102."""
    wide = mine(torch.float32, 4, 6)
    total = added(samples(torch.float32, 4, 6))
    same(hvd.allreduce(wide.t(), op=hvd.Sum), total.t())
    same(hvd.allreduce(wide[::2, 1::3], op=hvd.Sum), total[::2, 1::3])
    same(
        hvd.allreduce(mine(torch.complex64, 3).conj(), op=hvd.Sum),
        added(samples(torch.complex64, 3)).conj().resolve_conj(),
    )
    for tensor in (wide.clone(), wide.clone().t(), torch.zeros(4, 12)[:, ::2].copy_(wide)):
        want = total.t() if tensor.shape[0] == 6 else total
        assert hvd.allreduce_(tensor, op=hvd.Sum) is tensor
        same(tensor, want)
    parameter = torch.nn.Parameter(mine(torch.float32, 3))
    hvd.broadcast_(parameter, root_rank=hvd.size() - 1)
    same(parameter.detach(), sample(hvd.size() - 1, torch.float32, 3))
    assert parameter.requires_grad


def case_groups() -> None:
    """By their place in the list: 389-394, in place 529-534; of others 698-706 and 1209-1215."""
    kinds = [torch.float32, torch.float64, torch.float32, torch.bfloat16]
    tensors = [mine(kind, 3, 2) for kind in kinds]
    wanted = [added(samples(kind, 3, 2)) for kind in kinds]
    for got, want in zip(hvd.grouped_allreduce(tensors, name="g", op=hvd.Sum), wanted):
        same(got, want)
    reduced = hvd.grouped_allreduce_(tensors, op=hvd.Sum)
    for tensor, got, want in zip(tensors, reduced, wanted):
        assert got is tensor
        same(got, want)
    assert hvd.grouped_allreduce([]) == []
    gathered = hvd.grouped_allgather([mine(torch.int16, 2), mine(torch.bool, 1)])
    same(gathered[1], torch.cat(samples(torch.bool, 1)))
    shares = hvd.grouped_reducescatter([torch.ones(hvd.size(), 2)], op=hvd.Sum)
    same(shares[0], torch.full((1, 2), float(hvd.size())))


def case_moves() -> None:
    """652-659, 831-838, 983-999, 1094-1103, and horovod/torch/functions.py:201-257."""
    rank, size = hvd.rank(), hvd.size()
    for dtype in [torch.bool, *FLOATS, *INTEGERS, *COMPLEX]:
        parts = [sample(each, dtype, each, 2) for each in range(size)]
        same(hvd.allgather(parts[rank]), torch.cat(parts))
        same(hvd.broadcast(mine(dtype, 2, 2), 0), sample(0, dtype, 2, 2))
        sent = [sample(each, dtype, size, 2) for each in range(size)]
        rows, received = hvd.alltoall(sent[rank], [1] * size)
        same(rows, torch.stack([each[rank] for each in sent]))
        assert received.tolist() == [1] * size
        if dtype is not torch.bool:
            same(hvd.reducescatter(sent[rank], op=hvd.Sum), added(sent)[rank : rank + 1])
    if hasattr(torch, "float8_e5m2"):
        eighth = torch.tensor([float(rank)]).to(torch.float8_e5m2)
        got = hvd.allgather(eighth)
        assert got.dtype == torch.float8_e5m2 and got.float().tolist() == list(range(size))
        with refused(TypeError):
            hvd.allreduce(eighth)
    # One rank has far more than the others.
    parts = [torch.full((1000 if each == 0 else each, 3), each) for each in range(size)]
    same(hvd.allgather(parts[rank]), torch.cat(parts))
    splits = torch.tensor([each + rank for each in range(size)], dtype=torch.int32)
    rows, received = hvd.alltoall(torch.full((int(splits.sum()), 2), float(rank)), splits)
    assert received.tolist() == [rank + each for each in range(size)]
    assert (received.device, received.dtype) == (splits.device, torch.int32)
    assert rows[:, 0].tolist() == [each for each in range(size) for _ in range(rank + each)]
    same(hvd.alltoall(torch.full((size,), rank)), torch.arange(size))
    whole = hvd.allgather(hvd.reducescatter(mine(torch.float64, 6, 2), op=hvd.Sum))
    same(whole, added(samples(torch.float64, 6, 2)))
    assert hvd.broadcast_object({"rank": rank}, root_rank=size - 1) == {"rank": size - 1}
    assert hvd.allgather_object("x" * rank) == ["x" * each for each in range(size)]
    hvd.barrier()


def case_arguments() -> None:
    """``average`` is deprecated, ``op`` instead: 172-175; factors: 181-182; polling: 1253-1257."""
    ones = torch.ones(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        same(hvd.allreduce(ones, average=False), ones * hvd.size())
        same(hvd.allreduce(ones, average=True), ones)
        with refused(ValueError):
            hvd.allreduce(ones, average=True, op=hvd.Sum)
    for wrong in ([1.0], np.ones(2), ones.to_sparse(), None):
        with refused(TypeError):
            hvd.allgather(wrong)
    with refused(TypeError):
        hvd.allreduce(torch.ones(2, dtype=torch.int64))
    with refused(TypeError):
        hvd.allreduce(ones, op="sum")
    if hvd.size() > 1:
        with refused(hvd.MismatchError):
            hvd.allreduce(torch.ones(2 + hvd.rank()), name="shapes")
        with refused(hvd.MismatchError):
            hvd.allreduce(ones.bfloat16() if hvd.rank() else ones.half(), name="dtypes")
    handle = hvd.allreduce_async(ones, name="a", op=hvd.Sum)
    while not hvd.poll(handle):
        pass
    same(hvd.synchronize(handle), ones * hvd.size())
    same(
        hvd.allreduce(ones, op=hvd.Sum, prescale_factor=0.5, postscale_factor=4.0),
        ones * 2 * hvd.size(),
    )


def case_mixed_with_numpy() -> None:
    array = hvd_numpy.allreduce(np.ones(3, dtype=np.float32), name="n", op=hvd.Sum)
    same(hvd.allreduce(torch.ones(3), name="n", op=hvd.Sum), torch.from_numpy(array).to(DEVICE))


def case_sparse() -> None:
    """Rows are gathered, and divided for an average: 567-588."""
    rank, size = hvd.rank(), hvd.size()
    rows = torch.tensor([[rank, size, rank]])
    values = torch.tensor([[1.0, 2.0], [10.0, 20.0], [0.5, 0.5]])
    tensor = torch.sparse_coo_tensor(rows, values, (size + 1, 2), check_invariants=True)
    dense = sum(each for each in hvd.allgather(tensor.to_dense()[None]))
    for reduced in (
        hvd.allreduce(tensor, op=hvd.Sum),
        hvd.synchronize(hvd.sparse_allreduce_async(tensor, "s", hvd.Sum)),
        hvd.sparse_allreduce_async(tensor, None, hvd.Sum)(),
    ):
        assert reduced.is_sparse and reduced.is_coalesced()
        same(reduced.to_dense(), dense)
    same(hvd.allreduce(tensor).to_dense(), dense / size)
    half = hvd.allreduce(tensor, op=hvd.Sum, prescale_factor=0.25, postscale_factor=2.0)
    same(half.to_dense(), dense / 2)
    if size > 1:
        wide = torch.zeros(size + 1 + rank, 2).to_sparse()
        with refused(hvd.MismatchError):  # also without a name
            hvd.allreduce(wide, op=hvd.Sum)
        with refused(hvd.MismatchError):
            hvd.allreduce(tensor, op=hvd.Sum if rank else hvd.Average)
    one = tensor if rank == 0 else torch.zeros_like(tensor.coalesce())
    want = hvd.broadcast(tensor.to_dense(), 0)
    same(hvd.allreduce(one, op=hvd.Sum).to_dense(), want)


def case_compression() -> None:
    """Floating point alone: horovod/torch/compression.py:46-64."""
    values = torch.full((4,), 1.0 + 2.0**-9)
    for compression, want in (
        (hvd.Compression.fp16, values),
        (hvd.Compression.bf16, torch.ones(4)),
    ):
        same(hvd.allreduce(values, compression=compression), want)
        same(
            hvd.allreduce(mine(torch.int32, 3), op=hvd.Sum, compression=compression),
            added(samples(torch.int32, 3)),
        )
    same(
        hvd.reducescatter(torch.ones(hvd.size(), 2), compression=hvd.Compression.fp16),
        torch.ones(1, 2),
    )


class OnDevice(_tensors.Tensors):
    """Tensors of the host, carried as if only torch could reach them."""

    def read(self, tensor: Any) -> Any:
        flat = _device.DeviceArray(tensor.detach().contiguous().view(-1))
        return _collectives.Local(flat, tuple(tensor.shape), _device.dtype_name(tensor.dtype))

    def write(self, tensor: Any) -> Any:
        return _device.DeviceArray(tensor.view(-1))


def case_device_memory() -> None:
    if hvd.engine_name() != "gloo" or DEVICE != "cpu":
        return
    # All ranks must take the same way, also those that have nothing to give.
    assert isinstance(_works.as_bytes(_device.DeviceArray(torch.empty(0))), _device.DeviceArray)
    engine: Any = _session.controller().engine
    settled: List[Any] = []
    with mock.patch.object(_device.DeviceArray, "settle", lambda one: settled.append(one)):
        on_device()
        # One for each exchange of an array: whoever has a result may read it from any stream.
        assert len(settled) == 4 * 4 + 2
        with mock.patch.object(engine, "wait", functools.partial(NcclEngine.wait, engine)):
            on_device()


def on_device() -> None:
    adapter = OnDevice()
    factors = (1.0, 1.0)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        tensors = [mine(dtype, 5), mine(dtype, 2, 2)]
        wanted = [added(samples(dtype, 5)), added(samples(dtype, 2, 2))]
        handle = _collectives.allreduce(adapter, tensors, "g", hvd.Sum, factors, grouped=True)
        for got, want in zip(handle.synchronize(), wanted):
            same(got, want)
        handle = _collectives.allreduce(adapter, tensors[:1], "i", hvd.Sum, factors, in_place=True)
        assert handle.synchronize() is tensors[0]
        same(tensors[0], wanted[0])
        same(
            _collectives.allgather(adapter, mine(dtype, 2), None).synchronize(),
            torch.cat(samples(dtype, 2)),
        )
        same(
            _collectives.broadcast(adapter, mine(dtype, 2), 0, None).synchronize(),
            sample(0, dtype, 2),
        )
    extremes = mine(torch.float32, 6)
    extremes[2] = float("nan") if hvd.rank() == 0 else 0.0
    got = _collectives.allreduce(adapter, [extremes], None, hvd.Max, factors).synchronize()
    assert got.isnan().tolist() == [False, False, True, False, False, False]
    average = _collectives.allreduce(
        adapter, [mine(torch.float32, 4)], None, hvd.Average, (2.0, 0.5)
    )
    assert torch.allclose(average.synchronize(), added(samples(torch.float32, 4)) / hvd.size())


def case_many_small_tensors() -> None:
    """They come again in the same order, of shapes of all kinds; results stay as they were."""
    kept: List[Any] = []
    for step in range(5):
        given = [torch.full((n % 4, 3) if n % 5 else (), float(n + step)) for n in range(60)]
        given[7] = torch.nn.Parameter(given[7])
        given[8] = torch.full((3, 5), float(8 + step)).t()
        given[9] = torch.full((4,), 9 + step, dtype=torch.int64)
        handles = [
            hvd.allreduce_async(each, op=hvd.Sum, name=f"small {n}") for n, each in enumerate(given)
        ]
        results = [hvd.synchronize(handle) for handle in handles]
        assert all(a is hvd.synchronize(b) for a, b in zip(results, handles))
        placed = [each.detach().clone() for each in given]
        handles = [
            hvd.allreduce_async_(each, op=hvd.Sum, name=f"placed {n}")
            for n, each in enumerate(placed)
        ]
        for handle in handles:
            while not handle.poll():
                pass
        for n, (each, result, handle) in enumerate(zip(placed, results, handles)):
            if each.is_contiguous():  # others are written by synchronize
                same(each, given[n].detach() * hvd.size())
            assert hvd.synchronize(handle) is each
            same(result, each)
        kept.append((results, [each.clone() for each in results]))
    for results, copies in kept:
        for result, copy in zip(results, copies):
            same(result, copy)
