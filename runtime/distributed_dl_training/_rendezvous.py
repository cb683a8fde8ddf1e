"""How the ranks of the engines gloo and nccl find each other: the store of torch.distributed."""

import os
import time
from datetime import timedelta
from typing import Any, NamedTuple

from distributed_dl_training import _settings
from distributed_dl_training._core import EngineUnavailableError, name_ranks
from distributed_dl_training._joining import Began

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Seconds by which Gloo waits longer than the limit on stalls, whose error says more than Gloo's.
_LONGER = 30.0
_SOONER = 0.5  # seconds before the limit on init, which can tell less
_NAP = 0.01  # seconds between looks for ranks that have not joined
_FOREVER = 365 * 24 * 3600.0


class World(NamedTuple):
    """Some ranks, and the part of the store by which they find each other."""

    rank: int
    size: int
    store: Any
    prefix: str


class Shared:
    """What sessions of one process share: the store that they have made, and their number."""

    store: Any = None
    sessions = 0


def find_world() -> World:
    """Return all ranks of the job.

    They come from torch.distributed if the program has initialized it, else from RANK,
    WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them.

    Raises EngineUnavailableError.
    """
    dist = distributed()
    Shared.sessions += 1
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    prefix = f"ddlt/{attempt}/{Shared.sessions}"
    if dist.is_initialized():
        store = dist.distributed_c10d._get_default_store()
        return World(dist.get_rank(), dist.get_world_size(), store, prefix)
    return _from_variables(prefix)


def _from_variables(prefix: str) -> World:
    missing = [name for name in _VARIABLES if not os.environ.get(name)]
    if missing:
        raise EngineUnavailableError(
            f"the engines gloo and nccl find the ranks by variables: {', '.join(missing)} not set"
            "\n\nhint: torchrun sets them, and so does our launcher with --gloo"
        )
    address = os.environ["MASTER_ADDR"]
    try:
        rank, size, port = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    except ValueError as error:
        raise EngineUnavailableError(f"RANK, WORLD_SIZE and MASTER_PORT: {error}") from error
    if Shared.store is None:
        # torchrun's agent may hold the store already.
        holds = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
        try:
            # The program may use the same port for torch.distributed: they share the server.
            Shared.store = distributed().TCPStore(
                address, port, size, holds, limit(), wait_for_workers=False, multi_tenant=True
            )
        except RuntimeError as error:
            raise EngineUnavailableError(
                f"rank {rank} of {size} cannot reach the store at {address}:{port}: {error}"
            ) from error
    _wait_for_all(Shared.store, prefix, rank, size)
    return World(rank, size, Shared.store, prefix)


def _wait_for_all(store: Any, prefix: str, rank: int, size: int) -> None:
    """Return when all ranks have come to the store.

    Raises EngineUnavailableError that names those that have not, a moment before the limit on init
    would end the process.
    """
    seconds = _settings.read().init_timeout
    end = Began.at + (max(0.5, seconds - _SOONER) if seconds else _FOREVER)
    store.add(f"{prefix}/joined/{rank}", 1)
    missing = list(range(size))
    while missing:
        missing = [one for one in missing if not store.add(f"{prefix}/joined/{one}", 0)]
        if missing and time.monotonic() > end:
            raise EngineUnavailableError(
                f"rank {rank} of {size} has waited {seconds:g} s in init: "
                f"{name_ranks(missing)} did not join"
                "\n\nhint: DDLT_INIT_TIMEOUT_SECONDS gives them longer; 0 waits for ever"
            )
        time.sleep(_NAP if missing else 0)


def limit() -> timedelta:
    """Return how long torch.distributed waits at most: longer than the limit on stalls."""
    seconds = _settings.read().stall_limit
    return timedelta(seconds=seconds + _LONGER if seconds else _FOREVER)


def distributed() -> Any:
    """Return torch.distributed.  Raises EngineUnavailableError."""
    try:
        import torch.distributed
    except ImportError as error:
        raise EngineUnavailableError(f"the engines gloo and nccl need torch: {error}") from error
    if not torch.distributed.is_available():
        raise EngineUnavailableError("this torch is built without torch.distributed")
    return torch.distributed
