"""From what was found in logs to what it means: causes before effects, ranks told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..knowledge.symptoms import Symptom, SymptomTells
from ..target_tools.messages import listing
from ..target_tools.names import without_credentials
from ..text import shown
from .search import Findings, Hit
from .signs import Sign
from .values import Diagnosis, LogPlace, LogSize, RankSymptom, Symptomatic

_LEVELS: tuple[SymptomTells, ...] = get_args(SymptomTells)
_WIDTH = 300
_PLACES = 3
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class KnownSymptom:
    """A symptom of its own, or that of the rows ``advisories``."""

    symptom: Symptom
    advisories: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """That a finding has: of a row its own."""
        return self.advisories[0] if self.advisories else self.symptom.id

    @property
    def sign(self) -> Sign:
        return Sign(self.symptom.id, self.symptom.pattern)


@dataclass(frozen=True)
class _Match:
    log: int
    hit: Hit
    known: KnownSymptom

    @property
    def order(self) -> tuple[bool, int, int, int]:
        """What is told first: errors, then causes, then what stands earlier."""
        symptom = self.known.symptom
        level = _LEVELS.index(symptom.tells)
        return symptom.severity != "error", level, self.log, self.hit.line


def conclude(
    names: Sequence[str], logs: Sequence[Findings], known: Sequence[KnownSymptom]
) -> Diagnosis:
    """Return what the logs say. *known*: of several at one place the first counts."""
    kept, left_out, also = _without_overlaps(logs, known)
    by_id: dict[str, list[_Match]] = {}
    for each in sorted(kept, key=lambda found: found.order):
        by_id.setdefault(each.known.id, []).append(each)
    ranks = tuple(_ranks(names, logs, kept))
    return Diagnosis(
        logs=tuple(
            LogSize(log=shown(name, 200), lines=each.lines)
            for name, each in zip(names, logs, strict=True)
        ),
        findings=tuple(
            _finding(
                those, names, _count(those[0].known, logs) - left_out[name], also.get(name, ())
            )
            for name, those in by_id.items()
        ),
        ranks=tuple(RankSymptom(rank=each.label, id=each.id, line=each.line) for each in ranks),
        ranks_differ=_differ(ranks),
    )


def _without_overlaps(
    logs: Sequence[Findings], known: Sequence[KnownSymptom]
) -> tuple[list[_Match], Counter[str], Mapping[str, tuple[str, ...]]]:
    """Return what stands at a place where nothing more special does, and the advisories there.

    Between them: how many matches of each were left out.
    """
    kept: list[_Match] = []
    left_out: Counter[str] = Counter()
    also: dict[str, dict[str, None]] = {}
    for number, findings in enumerate(logs):
        taken: list[_Match] = []
        for each in known:
            for hit in findings.hits.get(each.symptom.id, ()):
                over = next((one for one in taken if _overlap(one.hit, hit)), None)
                if over is None:
                    taken.append(_Match(number, hit, each))
                elif over.known is each:
                    continue
                else:
                    left_out[each.id] += 1
                    ids = also.setdefault(over.known.id, {})
                    ids.update(dict.fromkeys(each.advisories))
        kept += taken
    return kept, left_out, {name: tuple(ids) for name, ids in also.items()}


def _overlap(one: Hit, other: Hit) -> bool:
    return one.rank == other.rank and one.line <= other.last and other.line <= one.last


def _count(known: KnownSymptom, logs: Sequence[Findings]) -> int:
    return sum(each.counts.get(known.symptom.id, 0) for each in logs)


def _finding(
    those: Sequence[_Match], names: Sequence[str], count: int, also: Sequence[str]
) -> Symptomatic:
    first = those[0]
    symptom = first.known.symptom.explain(first.hit.groups)
    return Symptomatic(
        id=first.known.id,
        tells=symptom.tells,
        severity=symptom.severity,
        confidence=symptom.confidence,
        cause=symptom.cause,
        hint=symptom.hint,
        settle=symptom.settle,
        advisories=tuple(dict.fromkeys([*first.known.advisories, *also])),
        places=tuple(_place(each, names) for each in those[:_PLACES]),
        count=count,
    )


def _place(found: _Match, names: Sequence[str]) -> LogPlace:
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
    return tuple(shown(text, _WIDTH) for text in said if text)


@dataclass(frozen=True)
class _Rank:
    """One that speaks in the logs: a rank, or a log. ``level``: how near to a cause it comes."""

    label: str
    level: int
    id: str | None
    line: int | None
    time: str | None


def _ranks(
    names: Sequence[str], logs: Sequence[Findings], kept: Sequence[_Match]
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
            yield _Rank(label, len(_LEVELS), None, None, None)
            continue
        symptom, hit = best.known.symptom, best.hit
        times = _TIME.findall("\n".join([*hit.before, *hit.text]))
        yield _Rank(
            label,
            _LEVELS.index(symptom.tells),
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
    if _LEVELS[lead] in ("wait", "effect"):
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
