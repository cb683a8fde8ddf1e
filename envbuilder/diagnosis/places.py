"""Which symptom counts at which place of a log, and which errors no symptom explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

from ..knowledge.log_sources import Layer, LogSource
from ..knowledge.symptoms import Symptom, SymptomTells
from .facts import LogFacts
from .index import KnownSymptom, SymptomIndex, framework_sign, row_symptom
from .search import Findings, Hit
from .words import reason

UNEXPLAINED = "unexplained"
LEVELS: tuple[SymptomTells, ...] = get_args(SymptomTells)
# What CMake or configure states on its way: no failure, so that an advisory that is only possible
# is no reading of it. A required package that is missing is a "CMake Error".
_STATUS = re.compile(r"\s*(?:-- |checking .*\.\.\. )")
_CONFIRMING = ("context", "confirmed-by")
_LAYERS: tuple[Layer, ...] = get_args(Layer)


@dataclass(frozen=True)
class SymptomMatch:
    """A symptom at a place. ``facts``: independent facts that confirm it."""

    log: int
    hit: Hit
    known: KnownSymptom
    facts: tuple[str, ...] = ()
    source: LogSource | None = None

    @property
    def unexplained(self) -> bool:
        """Whether it is an error of a known program without a symptom."""
        return self.known.id == UNEXPLAINED

    @property
    def sign(self) -> str:
        """The sign that found it."""
        unexplained = self.unexplained and self.source
        return f"{self.source.id}/error" if unexplained and self.source else self.known.symptom.id

    @property
    def level(self) -> int:
        """How near to a cause it comes; an error without a symptom stands behind causes."""
        tells = self.known.symptom.tells
        if "wrapper" in self.hit.groups:
            return len(LEVELS)
        if self.unexplained and self.source and self.source.layer != "program":
            return 1
        return 0 if tells == "cause" else LEVELS.index(tells) + 1

    @property
    def order(self) -> tuple[bool, int, bool, int, bool, int, int]:
        """The order of findings: errors, then causes, then lower layers, then earlier lines.

        Advisories that are only possible stand behind other causes. Of the unexplained errors of
        one layer, those that state a reason stand before those that only report a failure.
        """
        layer = 0
        if self.unexplained and self.source and self.source.layer != "program":
            layer = _LAYERS.index(self.source.layer)
        error = self.known.symptom.severity == "error"
        wrapper = self.unexplained and not any(name.startswith("root") for name in self.hit.groups)
        return not error, self.level, _is_guess(self.known), layer, wrapper, self.log, self.hit.line


@dataclass
class SymptomPlaces:
    """Symptoms at their places. ``left_out``: matches of symptoms where another one counts.

    ``also``: advisories with the same symptom, by the id of the finding at their place.
    """

    matches: list[SymptomMatch] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    also: dict[str, dict[str, None]] = field(default_factory=dict)


def places_of(logs: Sequence[Findings], index: SymptomIndex, facts: LogFacts) -> SymptomPlaces:
    """Return which symptom counts at which place: rows that apply first, then the index's order."""
    known = _by_weight(index, facts, _absent(logs, index))
    places = SymptomPlaces()
    for number, findings in enumerate(logs):
        matches: list[SymptomMatch] = []
        refuting = (each for each in known if each.symptom.refutes)
        refuting = (each for each in refuting if findings.hits.get(each.symptom.id))
        refuted = {name for each in refuting for name in each.symptom.refutes}
        for symptom in known:
            confirming = _confirming(symptom, findings, facts)
            if confirming is None or symptom.id in refuted:
                continue
            for hit in findings.hits.get(symptom.symptom.id, ()):
                if _is_guess(symptom) and _STATUS.match(hit.text[0]):
                    continue
                over = next((match for match in matches if _overlap(match.hit, hit)), None)
                if over is None:
                    matches.append(SymptomMatch(number, hit, symptom, confirming))
                elif over.known is not symptom:
                    places.left_out[symptom.id] += 1
                    ids = places.also.setdefault(over.known.id, {})
                    ids.update(dict.fromkeys(symptom.advisories))
        matches += _unexplained(number, findings, matches, index)
        matches = [_with_source(match, findings, index) for match in matches]
        places.matches += _without_survived(matches, findings, index)
    return places


def _is_guess(known: KnownSymptom) -> bool:
    """Return whether it is the symptom of advisories that are only possible."""
    return bool(known.advisories) and known.symptom.confidence == "possible"


def _absent(logs: Sequence[Findings], index: SymptomIndex) -> frozenset[str]:
    """Return the runtimes and frameworks whose names are in none of the logs."""
    return frozenset(
        name
        for name in index.frameworks
        if not any(framework_sign(name) in findings.hits for findings in logs)
    )


def _contains(findings: Findings, source: LogSource) -> bool:
    return source.signature is None or f"{source.id}/signature" in findings.hits


def _by_weight(index: SymptomIndex, facts: LogFacts, absent: frozenset[str]) -> list[KnownSymptom]:
    """Return the symptoms without rows that facts exclude; rows that apply stand first.

    Rows about *absent* frameworks have no symptom.
    """
    applying, others = [], []
    for known in index.symptoms:
        if not known.advisories:
            others.append(known)
            continue
        rows = [index.rows[name] for name in known.advisories]
        rows = [
            row
            for row in rows
            if absent.isdisjoint(index.frameworks_of(row)) and not facts.refutes(row)
        ]
        certain = [row for row in rows if facts.applies(row.id)]
        if certain:
            symptom = row_symptom(known.symptom.pattern, certain)
            certain_symptom = symptom.symptom.model_copy(
                update={"id": known.symptom.id, "confidence": "certain"}
            )
            applying.append(replace(symptom, symptom=certain_symptom))
        elif rows:
            symptom = row_symptom(known.symptom.pattern, rows)
            kept = symptom.symptom.model_copy(update={"id": known.symptom.id})
            others.append(replace(symptom, symptom=kept))
    return [*applying, *others]


def _confirming(known: KnownSymptom, findings: Findings, facts: LogFacts) -> tuple[str, ...] | None:
    """Return the independent facts that confirm a symptom; None: it does not count in this log."""
    symptom, hits = known.symptom, findings.hits
    if findings.counts.get(symptom.id, 0) < symptom.repeated:
        return None
    if symptom.context and f"{symptom.id}/context" not in hits:
        return None
    if f"{symptom.id}/refuted-by" in hits:
        return None
    holds = facts.holds(symptom.when) if symptom.when else None
    if holds is False:
        return None
    confirming = [
        f"line {hit.line}: {reason(hit)}"[:480]
        for name in _CONFIRMING
        for hit in hits.get(f"{symptom.id}/{name}", ())[:1]
        if not any(_overlap(hit, own) for own in hits.get(symptom.id, ()))
    ]
    if holds and symptom.when:
        confirming.append(symptom.when)
    for name in known.advisories:
        if facts.applies(name):
            confirming += facts.matches[name].about
    return tuple(confirming)


def _overlap(one: Hit, other: Hit) -> bool:
    return one.rank == other.rank and one.line <= other.last and other.line <= one.last


def _unexplained(
    number: int, findings: Findings, matches: Sequence[SymptomMatch], index: SymptomIndex
) -> Iterator[SymptomMatch]:
    """Yield the errors of known programs at places where no symptom counts.

    Warnings count only if the program ended with an error that nothing else explains.
    """
    explained = any(match.level == 0 and _is_error(match) for match in matches)
    errors = list(_without_symptom(number, "error", findings, matches, index))
    # A line that only reports that something else failed adds nothing to a known cause.
    yield from (each for each in errors if not explained or each.level < len(LEVELS))
    if not errors and not explained and _has_line("ended", findings, index):
        yield from _without_symptom(number, "warning", findings, matches, index)


def _without_symptom(
    number: int,
    form: str,
    findings: Findings,
    matches: Sequence[SymptomMatch],
    index: SymptomIndex,
) -> Iterator[SymptomMatch]:
    confirming = (f"{match.sign}/{name}" for match in matches for name in _CONFIRMING)
    taken = [*(match.hit for match in matches), *findings.harmless]
    taken += [hit for sign in confirming for hit in findings.hits.get(sign, ())]
    hits = [
        (source, hit)
        for source in index.sources
        for hit in findings.hits.get(f"{source.id}/{form}", ())
    ]
    # A stack of lines in which a symptom counts is explained as a whole.
    taken += [hit for _, hit in hits if any(_overlap(one, hit) for one in taken)]
    for source, hit in hits:
        if not any(_overlap(one, hit) for one in taken):
            taken.append(hit)
            owner = source if _contains(findings, source) else index.program
            known = _unexplained_symptom(owner, hit)
            if "report" in hit.groups and not _has_line("ended", findings, index):
                known = _with_severity(known, "warning")
            yield SymptomMatch(number, hit, known, (), owner)


def _unexplained_symptom(source: LogSource, hit: Hit) -> KnownSymptom:
    states = "reports an error that no symptom explains"
    if source.layer == "program":
        states = "ended with an error"
    return KnownSymptom(
        Symptom(
            id=UNEXPLAINED,
            pattern=UNEXPLAINED,
            cause=f"{source.title} {states}: {reason(hit)}"[:480],
            hint=f"to see more: {source.details}"[:480],
            confidence="possible",
            tells="failure",
        )
    )


def _with_source(match: SymptomMatch, findings: Findings, index: SymptomIndex) -> SymptomMatch:
    """Return it with the program whose error or warning it is."""
    if match.source:
        return match
    for form in ("error", "warning"):
        for source in index.sources:
            hits = findings.hits.get(f"{source.id}/{form}", ())
            if any(_overlap(hit, match.hit) for hit in hits) and _contains(findings, source):
                # The severity of an advisory is not that of the line, which reports an error.
                stated = match.known.advisories and not _is_guess(match.known) and form == "error"
                known = _with_severity(match.known, "error") if stated else match.known
                return replace(match, source=source, known=known)
    return match


def _without_survived(
    matches: Sequence[SymptomMatch], findings: Findings, index: SymptomIndex
) -> Iterator[SymptomMatch]:
    """Yield the matches; errors after which the program went on, and ended without one, weigh less.

    Those that a symptom explains become warnings, the others are no findings.
    """
    errors = [match for match in matches if _is_error(match)]
    last = max((max(findings.last.get(e.sign, 0), e.hit.last) for e in errors), default=0)
    progress = [
        hit.line
        for source in index.sources
        for form in ("progress", "finished")
        for hit in findings.hits.get(f"{source.id}/{form}", ())
    ]
    survived = max(progress, default=0) > last and not _has_line("ended", findings, index)
    for match in matches:
        lived = survived and match.known.symptom.repeated == 1
        if lived and match.unexplained:
            continue
        harmless = any(_overlap(hit, match.hit) for hit in findings.harmless)
        known = _with_severity(match.known, "warning") if lived or harmless else match.known
        yield replace(match, known=known)


def _with_severity(known: KnownSymptom, severity: str) -> KnownSymptom:
    symptom = known.symptom.model_copy(update={"severity": severity})
    return replace(known, symptom=symptom)


def _is_error(match: SymptomMatch) -> bool:
    return match.known.symptom.severity == "error"


def _has_line(form: str, findings: Findings, index: SymptomIndex) -> bool:
    return any(f"{source.id}/{form}" in findings.hits for source in index.sources)
