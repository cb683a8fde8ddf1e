"""What callers get of collectives: what was exchanged, in their tensors' shapes."""

from typing import Any, Optional, Sequence, Tuple

from distributed_dl_training._adapter import Adapter, Local
from distributed_dl_training._core import Array
from distributed_dl_training._works import Allreduce


def make(adapter: Adapter, shape: Tuple[int, ...], like: Any, done: Allreduce) -> Any:
    """Return what one tensor was reduced to."""
    return adapter.make(done.target, shape, like)


def cut(
    adapter: Adapter,
    tensors: Sequence[Any],
    local: Sequence[Local],
    grouped: bool,
    in_place: bool,
    done: Allreduce,
) -> Any:
    """Return a group's result as tensors, each a segment of what was reduced; or the one."""
    flat, sources = done.target, done.sources
    made = []
    start = 0
    for tensor, each in zip(tensors, local):
        segment = flat[start : start + each.flat.size]
        start += each.flat.size
        if not in_place:
            made.append(adapter.make(segment, each.shape, tensor))
        elif sources[0] is flat:  # it has been reduced where it lies
            made.append(tensor)
        else:
            made.append(put_back(adapter, tensor, each.shape, segment, None))
    return made if grouped else made[0]


def put_back(
    adapter: Adapter, tensor: Any, shape: Tuple[int, ...], flat: Array, own: Optional[Array]
) -> Any:
    """Put a result into the tensor it was asked for; nothing to do if it is there already."""
    if own is not flat:
        adapter.put(tensor, adapter.make(flat, shape, tensor))
    return tensor
