"""The mpiexec of the environment: which one it is, and its options."""

import os
import re
import shutil
import subprocess
import sys
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from distributed_dl_training.launch._agents import NODE_COMMAND
from distributed_dl_training.launch._hosts import Place, UsageError

OPEN_MPI, HYDRA, INTEL = "Open MPI", "MPICH", "Intel MPI"
_VERSION = r"[^\d\n]*(\d+(?:\.\d+)*)"
# In this order: Intel's launcher is a hydra too, and Spectrum MPI an Open MPI.
_KINDS = (
    ("Spectrum MPI", OPEN_MPI, re.compile(r"Spectrum MPI\)?" + _VERSION)),
    ("Open MPI", OPEN_MPI, re.compile(r"(?:Open MPI|OpenRTE|PRRTE)\)?" + _VERSION)),
    ("Intel MPI", INTEL, re.compile(r"Intel\(R\) MPI Library" + r".*?Version (\d+(?:\.\d+)*)")),
    ("MPICH", HYDRA, re.compile(r"HYDRA build details:\s+Version:\s+(\S+)")),
)


class MpiLauncher(NamedTuple):
    """An mpiexec: where it is, whose options it takes, and what it calls itself."""

    path: str
    kind: str
    name: str
    version: str


def find_mpiexec(environ: Mapping[str, str]) -> Optional[str]:
    """Return DDLT_MPIEXEC, else mpiexec or mpirun beside this Python, else on PATH, else None."""
    if environ.get("DDLT_MPIEXEC"):
        return environ["DDLT_MPIEXEC"]
    beside = os.path.dirname(sys.executable)
    for folder in (beside, environ.get("PATH", os.defpath)):
        for name in ("mpiexec", "mpirun"):
            found = shutil.which(name, path=folder)
            if found:
                return found
    return None


def identify(text: str) -> Optional[Tuple[str, str, str]]:
    """Return (kind, name, version) from what ``mpiexec --version`` prints, or None."""
    for name, kind, pattern in _KINDS:
        match = pattern.search(text)
        if match:
            return kind, name, match.group(1)
    return None


def load(path: str) -> MpiLauncher:
    """Ask ``path`` what it is.  Raises UsageError if it does not run or is none we know."""
    try:
        done = subprocess.run(
            [path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{path} does not tell its version: {error}") from error
    text = done.stdout.decode("utf-8", "replace")
    known = identify(text)
    if known is None:
        first = (text.strip().splitlines() or ["nothing"])[0]
        raise UsageError(
            f"{path} is neither Open MPI nor MPICH nor Intel MPI; its --version says: {first}"
            "\n\nhint: name another one in DDLT_MPIEXEC, or use --gloo"
        )
    return MpiLauncher(path, *known)


def hosts_in_use(places: Sequence[Place]) -> List[Tuple[str, int]]:
    """Return (host, ranks there) in the order of ranks."""
    return [(place.host, place.local_size) for place in places if place.local_rank == 0]


def mpi_command(
    mpi: MpiLauncher,
    places: Sequence[Place],
    passed: Sequence[str],
    machinefile: str,
    oversubscribe: bool = False,
    interfaces: Optional[str] = None,
    extra: Sequence[str] = (),
    binding: Sequence[str] = (),
    tcp: bool = False,
) -> List[str]:
    """Return the command that starts a node process per rank.

    passed: names of variables that other hosts are to get.  Open MPI must be told; hydra passes
        its whole environment on.
    machinefile: a path at which lines ``host:ranks`` are; read by Intel MPI alone, whose
        -hosts takes no numbers.
    """
    hosts = ",".join(f"{host}:{count}" for host, count in hosts_in_use(places))
    command = [mpi.path]
    if mpi.kind == OPEN_MPI:
        # Only the long options: Open MPI 5 refuses those with one dash.
        mapping = "slot:OVERSUBSCRIBE" if oversubscribe else "slot"
        command += binding or ["--bind-to", "none", "--map-by", mapping]
        command += ["-H", hosts]
        if tcp:
            spectrum = mpi.name == "Spectrum MPI"
            command += ["-tcp"] if spectrum else ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]
        if interfaces:
            for part in ("btl_tcp_if_include", "oob_tcp_if_include"):
                command += ["--mca", part, interfaces]
        for name in sorted(passed):
            command += ["-x", name]
    else:
        command += ["-hosts", hosts] if mpi.kind == HYDRA else ["-machinefile", machinefile]
        if interfaces:
            command += ["-iface", interfaces.split(",")[0]]
    return [*command, *extra, "-n", str(len(places)), *NODE_COMMAND, "--connect"]


def mpi_environ(mpi: MpiLauncher, environ: Mapping[str, str]) -> Dict[str, str]:
    """Return what the launcher itself needs in its environment; root needs two words more."""
    if mpi.kind == OPEN_MPI and os.geteuid() == 0:
        return dict(environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return dict(environ)


def without_outer_job(environ: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment without what tells a process its place in another job.

    A launcher inside such a job (``srun --mpi=pmix --pty``) has it too; ranks would inherit it, and
    it would contradict what their own mpiexec tells them.
    """
    told = ("PMI_", "PMIX_", "OMPI_COMM_WORLD_")
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(told) or name.startswith("PMIX_MCA_")  # which are settings
    }
