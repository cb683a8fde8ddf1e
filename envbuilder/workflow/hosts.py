"""Which hosts a launch line is for: named by the user, those of the job, or this machine."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from .. import process
from ..errors import MissingToolError, Place, UsageError
from ..launching.hosts import hostfile, hosts_argument
from ..launching.launchers import LAUNCHERS
from ..launching.schedulers import SCHEDULERS, current_scheduler
from ..model.launch import (
    RENDEZVOUS_PORT,
    Hosts,
    JobHosts,
    JobStep,
    LaunchNode,
    TaskRequest,
    job_port,
)
from ..text import LONG, shown
from .context import Context

_NAME_THEM = "name the hosts: -H host:4,host2:4"

# Seconds for a scheduler's program to say its release.
_PATIENCE = 20.0

# 17 of 17, 17.server and 17[3].server.
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class HostList:
    """The hosts and, in words, where they come from.

    ``hosts``: None for this machine alone, JobHosts for a job that is still to be asked for.
    ``scheduler``: in whose job the shell is, and ``step``: in which step of it. ``allocated``: the
    hosts are that job's. ``task``: what it asks for by the task. ``port``: its own one, to meet at.
    """

    hosts: Hosts | JobHosts | None
    source: str
    scheduler: str | None = None
    allocated: bool = False
    step: JobStep | None = None
    task: TaskRequest = field(default_factory=TaskRequest)
    port: int = RENDEZVOUS_PORT


def find_hosts(
    named: str | None,
    file: Path | None,
    launch_node: LaunchNode | None,
    context: Context,
    whole: int = 1,
) -> HostList:
    """Return the hosts of ``-H``, else of a hostfile, else of the job that the shell is in.

    *launch_node*: how LSF is set up where it has launch nodes. *whole*: the slots of a host that is
    named without a number. Raises UsageError for ``-H`` and a hostfile together, and for what is no
    list of hosts, with its place.
    """
    if named is not None and file is not None:
        raise UsageError(
            "option.conflict", "-H and --hostfile cannot be combined", "leave one of them out"
        )
    here = _here(context)
    if named is not None:
        return replace(here, hosts=hosts_argument(named, whole=whole), source="-H")
    if file is not None:
        name = shown(str(file), LONG)
        hosts = hostfile(_read(context.path(file), name), name, whole)
        return replace(here, hosts=hosts, source=name)
    return _of_job(here, launch_node, context)


def with_room(
    hosts: HostList, kind: str, stated_gpus: int | None, ranks: int | None, *, gpus: bool
) -> HostList:
    """Return a job's hosts with as many slots as the launcher *kind* can start ranks on each.

    The slots are the job's tasks. A launcher that is itself started once a node, in one task,
    starts a rank on every GPU of the job. If the job does not say how many and the ranks use GPUs
    (*gpus*), a node has *stated_gpus*. Without GPUs there may be CPUs for more ranks than tasks.

    Raises UsageError where the job has no GPU on a host, and where nothing says how many.
    """
    traits, own = LAUNCHERS[kind].TRAITS, hosts.hosts
    fills_node = traits.job.one_per_node or traits.job.on_every_gpu
    if not (hosts.allocated and fills_node and isinstance(own, tuple)):
        return hosts
    source, spread = hosts.source, math.ceil((ranks or 0) / len(own))
    if not (gpus or any(host.gpus for host in own)):
        # Where it is unknown how many CPUs there are, a user's number counts.
        room = [max(host.slots, min(spread, host.cpus or spread)) for host in own]
        return replace(hosts, hosts=_with_slots(own, room))
    counts = [stated_gpus if host.gpus is None else host.gpus for host in own]
    if without := [host.name for host, count in zip(own, counts, strict=True) if count == 0]:
        raise UsageError(
            "hosts.no-gpus",
            f"{source} has no GPU on {shown(', '.join(without), LONG)}, but {kind} starts one rank "
            "for each GPU",
            "request GPUs when you submit the job",
        )
    if any(host.gpus is None for host in own):
        source += "; GPUs of a node: " + (
            f"{stated_gpus}, by the site" if stated_gpus else "unknown"
        )
    room = [count or spread for count in counts]
    if not all(room):
        raise UsageError(
            "hosts.unknown-gpu-count",
            f"the number of GPUs of a node of {hosts.source} is unknown",
            "give the number of ranks: --ranks N",
            "or write facts: {gpus-per-node: 8} in the site file",
        )
    return replace(hosts, hosts=_with_slots(own, room), source=source)


def _with_slots(hosts: Hosts, slots: Sequence[int]) -> Hosts:
    pairs = zip(hosts, slots, strict=True)
    return tuple(replace(host, slots=count) for host, count in pairs)


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
    name = current_scheduler(context.environ)
    if name is None:
        return HostList(None, "this machine")
    entry = SCHEDULERS[name]
    step = entry.job_step(context.environ, partial(_ask, context))
    task = entry.job_task(context.environ)
    number = _NUMBER.match(context.environ[entry.JOB_ID])
    port = job_port(int(number[0])) if number else RENDEZVOUS_PORT
    return HostList(None, "this machine", name, step=step, task=task, port=port)


def _ask(context: Context, *command: str) -> str:
    with contextlib.suppress(MissingToolError):
        return process.run(command, env=context.environ, timeout=_PATIENCE).stdout
    return ""


def _of_job(here: HostList, launch_node: LaunchNode | None, context: Context) -> HostList:
    if here.scheduler is None:
        return here
    entry = SCHEDULERS[here.scheduler]
    hosts = entry.job_hosts(
        context.environ,
        lambda path, called: _read(Path(path), called),
        partial(_ask, context),
        launch_node,
    )
    return replace(here, hosts=hosts, source=f"the job of {entry.TITLE}", allocated=True)


def _read(path: Path, source: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            "hostfile.not-text", "the file is not UTF-8 text", _NAME_THEM, place=Place(source)
        ) from error
    except OSError as error:
        message = f"cannot read the file: {error.strerror}"
        raise UsageError(
            "hostfile.not-readable", message, _NAME_THEM, place=Place(source)
        ) from error
