"""Programs that builds use: compilers, conda's family, containers, schedulers."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from .host import ENDING, LocalMachine, first_line, runs, together
from .item_values import Item, Section, Status
from .items import make, section

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


# "gcc (Debian 12.2.0-14) 12.2.0": the packager's words stand in brackets. Nothing else that goes by
# the name of a GNU compiler writes it like this.
GNU = re.compile(r"^\S+ \(.*\) (\d+(?:\.\d+)+)", re.MULTILINE)
NVCC = re.compile(r"release [\d.]+, V(\d+(?:\.\d+)+)")

COMPILERS = (
    Tool("bash"),
    Tool("gcc", pattern=GNU),
    Tool("g++", pattern=GNU),
    Tool("gfortran", pattern=GNU),
    Tool("nvcc", pattern=NVCC),
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


def find_tools(host: LocalMachine, tools: Sequence[Tool]) -> list[ToolLocation]:
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


def _ask(host: LocalMachine, tool: Tool, path: str) -> ToolLocation:
    answer = host.ask(path, *tool.arguments)
    match = tool.pattern.search(answer.text) or _VERSION.search(answer.text)
    version = match.group(1).rstrip(".") if match and answer.trouble is None else None
    trouble = answer.trouble
    if version is None and trouble is None:
        trouble = f"reports no version: {first_line(answer.text) or 'nothing'}"
    return ToolLocation(tool, path, version, trouble)


def _item(section_id: str, found: ToolLocation, *, advice: str | None = None) -> Item:
    return make(
        f"{section_id}.{found.tool.name}",
        "ok" if found.version else "problem",
        found.version or "does not answer as expected",
        details=[found.path, found.trouble],
        facts={"path": found.path, "version": found.version},
        advice=advice,
    )


def compilers_section(host: LocalMachine) -> Section:
    """Return each compiler and build tool, there or missing."""
    there = {each.tool: _item("compilers", each) for each in find_tools(host, COMPILERS)}
    return section(
        "compilers",
        [
            there.get(tool) or make(f"compilers.{tool.name}", "missing", "not on PATH")
            for tool in COMPILERS
        ],
    )


def rattler_version() -> str | None:
    """Return which py-rattler this Python has, None without one; it is not imported."""
    try:
        return version("py-rattler") if find_spec("rattler") else None
    except PackageNotFoundError:
        return None


def conda_section(host: LocalMachine, rattler: str | None) -> Section:
    """Return py-rattler, which reads channels, and the members of conda's family."""
    own = make(
        "conda.py-rattler",
        "ok" if rattler else "missing",
        rattler or "not in the Python that runs envbuild",
        facts={"version": rattler},
    )
    family = [_item("conda", found, advice="conda.command") for found in find_tools(host, CONDA)]
    # One is enough, and py-rattler links packages too.
    none = f"none of {', '.join(tool.name for tool in CONDA)}"
    return section(
        "conda", [own, *(family or [make("conda", "note" if rattler else "missing", none)])]
    )


def scheduler_name(host: LocalMachine) -> str | None:
    """Return Slurm, LSF or PBS by the command that submits jobs, None without one."""
    return next((name for tool, name in _SCHEDULER_OF.items() if host.which(tool)), None)


def scheduler_section(host: LocalMachine) -> Section:
    """Return the scheduler's commands."""
    found = find_tools(host, SCHEDULERS)
    items = [_scheduler(found)]
    items += [_item("scheduler", each, advice="scheduler.command") for each in found]
    job = next((n for n in ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID") if n in host.environ), None)
    if job:
        items.append(make("scheduler.job", "note", f"{job}={host.environ[job]}"))
    return section("scheduler", items)


def _scheduler(found: Sequence[ToolLocation]) -> Item:
    """Return what the scheduler is; one whose submit command fails is of no use."""
    answers = {each.tool.name: each.version for each in found}
    submit = next((tool for tool in _SCHEDULER_OF if tool in answers), None)
    if submit is None:
        return make("scheduler", "missing", "no sbatch (Slurm), bsub (LSF) or qsub (PBS) on PATH")
    name, version = _SCHEDULER_OF[submit], answers[submit]
    return make(
        "scheduler",
        "ok" if version else "problem",
        name if version else f"{name}, but {submit} does not answer as expected",
        facts={"name": name},
        advice="scheduler.command",
    )


def containers_section(host: LocalMachine) -> Section:
    """Return the container programs and what the kernel and the site allow them."""
    items = [
        _item("containers", found, advice="containers.command")
        for found in find_tools(host, CONTAINERS)
    ]
    if not {"containers.apptainer", "containers.singularity"} & {item.id for item in items}:
        none = "neither apptainer nor singularity is on PATH"
        items.insert(0, make("containers", "missing", none))
    if any(item.id == "containers.docker" for item in items):
        items.append(_docker_daemon(host))
    items += [_user_namespaces(host), _subordinate_ids(host), _fuse(host)]
    return section("containers", items)


def _usable(item_id: str, usable: bool, yes: str, no: str, otherwise: Status) -> Item:
    facts = {"usable": usable}
    return make(item_id, "ok" if usable else otherwise, yes if usable else no, facts=facts)


def _docker_daemon(host: LocalMachine) -> Item:
    stated = host.environ.get("DOCKER_HOST", "")
    socket = stated.removeprefix("unix://") if stated.startswith("unix://") else ""
    place, remote = socket or "/var/run/docker.sock", bool(stated and not socket)
    return _usable(
        "containers.docker-daemon",
        remote or os.access(host.at(place), os.R_OK | os.W_OK),
        "reachable by its address" if remote else f"{place} can be used",
        f"{place} is missing or not accessible: docker cannot build",
        "note",
    )


def _user_namespaces(host: LocalMachine) -> Item:
    maximum, clone, restricted = (
        (host.read(f"/proc/sys/{name}") or "").strip()
        for name in (
            "user/max_user_namespaces",
            "kernel/unprivileged_userns_clone",
            "kernel/apparmor_restrict_unprivileged_userns",
        )
    )
    refusals = [] if maximum else ["the kernel does not support them"]
    if maximum == "0":
        refusals.append("user.max_user_namespaces is 0")
    if clone == "0":
        refusals.append("kernel.unprivileged_userns_clone is 0")
    if restricted == "1":
        refusals.append("AppArmor restricts them (apparmor_restrict_unprivileged_userns is 1)")
    unshare = host.which("unshare")
    if unshare and not refusals:
        # The settings do not tell all: a container's or a batch system's filter may refuse too.
        answer = host.ask(unshare, "--user", "true")
        if answer.trouble:
            refusals.append(f"trying one failed: {answer.trouble}")
    return make(
        "containers.userns",
        "problem" if refusals else "ok",
        "not usable" if refusals else "usable",
        details=refusals,
        facts={"usable": not refusals},
    )


def _subordinate_ids(host: LocalMachine) -> Item:
    if os.geteuid() == 0:
        return make("containers.subuid", "ok", "not needed by root")
    names = {host.environ.get(name) for name in ("USER", "LOGNAME")} | {str(os.geteuid())}
    lines = (host.read("/etc/subuid") or "").splitlines()
    has_range = any(line.split(":")[0] in names - {""} for line in lines)
    usable = has_range and host.which("newuidmap") is not None
    without = "a range, but no newuidmap" if has_range else "no range in /etc/subuid"
    return _usable("containers.subuid", usable, "a range and newuidmap", without, "missing")


def _fuse(host: LocalMachine) -> Item:
    usable = os.access(host.at("/dev/fuse"), os.R_OK | os.W_OK)
    no = "/dev/fuse is missing or not accessible"
    return _usable("containers.fuse", usable, "/dev/fuse can be used", no, "missing")
