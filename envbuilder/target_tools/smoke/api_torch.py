"""torch.distributed, with its Gloo, NCCL or (where torch was built with it) MPI backend."""

import os
import sys
from datetime import timedelta

from . import rank_env, traffic
from .api import Api, take_cuda, torch_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from .api import Array
    from .recorder import Recorder


class Distributed(Api):
    """The backend is the requested transport (default: Gloo)."""

    modules = ("numpy", "torch", "torch.distributed")

    def __init__(self, options: "argparse.Namespace", recorder: "Recorder") -> None:
        super().__init__(options, recorder)
        self.lacks["allgather"] = "torch.distributed gathers only equal shapes"
        self.lacks["mismatch"] = "torch.distributed does not compare shapes"

    def prepare(self) -> None:
        self.backend = self.transport or "gloo"
        if self.backend == "nccl":
            self.log_nccl()

    def init(self) -> None:
        self.torch = sys.modules["torch"]
        self.group = sys.modules["torch.distributed"]
        rank, size, local_rank, local_size = rank_env.place() or (0, 1, 0, 1)
        self.local_rank, self.local_size = (lambda: local_rank), (lambda: local_size)
        self.device = "cpu"
        if self.backend == "nccl":
            self.device = take_cuda(self.torch, local_rank)
        where = {}
        if self.backend != "mpi":
            method = meeting(size, self.options, self.recorder)
            where = {"init_method": method, "rank": rank, "world_size": size}
        limit = timedelta(seconds=self.options.timeout)
        self.group.init_process_group(self.backend, timeout=limit, **where)
        # After shutdown nobody can be asked any more.
        self.used = self.group.get_backend()
        self.rank, self.size = self.group.get_rank, self.group.get_world_size
        self.barrier, self.shutdown = self.group.barrier, self.group.destroy_process_group

    def framework(self) -> str:
        return torch_words(self.torch, self.device)

    def _tensor(self, values: "Array") -> "Any":
        # A copy: the operations work in place, and the judged input must stay as it is. It is in
        # torch's own memory: to release numpy's a thread waits for Python, while the end of a
        # PyTorch before 1.9 waits for that thread, and holds Python (TORCH-224).
        return self.torch.tensor(values, device=self.device)

    def allreduce(self, values: "Array") -> "Array":
        tensor = self._tensor(values)
        self.group.all_reduce(tensor)
        return tensor.cpu().numpy()

    def allgather(self, values: "Array") -> "Array":
        tensor = self._tensor(values)
        parts = [self.torch.empty_like(tensor) for _ in range(self.size())]
        self.group.all_gather(parts, tensor)
        return self.torch.cat(parts).cpu().numpy()

    def broadcast(self, values: "Array", root: int) -> "Array":
        tensor = self._tensor(values)
        self.group.broadcast(tensor, src=root)
        return tensor.cpu().numpy()

    def carried(self) -> "list[dict[str, str]]":
        source = f"torch.distributed.get_backend() is {self.used}{self.nccl_words()}"
        names = ("allreduce", "allgather", "broadcast")
        return [traffic.claim(name, self.used, source) for name in names]


def meeting(size: int, options: "argparse.Namespace", recorder: "Recorder") -> str:
    """Return the init_method URL at which the ranks meet.

    torchrun sets the address; with other launchers it is a file in the folder of the run, which
    all ranks see. Its name contains the nonce, because ranks would join the file of another run.
    """
    if os.environ.get("MASTER_ADDR") and os.environ.get("MASTER_PORT"):
        return "env://"
    alone = "" if size > 1 else f"-{recorder.identity}"
    return str((options.out.resolve() / f"meeting-{options.nonce}{alone}").as_uri())
