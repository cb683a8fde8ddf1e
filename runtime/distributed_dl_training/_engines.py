"""Which engine carries the data: the one that is asked for, else what launched the job decides."""

import os
import sys
from typing import Any, Mapping, Optional

from distributed_dl_training._core import Engine, EngineUnavailableError
from distributed_dl_training._settings import Settings

NAMES = ("mpi", "gloo", "nccl", "single")
# What the launchers of MPIs set for each rank: Open MPI and PRRTE, PMIx (also srun --mpi=pmix),
# MPICH, Intel MPI and srun --mpi=pmi2, MVAPICH, Spectrum MPI's jsrun.
_MPI_LAUNCHED = (
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_FD",
    "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",
)
# What torchrun sets, and our own launcher with --gloo.
_RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def choose(comm: Any = None, environ: Optional[Mapping[str, str]] = None) -> str:
    """Return the engine's name.

    DDLT_ENGINE decides if it is set.  Else a communicator or a MPI launcher mean mpi; torchrun's
    variables mean gloo; a program that has imported mpi4py.MPI means mpi; none of these means a
    job of one process.

    Raises ValueError if DDLT_ENGINE names none, or not mpi while ``comm`` is given.
    """
    found = os.environ if environ is None else environ
    named = found.get("DDLT_ENGINE", "")
    if named and named not in NAMES:
        raise ValueError(f"DDLT_ENGINE={named!r} is none of {', '.join(NAMES)}")
    if comm is not None:
        if named not in ("", "mpi"):
            raise ValueError(f"init(comm=...) needs the engine mpi, not DDLT_ENGINE={named}")
        return "mpi"
    if named:
        return named
    if any(found.get(name) for name in _MPI_LAUNCHED):
        return "mpi"
    if all(found.get(name) for name in _RENDEZVOUS):
        return "gloo"
    return "mpi" if "mpi4py.MPI" in sys.modules else "single"


def make_engine(comm: Any, settings: Settings) -> Engine:
    """Start the engine that ``choose`` names; collective.

    Raises ValueError, TypeError, EngineUnavailableError or RuntimeError as ``init`` says.
    """
    name = choose(comm)
    if name == "mpi":
        from distributed_dl_training._mpi import MpiEngine

        threads = not settings.mpi_threads_disable
        return MpiEngine(comm, settings.hierarchical > 0, threads, settings.nodes_per_rack)
    if name in ("gloo", "nccl"):
        return _over_torch(name)
    from distributed_dl_training._single import SingleEngine

    return SingleEngine()


def _over_torch(name: str) -> Engine:
    from distributed_dl_training._rendezvous import distributed, find_world

    dist = distributed()
    has = dist.is_nccl_available() if name == "nccl" else hasattr(dist, "ProcessGroupGloo")
    if not has:
        raise EngineUnavailableError(f"this torch is built without {name}")
    if name == "nccl":
        import torch

        if not torch.cuda.is_available():  # before the ranks meet
            raise EngineUnavailableError("the engine nccl needs a GPU, and torch can use none here")
    world = find_world()
    if name == "nccl":
        from distributed_dl_training._nccl import NcclEngine

        return NcclEngine(world, world.size)
    from distributed_dl_training._gloo import GlooEngine

    return GlooEngine(world, world.size)
