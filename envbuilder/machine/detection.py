"""The snapshot of a machine: its interpreters and components, with a site's modules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from ..base import canonical_json
from ..model.site import Site, Snapshot, StatedModule
from .host import LocalMachine, glibc_version, together
from .interpreters import find_interpreters
from .modules.site_modules import SiteModules
from .system import system_components

# Seconds an interpreter gets to answer: a cold one on a parallel file system needs several.
PYTHON_PATIENCE = 10.0

# Seconds for all of it. Each program has its own limit, which ends it long before.
_ALTOGETHER = 600.0
INCOMPLETE = "detection of the machine is incomplete: it did not end in time"


@dataclass(frozen=True)
class DetectionResult:
    """A snapshot, and what was skipped or is odd, in words."""

    snapshot: Snapshot
    notes: tuple[str, ...]


def snapshot(
    site: Site,
    environ: Mapping[str, str],
    patience: float = PYTHON_PATIENCE,
    components: Collection[str] | None = None,
) -> DetectionResult:
    """Return the snapshot of this machine as *site* says, with the modules that the site states.

    Where the site has the origin ``system``, also at what else the machine has; *components*: of
    these only (canonical names, python for the interpreters); None: of all. Starts each program for
    at most *patience* seconds; writes nothing and never raises for what it finds: what is broken is
    skipped and named in the notes.
    """
    wanted = components if "system" in site.origins else ()
    pythons = site.pythons if components is None or "python" in components else None
    return detect(LocalMachine(environ, patience=patience), pythons, site.modules, wanted)


def live_snapshot(
    site: Site, environ: Mapping[str, str], today: date, site_modules: SiteModules
) -> DetectionResult:
    """Return the snapshot of a live site: the modules that were found, and this machine."""
    homes = [each.home for each in site_modules.modules if each.home]
    machine = detect(
        LocalMachine(environ),
        site.pythons,
        components=None,
        module_folders=[*homes, *site_modules.folders],
    ).snapshot
    found = {
        "taken": today.isoformat(),
        "source": "envbuild sites snapshot",
        "module_system": site_modules.shell.version or None,
        "preload": site.preload,
        "trees": site_modules.trees,
        "modules": site_modules.modules,
    }
    return DetectionResult(machine.model_copy(update=found), site_modules.notes)


def detect(
    host: LocalMachine,
    pythons: Sequence[str] | None = (),
    modules: Sequence[StatedModule] = (),
    components: Collection[str] | None = (),
    module_folders: Sequence[str] = (),
) -> DetectionResult:
    """Return the snapshot of *host* with these modules.

    *pythons*: the interpreters to look at, those on PATH if there is none; None: at none of them.
    *components*: the system's components to look for; None: all of them. *module_folders*: where
    programs are a module's and not the system's, beside the homes of *modules*.
    """
    homes = [*module_folders, *(module.home for module in modules if module.home)]
    searches: list[Callable[[], Any]] = [
        partial(find_interpreters, host, pythons, modules)
        if pythons is not None
        else lambda: ((), ()),
        partial(system_components, host, components, homes),
    ]
    found, system = together(searches, _ALTOGETHER)
    interpreters, notes = found or ((), ())
    if found is None or system is None:
        notes = (*notes, INCOMPLETE)
    return DetectionResult(
        Snapshot(
            interpreters=interpreters,
            system=system or (),
            modules=tuple(modules),
            glibc=glibc_version(),
        ),
        tuple(dict.fromkeys(notes)),
    )


def snapshot_text(value: Snapshot) -> str:
    """Return a snapshot as it is written: canonical JSON without what is empty."""
    plain = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return canonical_json({**plain, "schema": value.schema_})
