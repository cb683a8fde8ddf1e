"""The site ``local``: this machine as it was found, for those whose site has no document."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import cast, get_args

from pydantic import TypeAdapter, ValidationError

from ..errors import UsageError
from ..model.base import fits
from ..model.recipe import Arch
from ..model.site import PlainVersion, Site, SiteFacts
from .gpu import capabilities, driver_version
from .gpudirect import gpudirect
from .host import Host, machine_arch
from .modules import ModuleTool, find_modules
from .tools import scheduler_name

_VERSION: TypeAdapter[str] = TypeAdapter(PlainVersion)


def local_site(environ: Mapping[str, str]) -> Site:
    """Return the detected site: architecture and module system, and no modules stated.

    Raises UsageError on an architecture that no recipe can name.
    """
    arch = machine_arch()
    if arch not in get_args(Arch):
        raise UsageError(
            f"this machine's architecture is {arch}, envbuild knows {', '.join(get_args(Arch))}",
            "use a machine of one of these, or name a site with --site to plan for it",
        )
    host = Host(environ)
    tool = find_modules(host).tool
    summary = f"This machine ({arch}), as detected"
    facts = _facts(host)
    plain = Site(schema_=1, name="local", summary=summary, arch=(cast("Arch", arch),), facts=facts)
    if tool is None or tool.init is None:
        return plain
    try:
        return Site(
            schema_=1,
            name="local",
            summary=summary,
            arch=plain.arch,
            module_system=tool.system,
            module_init=tool.init,
            facts=facts,
        )
    except ValidationError:
        # A folder whose name no document admits: go without modules, doctor still shows it.
        return plain


def _facts(host: Host) -> SiteFacts:
    """Return what this node shows for certain. What it does not show other nodes may still have."""
    found = gpudirect(host)
    driver = driver_version(host)
    return SiteFacts(
        gpu=capabilities(host) or None,
        driver=driver if driver and fits(_VERSION, driver) else None,
        network=found.networks or None,
        peer_memory=found.peer_memory,
        gpudirect=found.usable,
    )


def local_notes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what was found that the detected site does not use, in words. Starts no process."""
    host = Host(environ)
    found = find_modules(host)
    notes = list(found.notes)
    if found.tool is not None:
        notes.append(_module_note(found.tool, environ))
    scheduler = scheduler_name(host)
    if scheduler is not None:
        notes.append(
            f"{scheduler} is here: a site document may name its launcher, "
            "the detected site starts ranks with the MPI of the environment"
        )
    return tuple(notes)


def _module_note(tool: ModuleTool, environ: Mapping[str, str]) -> str:
    trees = [tree for tree in environ.get("MODULEPATH", "").split(os.pathsep) if tree]
    name = {"lmod": "Lmod", "tcl": "Environment Modules"}.get(tool.system, tool.system)
    return (
        f"{name} is here, trees in MODULEPATH: {len(trees)}; modules are used only "
        "where a site document states them"
    )
