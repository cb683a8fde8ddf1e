"""Settings of a job, from variables: each has a name of ours and, where one fits, Horovod's."""

import os
from typing import Any, Dict, Mapping, NamedTuple, Optional

from distributed_dl_training._core import Engine
from distributed_dl_training._works import gather_integers


class Settings(NamedTuple):
    """What variables may change; all ranks must have the same."""

    fusion_threshold: int = 64 << 20  # bytes that small tensors are packed into
    cache_capacity: int = 1 << 14  # requests that are remembered, at most
    stall_check: float = 60.0  # seconds without progress before a report; 0: never
    stall_limit: float = 600.0  # the same before an error, see ``_stall``; 0: never
    hierarchical: int = 0  # 1: where that differs, see ``_hierarchical``; 0: never
    nodes_per_rack: int = 0  # successive nodes that are a rack, for the same; 0: not stated
    mpi_threads_disable: int = 0  # 1: MPI is started without MPI_THREAD_MULTIPLE
    init_timeout: float = 300.0  # seconds that init waits for ranks that do not join; 0: for ever
    horovod_rules: int = 0  # 1: the compatibility layer has opened the session
    asked_after: float = 60.0  # seconds after which some rank may ask another what it does


NAMES = {
    "fusion_threshold": ("DDLT_FUSION_THRESHOLD", "HOROVOD_FUSION_THRESHOLD"),
    "cache_capacity": ("DDLT_CACHE_CAPACITY", "HOROVOD_CACHE_CAPACITY"),
    "stall_check": ("DDLT_STALL_CHECK_TIME_SECONDS", "HOROVOD_STALL_CHECK_TIME_SECONDS"),
    "hierarchical": ("DDLT_HIERARCHICAL_ALLREDUCE", "HOROVOD_HIERARCHICAL_ALLREDUCE"),
    "nodes_per_rack": ("DDLT_NODES_PER_RACK",),
    "stall_limit": ("DDLT_STALL_SHUTDOWN_TIME_SECONDS", "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"),
    "mpi_threads_disable": ("DDLT_MPI_THREADS_DISABLE", "HOROVOD_MPI_THREADS_DISABLE"),
    "init_timeout": ("DDLT_INIT_TIMEOUT_SECONDS", "HOROVOD_GLOO_TIMEOUT_SECONDS"),
}
# Seconds, where no rank is ever asked.
_NEVER = 1e6
# Switches off both what ``stall_check`` and what ``stall_limit`` say.
STALL_CHECK_DISABLE = ("DDLT_STALL_CHECK_DISABLE", "HOROVOD_STALL_CHECK_DISABLE")


def read(environ: Optional[Mapping[str, str]] = None) -> Settings:
    """Return the settings that variables make.

    Raises ValueError for one that is no number or negative.
    """
    found = os.environ if environ is None else environ
    values: Dict[str, Any] = {}
    for field, names in NAMES.items():
        for name in names:
            if found.get(name):
                values[field] = _number(name, found[name], type(getattr(Settings(), field)))
                break
    for name in STALL_CHECK_DISABLE:
        if found.get(name) and _number(name, found[name], int):
            values.update(stall_check=0.0, stall_limit=0.0)
    return Settings(**values)


def agree(engine: Engine, settings: Settings) -> Settings:
    """Return the settings with what follows from those of all ranks; collective.

    Raises ValueError, on all ranks, if some differ from which follows how requests are numbered and
    packed: such ranks would exchange messages of different lengths.
    """
    if len(set(gather_integers(engine, [settings.horovod_rules]))) > 1:
        raise ValueError("some ranks have called init() of horovod, others that of this package")
    fields = ("fusion_threshold", "cache_capacity", "hierarchical", "nodes_per_rack")
    found = gather_integers(engine, [getattr(settings, field) for field in fields])
    for place, field in enumerate(fields):
        values = found[place :: len(fields)]
        if len(set(values)) > 1:
            names = " or ".join(NAMES[field])
            raise ValueError(f"{names} must be the same on all ranks, not {values} by rank")
    limits = [value for value in (settings.stall_check, settings.stall_limit) if value]
    soonest = min(gather_integers(engine, [int(1000 * min([*limits, _NEVER]))]))
    return settings._replace(asked_after=soonest / 1000)


def _number(name: str, text: str, kind: Any) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name}={text!r} is not a number of at least 0")
    return value
