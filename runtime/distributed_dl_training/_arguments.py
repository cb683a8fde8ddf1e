"""Arguments of collectives: what they mean, and what is wrong with them.

Nothing is raised here: errors are told together with the other ranks, see ``_collectives``.
"""

import operator
from typing import Any, List, Optional, Sequence, Tuple

from distributed_dl_training import _reduce, _session
from distributed_dl_training._adapter import Local
from distributed_dl_training._core import Op
from distributed_dl_training._session import ProcessSet


def factors(given: Tuple[Any, Any]) -> Tuple[Tuple[float, float], Optional[Exception]]:
    """Return prescale and postscale, and what is wrong with them."""
    try:
        scales = float(given[0]), float(given[1])
    except (TypeError, ValueError, OverflowError):
        scales = 1.0, float("nan")
    if scales[0] != scales[0] or scales[1] != scales[1]:
        error = TypeError("prescale_factor and postscale_factor must be numbers")
        return (1.0, 1.0), error
    return scales, None


def root(root_rank: Any, process_set: Optional[ProcessSet]) -> Tuple[int, int, Optional[Exception]]:
    """Return the root, its place among those that take part, and what is wrong with it."""
    try:
        found = operator.index(root_rank)
    except TypeError as error:
        return -1, -1, error
    size = _session.controller(process_set).engine.size
    ranks, named = list(range(size)), f"a rank from 0 to {size - 1}"
    if process_set is not None and process_set.process_set_id != 0:
        ranks, named = process_set.ranks, f"one of the ranks {process_set.ranks} of the set"
    if found in ranks:
        return found, ranks.index(found), None
    return found, -1, ValueError(f"root_rank {found} is not {named}")


def splits(
    given: Optional[Sequence[int]], rows: int, size: int
) -> Tuple[List[int], Optional[Exception]]:
    """Return how many of ``rows`` go to each rank, and what is wrong with that."""
    if given is None:
        if rows % size:
            return [], ValueError(f"{rows} rows cannot be split evenly over {size} ranks")
        return [rows // size] * size, None
    try:
        counts = [operator.index(each) for each in given]
    except TypeError as error:
        return [], error
    if len(counts) != size or min(counts) < 0 or sum(counts) != rows:
        return [], ValueError(
            f"splits {counts} must be {size} numbers of at least 0 that add up to {rows} rows"
        )
    return counts, None


def reduction(local: Local, op: Any, scales: Tuple[float, float]) -> Optional[Exception]:
    """Return what forbids to reduce a tensor so, or None."""
    if not isinstance(op, Op):
        return TypeError("op must be Sum, Average, Min, Max, Product or Adasum")
    scaled = scales != (1.0, 1.0)
    return _reduce.refusal(local.flat.dtype, op, scaled, _session.horovod_rules())


def group(local: Sequence[Local]) -> Optional[Exception]:
    """Return what is wrong with the tensors of a group, or None."""
    kinds = sorted({each.dtype for each in local})
    error = next((each.error for each in local if each.error is not None), None)
    if error is None and len(kinds) > 1:
        error = TypeError(f"the tensors of a group must have one dtype, not {', '.join(kinds)}")
    return error
