"""The site ``local``: this machine as it was found, for those whose site has no document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from ..base import fits
from ..errors import UsageError
from ..knowledge.terms import Arch, PlainVersion
from ..model.site import Site, SiteFacts, SitePath
from .gpu import capabilities, driver_version, gpudirect
from .host import LocalMachine, machine_arch
from .modules.find import find_modules


def local_site(environ: Mapping[str, str]) -> Site:
    """Return the detected site: architecture and module system, and no modules stated.

    Raises UsageError on an architecture that no recipe can name.
    """
    arch = machine_arch()
    if arch not in get_args(Arch):
        raise UsageError(
            "machine.unknown-architecture",
            f"the architecture {arch} is not supported; supported: {', '.join(get_args(Arch))}",
            "use another machine, or plan for a site with --site",
        )
    host = LocalMachine(environ)
    tool = find_modules(host).tool
    site = Site(
        schema_=1,
        name="local",
        summary=f"This machine ({arch}), as detected",
        arch=(cast("Arch", arch),),
        facts=_facts(host),
    )
    # A folder whose name no document admits: go without modules, doctor still shows it.
    if tool is None or tool.init is None or not fits(SitePath, tool.init):
        return site
    return site.model_copy(update={"module_system": tool.system, "module_init": tool.init})


def _facts(host: LocalMachine) -> SiteFacts:
    """Return what this node shows for certain. What it does not show other nodes may still have."""
    state = gpudirect(host)
    driver = driver_version(host)
    return SiteFacts(
        gpu=capabilities(host) or None,
        driver=driver if driver and fits(PlainVersion, driver) else None,
        network=state.networks or None,
        peer_memory=state.peer_memory,
        gpudirect=state.usable,
    )
