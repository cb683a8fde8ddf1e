"""Start ranks for tests: by mpiexec or without, limit the time, leave no process behind."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import distributed_dl_training
from distributed_dl_training.launch._node import free_port

from frameworks import module_of

MARK = "DDLT_TEST_RUN"
HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = ("mpi", "gloo", "single", "nccl")


class Outcome(NamedTuple):
    """What became of a job; code is None if it ran past its limit and was killed."""

    code: Optional[int]
    output: str
    orphans: List[int]
    seconds: float


def find_mpiexec() -> Optional[str]:
    """Return DDLT_MPIEXEC, else the mpiexec beside this Python, else the one on PATH."""
    named = os.environ.get("DDLT_MPIEXEC")
    if named:
        return named
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    return beside if os.access(beside, os.X_OK) else shutil.which("mpiexec")


@functools.lru_cache(maxsize=None)
def gpus() -> Tuple[int, str]:
    """Return how many GPUs torch can use here, and why none if it is 0.

    In a process of its own: the one that runs pytest imports no torch.
    """
    code = "import torch; print(torch.cuda.device_count() if torch.cuda.is_available() else 0)"
    probe = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60
    )
    if probe.returncode:
        return 0, probe.stderr.decode("utf-8", "replace").strip().splitlines()[-1]
    return int(probe.stdout), "there is no GPU that torch can use"


def needs_gpu(engine: str, framework: str) -> bool:
    return engine == "nccl" or framework == "cuda"


@functools.lru_cache(maxsize=None)
def why_not(engine: str = "mpi", framework: str = "numpy") -> Optional[str]:
    """Return why no job with this engine and framework can run here, or None.

    Where there is a GPU the engine nccl is taken to run: what hinders it is for tests to show.
    """
    if (engine, framework) == ("gloo", "numpy"):
        return why_not("gloo", "torch")  # which it comes with
    if needs_gpu(engine, framework):
        count, reason = gpus()
        if not count:
            return f"engine {engine} with {framework}: {reason}"
        if engine == "nccl":
            return None
    if engine == "mpi":
        if find_mpiexec() is None:
            return "no mpiexec: not in DDLT_MPIEXEC, not beside python, not on PATH"
        # In a process of its own, so that the one that runs pytest never starts MPI.
        code = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    else:
        code = "import distributed_dl_training.numpy as hvd; hvd.init(); hvd.shutdown()"
    code += f"; import {module_of(framework)}"
    environ = variables("", dict(_rendezvous(0, 1), DDLT_ENGINE=engine))
    try:
        probe = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return f"engine {engine}: one rank does not come up within 60 s"
    lines = probe.stdout.decode("utf-8", "replace").strip().splitlines() or ["no message"]
    return f"engine {engine} with {framework}: {lines[-1]}" if probe.returncode else None


def mpi_job(ranks: int, program: str, *arguments: str, **options: Any) -> Outcome:
    """Run ``program`` with the engine mpi; see ``job``."""
    return job("mpi", ranks, program, *arguments, **options)


def job(
    engine: str,
    ranks: int,
    program: str,
    *arguments: str,
    limit: float = 60.0,
    environ: Optional[Dict[str, str]] = None,
    modules: str = "torch",
) -> Outcome:
    """Run ``program``, a file beside this one, on ``ranks`` ranks; kill it after ``limit`` s.

    environ: variables to add.
    modules: what is loaded once for all ranks of gloo, see ``forked``; names with commas.
    With gloo and nccl there is no launcher: each rank ends by itself, and the code is the first
    one, by rank, that is not 0.  A rank that is stopped is killed when the others have ended.
    """
    command = [sys.executable, os.path.join(HERE, program)] + list(arguments)
    more = dict(environ or {}, DDLT_ENGINE=engine)
    if engine == "mpi":
        mpiexec = find_mpiexec()
        assert mpiexec is not None
        return _run([[mpiexec, "-n", str(ranks)] + _options(mpiexec) + command], [more], limit)
    port = free_port()
    each = [_rendezvous(rank, ranks, port) for rank in range(ranks)]
    if engine == "gloo":
        forked = [os.path.join(HERE, "forked.py"), json.dumps(each), modules]
        return _run([command[:1] + forked + command[1:]], [more], limit)
    if engine == "nccl" and ranks > gpus()[0]:
        each = [dict(_as_host(rank), **one) for rank, one in enumerate(each)]
    return _run([command] * ranks, [dict(one, **more) for one in each], limit)


def command_job(
    command: Sequence[str], limit: float = 60.0, environ: Optional[Dict[str, str]] = None
) -> Outcome:
    """Run a command that starts ranks; kill it and them after ``limit`` s."""
    return _run([list(command)], [environ or {}], limit)


def _run(
    commands: Sequence[List[str]],
    environs: Sequence[Dict[str, str]],
    limit: float,
) -> Outcome:
    token = uuid.uuid4().hex
    started = time.monotonic()
    with tempfile.TemporaryFile() as stream:
        processes = [
            _start(command, variables(token, environ), stream)
            for command, environ in zip(commands, environs)
        ]
        code: Optional[int] = None
        try:
            code = _wait(processes, started + limit)
        finally:
            orphans = [] if code is None else _still_there(token, grace=15.0)
            for pid in _marked(token):
                os.kill(pid, signal.SIGKILL)
            for one in processes:
                one.wait()
        seconds = time.monotonic() - started
        stream.seek(0)
        output = stream.read().decode("utf-8", "replace")
    return Outcome(code, output, orphans, seconds)


def _wait(processes: List["subprocess.Popen[bytes]"], end: float) -> Optional[int]:
    """Return the first exit code that is not 0, or 0; None if not all have ended in time."""
    while time.monotonic() < end:
        running = [one for one in processes if one.poll() is None]
        if not running:
            return next((one.returncode for one in processes if one.returncode), 0)
        if len(running) < len(processes) and all(_stopped(one.pid) for one in running):
            for one in running:
                one.kill()
        time.sleep(0.01)
    return None


def _stopped(pid: int) -> bool:
    """Tell whether a process has been stopped by a signal."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        return stream.read().rpartition(b") ")[2][:1] == b"T"


def _start(command: List[str], environ: Dict[str, str], stream: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environ
    )


def _rendezvous(rank: int, size: int, port: int = 0) -> Dict[str, str]:
    """Return what torchrun would set for a rank."""
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port or free_port()),
    }


def _as_host(rank: int) -> Dict[str, str]:
    """Return what makes NCCL take a rank for the only one of its host.

    NCCL refuses two ranks of one host on one GPU.  Between hosts it knows no such thing: ranks
    that share a GPU then talk as those of several machines do, by its sockets.
    """
    return {"NCCL_HOSTID": f"rank{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}


def variables(token: str, more: Dict[str, str]) -> Dict[str, str]:
    environ = dict(os.environ)
    environ[MARK] = token
    environ["PYTHONUNBUFFERED"] = "1"
    environ["OMP_NUM_THREADS"] = environ["OPENBLAS_NUM_THREADS"] = "1"
    environ["OMPI_ALLOW_RUN_AS_ROOT"] = environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    # Ranks test the copy that pytest tests.  An installed one is found anyway, and its
    # site-packages must not move ahead of the standard library.
    home = os.path.dirname(os.path.dirname(os.path.abspath(distributed_dl_training.__file__)))
    if os.path.basename(home) not in ("site-packages", "dist-packages"):
        old = environ.get("PYTHONPATH")
        environ["PYTHONPATH"] = home if not old else home + os.pathsep + old
    environ.update(more)
    return environ


@functools.lru_cache(maxsize=None)
def is_open_mpi(mpiexec: str) -> bool:
    """Tell whether this launcher is Open MPI's."""
    version = subprocess.run(
        [mpiexec, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout.decode("utf-8", "replace")
    return "Open MPI" in version or "OpenRTE" in version


def _options(mpiexec: str) -> List[str]:
    """Return what lets this launcher start more ranks than there are cores."""
    return ["--oversubscribe", "--bind-to", "none"] if is_open_mpi(mpiexec) else []


def _marked(token: str) -> List[int]:
    """Return the processes that were started by one job: they inherit its mark."""
    mark = f"{MARK}={token}".encode("ascii")
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{int(entry)}/environ", "rb") as stream:
                if mark in stream.read().split(b"\0"):
                    found.append(int(entry))
        except (ValueError, OSError):  # not a process, or gone, or not ours
            pass
    return found


def _still_there(token: str, grace: float) -> List[int]:
    """Return the job's processes that outlive the launcher by more than ``grace`` seconds."""
    end = time.monotonic() + grace
    while _marked(token) and time.monotonic() < end:
        time.sleep(0.05)
    return _marked(token)
