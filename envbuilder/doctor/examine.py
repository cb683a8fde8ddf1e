"""All that can be told about this machine, and what it can do now. Looks only; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import EnvbuildError
from ..knowledge.rows import Advisory
from ..machine.detection import detect
from ..machine.gpu import gpu_section
from ..machine.hardware import machine_section
from ..machine.host import ENDING, PATIENCE, LocalMachine, together
from ..machine.item_values import DoctorReport, Section
from ..machine.items import SECTIONS, make
from ..machine.mpi_programs import mpi_section
from ..machine.tools import (
    compilers_section,
    conda_section,
    containers_section,
    rattler_version,
    scheduler_section,
)
from ..model.site import Site
from .capabilities import abilities
from .modules import modules_section
from .network import network_section
from .places import places_section
from .pythons import pythons_section, settings_section

# A program is asked at most this often in a row within one section.
_IN_A_ROW = 4


def examine(
    environ: Mapping[str, str],
    *,
    site: Site | None = None,
    cwd: Path | None = None,
    root: Path | None = None,
    cache: Path | None = None,
    patience: float = PATIENCE,
    files: Path = Path("/"),
    advisories: Sequence[Advisory] = (),
) -> DoctorReport:
    """Return what this machine has, what is missing, and how one gets it.

    *site*: whose interpreters and modules to look at; None: those of this machine. *root* and
    *cache*: the folders that would be used. *patience*: seconds that a program gets to answer.
    *files*: where /etc, /proc and /sys are found. *advisories*: what is known to be bad. Never
    raises for what it finds.
    """
    host = LocalMachine(environ, cwd, files, patience)
    looks: dict[str, Callable[[], Sequence[Section]]] = {
        "pythons": lambda: _python_sections(host, site),
        "machine": lambda: [machine_section(host)],
        "modules": lambda: [modules_section(host)],
        "mpi": lambda: [mpi_section(host, advisories)],
        "compilers": lambda: [compilers_section(host)],
        "conda": lambda: [conda_section(host, rattler_version())],
        "containers": lambda: [containers_section(host)],
        "scheduler": lambda: [scheduler_section(host)],
        "gpu": lambda: [gpu_section(host)],
        "network": lambda: [network_section(host)],
        "places": lambda: [places_section(host, root, cache)],
    }
    jobs = [partial(_guarded, SECTIONS[name], look) for name, look in looks.items()]
    results = together(jobs, _IN_A_ROW * (patience + ENDING))
    sections = [
        section
        for name, result in zip(looks, results, strict=True)
        for section in result or _not_looked(SECTIONS[name], "timed out: a file server may hang")
    ]
    order = {section_id: place for place, section_id in enumerate(SECTIONS)}
    ordered = tuple(sorted(sections, key=lambda each: order.get(each.id, len(order))))
    return DoctorReport(sections=ordered, abilities=abilities(ordered))


def _guarded(title: str, look: Callable[[], Sequence[Section]]) -> Sequence[Section]:
    """Return the sections; one that meets what nobody foresaw must not cost all the others."""
    try:
        return look()
    except (EnvbuildError, OSError, ValueError) as error:
        return _not_looked(title, f"{type(error).__name__}: {error}")


def _not_looked(title: str, why: str) -> Sequence[Section]:
    name = title.lower().replace(" ", "-")
    found = f"not examined: {why}"
    item = make(f"{name}.looked", "problem", found, title=title, advice="looked")
    return [Section(id=f"{name}.failed", title=title, items=(item,))]


def _python_sections(host: LocalMachine, site: Site | None) -> Sequence[Section]:
    slow = replace(host, patience=2 * host.patience)
    detected = detect(slow, site.pythons, site.modules) if site else detect(slow)
    return [pythons_section(detected), settings_section(host, detected.snapshot.interpreters)]
