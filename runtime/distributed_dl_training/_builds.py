"""What can carry data here, by Horovod's names: scripts ask before they choose.

verbose: Horovod's, without effect.
"""

import importlib
import importlib.util
import json
import os
from typing import Any, Dict, Optional

from distributed_dl_training import _facts

# The library of TensorFlow's operation, and what it was built with; both lie in one folder.
OPERATION_HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow")
OPERATION_LIBRARY = "collective_op.so"
OPERATION_FACTS = "collective_op.json"


def operation_facts(home: str = OPERATION_HOME) -> Optional[Dict[str, Any]]:
    """Return what the operation in a folder was built with; None if there is none."""
    try:
        with open(os.path.join(home, OPERATION_FACTS), encoding="utf-8") as stream:
            facts: Dict[str, Any] = json.load(stream)
    except FileNotFoundError:
        return None
    return facts


def mpi_built(verbose: bool = False) -> bool:
    """Tell whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def mpi_enabled() -> bool:
    """Tell whether MPI carries the data.  Raises NotInitializedError."""
    return _facts.engine_name() == "mpi"


def gloo_built(verbose: bool = False) -> bool:
    """Tell whether a torch with Gloo is installed."""
    return hasattr(_torch("torch.distributed"), "ProcessGroupGloo")


def gloo_enabled() -> bool:
    """Tell whether Gloo carries the data.  Raises NotInitializedError."""
    return _facts.engine_name() in ("gloo", "nccl")


def nccl_built(verbose: bool = False) -> int:
    """Return NCCL's version as one number, 21805 for 2.18.5; 0 without a torch with NCCL."""
    if not hasattr(_torch("torch.distributed"), "ProcessGroupNCCL"):
        return 0
    version = _torch("torch").cuda.nccl.version()
    if isinstance(version, int):  # torch before 1.10
        return version
    major, minor, patch = version[:3]
    return int(major * 10000 + minor * 100 + patch)


def cuda_built(verbose: bool = False) -> bool:
    """Tell whether a torch with CUDA is installed."""
    return getattr(getattr(_torch("torch"), "version", None), "cuda", None) is not None


def rocm_built(verbose: bool = False) -> bool:
    """Tell whether a torch with ROCm is installed."""
    return getattr(getattr(_torch("torch"), "version", None), "hip", None) is not None


def ddl_built(verbose: bool = False) -> bool:
    """Tell whether IBM's DDL can carry data: not by this runtime."""
    return False


def ccl_built(verbose: bool = False) -> bool:
    """Tell whether Intel's oneCCL can carry data: not by this runtime."""
    return False


def is_homogeneous() -> bool:
    """Tell whether every node has equally many ranks.  Raises NotInitializedError.

    As far as this rank can see: its node's ranks times the nodes make all ranks.
    """
    return _facts.local_size() * _facts.cross_size() == _facts.size()


def _torch(name: str) -> Any:
    """Return a module of torch, None without it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
