"""Start MPI programs for tests: find mpiexec, limit the time, leave no process behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Dict, List, NamedTuple, Optional

import distributed_dl_training

MARK = "DDLT_TEST_RUN"
HERE = os.path.dirname(os.path.abspath(__file__))


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


def why_not() -> Optional[str]:
    """Return why no MPI job can run here, or None."""
    if find_mpiexec() is None:
        return "no mpiexec: not in DDLT_MPIEXEC, not beside python, not on PATH"
    # In a process of its own, so that the one that runs pytest never starts MPI.
    code = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    probe = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    lines = probe.stdout.decode("utf-8", "replace").strip().splitlines() or ["no message"]
    return "mpi4py does not load: " + lines[-1] if probe.returncode else None


def mpi_job(ranks: int, program: str, *arguments: str, limit: float = 60.0) -> Outcome:
    """Run ``program``, a file beside this one, on ``ranks`` ranks; kill it after ``limit`` s."""
    mpiexec = find_mpiexec()
    assert mpiexec is not None
    token = uuid.uuid4().hex
    command = [mpiexec, "-n", str(ranks)] + _options(mpiexec)
    command += [sys.executable, os.path.join(HERE, program)] + list(arguments)
    started = time.monotonic()
    with tempfile.TemporaryFile() as stream:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=_environ(token)
        )
        code: Optional[int] = None
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            orphans = [] if code is None else _still_there(token, grace=5.0)
            for pid in _marked(token):
                os.kill(pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - started
        stream.seek(0)
        output = stream.read().decode("utf-8", "replace")
    return Outcome(code, output, orphans, seconds)


def _environ(token: str) -> Dict[str, str]:
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
    return environ


def _options(mpiexec: str) -> List[str]:
    """Return what lets this launcher start more ranks than there are cores."""
    version = subprocess.run(
        [mpiexec, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ).stdout.decode("utf-8", "replace")
    if "Open MPI" in version or "OpenRTE" in version:
        return ["--oversubscribe", "--bind-to", "none"]
    return []


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
