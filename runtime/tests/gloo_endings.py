"""How jobs of the engines gloo and nccl may end: python gloo_endings.py WAY RANK.

That rank takes the way.  With DDLT_TEST_DEVICE=cuda the ranks reduce tensors on a GPU.
"""

import os
import signal
import sys
import threading
import time
from typing import Any

os.environ.setdefault("DDLT_STALL_SHUTDOWN_TIME_SECONDS", "4")

import distributed_dl_training.numpy as hvd

WAY = sys.argv[1]
ON_GPU = os.environ.get("DDLT_TEST_DEVICE") == "cuda"


def ones(count: int) -> Any:
    """Return what the ranks reduce."""
    if not ON_GPU:
        import numpy as np

        return np.ones(count, dtype=np.float32)
    import torch

    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    return torch.ones(count, device="cuda")


def allreduce(values: Any) -> Any:
    if not ON_GPU:
        return hvd.allreduce(values, name="data", op=hvd.Sum)
    import distributed_dl_training.torch as hvd_torch

    return hvd_torch.allreduce(values, name="data", op=hvd.Sum)


def leave() -> None:
    if WAY == "exception":
        raise ValueError("deliberate")
    if WAY == "exit":
        sys.exit(0)
    if WAY == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if WAY == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    number = signal.SIGSTOP if WAY == "stopped_inside" else signal.SIGKILL
    threading.Timer(0.1, os.kill, (os.getpid(), number)).start()


def beside(order: str) -> None:
    """torch.distributed belongs to the program: it may start before or after, and goes on."""
    import torch
    import torch.distributed as dist

    backend = "nccl" if ON_GPU else "gloo"
    if order == "before":
        dist.init_process_group(backend)
    hvd.init()
    mine = ones(1) * (hvd.rank() + 1.0)
    if order == "after":
        assert not dist.is_initialized()
        dist.init_process_group(backend)
    for _ in range(3):
        theirs = torch.tensor([10.0], device="cuda" if ON_GPU else "cpu")
        work = dist.all_reduce(theirs, async_op=True)
        assert allreduce(mine)[0] == 3.0
        work.wait()
        assert theirs.item() == 20.0
    hvd.shutdown()
    dist.barrier()
    dist.destroy_process_group()


def save() -> None:
    """Do with the GPU what a program does that saves its state."""
    import torch

    torch.cuda.synchronize()
    assert torch.ones(3, device="cuda").sum().item() == 3
    print("saved")


def main() -> None:
    if WAY == "beside":
        beside(sys.argv[2])
        return
    # Survivors go on, so that it shows that nobody's end is what tells the others.
    hvd.init(abort_on_exception=WAY == "exception")
    lost = int(sys.argv[2])
    process = hvd.allgather_object(os.getpid())[lost]
    first = hvd.rank() == (0 if lost else 1)
    values = ones(1 << 18)
    try:
        if ON_GPU:
            allreduce(values)  # NCCL has to connect the ranks before it can lose one
        if hvd.rank() == lost:
            leave()
        while True:
            allreduce(values)
    except (hvd.PeerLostError, hvd.StallError, hvd.MismatchError) as error:
        print(f"survivor {hvd.is_initialized()}: {type(error).__name__}: {error}")
        if ON_GPU and WAY != "shared":
            save()
        if WAY == "exception":
            raise
        if WAY == "stopped" and first:
            time.sleep(2)  # until the other survivor has noticed as well
            os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main()
