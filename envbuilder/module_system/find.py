"""The machine's module system: Lmod or Environment Modules, active in this shell or only there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..host import Host, is_file
from ..model.site import ModuleSystem

# Where installations put Lmod (Debian and RHEL, TACC, OpenHPC, by hand) and Environment Modules
# (Debian, RHEL, by hand, Cray).
LMOD_HOMES = (
    "/usr/share/lmod/lmod",
    "/opt/apps/lmod/lmod",
    "/opt/ohpc/admin/lmod/lmod",
    "/opt/lmod/lmod",
    "/usr/local/lmod/lmod",
    "/usr/local/share/lmod/lmod",
)
TCL_HOMES = (
    "/usr/share/modules",
    "/usr/share/Modules",
    "/usr/local/Modules",
    "/usr/local/modules",
    "/opt/modules",
    "/opt/cray/pe/modules/default",
)


# What the names of Debian's folders for one architecture hold.
_MULTIARCH = "linux-gnu"


@dataclass(frozen=True)
class ModuleTool:
    """A module system: its command, the file that bash sources for it, and how it was found."""

    system: ModuleSystem
    command: str
    init: str | None
    found_by: str
    active: bool


@dataclass(frozen=True)
class ModuleSystems:
    """The module system, None when there is none, and what is odd."""

    tool: ModuleTool | None
    notes: tuple[str, ...] = ()


def find_modules(host: Host) -> ModuleSystems:
    """Find the module system: what this shell uses first, then what the machine has."""
    notes: list[str] = []
    for name in ("LMOD_CMD", "MODULESHOME", "MODULES_CMD"):
        value = host.environ.get(name, "")
        if not value:
            continue
        tool = _of_variable(host, name, value)
        if tool is not None:
            return ModuleSystems(tool, tuple(notes))
        notes.append(f"{name}={value} names no module system that exists")
    for system, homes in (("lmod", LMOD_HOMES), ("tcl", TCL_HOMES)):
        for home in homes:
            tool = _lmod(host, home, home) if system == "lmod" else _tcl(host, home, home)
            if tool is not None:
                return ModuleSystems(tool, tuple(notes))
    return ModuleSystems(None, tuple(notes))


def _of_variable(host: Host, name: str, value: str) -> ModuleTool | None:
    if not value.startswith("/"):
        return None
    if name == "LMOD_CMD":
        return _lmod(host, str(Path(value).parent.parent), name, active=True)
    if name == "MODULESHOME":
        return _lmod(host, value, name, active=True) or _tcl(host, value, name, active=True)
    return _tcl(host, str(Path(value).parent.parent), name, active=True)


def _lmod(host: Host, home: str, found_by: str, *, active: bool = False) -> ModuleTool | None:
    home = os.path.normpath(home)
    command = f"{home}/libexec/lmod"
    if not is_file(host.at(command)):
        return None
    return ModuleTool("lmod", command, _init(host, home), found_by, active)


def _tcl(host: Host, home: str, found_by: str, *, active: bool = False) -> ModuleTool | None:
    home = os.path.normpath(home)
    stated = host.environ.get("MODULES_CMD", "")
    candidates = [
        *([stated] if stated.startswith("/") else []),
        f"{home}/libexec/modulecmd.tcl",
        f"{home}/modulecmd.tcl",
        f"{home}/bin/modulecmd",
        # Debian keeps it apart from its home.
        *(
            f"/usr/lib/{name}/modulecmd.tcl"
            for name in host.names("/usr/lib")
            if _MULTIARCH in name
        ),
    ]
    command = next((path for path in candidates if is_file(host.at(path))), None)
    init = _init(host, home)
    if command is None or init is None:
        return None
    return ModuleTool("tcl", command, init, found_by, active)


def _init(host: Host, home: str) -> str | None:
    init = f"{home}/init/bash"
    return init if is_file(host.at(init)) else None
