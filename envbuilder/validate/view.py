"""What is wrong with an environment, as text: the worst first, a screen of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..model.outcome import RowMatch
from ..model.validation import (
    CheckInfo,
    Finding,
    ForeignProof,
    Unchecked,
    Validation,
)
from ..text import counted, filled
from ..views.layout import joined

# Of each kind of finding so many are shown, each with so much evidence; --all shows the rest.
MOST_OF_A_KIND = 3
MOST_EVIDENCE = 2


@joined
def validation(value: Validation, *, everything: bool = False) -> Iterator[str]:
    """Return the findings; *everything*: all of them, with all that is known of each."""
    python = f"Python {value.python or 'of an unknown version'}"
    machine = f" ({value.arch})" if value.arch else ""
    yield from filled("", f"{value.path}: {value.kind}, {python}{machine}", 2)
    sizes = [
        counted(value.distributions, "distribution"),
        f"{value.libraries} libraries",
        f"{value.files} recorded files",
    ]
    yield "  " + ", ".join(sizes)
    if value.imported:
        yield from filled("  imports tried: ", ", ".join(value.imported), 4)
    for proof in value.proofs:
        yield from filled("  ranks: ", _ranks(proof), 4)
    if value.not_proved:
        what = "not proved" if value.proofs else "no ranks were started"
        yield from filled(f"  {what}: ", value.not_proved, 4)
    if value.modules:
        yield from filled("  modules: ", ", ".join(value.modules))
    by_kind: dict[str, list[Finding]] = {}
    for each in value.open:
        by_kind.setdefault(each.id, []).append(each)
    for those in by_kind.values():
        yield ""
        yield from _kind(those, everything)
    yield ""
    yield from _baseline(value)
    yield from _ending(value)


def _kind(those: Sequence[Finding], everything: bool) -> Iterator[str]:
    alike = len({each.fix for each in those}) == 1
    for each in those if everything else those[:MOST_OF_A_KIND]:
        yield from filled(f"{each.severity:<8} ", f"{each.id}: {each.summary}")
        for place in each.evidence if everything else each.evidence[:MOST_EVIDENCE]:
            said = f" {place.field}" if place.field else ""
            value = f": {place.value}" if place.value else ""
            yield from filled("         in ", f"{place.file}{said}{value}", 12)
        if everything:
            yield from filled("         sure? ", each.confidence)
            yield from filled("         source: ", each.source, 12)
        if not alike:
            yield from filled("         fix: ", each.fix, 14)
    if len(those) > MOST_OF_A_KIND and not everything:
        yield f"         and {len(those) - MOST_OF_A_KIND} more like this: --all"
    first = those[0]
    yield from filled("         why: ", first.why, 14)
    if alike:
        yield from filled("         fix: ", first.fix, 14)


def _ranks(each: ForeignProof) -> str:
    result = each.result
    said = f"{result.ranks}, {result.api} over {result.transport}: {result.verdict}"
    kept = f"; kept: {each.log}" if each.log else ""
    by = f", {result.mpi}" if result.mpi else ""
    return f"{said} ({result.tier}{by}){kept}"


def _baseline(value: Validation) -> Iterator[str]:
    """Yield what the baseline accepts, with the reason, and its rows that are of no use."""
    accepted = [each for each in value.findings if each.accepted is not None]
    for one in accepted:
        yield from filled("accepted ", f"{one.id}: {one.summary}")
        yield from filled("         reason: ", one.accepted or "", 17)
    for each in value.unused:
        what = f"{each.id}: {each.summary or 'any'}"
        yield from filled("unused   ", f"{what}: no finding matches this row of the baseline")
    if accepted or value.unused:
        yield ""


def _ending(value: Validation) -> Iterator[str]:
    number = Counter(each.severity for each in value.open)
    if value.findings and not value.open:
        yield "No problems found, except accepted ones."
    elif not value.findings:
        yield "No problems found."
    else:
        words = [counted(number[each], each) for each in ("error", "warning") if number[each]]
        yield ", ".join(
            [*words, *([f"{number['info']} for information"] if number["info"] else [])]
        )
    yield from _undecided(value.undecided)
    for each in value.unchecked:
        about = f" ({', '.join(each.examples[:MOST_EVIDENCE])}{_more(each)})" if each.number else ""
        yield from filled("", f"Unchecked: {each.id}{about}: {each.reason}", 2)


def _more(each: Unchecked) -> str:
    more = each.number - len(each.examples[:MOST_EVIDENCE])
    return f" and {more} more" if more else ""


def _undecided(rows: Sequence[RowMatch]) -> Iterator[str]:
    """Yield the advisories that depend on facts, those of a build's flags by their number alone."""
    built = [row for row in rows if all(_of_build(name) for name in row.open)]
    others = [row for row in rows if row not in built]
    if others:
        facts = sorted({name for row in others for name in row.open if not _of_build(name)})
        ids = ", ".join(row.id for row in others)
        noun = "fact" if len(facts) == 1 else "facts"
        stated = ", ".join(f"`{name}`" for name in facts)
        yield from filled("", f"Undecided ({noun} {stated} not stated): {ids}", 2)
    if built:
        rows_ = "1 advisory" if len(built) == 1 else f"{len(built)} advisories"
        yield f"Undecided (build flags of Horovod unknown): {rows_}"


def _of_build(fact: str) -> bool:
    return fact.startswith(("flags.", "ops."))


@joined
def checks(table: Sequence[CheckInfo]) -> Iterator[str]:
    """Return every check with why it matters and what to do."""
    for each in table:
        yield from filled("", f"{each.id} ({each.severity}): {each.title}", 2)
        yield from filled("  why: ", each.why, 7)
        yield from filled("  fix: ", each.fix, 7)
        yield from filled("  source: ", each.source, 7)
