"""By what requests under way are told apart: names, and numbers of those that have none."""

import warnings
from typing import Iterable

from distributed_dl_training._agreement import (
    JOIN,
    JOIN_LABEL,
    SHUTDOWN,
    SHUTDOWN_LABEL,
    Label,
    Request,
)
from distributed_dl_training._handle import Handle


def label_of(request: Request, number: int) -> Label:
    """Return the label of a request without a name; ``number``: the next of the unnamed ones."""
    if request.call == JOIN.call:
        return JOIN_LABEL
    return SHUTDOWN_LABEL if request.call == SHUTDOWN.call else number


def is_numbered(handle: Handle) -> bool:
    """Tell whether the handle goes by its number among the unnamed ones."""
    return isinstance(handle.label, int) and handle.label >= 0


def warn_of_order(request: Request, under_way: Iterable[Handle]) -> bool:
    """Say that allreduces which only their order tells apart are under way together, if so.

    Horovod numbers them as well, and adds up what has the same number.  Tells whether it was said.
    """
    grouped = bool(request.shape) and isinstance(request.shape[0], tuple)
    if request.call != "allreduce" or grouped:
        return False
    if not any(is_numbered(each) and each.request == request for each in under_way):
        return False
    warnings.warn(
        "allreduces without a name and of equal shape are under way together: they are "
        "matched by their order, which must be the same on all ranks; give each a name",
        stacklevel=7,
    )
    return True
