"""``--check-build``: what works here, found out by trying it and not by asking who claims it."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Mapping, NamedTuple

import distributed_dl_training
from distributed_dl_training import alias
from distributed_dl_training.launch import _mpiexec
from distributed_dl_training.launch._hosts import UsageError
from distributed_dl_training.launch._output import Lines

_LIMIT = 120.0  # seconds for one trial; torch from a cold parallel file system takes a minute

# Each is run in a process of its own: an import may crash, hang, or start MPI.
_FRAMEWORK = "import {0}, distributed_dl_training.{0}; print({0}.__version__)"
_MPI = """
import mpi4py
mpi4py.rc.initialize = mpi4py.rc.finalize = False
from mpi4py import MPI
from distributed_dl_training.record import library_line
print(library_line(MPI.Get_library_version()) + "; mpi4py " + mpi4py.__version__)
"""
_GLOO = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
ones = torch.ones(3)
dist.all_reduce(ones)
assert ones.sum() == 3
print("torch.distributed of torch " + torch.__version__)
"""
_NCCL = """
import torch, torch.distributed as dist
if not dist.is_nccl_available():
    raise SystemExit("this torch is built without NCCL")
if not torch.cuda.is_available():
    raise SystemExit("torch has NCCL, but there is no GPU that it can use here")
version = ".".join(map(str, torch.cuda.nccl.version()))
print("NCCL %s, %d GPUs" % (version, torch.cuda.device_count()))
"""
_ENGINES = (("MPI", _MPI), ("Gloo", _GLOO), ("NCCL", _NCCL))


class Finding(NamedTuple):
    """One thing that works or does not, with its version or the reason."""

    name: str
    works: bool
    text: str


def check_build(environ: Mapping[str, str]) -> str:
    """Return the report, ready to print."""
    python = "Python " + sys.version.split()[0]
    lines = [f"distributed-dl-training {distributed_dl_training.__version__}, {python}"]
    with ThreadPoolExecutor(4) as pool:  # what takes its time is other processes
        parts = {
            "Frameworks": [
                pool.submit(attempt, name, _FRAMEWORK.format(name)) for name in ("numpy", "torch")
            ]
            # Those that are not served yet say so.
            + [
                pool.submit(attempt, name, f"import distributed_dl_training.{name}")
                for name in ("tensorflow", "mxnet", "jax")
            ],
            "Engines": [pool.submit(attempt, *one) for one in _ENGINES],
            "Launchers": [pool.submit(mpiexec, environ)]
            + [pool.submit(program, name, environ) for name in ("ssh", "srun")],
        }
    for title, findings in parts.items():
        lines += ["", f"{title}:"]
        for one in (future.result() for future in findings):
            lines.append(f"    [{'X' if one.works else ' '}] {one.name}: {one.text}")
    lines += ["", "Horovod:"]
    lines += [f"    {line}" for line in alias.status_lines()]
    return "\n".join(lines) + "\n"


def attempt(name: str, code: str) -> Finding:
    """Run ``code``: it works if it ends well, and what it prints last is its version."""
    # Not the current folder: a torch/ or a numpy.py there is none of our business.
    program = "import sys; sys.path[:1] = []\n" + code
    environ = dict(os.environ, PYTHONPATH=_own_path(os.environ))
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT,
            env=environ,
        )
    except subprocess.TimeoutExpired:
        return Finding(name, False, f"no answer after {_LIMIT:g} s")
    splitter = Lines()
    lines = splitter.add(done.stdout) + splitter.end()
    text = [line.decode("utf-8", "replace").strip() for line in lines if line.strip()]
    if done.returncode < 0:
        return Finding(name, False, f"ends by signal {-done.returncode}")
    return Finding(name, done.returncode == 0, text[-1] if text else "says nothing")


def _own_path(environ: Mapping[str, str]) -> str:
    """Return a PYTHONPATH that leads the trial to this copy of the package."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(distributed_dl_training.__file__)))
    earlier = environ.get("PYTHONPATH")
    return earlier + os.pathsep + home if earlier else home


def mpiexec(environ: Mapping[str, str]) -> Finding:
    """Find the MPI launcher; it must tell which one it is."""
    path = _mpiexec.find_mpiexec(environ)
    if path is None:
        return Finding("mpiexec", False, "not beside this Python, not on PATH")
    try:
        mpi = _mpiexec.load(path)
    except UsageError as error:
        return Finding("mpiexec", False, str(error).splitlines()[0])
    return Finding("mpiexec", True, f"{path} ({mpi.name} {mpi.version})")


def program(name: str, environ: Mapping[str, str]) -> Finding:
    """Find a program on PATH."""
    where = shutil.which(name, path=environ.get("PATH"))
    return Finding(name, where is not None, where or "not on PATH")
