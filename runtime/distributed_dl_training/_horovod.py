"""The compatibility layer: names that mean in Horovod what they do not mean in our own API.

The rule is that a program written for Horovod 0.28.1 gets Horovod's numbers, errors, variables and
options; ``import horovod.torch`` takes its names from here first, then from ours.  A session that
is opened by this ``init`` keeps Horovod's rules: integers are averaged and scaled, and the gradient
of a reduction by Min, Max or Product is reduced likewise.
"""

import os
import sys
import warnings
from typing import Any, Dict, List, Optional, Sequence, Union

from distributed_dl_training import _builds, _facts, _session
from distributed_dl_training._core import CollectiveError, Op

# What Horovod raises for whatever goes wrong in a collective.
HorovodInternalError = CollectiveError


class HostsUpdatedInterrupt(RuntimeError):
    """Never raised: it belongs to elastic jobs, and programs name it to catch it."""

    def __init__(self, skip_sync: bool = False) -> None:
        super().__init__()
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """Never raised: nothing is compiled against a framework here."""


def init(comm: Any = None, process_sets: Any = None) -> None:
    """Join the other ranks; a second call does nothing.  Raises as our own ``init``."""
    _session.join(comm, process_sets, True, horovod_rules=True)
    if os.environ.get("HOROVOD_AUTOTUNE", "0") not in ("", "0") and _facts.rank() == 0:
        sys.stderr.write("HOROVOD_AUTOTUNE has no effect here: nothing is tuned while a job runs\n")


class ProcessSet(_session.ProcessSet):
    """Some of the ranks, in ascending order (horovod/common/process_sets.py:39)."""

    def __init__(self, ranks_or_comm: Any) -> None:
        """Name the ranks.  Raises ValueError for what is no list of them."""
        try:
            ranks = sorted(ranks_or_comm)
        except TypeError:
            raise ValueError(
                "a process set is made of a list of ranks here, not of a communicator: pass "
                "[world rank, ...]"
            ) from None
        if any(not isinstance(rank, int) for rank in ranks):
            raise ValueError(f"ranks {ranks} are not all integers")
        super().__init__(ranks)

    def size(self) -> Optional[int]:  # type: ignore[override]
        """Return the number of ranks, None before the set is added."""
        return None if self.process_set_id is None else super().size()

    def rank(self) -> Optional[int]:  # type: ignore[override]
        """Return this process's rank in the set, None before the set is added."""
        return None if self.process_set_id is None else super().rank()

    def included(self) -> bool:
        """Tell whether this process is one of the ranks, also before the set is added."""
        return _facts.rank() in self.ranks


def add_process_set(process_set: Union[_session.ProcessSet, Sequence[int]]) -> Any:
    """Make a set usable; collective.  It needs no HOROVOD_DYNAMIC_PROCESS_SETS here."""
    known = isinstance(process_set, _session.ProcessSet)
    return _session.add_process_set(process_set if known else ProcessSet(process_set))


def remove_process_set(process_set: _session.ProcessSet) -> bool:
    """Undo ``add_process_set``; False for the global set and one that is not there."""
    if process_set.process_set_id is None:
        return False
    return _session.remove_process_set(process_set)


def handle_average_backwards_compatibility(op: Any, average: Optional[bool]) -> Any:
    """Return the operation that ``op`` and ``average`` mean.  Raises ValueError for both."""
    if average is None:
        return Op.AVERAGE if op is None else op
    if op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    # Names the line of the program: below it are a collective and ``combined_operation``.
    warnings.warn("average is deprecated: use op", DeprecationWarning, stacklevel=4)
    return Op.AVERAGE if average else Op.SUM


def start_timeline(file_path: str, mark_cycles: bool = False) -> None:
    """Write a timeline; see our own ``start_timeline``."""
    _session.start_timeline(file_path, mark_cycles)


class HorovodBasics:
    """horovod/common/basics.py: the session's functions as methods."""

    Average, Sum, Adasum = Op.AVERAGE, Op.SUM, Op.ADASUM
    Min, Max, Product = Op.MIN, Op.MAX, Op.PRODUCT

    def __init__(self, pkg_path: str = "", *args: str) -> None:
        """Take what names Horovod's library, which is not used."""

    @staticmethod
    def _get_process_set_ids_and_ranks() -> Dict[int, List[int]]:
        """Return the ranks of each process set, by its number.  Horovod's own tests call it."""
        return {number: one.ranks for number, one in _session.facts().members.items()}

    init = staticmethod(init)
    shutdown = staticmethod(_session.shutdown)
    is_initialized = staticmethod(_session.is_initialized)
    start_timeline = staticmethod(start_timeline)
    stop_timeline = staticmethod(_session.stop_timeline)
    size = staticmethod(_facts.size)
    local_size = staticmethod(_facts.local_size)
    cross_size = staticmethod(_facts.cross_size)
    rank = staticmethod(_facts.rank)
    local_rank = staticmethod(_facts.local_rank)
    cross_rank = staticmethod(_facts.cross_rank)
    is_homogeneous = staticmethod(_builds.is_homogeneous)
    mpi_threads_supported = staticmethod(_facts.mpi_threads_supported)
    mpi_enabled = staticmethod(_builds.mpi_enabled)
    mpi_built = staticmethod(_builds.mpi_built)
    gloo_enabled = staticmethod(_builds.gloo_enabled)
    gloo_built = staticmethod(_builds.gloo_built)
    nccl_built = staticmethod(_builds.nccl_built)
    ddl_built = staticmethod(_builds.ddl_built)
    ccl_built = staticmethod(_builds.ccl_built)
    cuda_built = staticmethod(_builds.cuda_built)
    rocm_built = staticmethod(_builds.rocm_built)


# By the integers that Horovod has for them (horovod/common/message.h:43 of 0.28.1).
_OPERATIONS = (Op.AVERAGE, Op.SUM, Op.ADASUM, Op.MIN, Op.MAX, Op.PRODUCT)


def operation(op: Any) -> Any:
    """Return the operation that an integer means to Horovod, by its rules; else ``op`` itself."""
    if type(op) is int and 0 <= op < len(_OPERATIONS) and _session.horovod_rules():
        return _OPERATIONS[op]
    return op


def combined_operation(op: Any, average: Optional[bool]) -> Any:
    """Return what ``op``, also as Horovod's integer, and the deprecated ``average`` mean.

    Raises ValueError if both are given.
    """
    if average is None and type(op) is Op:  # asked for each tensor
        return op
    return operation(handle_average_backwards_compatibility(op, average))


# What the modules of ``horovod`` take from here instead of from ours.
NAMES = {
    "HorovodInternalError": HorovodInternalError,
    "ProcessSet": ProcessSet,
    "add_process_set": add_process_set,
    "handle_average_backwards_compatibility": handle_average_backwards_compatibility,
    "init": init,
    "remove_process_set": remove_process_set,
    "start_timeline": start_timeline,
}
