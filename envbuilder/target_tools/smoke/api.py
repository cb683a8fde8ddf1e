"""What the ranks may talk through: one small class each, all with the same methods.

Arrays go in and come out as numpy's; what a framework wants is made of them in between. ``lacks``
states which checks cannot be made and why, by name or by (name, dtype): they are left out and
recorded as left out. Making an instance imports nothing; ``load`` does.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from .. import proc
from . import traffic
from .recorder import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # An array of numpy, which need not be installed where types are checked.
    Array = Any


class Api:
    """The common part of all interfaces."""

    modules: "tuple[str, ...]" = ()
    mismatch = "error"
    nccl_log: "Path | None" = None

    def __init__(self, options: "argparse.Namespace", recorder: Recorder) -> None:
        self.options = options
        self.recorder = recorder
        self.transport = options.transport
        self.lacks: "dict[str | tuple[str, str | None], str]" = {}

    def prepare(self) -> None:
        """Set environment variables that are needed before the import."""

    def load(self) -> "dict[str, Any]":
        """Import the modules of the interface; return their versions."""
        self.prepare()
        for name in self.modules:
            importlib.import_module(name)
        packages = dict.fromkeys(name.partition(".")[0] for name in self.modules)
        said = ", ".join(f"{name} {version_of(name)}" for name in packages)
        return {"problem": None, "said": said}

    def take(self, hvd: "ModuleType") -> None:
        """Store the functions of Horovod's interface."""
        self.rank, self.size, self.shutdown = hvd.rank, hvd.size, hvd.shutdown
        self.local_rank, self.local_size = hvd.local_rank, hvd.local_size
        self.barrier: "Any" = getattr(hvd, "barrier", None)

    def init(self) -> None:
        """Initialise communication; then rank and size are known."""
        raise NotImplementedError

    def allreduce(self, values: "Array") -> "Array":
        """Return the sum of all ranks' values."""
        raise NotImplementedError

    def allgather(self, values: "Array") -> "Array":
        """Return the concatenated rows of all ranks, by rank."""
        raise NotImplementedError

    def broadcast(self, values: "Array", root: int) -> "Array":
        """Return the values of one rank."""
        raise NotImplementedError

    def tells_of_mismatch(self, error: Exception) -> bool:
        """Return whether an error reports different shapes on the ranks."""
        return False

    def log_nccl(self) -> None:
        """Let NCCL write its log to a file of this process."""
        self.nccl_log = self.options.out / f"nccl-{self.recorder.identity}.log"
        os.environ["NCCL_DEBUG"] = "INFO"
        os.environ["NCCL_DEBUG_FILE"] = str(self.nccl_log)

    def nccl_words(self) -> str:
        """Return the relevant words of NCCL's log, to append to the source of a claim."""
        words = traffic.from_nccl(proc.read(self.nccl_log)) if self.nccl_log else ""
        return f"; NCCL's log: {words}" if words else ""

    def framework(self) -> "str | None":
        """Return name and version of the framework of the tensors, or None."""
        return None

    def carried(self) -> "list[dict[str, str]]":
        """Return the claims about transports; called after shutdown."""
        return []


def version_of(name: str) -> str:
    return str(getattr(sys.modules[name], "__version__", "without a version"))


class Numpy(Api):
    """The collective runtime on numpy arrays, or any module with its functions."""

    mismatch = "MismatchError"

    def __init__(self, options: "argparse.Namespace", recorder: Recorder) -> None:
        super().__init__(options, recorder)
        self.modules = ("numpy", options.runtime)

    def prepare(self) -> None:
        # Started without a launcher the runtime would take each rank for a job of its own, and no
        # MPI would be looked at.
        if self.transport in (None, "mpi"):
            os.environ.setdefault("DDLT_ENGINE", "mpi")

    def load(self) -> "dict[str, Any]":
        said = super().load()
        self.hvd = sys.modules[self.options.runtime]
        if not hasattr(self.hvd, "MismatchError"):
            self.lacks["mismatch"] = f"{self.options.runtime} has no MismatchError"
        return said

    def init(self) -> None:
        self.hvd.init()
        self.take(self.hvd)

    def allreduce(self, values: "Array") -> "Array":
        return self.hvd.allreduce(values, op=self.hvd.Sum)

    def allgather(self, values: "Array") -> "Array":
        return self.hvd.allgather(values)

    def broadcast(self, values: "Array", root: int) -> "Array":
        return self.hvd.broadcast(values, root_rank=root)

    def tells_of_mismatch(self, error: Exception) -> bool:
        return isinstance(error, self.hvd.MismatchError)

    def carried(self) -> "list[dict[str, str]]":
        # The runtime carries nothing itself: it hands its arrays to mpi4py, where it has imported
        # it.
        return _by_mpi4py()


def _by_mpi4py() -> "list[dict[str, str]]":
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None:
        return []
    vendor, version = mpi.get_vendor()
    source = f"mpi4py calls {vendor} {'.'.join(map(str, version))}"
    return [traffic.claim(name, "mpi", source) for name in ("allreduce", "allgather", "broadcast")]


class Mpi4py(Api):
    """MPI itself, through mpi4py's buffer methods."""

    modules = ("numpy", "mpi4py")

    def __init__(self, options: "argparse.Namespace", recorder: Recorder) -> None:
        super().__init__(options, recorder)
        self.lacks["allreduce", "float16"] = "MPI defines no 16-bit floating-point type"
        self.lacks["mismatch"] = "MPI does not compare the arguments of the ranks"

    def init(self) -> None:
        # Not at the import of mpi4py.MPI, so that what fails here is told as init.
        sys.modules["mpi4py"].rc.initialize = False
        self.mpi = importlib.import_module("mpi4py.MPI")
        self.mpi.Init_thread()
        self.world = self.mpi.COMM_WORLD
        node = self.world.Split_type(self.mpi.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = node.Get_rank, node.Get_size
        self.rank, self.size = self.world.Get_rank, self.world.Get_size
        self.barrier, self.shutdown = self.world.Barrier, self.mpi.Finalize
        self.numpy = sys.modules["numpy"]

    def allreduce(self, values: "Array") -> "Array":
        result = self.numpy.empty_like(values)
        self.world.Allreduce(values, result, op=self.mpi.SUM)
        return result

    def allgather(self, values: "Array") -> "Array":
        width = int(self.numpy.prod(values.shape[1:], dtype="int64"))
        counts = [rows * width for rows in self.world.allgather(len(values))]
        result = self.numpy.empty(sum(counts), dtype=values.dtype)
        self.world.Allgatherv(values, [result, counts])
        return result.reshape((-1, *values.shape[1:]))

    def broadcast(self, values: "Array", root: int) -> "Array":
        result = values.copy()
        self.world.Bcast(result, root=root)
        return result

    def carried(self) -> "list[dict[str, str]]":
        return _by_mpi4py()


def on_device(sees: str, count: int, local_rank: int) -> int:
    """Return the number of the GPU for a rank. Raises RuntimeError without a GPU."""
    if count == 0:
        raise RuntimeError(f"NCCL needs a GPU on every rank, but {sees} finds none")
    return local_rank % count


def torch_words(torch: "ModuleType", device: str) -> str:
    """Return the release of PyTorch and, where tensors lie on a GPU, which kind of GPU that is."""
    words = f"torch {torch.__version__}"
    return words if device == "cpu" else f"{words} on {torch.cuda.get_device_name(device)}"


def take_cuda(torch: "ModuleType", local_rank: int) -> str:
    """Select the GPU for a rank's tensors of PyTorch; return its name."""
    device = f"cuda:{on_device('torch', torch.cuda.device_count(), local_rank)}"
    torch.cuda.set_device(device)
    return device
