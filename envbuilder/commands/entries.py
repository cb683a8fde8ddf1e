"""Which entries there are: what documents and locks are read with."""

from __future__ import annotations

from .. import backends
from ..launchers import LAUNCHERS, programs
from ..model.entries import NO_SCHEDULER, Entries
from ..schedulers import SCHEDULERS


def entries() -> Entries:
    """Return the entries of every variation point that a document may name."""
    return Entries(
        backends=backends.traits(),
        launchers=tuple(LAUNCHERS),
        schedulers=(*SCHEDULERS, NO_SCHEDULER),
        launch_programs=programs(),
    )


def names(point: str) -> str:
    """Return the names of launchers, providers or forms of one file, as help lists them."""
    if point == "launchers":
        return f"{', '.join([*LAUNCHERS][:-1])} or {[*LAUNCHERS][-1]}"
    if point == "providers":
        # lazy import: plans have no pipelines
        from ..pipelines import PROVIDERS

        return ", ".join(PROVIDERS)
    from .texts import forms

    return ", ".join(forms())
