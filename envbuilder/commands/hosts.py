"""Which hosts a launch line is for: named by the user, those of the job, or this machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from .. import process
from ..errors import MissingToolError, Place, UsageError
from ..model.hosts import hostfile, hosts_argument
from ..model.launch import Hosts, JobHosts, JobStep, LaunchNode
from ..schedulers import SCHEDULERS, current_scheduler
from ..text import LONG, shown
from .context import Context

_HERE = "this machine"
_NAME_THEM = "name the hosts: -H host:4,host2:4"

# Seconds for a scheduler's program to say its release.
_PATIENCE = 20.0


@dataclass(frozen=True)
class HostList:
    """The hosts and, in words, where they come from.

    ``hosts``: None for this machine alone, JobHosts for a job that is still to be asked for.
    ``scheduler``: in whose job the shell is, and ``step``: in which step of it. ``allocated``: the
    hosts are that job's.
    """

    hosts: Hosts | JobHosts | None
    source: str
    scheduler: str | None = None
    allocated: bool = False
    step: JobStep | None = None


def find_hosts(
    named: str | None, file: Path | None, launch_node: LaunchNode | None, context: Context
) -> HostList:
    """Return the hosts of ``-H``, else of a hostfile, else of the job that the shell is in.

    *launch_node*: how LSF is set up where it has launch nodes. Raises UsageError for ``-H`` and a
    hostfile together, and for what is no list of hosts, with its place.
    """
    if named is not None and file is not None:
        raise UsageError("-H and --hostfile both name the hosts", "give one of them")
    scheduler = current_scheduler(context.environ)
    step = _step(scheduler, context)
    if named is not None:
        return HostList(hosts_argument(named), "-H", scheduler, step=step)
    if file is not None:
        name = shown(str(file), LONG)
        hosts = hostfile(_read(context.path(file), name), name)
        return HostList(hosts, name, scheduler, step=step)
    if scheduler is None:
        return HostList(None, _HERE)
    return _of_job(scheduler, step, launch_node, context)


def find_smoke_hosts(launch_node: LaunchNode | None, context: Context) -> HostList:
    """Return the hosts of the job that the shell is in, or none for this machine alone.

    A job that does not say its hosts is no reason to build nothing: then it is one node of it.
    """
    scheduler = current_scheduler(context.environ)
    if scheduler is None:
        return HostList(None, _HERE)
    step = _step(scheduler, context)
    try:
        return _of_job(scheduler, step, launch_node, context)
    except UsageError as error:
        context.reporter.warn(f"smoke tests run on one node: {error}")
        return HostList(None, _HERE, scheduler, step=step)


def _of_job(
    scheduler: str, step: JobStep | None, launch_node: LaunchNode | None, context: Context
) -> HostList:
    entry = SCHEDULERS[scheduler]
    hosts = entry.job_hosts(
        context.environ, lambda path, called: _read(Path(path), called), launch_node
    )
    return HostList(hosts, f"the job of {entry.TITLE}", scheduler, allocated=True, step=step)


def _step(scheduler: str | None, context: Context) -> JobStep | None:
    if scheduler is None:
        return None

    def ask(*command: str) -> str:
        with contextlib.suppress(MissingToolError):
            return process.run(command, env=context.environ, timeout=_PATIENCE).stdout
        return ""

    return SCHEDULERS[scheduler].job_step(context.environ, ask)


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("it is no text", _NAME_THEM, place=Place(source)) from error
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        raise UsageError(message, _NAME_THEM, place=Place(source)) from error
