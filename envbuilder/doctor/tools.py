"""Programs that builds use: compilers, conda's family, containers, schedulers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..host import ENDING, Host, first_line, is_there, runs, together
from ..model.doctor import Item, Section, Status
from .items import make

_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+[\w.]*)")


@dataclass(frozen=True)
class Tool:
    """A program, how it is asked for its version, and where in the answer that stands.

    *variable* names an environment variable with its path, for those that live as shell functions.
    """

    name: str
    arguments: tuple[str, ...] = ("--version",)
    pattern: re.Pattern[str] = _VERSION
    variable: str | None = None


@dataclass(frozen=True)
class ToolLocation:
    """A program on this machine; *version* None: it does not say."""

    tool: Tool
    path: str
    version: str | None
    trouble: str | None


# "gcc (Debian 12.2.0-14) 12.2.0": the packager's words stand in brackets.
_GNU = re.compile(r"^\S+ \(.*\) (\d+(?:\.\d+)+)", re.MULTILINE)

COMPILERS = (
    Tool("bash"),
    Tool("gcc", pattern=_GNU),
    Tool("g++", pattern=_GNU),
    Tool("gfortran", pattern=_GNU),
    Tool("nvcc", pattern=re.compile(r"release [\d.]+, V(\d[\d.]*)")),
    Tool("cmake"),
    Tool("make"),
)
CONDA = (
    Tool("conda", variable="CONDA_EXE"),
    Tool("mamba"),
    Tool("micromamba", variable="MAMBA_EXE"),
    Tool("pixi"),
)
CONTAINERS = (Tool("apptainer"), Tool("singularity"), Tool("podman"), Tool("docker"))
SCHEDULERS = (
    Tool("sinfo"),
    Tool("srun"),
    Tool("sbatch"),
    Tool("bsub", ("-V",)),
    Tool("jsrun"),
    Tool("qsub"),
)
_SCHEDULER_OF = {"sbatch": "Slurm", "bsub": "LSF", "qsub": "PBS"}


def find_tools(host: Host, tools: Sequence[Tool]) -> list[ToolLocation]:
    """Return those of *tools* that are here, in their order, each asked for its version."""
    places = []
    for tool in tools:
        stated = host.environ.get(tool.variable, "") if tool.variable else ""
        path = host.which(tool.name) or (
            stated if stated.startswith("/") and runs(stated) else None
        )
        if path is not None:
            places.append((tool, path))
    answers = together(
        [partial(_ask, host, tool, path) for tool, path in places], host.patience + ENDING
    )
    return [
        location or ToolLocation(tool, path, None, "did not answer in time")
        for (tool, path), location in zip(places, answers, strict=True)
    ]


def _ask(host: Host, tool: Tool, path: str) -> ToolLocation:
    answer = host.ask(path, *tool.arguments)
    match = tool.pattern.search(answer.text) or _VERSION.search(answer.text)
    version = match.group(1).rstrip(".") if match and answer.trouble is None else None
    trouble = answer.trouble
    if version is None and trouble is None:
        trouble = f"says no version: {first_line(answer.text) or 'nothing'}"
    return ToolLocation(tool, path, version, trouble)


def _item(section: str, location: ToolLocation, *, advice: str | None = None) -> Item:
    status: Status = "ok" if location.version else "problem"
    return make(
        f"{section}.{location.tool.name}",
        location.tool.name,
        status,
        location.version or "does not answer as it should",
        details=[location.path, *([location.trouble] if location.trouble else [])],
        facts={
            "path": location.path,
            **({"version": location.version} if location.version else {}),
        },
        advice=advice,
    )


def compilers_section(host: Host) -> Section:
    """Return each compiler and build tool, there or missing."""
    locations = {tool.tool.name: tool for tool in find_tools(host, COMPILERS)}
    items = [
        _item("compilers", locations[tool.name])
        if tool.name in locations
        else make(f"compilers.{tool.name}", tool.name, "missing", "not on PATH")
        for tool in COMPILERS
    ]
    return Section(id="compilers", title="Compilers and build tools", items=tuple(items))


def conda_section(host: Host) -> Section:
    """Return the members of conda's family; one missing is no matter where another is."""
    items = [_item("conda", tool, advice="conda.command") for tool in find_tools(host, CONDA)]
    if not items:
        names = ", ".join(tool.name for tool in CONDA)
        items = [make("conda", "conda", "missing", f"none of {names}")]
    return Section(id="conda", title="Conda family", items=tuple(items))


def scheduler_name(host: Host) -> str | None:
    """Return Slurm, LSF or PBS by the command that submits jobs, None without one."""
    return next((name for tool, name in _SCHEDULER_OF.items() if host.which(tool)), None)


def scheduler_section(host: Host) -> Section:
    """Return the scheduler's commands."""
    items = [
        _item("scheduler", tool, advice="scheduler.command")
        for tool in find_tools(host, SCHEDULERS)
    ]
    name = scheduler_name(host)
    if name is None:
        found = "no sbatch (Slurm), bsub (LSF) or qsub (PBS) on PATH"
        items.insert(0, make("scheduler", "Scheduler", "missing", found))
    else:
        items.insert(0, _scheduler_item(name, items))
    job = next((n for n in ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID") if n in host.environ), None)
    if job:
        items.append(make("scheduler.job", "Inside a job", "note", f"{job}={host.environ[job]}"))
    return Section(id="scheduler", title="Scheduler", items=tuple(items))


def _scheduler_item(name: str, items: Sequence[Item]) -> Item:
    """Return what the scheduler is; one whose submit command fails is of no use."""
    submit = next(tool for tool, of in _SCHEDULER_OF.items() if of == name)
    answers = any(item.title == submit and item.status == "ok" for item in items)
    return make(
        "scheduler",
        "Scheduler",
        "ok" if answers else "problem",
        name if answers else f"{name}, but {submit} does not answer as it should",
        facts={"name": name},
        advice="scheduler.command",
    )


def containers_section(host: Host) -> Section:
    """Return the container programs and what the kernel and the site allow them."""
    items = [
        _item("containers", tool, advice="containers.command")
        for tool in find_tools(host, CONTAINERS)
    ]
    if not items:
        names = ", ".join(tool.name for tool in CONTAINERS)
        items = [make("containers", "Containers", "missing", f"none of {names}")]
    if any(item.id == "containers.docker" for item in items):
        items.append(_docker_daemon(host))
    items += [_user_namespaces(host), _subordinate_ids(host), _fuse(host)]
    return Section(id="containers", title="Containers", items=tuple(items))


def _docker_daemon(host: Host) -> Item:
    stated = host.environ.get("DOCKER_HOST", "")
    socket = stated.removeprefix("unix://") if stated.startswith("unix://") else ""
    place = socket or "/var/run/docker.sock"
    usable = bool(stated and not socket) or os.access(host.at(place), os.R_OK | os.W_OK)
    found = "reachable by its address" if stated and not socket else f"{place} can be used"
    return make(
        "containers.docker-daemon",
        "Docker daemon",
        "ok" if usable else "note",
        found if usable else f"{place} is not there or not yours: docker can build nothing",
        facts={"usable": usable},
    )


def _user_namespaces(host: Host) -> Item:
    refusals = []
    maximum = (host.read("/proc/sys/user/max_user_namespaces") or "").strip()
    if not maximum:
        refusals.append("the kernel has none")
    elif maximum == "0":
        refusals.append("user.max_user_namespaces is 0")
    if (host.read("/proc/sys/kernel/unprivileged_userns_clone") or "").strip() == "0":
        refusals.append("kernel.unprivileged_userns_clone is 0")
    restricted = host.read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if (restricted or "").strip() == "1":
        refusals.append("AppArmor restricts them (apparmor_restrict_unprivileged_userns is 1)")
    unshare = host.which("unshare")
    if unshare and not refusals:
        # The settings do not tell all: a container's or a batch system's filter may refuse too.
        answer = host.ask(unshare, "--user", "true")
        if answer.trouble:
            refusals.append(f"trying one failed: {answer.trouble}")
    return make(
        "containers.userns",
        "User namespaces",
        "problem" if refusals else "ok",
        "not usable" if refusals else "usable",
        details=refusals,
        facts={"usable": not refusals},
    )


def _subordinate_ids(host: Host) -> Item:
    if os.geteuid() == 0:
        return make("containers.subuid", "Subordinate ids", "ok", "root needs none")
    names = {host.environ.get("USER", ""), host.environ.get("LOGNAME", ""), str(os.geteuid())} - {
        ""
    }
    lines = (host.read("/etc/subuid") or "").splitlines()
    ranges = [line for line in lines if line.split(":")[0] in names]
    mapper = host.which("newuidmap")
    usable = bool(ranges and mapper)
    found = "a range and newuidmap" if usable else "no range in /etc/subuid"
    if ranges and not mapper:
        found = "a range, but no newuidmap"
    return make(
        "containers.subuid",
        "Subordinate ids",
        "ok" if usable else "missing",
        found,
        facts={"usable": usable},
    )


def _fuse(host: Host) -> Item:
    device = host.at("/dev/fuse")
    usable = is_there(device) and os.access(device, os.R_OK | os.W_OK)
    found = "/dev/fuse can be used" if usable else "/dev/fuse is not there or not yours"
    return make(
        "containers.fuse", "FUSE", "ok" if usable else "missing", found, facts={"usable": usable}
    )
