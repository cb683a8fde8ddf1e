"""The frameworks under test, as the contract sees them: tensors from numpy arrays and back."""

import importlib
import os
from typing import Any

import numpy as np

NAMES = ("numpy", "torch", "cuda")
REDUCIBLE = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16 longlong ulonglong".split()


def module_of(name: str) -> str:
    """Return the name of a framework's module; "cuda" is torch with tensors on a GPU."""
    return "distributed_dl_training." + ("torch" if name == "cuda" else name)


class Framework:
    """One framework's module ``hvd``; the dtypes are numpy's codes.

    rounds_once: whether float16 is calculated in float32 and rounded at the end.
    place: how requests begin the name of a dtype.
    """

    def __init__(self, name: str, engine: str) -> None:
        self.name = name
        self.hvd: Any = importlib.import_module(module_of(name))
        stays = name == "cuda" and engine in ("nccl", "single")
        self.rounds_once = not (stays and engine == "nccl")
        self.place = "cuda." if stays else ""
        self.reducible = REDUCIBLE
        self.movable = REDUCIBLE + ["g", "U3", "S2", "M8[ns]", "m8[s]", "i4,f8"]
        self.torch: Any = None
        self.device: Any = "cpu"
        if name in ("torch", "cuda"):
            self.torch = importlib.import_module("torch")
            self.reducible = "? i1 i2 i4 i8 u1 f2 f4 f8 c8 c16".split()
            self.movable = self.reducible
        if name == "cuda":
            # Ranks may be more than GPUs.
            number = int(os.environ.get("LOCAL_RANK", 0)) % self.torch.cuda.device_count()
            self.device = self.torch.device("cuda", number)
            self.torch.cuda.set_device(self.device)

    def tensor(self, array: Any) -> Any:
        """Return a tensor with a copy of ``array``, which may be a nested list or a number."""
        copied = np.array(array)
        return copied if self.torch is None else self.torch.from_numpy(copied).to(self.device)

    def array(self, tensor: Any) -> Any:
        """Return what a collective gave as a numpy array."""
        if self.torch is not None:
            assert isinstance(tensor, self.torch.Tensor), type(tensor)
            assert tensor.device == self.torch.device(self.device), tensor.device
            return tensor.detach().cpu().numpy()
        assert isinstance(tensor, np.ndarray), type(tensor)
        return tensor

    def same(self, got: Any, want: Any) -> None:
        """Demand equal values, shape and dtype, NaN counted equal to itself."""
        array = self.array(got)
        want = np.asarray(want)
        assert array.dtype == want.dtype, (array.dtype, want.dtype)
        assert array.dtype.isnative and array.flags.c_contiguous
        assert array.shape == want.shape, (array.shape, want.shape)
        if want.dtype.kind in "fc":
            np.testing.assert_array_equal(array, want)
        else:
            assert array.tobytes() == np.ascontiguousarray(want).tobytes(), (array, want)

    def alltoall(self, tensor: Any, splits: Any = None, **options: Any) -> Any:
        """Return the rows received; checks the counts where they are told as well."""
        got = self.hvd.alltoall(tensor, splits, **options)
        if not isinstance(got, tuple):
            return got
        rows, counts = got
        assert sum(int(each) for each in counts) == len(rows)
        return rows
