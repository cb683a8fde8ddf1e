"""Torch tensors as the core sees them: dtypes that numpy lacks, and memory that numpy cannot reach.

The core works on flat numpy arrays.  Tensors in a host's memory are given to it as views.  Those
on a device, where the engine takes them there, come as :class:`DeviceArray`, which has as much of
an array as the core uses.

Streams: the program's threads work in streams of theirs, a communication thread in one of its own.
What it carries waits for what the program had asked of the device when it handed the tensor in
(``order``), so that gradients travel while the device still calculates others.  A result is handed
out when it is there (``settle``), for whatever stream.
"""

import threading
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Sequence, Union

import numpy
import torch

from distributed_dl_training._core import Array

# numpy has these under the same name; everything else travels as bytes with a name.
_SHARED = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 "
    "complex64 complex128"
).split()
_TO_NUMPY = {getattr(torch, name): numpy.dtype(name) for name in _SHARED if hasattr(torch, name)}


def dtype_name(dtype: Any) -> str:
    """Return torch's name of a dtype: ``float32`` for torch.float32."""
    return str(dtype).split(".")[-1]


def numpy_dtype(dtype: Any) -> "numpy.dtype[Any]":
    """Return numpy's dtype for torch's; one that numpy lacks is a field of that name."""
    if dtype in _TO_NUMPY:
        return _TO_NUMPY[dtype]
    size = torch.empty(0, dtype=dtype).element_size()
    made = numpy.dtype([(dtype_name(dtype), f"u{size}" if size < 16 else "V16")])
    _TO_NUMPY[dtype] = made
    return made


def torch_dtype(dtype: "numpy.dtype[Any]") -> Any:
    """Return torch's dtype for numpy's; the inverse of ``numpy_dtype``."""
    return getattr(torch, dtype.names[0] if dtype.names else dtype.name)


def flat_array(tensor: Any) -> Array:
    """Return a flat contiguous tensor of the host's memory as an array over the same memory."""
    dtype = numpy_dtype(tensor.dtype)
    if dtype.names is None:
        array: Array = tensor.numpy()
        return array
    if not tensor.numel():
        return numpy.empty(0, dtype=dtype)
    taken: Array = tensor.view(torch.uint8).numpy().view(dtype)
    return taken


def flat_tensor(array: Array) -> Any:
    """Return a flat contiguous array as a tensor over the same memory."""
    if array.dtype.names is None:
        return torch.from_numpy(array)
    dtype = torch_dtype(array.dtype)
    if not array.size:
        return torch.empty(0, dtype=dtype)
    return torch.from_numpy(array.view(numpy.uint8)).view(dtype)


class DeviceArray:
    """A flat contiguous tensor with as much of numpy's array as the core uses.

    Many methods, as the core need not know which kind it holds: they are numpy's, and what
    ``_memory`` does with either kind.
    """

    __slots__ = ("ready", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.ready: Any = None  # the event that ``order`` has noted

    @property
    def size(self) -> int:
        return int(self.tensor.numel())

    @property
    def itemsize(self) -> int:
        return int(self.tensor.element_size())

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def dtype(self) -> "numpy.dtype[Any]":
        return numpy_dtype(self.tensor.dtype)

    def __getitem__(self, key: slice) -> "DeviceArray":
        return DeviceArray(self.tensor[key])

    def __setitem__(self, key: Union[slice, Array], value: Any) -> None:
        where = torch.from_numpy(key).to(self.tensor.device) if _is_array(key) else key
        if isinstance(value, DeviceArray):
            self.tensor[where] = value.tensor.to(self.tensor.dtype)
        else:
            self.tensor[where] = torch.from_numpy(value) if _is_array(value) else value

    def __imul__(self, factor: float) -> "DeviceArray":
        if self.dtype.kind in "iu":  # as ``_reduce.scale`` does it
            self.tensor.copy_(self.tensor.double().mul_(factor))
        else:
            self.tensor.mul_(factor)
        return self

    def __itruediv__(self, divisor: float) -> "DeviceArray":
        self.tensor.div_(divisor)
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Return a copy in the host's memory; what numpy lacks is widened to float32."""
        held = self.tensor if self.dtype.names is None else self.tensor.float()
        array: Array = held.cpu().numpy()
        return array if dtype is None else array.astype(dtype)

    def view(self, dtype: Any) -> "DeviceArray":
        return DeviceArray(self.tensor.view(torch_dtype(numpy.dtype(dtype))))

    def copy(self) -> "DeviceArray":
        return DeviceArray(self.tensor.clone())

    def empty(self, count: int, dtype: Any) -> "DeviceArray":
        """Return ``count`` elements of memory on the same device."""
        kind = torch_dtype(numpy.dtype(dtype))
        return DeviceArray(torch.empty(count, dtype=kind, device=self.tensor.device))

    def order(self) -> None:
        """Note what this thread's stream has been asked so far: ``carrying`` waits for it."""
        if self.tensor.is_cuda:
            self.ready = torch.cuda.current_stream(self.tensor.device).record_event()

    @contextmanager
    def carrying(self, values: Sequence["DeviceArray"]) -> Iterator[None]:
        """Work in this thread's own stream, behind what ``order`` has noted of ``values``."""
        if not self.tensor.is_cuda:
            yield
            return
        stream = _own_stream(self.tensor.device)
        for value in values:
            if value.ready is not None:
                stream.wait_event(value.ready)
                value.ready = None
        with torch.cuda.stream(stream):
            yield

    def settle(self) -> None:
        """Return when this thread's stream on this device has come to its end."""
        if self.tensor.is_cuda:
            torch.cuda.current_stream(self.tensor.device).synchronize()

    def lend(self) -> None:
        """Keep the memory for what this thread's stream will have been asked when it is freed.

        Else it would go back at once to the stream that it was taken in, which may be another's.
        """
        if self.tensor.is_cuda:
            self.tensor.record_stream(torch.cuda.current_stream(self.tensor.device))

    def pack(self, sources: Sequence["DeviceArray"]) -> None:
        """Copy sources one behind the other into this array, in its dtype."""
        if all(source.tensor.dtype == self.tensor.dtype for source in sources):
            torch.cat([source.tensor for source in sources], out=self.tensor)
            return
        start = 0
        for source in sources:
            self.tensor[start : start + source.size] = source.tensor
            start += source.size


def device_zeros(count: int, dtype: "numpy.dtype[Any]", local_rank: int) -> DeviceArray:
    """Return zeros on the device of which this thread has carried tensors.

    If it has carried none yet, on that which a rank of this number on its node is likely to use.
    """
    used = list(_own.streams)
    device = used[-1] if used else torch.device("cuda", local_rank % torch.cuda.device_count())
    return DeviceArray(torch.zeros(count, dtype=torch_dtype(dtype), device=device))


class _Own(threading.local):
    """What each communication thread has for itself: its streams, by device."""

    def __init__(self) -> None:
        self.streams: Dict[Any, Any] = {}


_own = _Own()


def _own_stream(device: Any) -> Any:
    if device not in _own.streams:
        _own.streams[device] = torch.cuda.Stream(device)
    return _own.streams[device]


def _is_array(value: Any) -> bool:
    return isinstance(value, numpy.ndarray)
