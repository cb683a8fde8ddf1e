"""Which hosts a launch line is for: named by the user, those of the job, or this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import Place, UsageError
from ..launching import (
    Hosts,
    Scheduler,
    hostfile,
    hosts_argument,
    lsf_hostfile,
    lsf_hosts,
    slurm_hosts,
    with_slots,
)
from ..text import LONG, shown
from .context import Context

_NAME_THEM = "name the hosts: -H host:4,host2:4"


@dataclass(frozen=True)
class FoundHosts:
    """The hosts (None: this machine alone) and, in words, where they come from.

    ``scheduler``: in whose job the shell is. ``allocated``: the hosts are that job's.
    """

    hosts: Hosts | None
    source: str
    scheduler: Scheduler | None = None
    allocated: bool = False


@dataclass(frozen=True)
class LaunchNode:
    """LSF with IBM's CSM: a job's first host takes no rank, and the slots of the others are cores.

    ``room``: how many ranks a node has room for; None: one for each core.
    """

    room: int | None


def find_hosts(
    named: str | None, file: Path | None, csm: LaunchNode | None, context: Context
) -> FoundHosts:
    """Return the hosts of ``-H``, else of a hostfile, else of the job that the shell is in.

    *csm*: how LSF is set up where it has launch nodes. Raises UsageError for ``-H`` and a hostfile
    together, and for what is no list of hosts, with its place.
    """
    if named is not None and file is not None:
        raise UsageError("-H and --hostfile both name the hosts", "give one of them")
    scheduler = _scheduler(context.environ)
    if named is not None:
        return FoundHosts(hosts_argument(named), "-H", scheduler)
    if file is not None:
        name = shown(str(file), LONG)
        hosts = hostfile(_read(context.path(file), name), name)
        return FoundHosts(hosts, name, scheduler)
    if scheduler == "slurm":
        return FoundHosts(_of_slurm(context.environ), "the job of Slurm", scheduler, allocated=True)
    if scheduler == "lsf":
        return FoundHosts(
            _of_lsf(context.environ, csm), "the job of LSF", scheduler, allocated=True
        )
    return FoundHosts(None, "this machine")


def _scheduler(environ: Mapping[str, str]) -> Scheduler | None:
    if "SLURM_JOB_ID" in environ:
        return "slurm"
    return "lsf" if "LSB_JOBID" in environ else None


def _of_slurm(environ: Mapping[str, str]) -> Hosts:
    names = ("SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE")
    missing = [name for name in names if not environ.get(name)]
    if missing:
        raise UsageError(
            f"this is a job of Slurm, and {' and '.join(missing)} is not set",
            "Slurm sets both: in a script for sbatch, or in the shell of salloc",
            f"or {_NAME_THEM}",
        )
    return slurm_hosts(*(environ[name] for name in names))


def _of_lsf(environ: Mapping[str, str], csm: LaunchNode | None) -> Hosts:
    """Return the hosts of a job of LSF; its file is whole where the variable may be cut short."""
    file, variable = environ.get("LSB_DJOB_HOSTFILE"), environ.get("LSB_MCPU_HOSTS")
    if file:
        text = _read(Path(file), f"LSB_DJOB_HOSTFILE={shown(file, LONG)}")
        hosts = lsf_hostfile(text, launch_node=csm is not None)
    elif variable:
        hosts = lsf_hosts(variable, launch_node=csm is not None)
    else:
        raise UsageError(
            "this is a job of LSF, and neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set",
            _NAME_THEM,
        )
    return with_slots(hosts, csm.room) if csm and csm.room else hosts


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("it is no text", _NAME_THEM, place=Place(source)) from error
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        raise UsageError(message, _NAME_THEM, place=Place(source)) from error
