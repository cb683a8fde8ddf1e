"""The machine's module system: Lmod or Environment Modules, active in this shell or only there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ...model.site import ModuleSystem
from ..host import LocalMachine, is_file

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


# Whose home, or program two folders below it, a variable of the shell names.
_VARIABLES: Mapping[str, tuple[ModuleSystem, ...]] = {
    "LMOD_CMD": ("lmod",),
    "MODULESHOME": ("lmod", "tcl"),
    "MODULES_CMD": ("tcl",),
}


def find_modules(host: LocalMachine) -> ModuleSystems:
    """Find the module system: what this shell uses first, then what the machine has."""
    notes: list[str] = []
    for name, systems in _VARIABLES.items():
        value = host.environ.get(name, "")
        home = value if name == "MODULESHOME" else str(Path(value).parent.parent)
        for system in systems if value.startswith("/") else ():
            tool = _tool(host, system, home, name, active=True)
            if tool is not None:
                return ModuleSystems(tool, tuple(notes))
        if value:
            notes.append(f"{name}={value} does not point to a module system")
    usual: Mapping[ModuleSystem, tuple[str, ...]] = {"lmod": LMOD_HOMES, "tcl": TCL_HOMES}
    tools = (_tool(host, system, home, home) for system in usual for home in usual[system])
    return ModuleSystems(next(filter(None, tools), None), tuple(notes))


def _tool(
    host: LocalMachine, system: ModuleSystem, home: str, found_by: str, *, active: bool = False
) -> ModuleTool | None:
    home = os.path.normpath(home)
    candidates = [f"{home}/libexec/lmod"]
    if system == "tcl":
        stated = host.environ.get("MODULES_CMD", "")
        # Debian keeps it apart from its home.
        folders = [name for name in host.names("/usr/lib") if "linux-gnu" in name]
        candidates = [
            *([stated] if stated.startswith("/") else []),
            f"{home}/libexec/modulecmd.tcl",
            f"{home}/modulecmd.tcl",
            f"{home}/bin/modulecmd",
            *(f"/usr/lib/{name}/modulecmd.tcl" for name in folders),
        ]
    command = next((path for path in candidates if is_file(host.at(path))), None)
    init = f"{home}/init/bash"
    has_init = is_file(host.at(init))
    if command is None or (system == "tcl" and not has_init):
        return None
    return ModuleTool(system, command, init if has_init else None, found_by, active)
