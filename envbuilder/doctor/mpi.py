"""The MPIs on PATH, told apart by what their commands print, and those known to be bad."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ..host import ENDING, Host, first_line, together
from ..model.condition import Condition, Value
from ..model.doctor import Item, Section
from ..model.knowledge import Advisory
from ..model.ranges import matches
from .items import make

# In the order of the report. The wrappers call a compiler, the others start ranks.
LAUNCHERS = ("mpiexec", "mpirun", "srun", "jsrun", "ddlrun")
COMMANDS = (*LAUNCHERS, "mpicc")
WRAPPERS = ("mpicc", "mpicxx")

# What the commands say they are -> the component's canonical name.
COMPONENTS = {
    "openmpi": "openmpi",
    "spectrum-mpi": "spectrum-mpi",
    "mpich": "mpich",
    "mvapich": "mvapich2",
    "intel-mpi": "impi",
}

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


@dataclass(frozen=True)
class MpiInstallation:
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


def why_bad(mpi: MpiInstallation, rows: Sequence[Advisory]) -> Advisory | None:
    """Return the row that forbids *mpi* whatever else is there, None when none does."""
    component = COMPONENTS.get(mpi.implementation or "")
    for row in rows:
        if row.severity != "error" or row.component != component or row.beside:
            continue
        if mpi.version and _matches_any(mpi.version, row) and _holds_plainly(row):
            return row
    return None


def _matches_any(version: str, row: Advisory) -> bool:
    """Return whether *version* is one that the row is about."""
    ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
    return any(matches(version, each) for each in ranges)


def _holds_plainly(row: Advisory) -> bool:
    """Return whether the row holds where no flag is set and nothing else is known."""

    def nothing_set(name: str) -> Value | None:
        return "" if name.startswith("flags.") else None

    return Condition(row.when).evaluate(nothing_set) is True


def look(host: Host, command: str, path: str) -> MpiInstallation:
    """Ask one command what it is."""
    # A wrapper hands --version to its compiler. Open MPI and its kin know --showme:version, MPICH
    # and its kin name themselves under -v.
    options = ("--showme:version", "-v") if command in WRAPPERS else ("--version",)
    for option in options:
        answer = host.ask(path, option)
        implementation, version = identify(command, answer.text)
        if implementation is not None:
            break
    trouble = answer.trouble
    if implementation is None and trouble is None and command not in WRAPPERS:
        trouble = f"says no version that is known: {first_line(answer.text) or 'nothing'}"
    return MpiInstallation(command, path, implementation, version, trouble)


def compiler_line(host: Host, wrapper: str) -> tuple[str, ...]:
    """Return the command that a compiler wrapper would run; () where it does not say."""
    answer = host.ask(wrapper, "-show")
    return tuple(answer.stdout.split()) if answer.trouble is None else ()


def mpi_section(host: Host, advisories: Sequence[Advisory] = ()) -> Section:
    """Return every MPI command on PATH; *advisories* tell which of them are known to be bad."""
    places = [(command, path) for command in COMMANDS for path in host.every(command)]
    answers = together(
        [partial(look, host, command, path) for command, path in places],
        3 * host.patience + ENDING,
    )
    late = "did not answer in time"
    installations = [
        answer or MpiInstallation(command, path, None, None, late)
        for (command, path), answer in zip(places, answers, strict=True)
    ]
    items = _command_items(installations, advisories)
    if not any(mpi.command in {"mpiexec", "mpirun"} for mpi in installations):
        items.insert(0, make("mpi", "MPI", "missing", "neither mpiexec nor mpirun is on PATH"))
    return Section(id="mpi", title="MPI", items=(*items, *_mixed(installations)))


def _command_items(
    installations: Sequence[MpiInstallation], rows: Sequence[Advisory]
) -> list[Item]:
    items = []
    count: dict[str, int] = {}
    for mpi in installations:
        count[mpi.command] = count.get(mpi.command, 0) + 1
        number = count[mpi.command]
        item_id = f"mpi.{mpi.command}" + (f".{number}" if number > 1 else "")
        items.append(_item(item_id, mpi, rows, first=number == 1))
    return items


def _item(item_id: str, mpi: MpiInstallation, rows: Sequence[Advisory], *, first: bool) -> Item:
    bad = why_bad(mpi, rows)
    name = TITLES.get(mpi.implementation or "", "unknown")
    details = [mpi.path]
    if not first:
        details.append(f"hidden by the {mpi.command} that stands earlier on PATH")
    if mpi.trouble:
        details.append(mpi.trouble)
    if bad:
        details.append(f"{bad.id}: {bad.summary}")
        details += [f"fix: {bad.fix}"] if bad.fix else []
        details.append(f"source: {bad.sources[0]}")
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


def _mixed(installations: Sequence[MpiInstallation]) -> list[Item]:
    """Return a problem when the commands that a shell would run belong to different MPIs."""
    first: dict[str, MpiInstallation] = {}
    for mpi in installations:
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
