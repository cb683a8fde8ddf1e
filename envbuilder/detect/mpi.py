"""The MPIs on PATH, told apart by what their commands print, and those known to be bad."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from ..model.base import Document, Line, Name
from ..model.doctor import Item, Section
from .asking import ENDING, first_line, together
from .host import Host
from .items import make

# In the order of the report. mpicc is a compiler wrapper, the others start ranks.
LAUNCHERS = ("mpiexec", "mpirun", "srun", "jsrun", "ddlrun")
COMMANDS = (*LAUNCHERS, "mpicc")

# What only these starters can be: they belong to a scheduler or a product, whatever MPI is there.
_BY_COMMAND = {"srun": "slurm", "jsrun": "jsm", "ddlrun": "ddl"}

TITLES = {
    "openmpi": "Open MPI",
    "spectrum-mpi": "IBM Spectrum MPI",
    "intel-mpi": "Intel MPI",
    "mvapich": "MVAPICH",
    "mpich": "MPICH",
    "slurm": "Slurm",
    "jsm": "IBM Job Step Manager",
    "ddl": "IBM DDL",
}

# The first that matches counts: Spectrum MPI and MVAPICH say also what they are made from.
# Debian's Open MPI 4 calls itself OpenRTE, after its run-time part.
_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("spectrum-mpi", re.compile(r"IBM Spectrum MPI\)?:?\s*v?(\d[\w.]*)")),
    (
        "intel-mpi",
        re.compile(r"Intel\(R\) MPI Library.*?(?:Version )?(20\d\d(?:\.\d+)*(?: Update \d+)?)"),
    ),
    ("mvapich", re.compile(r"mvapich\d?(?: version |[- :]+v?)(\d[\w.]*)", re.IGNORECASE)),
    ("openmpi", re.compile(r"\((?:Open MPI|OpenRTE)\)\s+v?(\d[\w.]*)")),
    ("openmpi", re.compile(r": Open MPI v?(\d[\w.]*)")),
    ("mpich", re.compile(r"HYDRA build details:\s+Version:\s+(\d[\w.]*)")),
    ("mpich", re.compile(r"for MPICH version (\d[\w.]*)")),
    ("mpich", re.compile(r"MPICH Version:\s+(\d[\w.]*)")),
    ("slurm", re.compile(r"^slurm\S* (\d[\w.]*)", re.MULTILINE)),
)
_ANY_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+\w*)")


class KnownBad(Document):
    """A version of an MPI that must not be used, why, and who says so."""

    component: Name
    versions: Line
    reason: Line
    source: Line


@dataclass(frozen=True)
class FoundMpi:
    """One command on PATH and what it says it is; *implementation* None: it does not say."""

    command: str
    path: str
    implementation: str | None
    version: str | None
    trouble: str | None = None


def identify(command: str, text: str) -> tuple[str | None, str | None]:
    """Return implementation and version from what *command* printed; None for what it hides."""
    for implementation, pattern in _PATTERNS:
        match = pattern.search(text)
        if match:
            return implementation, match.group(1).replace(" Update ", ".").rstrip(".")
    if command in _BY_COMMAND:
        match = _ANY_VERSION.search(text)
        return _BY_COMMAND[command], match.group(1) if match else None
    return None, None


def known_bad() -> tuple[KnownBad, ...]:
    """Return the rows of known_bad.json, each with its source."""
    path = Path(__file__).with_name("known_bad.json")
    return tuple(KnownBad.model_validate(row) for row in json.loads(path.read_text("utf-8")))


def why_bad(found: FoundMpi, rows: Sequence[KnownBad]) -> KnownBad | None:
    """Return the row that speaks against *found*, None when none does."""
    try:
        version = Version(found.version or "")
    except InvalidVersion:
        return None
    for row in rows:
        if row.component == found.implementation and version in SpecifierSet(row.versions):
            return row
    return None


def look(host: Host, command: str, path: str) -> FoundMpi:
    """Ask one command what it is."""
    answer = host.ask(path, "--version")
    implementation, version = identify(command, answer.text)
    trouble = answer.trouble
    if command == "mpicc":
        # mpicc hands --version to its compiler. Open MPI and its kin know --showme:version,
        # MPICH and its kin name themselves under -v.
        for option in ("--showme:version", "-v"):
            if implementation is None:
                answer = host.ask(path, option)
                implementation, version = identify(command, answer.text)
    if implementation is None and trouble is None and command != "mpicc":
        trouble = f"says no version that is known: {first_line(answer.text) or 'nothing'}"
    return FoundMpi(command, path, implementation, version, trouble)


def mpi_section(host: Host) -> Section:
    """Return every MPI command on PATH."""
    places = [(command, path) for command in COMMANDS for path in host.every(command)]
    answers = together(
        [partial(look, host, command, path) for command, path in places],
        3 * host.patience + ENDING,
    )
    late = "did not answer in time"
    found = [
        answer or FoundMpi(command, path, None, None, late)
        for (command, path), answer in zip(places, answers, strict=True)
    ]
    items = _command_items(found, known_bad())
    if not any(mpi.command in {"mpiexec", "mpirun"} for mpi in found):
        items.insert(0, make("mpi", "MPI", "missing", "neither mpiexec nor mpirun is on PATH"))
    return Section(id="mpi", title="MPI", items=(*items, *_mixed(found)))


def _command_items(found: Sequence[FoundMpi], rows: Sequence[KnownBad]) -> list[Item]:
    items = []
    count: dict[str, int] = {}
    for mpi in found:
        count[mpi.command] = count.get(mpi.command, 0) + 1
        number = count[mpi.command]
        item_id = f"mpi.{mpi.command}" + (f".{number}" if number > 1 else "")
        items.append(_item(item_id, mpi, rows, first=number == 1))
    return items


def _item(item_id: str, mpi: FoundMpi, rows: Sequence[KnownBad], *, first: bool) -> Item:
    bad = why_bad(mpi, rows)
    name = TITLES.get(mpi.implementation or "", "unknown")
    details = [mpi.path]
    if not first:
        details.append(f"hidden by the {mpi.command} that stands earlier on PATH")
    if mpi.trouble:
        details.append(mpi.trouble)
    if bad:
        details += [bad.reason, f"source: {bad.source}"]
    # One that tells its version in spite of an exit code is in order.
    trouble = bad is not None or (mpi.version is None and mpi.trouble is not None)
    return make(
        item_id,
        mpi.command,
        "problem" if trouble and first else ("note" if trouble else "ok"),
        f"{name} {mpi.version or ''}".strip() + (", known to be bad" if bad else ""),
        details=details,
        facts={
            "path": mpi.path,
            "implementation": mpi.implementation or "unknown",
            **({"version": mpi.version} if mpi.version else {}),
            "known-bad": bad is not None,
        },
        advice="mpi.known-bad" if bad else "mpi.command",
    )


def _mixed(found: Sequence[FoundMpi]) -> list[Item]:
    """Return a problem when the commands that a shell would run belong to different MPIs."""
    first: dict[str, FoundMpi] = {}
    for mpi in found:
        if mpi.command in {"mpiexec", "mpirun", "mpicc"} and mpi.implementation:
            first.setdefault(mpi.command, mpi)
    kinds = {(mpi.implementation, mpi.version) for mpi in first.values()}
    if len(kinds) < 2:
        return []
    described = [
        f"{m.command}: {TITLES[m.implementation or '']} {m.version} ({m.path})"
        for m in first.values()
    ]
    found_text = "mpiexec, mpirun and mpicc on PATH belong to different MPIs"
    return [make("mpi.mixed", "One MPI", "problem", found_text, details=described)]
