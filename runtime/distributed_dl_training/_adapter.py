"""What a framework is to the collectives: its tensors, and how they are read and made."""

from typing import Any, Callable, NamedTuple, Optional, Tuple

from distributed_dl_training._core import Array, Protocol


class Local(NamedTuple):
    """A tensor as the engines see it.

    flat: its elements, one-dimensional, contiguous and in native byte order; a view where that
        is possible.  See ``_memory`` for what is no numpy array.
    dtype: as the framework calls it.
    error: what is wrong with it; then ``flat`` means nothing.
    """

    flat: Array
    shape: Tuple[int, ...]
    dtype: str
    error: Optional[Exception] = None


class Adapter(Protocol):
    """What a framework adds to the collectives.

    views: whether what ``make`` returns is ``flat`` itself in another shape, so that it can be made
        before the result is there.
    handle: makes an ArrayHandle of an executor, what it is asked for, ``flat`` and its tensor.
    """

    views: bool
    handle: Callable[..., Any]

    def read(self, tensor: Any) -> Local:
        """Return ``tensor`` without changing it."""
        raise NotImplementedError

    def flat(self, tensor: Any, last: Any, in_place: bool) -> Optional[Array]:
        """Return the host's memory of ``tensor`` if it is as ``last``, an ArrayReduction, has it.

        in_place: it must be the memory itself, and no copy.
        """
        raise NotImplementedError

    def write(self, tensor: Any) -> Optional[Array]:
        """Return the tensor's own memory, flat, to be changed in place; None if it has no such."""
        raise NotImplementedError

    def make(self, flat: Array, shape: Tuple[int, ...], like: Any) -> Any:
        """Return a tensor of this shape that takes over ``flat``, of the kind of ``like``."""
        raise NotImplementedError

    def put(self, tensor: Any, value: Any) -> None:
        """Copy ``value``, which ``make`` made, into ``tensor``."""
        raise NotImplementedError


class Place(NamedTuple):
    """Where in an arena a tensor lies; the name must be the same on all ranks.

    tensor: what the adapter would read; known beforehand, it need not be read for each exchange.
    """

    name: str
    flat: Array
    start: int
    tensor: Local
