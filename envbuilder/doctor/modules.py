"""What doctor says of the machine's module system, its trees and what is loaded."""

from __future__ import annotations

import re

from ..host import Host, is_folder
from ..model.doctor import Item, Section
from ..module_system.find import ModuleSystems, find_modules
from .items import make

_VERSION = re.compile(r"(?:Lua: Version|Modules Release|VERSION=)\s*v?(\d[\w.+-]*)")


def modules_section(host: Host) -> Section:
    """Return what there is of a module system, its trees and what is loaded."""
    systems = find_modules(host)
    return Section(
        id="modules",
        title="Module system",
        items=(_system_item(host, systems), *_tree_items(host), *_loaded_items(host)),
    )


def _system_item(host: Host, systems: ModuleSystems) -> Item:
    tool = systems.tool
    if tool is None:
        return make("modules.system", "Module system", "missing", "none", details=systems.notes)
    answer = host.ask(str(host.at(tool.command)), "bash", "--version")
    match = _VERSION.search(answer.text)
    version = match.group(1) if match else "of unknown version"
    name = {"lmod": "Lmod", "tcl": "Environment Modules"}[tool.system]
    details = [*systems.notes, f"found through {tool.found_by}"]
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
