"""From what was found in logs to what it means: causes before effects, ranks told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..resolve.verdicts import row_match
from ..target_tools.messages import listing
from ..target_tools.names import without_credentials
from ..text import shown
from .facts import read_facts
from .index import SymptomIndex
from .places import LEVELS, UNEXPLAINED, SymptomMatch, places_of
from .search import Findings
from .values import Diagnosis, LogPlace, LogSize, Outcome, RankSymptom, Symptomatic
from .words import clipped, name_libraries, search_words

_PLACES = 3
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_NUMBER = re.compile(r"\d+")


def conclude(names: Sequence[str], logs: Sequence[Findings], index: SymptomIndex) -> Diagnosis:
    """Return what logs mean. Of several symptoms at one place the first of *index* counts."""
    facts = read_facts(logs, index)
    places = places_of(logs, index, facts)
    by_id: dict[str, list[SymptomMatch]] = {}
    for match in sorted(places.matches, key=lambda match: match.order):
        source = f" {match.source.id}" if match.known.id == UNEXPLAINED and match.source else ""
        by_id.setdefault(match.known.id + source, []).append(match)
    ranks = tuple(_ranks(names, logs, places.matches))
    findings = tuple(
        _finding(
            group,
            names,
            _count(group, logs) - places.left_out[group[0].known.id],
            tuple(places.also.get(group[0].known.id, ())),
            index,
        )
        for group in by_id.values()
    )
    return Diagnosis(
        outcome=_outcome(findings, logs, index),
        logs=tuple(
            LogSize(log=shown(name, 200), lines=each.lines)
            for name, each in zip(names, logs, strict=True)
        ),
        findings=findings,
        facts={name: ", ".join(values)[:200] for name, values in facts.values.items()},
        known_bad=tuple(
            row_match(match)
            for name, match in facts.matches.items()
            if match.verdict == "holds"
            and match.severity == "error"
            and not any(name in finding.advisories for finding in findings)
        ),
        ranks=tuple(RankSymptom(rank=each.label, id=each.id, line=each.line) for each in ranks),
        ranks_differ=_differ(ranks),
    )


def _outcome(
    findings: Sequence[Symptomatic], logs: Sequence[Findings], index: SymptomIndex
) -> Outcome:
    first = next((finding for finding in findings if finding.severity == "error"), None)
    if first:
        return "unexplained" if first.id == UNEXPLAINED else "known"
    ids = {sign for findings in logs for sign in findings.hits}
    finished = any(f"{source.id}/finished" in ids for source in index.sources)
    ended = any(f"{source.id}/ended" in ids for source in index.sources)
    printed = any(f"{source.id}/error" in ids for source in index.sources)
    return "clean" if finished and not ended and not printed else "open"


def _count(group: Sequence[SymptomMatch], logs: Sequence[Findings]) -> int:
    match = group[0]
    sign = match.known.symptom.id
    if match.known.id == UNEXPLAINED and match.source:
        return len(group)
    return sum(findings.counts.get(sign, 0) for findings in logs)


def _finding(
    group: Sequence[SymptomMatch],
    names: Sequence[str],
    count: int,
    also: Sequence[str],
    index: SymptomIndex,
) -> Symptomatic:
    first = group[0]
    symptom = first.known.symptom.explain(first.hit.groups)
    cause, hint = name_libraries(symptom, first.hit.groups, index.knowledge.library_names)
    facts = tuple(dict.fromkeys(fact for match in group for fact in match.facts))
    # Without a second fact no cause is certain; with one, a general line is more than possible.
    confidence = symptom.confidence
    if confidence != "likely" and (confidence == "possible") == bool(facts):
        confidence = "likely"
    source = next((match.source for match in group if match.source), None)
    return Symptomatic(
        id=first.known.id,
        tells=symptom.tells,
        severity=symptom.severity,
        confidence=confidence,
        cause=cause,
        hint=hint,
        settle=symptom.settle,
        advisories=tuple(dict.fromkeys([*first.known.advisories, *also])),
        confirmed=facts,
        places=tuple(_place(match, names) for match in group[:_PLACES]),
        count=max(count, 1),
        source=source and source.title,
        page=source and source.page,
        search_words=search_words(first.hit) or None,
    )


def _place(found: SymptomMatch, names: Sequence[str]) -> LogPlace:
    hit = found.hit
    return LogPlace(
        log=shown(names[found.log], 200),
        line=hit.line,
        rank=hit.rank,
        text=_printable(hit.text),
        before=_printable(hit.before),
        after=_printable(hit.after),
    )


def _printable(texts: Sequence[str]) -> tuple[str, ...]:
    said = (without_credentials(text.strip()) for text in texts)
    return tuple(clipped(text) for text in said if text)


@dataclass(frozen=True)
class _Rank:
    """One that speaks in the logs: a rank, or a log. ``level``: how near to a cause it comes."""

    label: str
    level: int
    id: str | None
    line: int | None
    time: str | None


def _ranks(
    names: Sequence[str], logs: Sequence[Findings], kept: Sequence[SymptomMatch]
) -> Iterator[_Rank]:
    """Yield who speaks, if that is more than one."""
    labels = _labels(names)
    speakers: list[tuple[str, int, int | None]] = []
    for number, findings in enumerate(logs):
        if len(logs) > 1 and len(findings.ranks) < 2:
            speakers.append((labels[number], number, None))
        else:
            speakers += [(f"rank {rank}", number, rank) for rank in sorted(findings.ranks)]
    if len(speakers) < 2:
        return
    for label, log, rank in speakers:
        own = [
            each
            for each in kept
            if each.log == log
            and rank in (None, each.hit.rank)
            and each.known.symptom.severity == "error"
        ]
        best = min(own, key=lambda found: found.order, default=None)
        if best is None:
            yield _Rank(label, len(LEVELS) + 1, None, None, None)
            continue
        hit = best.hit
        times = _TIME.findall("\n".join([*hit.before, *hit.text]))
        yield _Rank(
            label,
            best.level,
            best.known.id,
            hit.line,
            times[-1] if times else None,
        )


def _labels(names: Sequence[str]) -> list[str]:
    """Return ``rank 3`` where the names differ in one number alone, else the names."""
    numbers = [_NUMBER.findall(name) for name in names]
    shapes = {_NUMBER.sub("#", name) for name in names}
    if len(names) > 1 and len(shapes) == 1:
        places = [i for i, column in enumerate(zip(*numbers, strict=True)) if len({*column}) > 1]
        if len(places) == 1:
            return [f"rank {int(each[places[0]])}" for each in numbers]
    return [shown(name, 200) for name in names]


def _differ(ranks: Sequence[_Rank]) -> str | None:
    """Say who failed first, or says something else than the others."""
    if len(ranks) < 2 or all(each.id is None for each in ranks):
        return None
    lead = min(each.level for each in ranks)
    leaders = [each for each in ranks if each.level == lead]
    others = [each for each in ranks if each.level > lead]
    silent = [each for each in ranks if each.id is None]
    if lead > LEVELS.index("wait"):
        if silent:
            verb = "reports" if len(silent) == 1 else "report"
            return f"{_named(silent)} {verb} no error; the others wait for it or lost it"[:400]
        return f"all {len(ranks)} ranks wait or lost another rank; none reports the cause"
    if others:
        return _failed_first(leaders, others)
    return _another_error(leaders)


def _failed_first(leaders: Sequence[_Rank], others: Sequence[_Rank]) -> str:
    said = ", ".join(sorted({each.id or "" for each in leaders}))
    rest = "the others report no error"
    if any(each.id for each in others):
        rest = "the others report consequences"
    return f"{_named(leaders)} failed first ({said}); {rest}"[:400]


def _another_error(ranks: Sequence[_Rank]) -> str:
    groups = Counter(each.id for each in ranks)
    if len(groups) == 1:
        same = f"all {len(ranks)} report the same error: {ranks[0].id}"
        timed = [each for each in ranks if each.time]
        if len(timed) == len(ranks) and len({each.time for each in ranks}) > 1:
            first = min(timed, key=lambda each: each.time or "")
            return f"{same}; {first.label} reported it first, at {first.time}"
        return same
    common, number = groups.most_common(1)[0]
    if 2 * number <= len(ranks):
        return f"the {len(ranks)} report {len(groups)} different errors"
    odd = [each for each in ranks if each.id != common]
    said = ", ".join(sorted({each.id or "" for each in odd}))
    verb = "reports" if len(odd) == 1 else "report"
    return f"{_named(odd)} {verb} a different error ({said}) than the others ({common})"[:400]


def _named(ranks: Sequence[_Rank]) -> str:
    names: str = listing([each.label for each in ranks])
    return names
