"""Gradients as views of long flat tensors, so that runs of them are reduced where they lie.

A framework may let a program drop its gradients between steps, as torch does by default.  It then
makes new ones, which are copied into their place and freed one by one: gradients are held once.
"""

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from distributed_dl_training._collectives import Local, Place
from distributed_dl_training._core import Array, Protocol


class Memory(NamedTuple):
    """One flat tensor, as the framework and as the engines see it."""

    tensor: Any
    flat: Array


class Layout(NamedTuple):
    """How a parameter's gradient may lie in an arena.

    kind: those of one kind, say a dtype and a device, may lie in one flat tensor.
    """

    kind: Any
    size: int
    itemsize: int
    shape: Tuple[int, ...]
    dtype: str  # as requests name it


class ArenaParameters(Protocol):
    """What an arena asks of a framework."""

    def layout(self, parameter: Any) -> Optional[Layout]:
        """Return how its gradients may lie in an arena; None if they cannot."""
        raise NotImplementedError

    def allocate(self, parameter: Any, count: int) -> Memory:
        """Return ``count`` elements of the kind of this parameter's gradients."""
        raise NotImplementedError

    def view(self, tensor: Any, parameter: Any) -> Any:
        """Return a segment of what ``allocate`` made in the parameter's shape."""
        raise NotImplementedError

    def fits(self, gradient: Optional[Any], parameter: Any) -> bool:
        """Tell whether a gradient, or a new one, may lie in an arena now."""
        raise NotImplementedError

    def gradient(self, parameter: Any) -> Optional[Any]:
        """Return the parameter's gradient."""
        raise NotImplementedError

    def put_gradient(self, parameter: Any, gradient: Any) -> None:
        """Make ``gradient`` the parameter's."""

    def copy(self, target: Any, source: Optional[Any]) -> None:
        """Copy values, or zeros if there is no source, into a tensor."""


class _Segment:
    """One flat tensor, allocated when the first gradient comes to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.memory: Optional[Memory] = None


class _Spot(NamedTuple):
    segment: _Segment
    start: int
    layout: Layout


class Arena:
    """Places for the gradients of parameters, by kind.

    Gradients become ready about in the reverse of the order in which layers were made, so they lie
    in this order: what is ready at the same time lies side by side.  Ranks with equal parameters
    have equal places.
    """

    def __init__(
        self, framework: ArenaParameters, parameters: Sequence[Any], name: str, longest: int
    ) -> None:
        """Lay out the places; nothing is allocated yet.

        name: of the arena, the same on all ranks.
        longest: bytes of a segment, unless a single gradient is longer.
        """
        self._framework = framework
        self._spots: Dict[Any, _Spot] = {}
        self._views: Dict[Any, Any] = {}
        self._places: Dict[Any, Place] = {}
        open_ones: Dict[Any, _Segment] = {}
        made = 0
        for parameter in reversed(parameters):
            layout = framework.layout(parameter)
            if layout is None:
                continue
            room = max(1, longest // layout.itemsize)
            segment = open_ones.get(layout.kind)
            if segment is None or segment.count + layout.size > room:
                segment = open_ones[layout.kind] = _Segment(f"{name}.{made}")
                made += 1
            self._spots[parameter] = _Spot(segment, segment.count, layout)
            segment.count += layout.size

    def attach(self, parameter: Any) -> None:
        """Let the parameter's gradient lie in its place, if it can."""
        framework = self._framework
        gradient = framework.gradient(parameter)
        view = self._views.get(parameter)
        if gradient is not None and gradient is view:
            return
        if parameter not in self._spots or not framework.fits(gradient, parameter):
            return
        if view is None:
            view = self._view(parameter)
        framework.copy(view, gradient)
        framework.put_gradient(parameter, view)

    def place(self, parameter: Any) -> Optional[Place]:
        """Return where the parameter's gradient lies; None if it is not in the arena."""
        gradient = self._framework.gradient(parameter)
        if gradient is None or gradient is not self._views.get(parameter):
            return None
        return self._places[parameter]

    def _view(self, parameter: Any) -> Any:
        segment, start, layout = self._spots[parameter]
        if segment.memory is None:
            segment.memory = self._framework.allocate(parameter, segment.count)
        tensor, flat = segment.memory
        end = start + layout.size
        view = self._views[parameter] = self._framework.view(tensor[start:end], parameter)
        local = Local(flat[start:end], layout.shape, layout.dtype)
        self._places[parameter] = Place(segment.name, flat, start, local)
        return view
