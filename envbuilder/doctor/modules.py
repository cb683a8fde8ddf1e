"""What doctor says of the machine's module system, its trees and what is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..machine.host import LocalMachine, is_folder
from ..machine.item_values import Item, Section
from ..machine.items import make, section
from ..machine.modules.find import find_modules

_VERSION = re.compile(r"(?:Lua: Version|Modules Release|VERSION=)\s*v?(\d[\w.+-]*)")


def modules_section(host: LocalMachine) -> Section:
    """Return what there is of a module system, its trees and what is loaded."""
    return section("modules", (_system(host), _trees(host), *_loaded(host)))


def _system(host: LocalMachine) -> Item:
    systems = find_modules(host)
    tool = systems.tool
    if tool is None:
        return make("modules.system", "missing", "none", details=systems.notes)
    answer = host.ask(str(host.at(tool.command)), "bash", "--version")
    match = _VERSION.search(answer.text)
    trouble = answer.trouble if match is None else None
    name = {"lmod": "Lmod", "tcl": "Environment Modules"}[tool.system]
    return make(
        "modules.system",
        "problem" if trouble else "ok",
        f"{name} {match[1] if match else 'of unknown version'}",
        details=[
            *systems.notes,
            f"found through {tool.found_by}",
            f"to use it in a bash script: . {tool.init}" if tool.init else None,
            None if tool.active else "not active in this shell",
            f"{tool.command}: {trouble}" if trouble else None,
        ],
        facts={
            "system": tool.system,
            "command": tool.command,
            "active": tool.active,
            "version": match[1] if match else None,
            "init": tool.init,
        },
    )


def _trees(host: LocalMachine) -> Item:
    trees = list(dict.fromkeys(t for t in host.environ.get("MODULEPATH", "").split(":") if t))
    if not trees:
        return make("modules.path", "note", "MODULEPATH is not set")
    there = [tree for tree in trees if is_folder(host.at(tree))]
    return make(
        "modules.path",
        "ok" if there else "problem",
        f"{len(trees)} in MODULEPATH, {len(there)} of them exist",
        details=[tree if tree in there else f"{tree} (does not exist)" for tree in trees],
        facts={"trees": len(trees), "existing": len(there)},
    )


def _loaded(host: LocalMachine) -> Iterator[Item]:
    loaded = [name for name in host.environ.get("LOADEDMODULES", "").split(":") if name]
    if loaded:
        found = f"{len(loaded)} loaded in this shell"
        yield make("modules.loaded", "note", found, details=loaded, facts={"count": len(loaded)})
