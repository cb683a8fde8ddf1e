"""Allreduces that come again: what the ranks are asked to agree on, kept by the arguments."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from distributed_dl_training._agreement import Request
from distributed_dl_training._controller import Controller
from distributed_dl_training._core import Op

# Requests that are kept ready, per controller.
_REMEMBERED = 1 << 14


class Reduction(NamedTuple):
    """What the ranks are asked to agree on, and how it is calculated."""

    request: Request
    op: Op
    prescale: float
    postscale: float


class ArrayReduction:
    """What was asked for last under a name, by what tells with the least work that it comes again.

    It is for memory of the host, of dtypes that numpy has.  ``shape`` and ``dtype`` are as the
    framework has them.
    """

    def __init__(
        self,
        shape: Tuple[int, ...],
        dtype: Any,
        given: Tuple[Any, Any, Any],
        reduction: Reduction,
    ) -> None:
        """given: op, prescale and postscale as the program gives them."""
        self.shape = shape
        self.dtype = dtype
        self.given_op, self.given_prescale, self.given_postscale = given
        self.request, self.op, self.prescale, self.postscale = reduction


def find(controller: Controller, key: Any) -> Optional[Reduction]:
    """Return what was asked with the same arguments before."""
    try:
        found: Optional[Reduction] = controller.remembered.get(key)
    except TypeError:  # an argument of a wrong type, which is refused later
        return None
    return found


def remember(reductions: Dict[Any, Any], key: Any, reduction: Any) -> None:
    """Keep what is asked for: programs ask for the same again and again."""
    if len(reductions) >= _REMEMBERED:
        reductions.clear()
    reductions[key] = reduction
