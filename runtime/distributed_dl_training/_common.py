"""Names that every framework's module has: the session, what is built, errors, operations."""

from distributed_dl_training._builds import (
    ccl_built,
    cuda_built,
    ddl_built,
    gloo_built,
    gloo_enabled,
    is_homogeneous,
    mpi_built,
    mpi_enabled,
    nccl_built,
    rocm_built,
)
from distributed_dl_training._core import (
    DuplicateNameError,
    EngineUnavailableError,
    MismatchError,
    MPIUnavailableError,
    NotInitializedError,
    Op,
    PeerLostError,
    StallError,
)
from distributed_dl_training._facts import (
    cross_rank,
    cross_size,
    engine_name,
    local_rank,
    local_size,
    mpi_threads_supported,
    rank,
    size,
)
from distributed_dl_training._session import (
    ProcessSet,
    add_process_set,
    global_process_set,
    init,
    is_initialized,
    remove_process_set,
    shutdown,
    start_timeline,
    stop_timeline,
)

Sum = Op.SUM
Average = Op.AVERAGE
Min = Op.MIN
Max = Op.MAX
Product = Op.PRODUCT
Adasum = Op.ADASUM

__all__ = [
    "Adasum",
    "Average",
    "DuplicateNameError",
    "EngineUnavailableError",
    "MPIUnavailableError",
    "Max",
    "Min",
    "MismatchError",
    "NotInitializedError",
    "Op",
    "PeerLostError",
    "ProcessSet",
    "Product",
    "StallError",
    "Sum",
    "add_process_set",
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "engine_name",
    "global_process_set",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "remove_process_set",
    "rocm_built",
    "shutdown",
    "size",
    "start_timeline",
    "stop_timeline",
]
