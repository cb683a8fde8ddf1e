"""The MPIs on PATH, told apart by what their commands print, and those known to be bad."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..knowledge.conditions import Condition, Value
from ..knowledge.ranges import matches
from ..knowledge.rows import Advisory
from .host import ENDING, LocalMachine, first_line, together
from .item_values import Item, Section
from .items import make, section
from .mpi import COMPONENTS, TITLES, identify

# In the order of the report.
COMMANDS = ("mpiexec", "mpirun", "srun", "jsrun", "ddlrun", "mpicc")
# They call a compiler, the others start ranks.
WRAPPERS = ("mpicc", "mpicxx")
# The others come with a scheduler, and no package of an MPI mends them.
_OF_AN_MPI = ("mpiexec", "mpirun", *WRAPPERS)


@dataclass(frozen=True)
class MpiInstallation:
    """One command on PATH and what it says it is; *implementation* None: it does not say."""

    command: str
    path: str
    implementation: str | None
    version: str | None
    trouble: str | None = None


def why_bad(mpi: MpiInstallation, rows: Sequence[Advisory]) -> Advisory | None:
    """Return the row that forbids *mpi* whatever else is there, None when none does."""
    component = COMPONENTS.get(mpi.implementation or "")
    for row in rows:
        if row.severity != "error" or row.component != component or row.beside or not mpi.version:
            continue
        ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
        if any(matches(mpi.version, each) for each in ranges) and _holds_plainly(row):
            return row
    return None


def _holds_plainly(row: Advisory) -> bool:
    """Return whether the row holds where no flag is set and nothing else is known."""

    def nothing_set(name: str) -> Value | None:
        return "" if name.startswith("flags.") else None

    return Condition(row.when).evaluate(nothing_set) is True


def look(host: LocalMachine, command: str, path: str) -> MpiInstallation:
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
        trouble = f"reports no known version: {first_line(answer.text) or 'nothing'}"
    return MpiInstallation(command, path, implementation, version, trouble)


def mpi_section(host: LocalMachine, advisories: Sequence[Advisory] = ()) -> Section:
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
    items = []
    for number, mpi in enumerate(installations):
        before = [each for each in installations[:number] if each.command == mpi.command]
        suffix = f".{len(before) + 1}" if before else ""
        items.append(_item(f"mpi.{mpi.command}{suffix}", mpi, advisories, first=not before))
    if not any(mpi.command in {"mpiexec", "mpirun"} for mpi in installations):
        items.insert(0, make("mpi", "missing", "neither mpiexec nor mpirun is on PATH"))
    return section("mpi", (*items, *_mixed(installations)))


def _item(item_id: str, mpi: MpiInstallation, rows: Sequence[Advisory], *, first: bool) -> Item:
    bad = why_bad(mpi, rows)
    name = TITLES.get(mpi.implementation or "", "unknown")
    reasons = [f"{bad.id}: {bad.summary}", bad.fix and f"fix: {bad.fix}"] if bad else []
    unwell = "mpi.command" if mpi.command in _OF_AN_MPI else "scheduler.command"
    # One that tells its version in spite of an exit code is in order.
    trouble = bad is not None or (mpi.version is None and mpi.trouble is not None)
    return make(
        item_id,
        "problem" if trouble and first else ("note" if trouble else "ok"),
        f"{name} {mpi.version or ''}".strip() + (", known to be bad" if bad else ""),
        details=[
            mpi.path,
            None if first else f"hidden by the {mpi.command} earlier on PATH",
            mpi.trouble,
            *reasons,
            f"source: {bad.sources[0]}" if bad else None,
        ],
        facts={
            "path": mpi.path,
            "implementation": mpi.implementation or "unknown",
            "version": mpi.version,
            "known-bad": bad is not None,
        },
        advice="mpi.known-bad" if bad else unwell,
    )


def _mixed(installations: Sequence[MpiInstallation]) -> Iterator[Item]:
    """Yield a problem when the commands that a shell would run belong to different MPIs."""
    first: dict[str, MpiInstallation] = {}
    for mpi in installations:
        if mpi.command in {"mpiexec", "mpirun", "mpicc"} and mpi.implementation:
            first.setdefault(mpi.command, mpi)
    if len({(mpi.implementation, mpi.version) for mpi in first.values()}) > 1:
        described = [
            f"{m.command}: {TITLES[m.implementation or '']} {m.version} ({m.path})"
            for m in first.values()
        ]
        found = "mpiexec, mpirun and mpicc on PATH belong to different MPIs"
        yield make("mpi.mixed", "problem", found, details=described)
