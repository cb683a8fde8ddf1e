"""What a program reads of its session: ranks, sizes, nodes, and what carries the data.

Also in a forked child of it, say a worker that loads data.
"""

from distributed_dl_training._core import Threads
from distributed_dl_training._session import facts


def size() -> int:
    """Return the number of ranks.  Raises NotInitializedError."""
    return facts().world.engine.size


def rank() -> int:
    """Return this process's rank, from 0 to size() - 1.  Raises NotInitializedError."""
    return facts().world.engine.rank


def local_size() -> int:
    """Return the number of ranks that share this node's memory.  Raises NotInitializedError."""
    return facts().world.engine.local_size


def local_rank() -> int:
    """Return this rank's place on its node, from 0 to local_size() - 1.

    Raises NotInitializedError.
    """
    return facts().world.engine.local_rank


def cross_size() -> int:
    """Return the number of nodes.  Raises NotInitializedError."""
    return facts().world.engine.cross_size


def cross_rank() -> int:
    """Return this node's place among the nodes, from 0.  Raises NotInitializedError."""
    return facts().world.engine.cross_rank


def engine_name() -> str:
    """Return what carries the data: mpi, gloo, nccl or single.  Raises NotInitializedError."""
    return facts().world.engine.name


def mpi_threads_supported() -> bool:
    """Tell whether MPI runs with MPI_THREAD_MULTIPLE, so that other threads may use it too.

    Raises NotInitializedError, and ValueError if MPI is not in use, as Horovod does.
    """
    engine = facts().world.engine
    if engine.name not in ("mpi", "single"):
        raise ValueError(f"MPI is not in use: the engine is {engine.name}")
    return engine.threads is Threads.MULTIPLE
