"""Tensors whose values each rank knows of all ranks, and how results are compared.

They lie on DDLT_TEST_DEVICE, cpu or cuda; ``start`` lets the cases make theirs there as well.
"""

import contextlib
import os
import warnings
from typing import Any, Iterator, List

import numpy as np
import torch

import distributed_dl_training.torch as hvd

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
INTEGERS += [
    getattr(torch, f"uint{bits}") for bits in (16, 32, 64) if hasattr(torch, f"uint{bits}")
]
# What Horovod carries, by the line of horovod/torch/adapter_v2.cc of 0.28.1 that says so.  All else
# is "Invalid tensor type." there (line 93), and this runtime's own: bool, bfloat16, complex numbers
# and the further unsigned integers.
OF_HOROVOD = {
    torch.uint8: 76,
    torch.int8: 78,
    torch.int16: 80,
    torch.int32: 82,
    torch.int64: 84,
    torch.float16: 86,
    torch.float32: 88,
    torch.float64: 90,
}
COMPLEX = [torch.complex64, torch.complex128]
DEVICE = os.environ.get("DDLT_TEST_DEVICE", "cpu")


def start() -> None:
    """Pin the device, which ranks may have to share, and join the other ranks."""
    # Torch 2.11 says so of sparse tensors even where it is told whether to check them.
    warnings.filterwarnings("ignore", "Sparse invariant checks are implicitly disabled")
    torch.set_num_threads(1)
    hvd.init()
    if DEVICE != "cpu":
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
        torch.set_default_device(DEVICE)


def stays() -> bool:
    """Tell whether tensors are carried on a device, where they lie."""
    return DEVICE != "cpu" and hvd.engine_name() == "nccl"


def generator(seed: int) -> Any:
    return torch.Generator(device=DEVICE).manual_seed(seed)


def sample(rank: int, dtype: Any, *shape: int) -> Any:
    """Return a tensor whose values differ by rank and are exact in every dtype."""
    count = int(np.prod(shape, dtype=int))
    # On the host first: devices lack operations for some of the dtypes.
    values: Any = (torch.arange(count, device="cpu") * 3 + rank * 2) % 7
    if dtype in COMPLEX:
        values = values + 1j * ((values + rank) % 3)
    return values.to(dtype).view(shape).to(DEVICE)


def samples(dtype: Any, *shape: int) -> List[Any]:
    return [sample(rank, dtype, *shape) for rank in range(hvd.size())]


def mine(dtype: Any, *shape: int) -> Any:
    return sample(hvd.rank(), dtype, *shape)


def added(tensors: List[Any]) -> Any:
    """Return the sum in a dtype that holds it, converted at the end."""
    dtype = tensors[0].dtype
    wide = torch.complex128 if dtype in COMPLEX else torch.float64
    total: Any = sum(each.cpu().to(wide) for each in tensors)
    return total.to(dtype).to(DEVICE)


def same(got: Any, want: Any) -> None:
    assert isinstance(got, torch.Tensor), type(got)
    assert got.dtype == want.dtype and got.shape == want.shape, (got, want)
    assert got.device == want.device, (got.device, want.device)
    assert torch.equal(as_floats(got), as_floats(want)), (got, want)


def as_floats(tensor: Any) -> Any:
    """Return a copy in the host's memory whose values can be compared."""
    return torch.view_as_real(tensor.cpu()) if tensor.is_complex() else tensor.cpu().double()


def even_and_odd() -> List[Any]:
    """Add the process sets of the even ranks and of the odd ones; return both."""
    ranks = range(hvd.size())
    return [hvd.add_process_set([rank for rank in ranks if rank % 2 == odd]) for odd in (0, 1)]


@contextlib.contextmanager
def refused(kind: type) -> Iterator[None]:
    """Demand an error of exactly this type on every rank."""
    try:
        yield
    except Exception as error:
        assert type(error) is kind, repr(error)
    else:
        raise AssertionError(f"no {kind.__name__}")
