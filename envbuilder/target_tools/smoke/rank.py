"""From the options to the last record.

Each process appends JSON lines to DIR/rank-<host>-<pid>.jsonl, one before and one after every
check, so that who reads them knows where a rank stopped. It judges what it alone can see; what
takes the view of all ranks is judged from the records. Exit code 0: every check of this rank
passed.
"""

import argparse
import faulthandler
import importlib
import os
import platform
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from .. import proc
from . import rank_env, traffic
from .api import Api, Mpi4py, Numpy
from .api_horovod import HorovodTensorflow, HorovodTorch
from .api_torch import Distributed
from .conversation import Conversation
from .recorder import Recorder

APIS: "dict[str, type[Api]]" = {
    "numpy": Numpy,
    "mpi4py": Mpi4py,
    "torch.distributed": Distributed,
    "horovod.torch": HorovodTorch,
    "horovod.tensorflow": HorovodTensorflow,
}
TRANSPORTS = ("mpi", "nccl", "gloo")

# Seconds after the limit at which a rank ends itself, should nobody do so from outside: its
# launcher may be gone, or unable to reach this node.
OVERTIME = 10
# Seconds between the last record of a failed rank and its exit: most launchers end all ranks
# when one exits with an error, and the others shall have written their last record by then.
PARTING = 0.5
# Seconds that a rank lives at least: the runner looks for processes several times in this period.
OBSERVABLE = 0.5


def begin(options: argparse.Namespace) -> Recorder:
    """Open the record, and arrange that a hang writes a stack and ends."""
    recorder = Recorder(options.out, options.nonce)
    path = options.out / f"stack-{recorder.identity}.txt"
    stacks = path.open("w", encoding="utf-8")  # stays open: a hang writes to it
    faulthandler.enable(file=stacks)
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True, chain=False)
    # From a thread of its own, so also out of a C call that never returns.
    before_limit = max(1.0, options.timeout - max(2.0, options.timeout / 10))
    faulthandler.dump_traceback_later(before_limit, file=stacks)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(int(options.timeout) + OVERTIME)
    recorder.write(
        "start",
        host=socket.gethostname(),
        execution=proc.execution(),
        pid=os.getpid(),
        started=proc.start_time(),
        clock=proc.boot_id(),
        executable=sys.executable,
        uid=os.getuid(),
        launcher_rank=rank_env.launcher_rank(),
        api=options.api,
        environment=rank_env.shaping(),
        unix=time.time(),
        pid_namespace=proc.pid_namespace(),
        job_step=rank_env.job_step(),
        container=rank_env.container(),
        cpu=proc.cpu_kind(),
        gpus=proc.gpu_kinds(),
    )
    return recorder


def world_facts(api: Api) -> "dict[str, Any]":
    """Return the facts of this rank and its software."""
    package = importlib.import_module(api.modules[-1].partition(".")[0])
    mpi = sys.modules.get("mpi4py.MPI")
    vendor = mpi.get_vendor() if mpi else None
    build_record = getattr(package, "build_record", lambda: None)
    return {
        "rank": api.rank(),
        "size": api.size(),
        "local_rank": api.local_rank(),
        "local_size": api.local_size(),
        "runtime": package.__name__,
        "runtime_version": str(getattr(package, "__version__", "unknown")),
        "runtime_file": package.__file__,
        "build_record": build_record(),
        "framework": api.framework(),
        "mpi": vendor and vendor[0],
        "mpi_version": vendor and ".".join(map(str, vendor[1])),
        "python": platform.python_version(),
        "numpy": sys.modules["numpy"].__version__,
    }


def converse(options: argparse.Namespace, recorder: Recorder) -> None:
    """Run all checks, from the import of the interface to its shutdown."""
    api = APIS[options.api](options, recorder)
    recorder.check("import", api.load)
    recorder.check("init", api.init)
    recorder.who = f"rank {api.rank()}"
    recorder.write("init", **world_facts(api))
    Conversation(api, sys.modules["numpy"], recorder, options).run()
    recorder.write("libraries", paths=traffic.libraries())
    recorder.check("shutdown", api.shutdown)
    recorder.write("carried", claims=api.carried())
    recorder.write("end", failed=recorder.failed, unix=time.time())


def parse(arguments: "list[str] | None") -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run one rank of the smoke test.")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the records of the ranks"
    )
    parser.add_argument("--nonce", required=True, help="identifier of this run in every record")
    parser.add_argument("--ranks", type=int, required=True, help="number of ranks")
    parser.add_argument(
        "--max-bytes", type=int, default=64 * 2**20, help="largest message in bytes"
    )
    parser.add_argument(
        "--timeout", type=float, default=120, help="seconds until the run counts as hung"
    )
    parser.add_argument(
        "--api", choices=sorted(APIS), default="numpy", help="API that the ranks use"
    )
    parser.add_argument("--transport", choices=TRANSPORTS, help="required transport")
    parser.add_argument(
        "--runtime", default="distributed_dl_training.numpy", help="module for --api numpy"
    )
    options = parser.parse_args(arguments)
    if options.ranks < 1 or options.max_bytes < 4 or options.timeout <= 0:
        parser.error("--ranks must be 1 or more, --max-bytes 4 or more, --timeout above 0")
    return options


def main(arguments: "list[str] | None" = None) -> int:
    options = parse(arguments)
    begun = time.monotonic()
    recorder = begin(options)
    try:
        converse(options, recorder)
    except BaseException as error:
        about = {"message": str(error), "traceback": traceback.format_exc()}
        recorder.write("error", type=type(error).__name__, **about)
        traceback.print_exc()
        time.sleep(PARTING)
        # Not through the interpreter's exit: MPI would wait there for the other ranks.
        os._exit(1)
    lived = time.monotonic() - begun
    time.sleep(PARTING if recorder.failed else max(0.0, OBSERVABLE - lived))
    return 1 if recorder.failed else 0
