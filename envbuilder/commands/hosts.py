"""Which hosts a launch line is for: named by the user, those of the job, or this machine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

from .. import process
from ..errors import MissingToolError, Place, UsageError
from ..model.hosts import hostfile, hosts_argument
from ..model.launch import Hosts, JobHosts, JobStep, LaunchNode
from ..schedulers import SCHEDULERS, current_scheduler
from ..text import LONG, shown
from .context import Context

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
    here = _here(context)
    if named is not None:
        return replace(here, hosts=hosts_argument(named), source="-H")
    if file is not None:
        name = shown(str(file), LONG)
        hosts = hostfile(_read(context.path(file), name), name)
        return replace(here, hosts=hosts, source=name)
    return _of_job(here, launch_node, context)


def find_smoke_hosts(launch_node: LaunchNode | None, context: Context) -> HostList:
    """Return the hosts of the job that the shell is in, or none for this machine alone.

    A job that does not say its hosts is no reason to build nothing: then it is one node of it.
    """
    here = _here(context)
    try:
        return _of_job(here, launch_node, context)
    except UsageError as error:
        context.reporter.warn(f"smoke tests run on one node: {error}")
        return here


def _here(context: Context) -> HostList:
    """Return this machine alone, and in which step of which job the shell is."""

    def ask(*command: str) -> str:
        with contextlib.suppress(MissingToolError):
            return process.run(command, env=context.environ, timeout=_PATIENCE).stdout
        return ""

    name = current_scheduler(context.environ)
    step = SCHEDULERS[name].job_step(context.environ, ask) if name else None
    return HostList(None, "this machine", name, step=step)


def _of_job(here: HostList, launch_node: LaunchNode | None, context: Context) -> HostList:
    if here.scheduler is None:
        return here
    entry = SCHEDULERS[here.scheduler]
    hosts = entry.job_hosts(
        context.environ, lambda path, called: _read(Path(path), called), launch_node
    )
    return replace(here, hosts=hosts, source=f"the job of {entry.TITLE}", allocated=True)


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("it is no text", _NAME_THEM, place=Place(source)) from error
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        raise UsageError(message, _NAME_THEM, place=Place(source)) from error
