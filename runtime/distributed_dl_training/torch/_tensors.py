"""How tensors come to the collectives, and results back to tensors."""

from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy
import torch

from distributed_dl_training import _session
from distributed_dl_training._collectives import Local
from distributed_dl_training._core import Array
from distributed_dl_training._device import DeviceArray, dtype_name, flat_array, flat_tensor
from distributed_dl_training._handle import ArrayHandle, Handle
from distributed_dl_training._memory import ON_DEVICE


class TensorHandle(ArrayHandle):
    """An allreduce of a tensor of the host; see ``ArrayHandle``."""

    _result: Any = None

    def synchronize(self) -> Any:
        if self.done and self.in_place and self.error is None:
            return self.tensor
        value = super().synchronize()
        if self.in_place:
            return self.tensor
        if self._result is None:  # another thread may ask for the same result
            self.__dict__.setdefault("_result", torch.from_numpy(value))
        return self._result


class Tensors:
    """Torch's adapter, see ``_collectives.Adapter``.

    Tensors on the host are given to the engines as views; those on a device as well if the engine
    takes them, else they are copied to the host.
    """

    views = False  # results for tensors on a device are copies
    handle: Any = TensorHandle

    def read(self, tensor: Any) -> Local:
        refusal = _refusal(tensor)
        if refusal is not None:
            return Local(numpy.empty(0, dtype=numpy.void), (), "void", refusal)
        held = tensor.detach()
        shape = tuple(held.shape)
        name = dtype_name(held.dtype)
        if stays_on_device(held):
            return Local(DeviceArray(_flat(held)), shape, ON_DEVICE + name)  # type: ignore[arg-type]
        return Local(flat_array(_flat(held.cpu())), shape, name)

    def write(self, tensor: Any) -> Optional[Array]:
        held = tensor.detach()
        if not held.is_contiguous() or (held.device.type != "cpu" and not stays_on_device(held)):
            return None
        return memory_of(_line(held))

    def make(self, flat: Array, shape: Tuple[int, ...], like: Any) -> Any:
        if isinstance(flat, numpy.ndarray):
            return _there(flat_tensor(flat).view(shape).to(like.device))
        flat.lend()
        return flat.tensor.view(shape)

    def put(self, tensor: Any, value: Any) -> None:
        _there(tensor.detach().copy_(value))

    def flat(self, tensor: Any, last: Any, in_place: bool) -> Optional[Array]:
        kind = tensor.dtype
        if type(tensor) not in _PLAIN or kind is not last.dtype or kind not in _QUICK:
            return None
        if tensor.shape != last.shape or tensor.device.type != "cpu":
            return None
        if tensor.layout is not torch.strided or not tensor.is_contiguous():
            return None
        flat: Array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
        return flat if flat.ndim == 1 else flat.reshape(-1)


TENSORS = Tensors()
_PLAIN = (torch.Tensor, torch.nn.Parameter)
# Dtypes of which numpy has the same, and tensors no other views than strided ones.
_QUICK = {torch.float32, torch.float64, torch.float16, torch.uint8, torch.int8}
_QUICK.update((torch.int16, torch.int32, torch.int64))


class Handles:
    """Several collectives that make one result; used like a single ``Handle``."""

    def __init__(self, handles: Sequence[Any], finish: Callable[[List[Any]], Any]) -> None:
        """``finish`` turns the results of the handles into what the caller gets."""
        self._handles = list(handles)
        self._finish: Optional[Callable[[List[Any]], Any]] = finish
        self._value: Any = None

    def poll(self) -> bool:
        """Tell whether the result is there, so that ``synchronize`` will not wait."""
        return all(handle.poll() for handle in self._handles)

    def synchronize(self) -> Any:
        """Wait for the collectives and return their result; a second call returns the same."""
        if self._finish is not None:
            self._value = self._finish([handle.synchronize() for handle in self._handles])
            self._finish = None
        return self._value

    # Horovod's handle of a sparse allreduce is called for its result.
    __call__ = synchronize


def then(handle: Handle, function: Callable[[Any], Any]) -> Handle:
    """Let ``function`` turn the result of ``handle`` into what the caller gets."""
    finish = handle.finish

    def both(work: Any) -> Any:
        return function(work.value if finish is None else finish(work))

    handle.finish = both
    return handle


def stays_on_device(tensor: Any) -> bool:
    """Tell whether the engine carries this tensor without a copy on the host."""
    return tensor.is_cuda and _session.controller().engine.devices


def _there(tensor: Any) -> Any:
    """Return a tensor that was written in this thread's stream, to be read in whatever stream."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()
    return tensor


def memory_of(flat: Any) -> Array:
    """Return a flat contiguous tensor's own memory, as the engines take it."""
    if flat.device.type == "cpu":
        return flat_array(flat)
    made: Any = DeviceArray(flat)
    taken: Array = made
    return taken


def _refusal(tensor: Any) -> Optional[Exception]:
    if not isinstance(tensor, torch.Tensor):
        return TypeError(f"a torch.Tensor is needed, not {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        return TypeError(f"a tensor of layout {tensor.layout} can only be reduced by allreduce")
    if tensor.is_quantized:
        return TypeError(f"dtype {tensor.dtype} cannot travel between ranks")
    return None


def _flat(held: Any) -> Any:
    for resolve in ("resolve_conj", "resolve_neg"):  # views that only note what to do
        if hasattr(held, resolve):
            held = getattr(held, resolve)()
    return _line(held.contiguous())


def _line(held: Any) -> Any:
    """Return a contiguous tensor as a flat one, of stride 1: torch lets a single element have any.

    The gradient of a sum is such a one: expanded, with stride 0.
    """
    flat = held.view(-1)
    return flat if flat.stride(0) == 1 else flat.as_strided(flat.shape, (1,))
