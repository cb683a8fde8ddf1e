"""The machine's module system: Lmod or Environment Modules, active in this shell or only there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..model.doctor import Item, Section
from ..model.site import ModuleSystem
from .host import Host, is_file, is_folder
from .items import make

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

_VERSION = re.compile(r"(?:Lua: Version|Modules Release|VERSION=)\s*v?(\d[\w.+-]*)")


@dataclass(frozen=True)
class ModuleTool:
    """A module system: its command, the file that bash sources for it, and how it was found."""

    system: ModuleSystem
    command: str
    init: str | None
    found_by: str
    active: bool


@dataclass(frozen=True)
class FoundModules:
    """The module system, None when there is none, and what is odd."""

    tool: ModuleTool | None
    notes: tuple[str, ...] = ()


def find_modules(host: Host) -> FoundModules:
    """Find the module system: what this shell uses first, then what the machine has."""
    notes: list[str] = []
    for name in ("LMOD_CMD", "MODULESHOME", "MODULES_CMD"):
        value = host.environ.get(name, "")
        if not value:
            continue
        tool = _of_variable(host, name, value)
        if tool is not None:
            return FoundModules(tool, tuple(notes))
        notes.append(f"{name}={value} names no module system that exists")
    for system, homes in (("lmod", LMOD_HOMES), ("tcl", TCL_HOMES)):
        for home in homes:
            tool = _lmod(host, home, home) if system == "lmod" else _tcl(host, home, home)
            if tool is not None:
                return FoundModules(tool, tuple(notes))
    return FoundModules(None, tuple(notes))


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
        *(f"/usr/lib/{name}/modulecmd.tcl" for name in _debian_folders(host)),
    ]
    command = next((path for path in candidates if is_file(host.at(path))), None)
    init = _init(host, home)
    if command is None or init is None:
        return None
    return ModuleTool("tcl", command, init, found_by, active)


def _debian_folders(host: Host) -> list[str]:
    try:
        return sorted(
            path.name for path in host.at("/usr/lib").iterdir() if "linux-gnu" in path.name
        )
    except OSError:
        return []


def _init(host: Host, home: str) -> str | None:
    init = f"{home}/init/bash"
    return init if is_file(host.at(init)) else None


def modules_section(host: Host) -> Section:
    """Return what there is of a module system, its trees and what is loaded."""
    found = find_modules(host)
    return Section(
        id="modules",
        title="Module system",
        items=(_system_item(host, found), *_tree_items(host), *_loaded_items(host)),
    )


def _system_item(host: Host, found: FoundModules) -> Item:
    tool = found.tool
    if tool is None:
        return make("modules.system", "Module system", "missing", "none", details=found.notes)
    answer = host.ask(str(host.at(tool.command)), "bash", "--version")
    match = _VERSION.search(answer.text)
    version = match.group(1) if match else "of unknown version"
    name = {"lmod": "Lmod", "tcl": "Environment Modules"}[tool.system]
    details = [*found.notes, f"found through {tool.found_by}"]
    if tool.init:
        details.append(f"a bash script gets it by: . {tool.init}")
    if not tool.active:
        details.append("not active in this shell")
    if match is None and answer.trouble:
        details.append(f"{tool.command}: {answer.trouble}")
    return make(
        "modules.system",
        "Module system",
        "problem" if match is None and answer.trouble else "ok",
        f"{name} {version}",
        details=details,
        facts={
            "system": tool.system,
            "command": tool.command,
            "active": tool.active,
            **({"version": version} if match else {}),
            **({"init": tool.init} if tool.init else {}),
        },
    )


def _tree_items(host: Host) -> list[Item]:
    trees = list(dict.fromkeys(t for t in host.environ.get("MODULEPATH", "").split(":") if t))
    if not trees:
        return [make("modules.path", "Module trees", "note", "MODULEPATH is not set")]
    gone = [tree for tree in trees if not is_folder(host.at(tree))]
    details = [f"{tree}{' (does not exist)' if tree in gone else ''}" for tree in trees]
    return [
        make(
            "modules.path",
            "Module trees",
            "problem" if len(gone) == len(trees) else "ok",
            f"{len(trees)} in MODULEPATH, {len(trees) - len(gone)} of them exist",
            details=details,
            facts={"trees": len(trees), "existing": len(trees) - len(gone)},
        )
    ]


def _loaded_items(host: Host) -> list[Item]:
    loaded = [name for name in host.environ.get("LOADEDMODULES", "").split(":") if name]
    if not loaded:
        return []
    return [
        make(
            "modules.loaded",
            "Loaded modules",
            "note",
            f"{len(loaded)} loaded in this shell",
            details=loaded,
            facts={"count": len(loaded)},
        )
    ]
