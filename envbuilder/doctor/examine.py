"""All that can be told about this machine, and what it can do now. Looks only; writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import EnvbuildError
from ..host import ENDING, PATIENCE, Host, clean, together
from ..model.doctor import DoctorReport, Section
from ..model.knowledge import Advisory
from ..model.site import Site
from .capabilities import abilities
from .detection import detect
from .gpu import gpu_section
from .items import make
from .machine import machine_section
from .modules import modules_section
from .mpi import mpi_section
from .network import network_section
from .places import places_section
from .pythons import pythons_section, settings_section
from .tools import compilers_section, conda_section, containers_section, scheduler_section

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
    host = Host(environ, cwd, files, patience)
    looks: list[tuple[str, Callable[[], tuple[Section, ...]]]] = [
        ("Pythons", lambda: _python_sections(host, site)),
        ("Machine", _one(machine_section, host)),
        ("Module system", _one(modules_section, host)),
        ("MPI", lambda: (mpi_section(host, advisories),)),
        ("Compilers and build tools", _one(compilers_section, host)),
        ("Conda family", _one(conda_section, host)),
        ("Containers", _one(containers_section, host)),
        ("Scheduler", _one(scheduler_section, host)),
        ("GPU", _one(gpu_section, host)),
        ("Network settings", _one(network_section, host)),
        ("Places", lambda: (places_section(host, root, cache),)),
    ]
    jobs = [partial(_guarded, title, look) for title, look in looks]
    results = together(jobs, _IN_A_ROW * (patience + ENDING))
    sections = [
        section
        for (title, _), result in zip(looks, results, strict=True)
        for section in result or (_not_looked(title, "no end in time: a file server may hang"),)
    ]
    ordered = tuple(sorted(sections, key=_place_in_report))
    return DoctorReport(sections=ordered, abilities=abilities(ordered))


_ORDER = (
    "machine",
    "modules",
    "mpi",
    "compilers",
    "conda",
    "containers",
    "scheduler",
    "pythons",
    "python-settings",
    "network",
    "gpu",
    "places",
)


def _place_in_report(section: Section) -> int:
    return _ORDER.index(section.id) if section.id in _ORDER else len(_ORDER)


def _one(section: Callable[[Host], Section], host: Host) -> Callable[[], tuple[Section, ...]]:
    return lambda: (section(host),)


def _guarded(title: str, look: Callable[[], tuple[Section, ...]]) -> tuple[Section, ...]:
    """Return the sections; one that meets what nobody foresaw must not cost all the others."""
    try:
        return look()
    except (EnvbuildError, OSError, ValueError) as error:
        return (_not_looked(title, f"{type(error).__name__}: {error}"),)


def _not_looked(title: str, why: str) -> Section:
    item_id = title.lower().replace(" ", "-")
    item = make(
        f"{item_id}.looked", title, "problem", clean(f"could not look: {why}"), advice="looked"
    )
    return Section(id=f"{item_id}.failed", title=title, items=(item,))


def _python_sections(host: Host, site: Site | None) -> tuple[Section, ...]:
    slow = replace(host, patience=2 * host.patience)
    detected = detect(slow, site.pythons, site.modules) if site else detect(slow)
    return pythons_section(detected), settings_section(host, detected.snapshot.interpreters)
