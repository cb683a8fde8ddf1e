"""Which entries there are: what documents and locks are read with."""

from __future__ import annotations

from .. import runtimes
from ..build import backends
from ..knowledge.entries import NO_SCHEDULER, Entries
from ..launching.launchers import LAUNCHERS, programs
from ..launching.schedulers import SCHEDULERS
from ..model.site import SiteLauncher


def entries() -> Entries:
    """Return the entries of every variation point that a document may name."""
    return Entries(
        backends=backends.traits(),
        launchers=tuple(LAUNCHERS),
        schedulers=(*SCHEDULERS, NO_SCHEDULER),
        launch_programs=programs(),
        launch_options={name: each.TRAITS.line.options for name, each in LAUNCHERS.items()},
        runtimes=runtimes.traits(),
    )


def runtime_launcher(runtime: str | None) -> SiteLauncher | None:
    """Return the one launcher of the programs of a framework's part; None: any will do."""
    entry = runtimes.RUNTIMES.get(runtime or "")
    return _launcher(entry.TRAITS.launcher) if entry else None


def api_launcher(api: str) -> SiteLauncher | None:
    """Return the launcher that the programs of an API bring along; None: they bring none."""
    every = (each.TRAITS for each in runtimes.RUNTIMES.values())
    return _launcher(next((each.launcher for each in every if api in each.apis), None))


def _launcher(kind: str | None) -> SiteLauncher | None:
    return SiteLauncher(kind=kind, command=LAUNCHERS[kind].COMMAND) if kind else None
