"""Run the launcher for tests: as a process, with a mark by which its ranks are found in /proc."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
import uuid
from typing import Any, Callable, Dict, List, NamedTuple

import distributed_dl_training

MARK = "DDLT_TEST_JOB"
HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = os.path.join(HERE, "ranks.py")
# The launcher asks for torch where --gloo is given; the programs of most tests use none.
WITHOUT_TORCH = ""
if importlib.util.find_spec("torch") is None:
    WITHOUT_TORCH = os.path.join(HERE, "without_torch")
HOME = os.path.dirname(os.path.dirname(os.path.abspath(distributed_dl_training.__file__)))


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Launched:
    """A launcher that runs; leave the ``with`` block and nothing of the job is left."""

    def __init__(self, *arguments: str, **options: Any) -> None:
        self.token = uuid.uuid4().hex
        self._limit = options.pop("limit", 60.0)
        environ = job_environ()
        environ[MARK] = self.token
        environ.update(options.pop("environ", {}))
        command = [sys.executable, *options.pop("flags", [])]
        command += ["-m", "distributed_dl_training.launch", *arguments]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(command, env=environ, **options)

    def __enter__(self) -> "Launched":
        return self

    def __exit__(self, *_: Any) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def end(self) -> Result:
        """Wait for the end; a launcher past its limit fails the test."""
        out, err = self.process.communicate(timeout=self._limit)
        texts = [(data or b"").decode("utf-8", "replace") for data in (out, err)]
        return Result(self.process.returncode, *texts)

    def processes(self) -> List[int]:
        """Return all processes of the job that live, the launcher among them."""
        mark = f"{MARK}={self.token}".encode("ascii")
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{int(entry)}/environ", "rb") as stream:
                    if mark in stream.read().split(b"\0"):
                        found.append(int(entry))
            except (ValueError, OSError):
                pass
        return found

    def orphans(self) -> List[int]:
        """Return what is left of the job, given some seconds to go."""
        wait_until(lambda: not self.processes(), 15.0)
        return self.processes()


def job_environ() -> Dict[str, str]:
    """Return an environment in which ranks import this copy and nothing outside shapes the job."""
    foreign = ("SLURM_", "LSB_", "DDLT_", "HOROVOD_", "OMPI_", "PMI_", "PMIX_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
    if "DDLT_MPIEXEC" in os.environ:
        environ["DDLT_MPIEXEC"] = os.environ["DDLT_MPIEXEC"]
    environ["PYTHONPATH"] = HOME
    if WITHOUT_TORCH:
        environ["PYTHONPATH"] += os.pathsep + WITHOUT_TORCH
    environ["OMP_NUM_THREADS"] = "1"
    environ["COLUMNS"] = "80"
    return environ


def launch(*arguments: str, **options: Any) -> Result:
    """Run the launcher to its end; nothing of the job may be left then."""
    with Launched(*arguments, **options) as job:
        result = job.end()
        assert job.orphans() == []
    return result


def program(way: str, *arguments: str) -> List[str]:
    """Return the command of ``ranks.py``."""
    return [sys.executable, RANKS, way, *arguments]


def wait_until(condition: Callable[[], Any], limit: float = 30.0) -> None:
    """Wait for ``condition``, ``limit`` seconds at most; the caller checks what came of it."""
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def pids(folder: Any, count: int) -> List[int]:
    """Return the processes that have left their number in ``folder``, once all have."""
    wait_until(lambda: len([n for n in os.listdir(str(folder)) if n[0] != "."]) >= count)
    names = sorted(name for name in os.listdir(str(folder)) if name[0] != ".")
    assert len(names) == count, names
    found = []
    for name in names:
        with open(os.path.join(str(folder), name)) as stream:
            found.append(int(stream.read()))
    return found
