"""The catalogue of a root: one page of HTML, without a script, a font or anything fetched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..model.evidence import Evidence, newest_passed
from ..model.outcome import Info
from ..model.plan import PlanFinding
from ..render.quoting import Quoted, html
from ..render.templates import render
from ..text import counted

# A plot, in units of its own; it is drawn as wide as the page lets it be.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 220, 76, 16, 14, 34
_SHAPES = ("circle", "square", "diamond", "ring")


@dataclass(frozen=True)
class Catalogue:
    """What a page shows. ``stacks``: every number, those of a name together, the newest last."""

    root: str
    site: str
    arch: str
    modulefiles: str
    stacks: Mapping[str, Sequence[Info]]


def render_catalogue(value: Catalogue) -> str:
    """Return the page. It has no date of its own: the same root gives the same page."""
    every = [each for infos in value.stacks.values() for info in infos for each in info.evidence]
    return render(
        "catalogue/page.html.j2",
        root=value.root,
        site=value.site,
        arch=value.arch,
        modulefiles=value.modulefiles,
        newest=_moment(max(each.time for each in every)) if every else "never",
        count=str(len(value.stacks)),
        stacks=[_stack(name, infos) for name, infos in value.stacks.items()],
    )


def _stack(name: str, infos: Sequence[Info]) -> dict[str, object]:
    shown = next((each for each in infos if each.default), infos[-1])
    plan = shown.lock.plan
    proofs = newest_passed(shown.evidence)
    every = [each for info in infos for each in info.evidence]
    return {
        "name": name,
        "summary": plan.summary,
        "number": str(shown.number),
        "id": shown.id,
        "state": _state(shown),
        "good": bool(proofs) and shown.evidence[-1].result.verdict == "passed",
        "stand_ins": ", ".join(proofs[-1].stand_ins) if proofs else "",
        "modules": list(plan.modules.loads),
        "proofs": [_proof(each) for each in proofs],
        "findings": [_finding(each) for each in plan.findings if each.status != "lifted"],
        "pins": [(p.component, p.version, f"{p.origin}: {p.locator}") for p in plan.pins],
        "numbers": [_number(each) for each in reversed(infos)],
        "plot": [plot(series) for series in [speeds(every)] if series],
    }


def _state(info: Info) -> str:
    if not info.evidence:
        return "it has no evidence"
    last = info.evidence[-1]
    if last.result.verdict == "failed":
        return f"its newest smoke test failed, {_moment(last.time)}"
    return f"proved: {last.result.tier}{_how(last)}, {_moment(last.time)}"


def _how(evidence: Evidence) -> str:
    emulated = ", emulated" if evidence.execution == "emulated" else ""
    emulated = f" by {evidence.by}{emulated}" if evidence.by else emulated
    return f"{emulated}, with stand-ins" if evidence.stand_ins else emulated


def _proof(evidence: Evidence) -> tuple[str, str, str, str]:
    done = evidence.result
    over = f" over {done.transport}" if done.transport else ""
    nodes = counted(len(done.nodes) or 1, "node")
    ranks = f"{counted(done.ranks, 'rank')} on {nodes}"
    return (f"{done.api}{over}", f"{done.tier}{_how(evidence)}", ranks, _moment(evidence.time))


def _finding(each: PlanFinding) -> dict[str, str]:
    told = {"unknown": "undecided", "waived": "waived"}
    more = [each.reason and f"waived because {each.reason}", each.fix and f"fix: {each.fix}"]
    more.append(f"depends on {', '.join(each.facts)}" if each.facts else None)
    return {
        "id": each.id,
        "status": told.get(each.status, each.severity),
        "summary": f"{', '.join(each.components)}: {each.summary}",
        "more": "; ".join(filter(None, more)),
        "link": each.link,
    }


def _number(info: Info) -> tuple[str, str, str]:
    mark = " (default)" if info.default else ""
    return (f"{info.environment}/{info.number}{mark}", info.id, _state(info))


def _moment(time: str) -> str:
    return _time(time).strftime("%Y-%m-%d %H:%M UTC")


def _time(time: str) -> datetime:
    return datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ")


Series = Mapping[str, Sequence[tuple[datetime, float]]]
"""Times and bus bandwidths in GB/s, by what was measured: only like is put in one line."""


def speeds(evidence: Sequence[Evidence]) -> Series:
    """Return how quick each kind of proof was, over time; of the largest message of each."""
    found: dict[str, list[tuple[datetime, float]]] = {}
    for each in sorted(evidence, key=lambda each: each.time):
        done = each.result
        if done.verdict != "passed" or not done.timings:
            continue
        largest = max(done.timings, key=lambda timing: timing.bytes)
        over = f" over {done.transport}" if done.transport else ""
        label = f"{done.api}{over}, {done.ranks} ranks, {largest.bytes / 2**20:.3g} MiB"
        found.setdefault(label, []).append((_time(each.time), largest.bus_bandwidth))
    # So many as can be told apart: those that were measured most often.
    often = sorted(found, key=lambda label: -len(found[label]))[: len(_SHAPES)]
    return {label: found[label] for label in often}


def plot(series: Series) -> dict[str, object]:
    """Return a plot as lines and marks with their places, and words that say the same."""
    times = [time for points in series.values() for time, _ in points]
    first, last = min(times), max(times)
    span = (last - first).total_seconds() or 1.0
    most = max(speed for points in series.values() for _, speed in points)
    top = _round_up(most)

    def place(time: datetime, speed: float) -> tuple[float, float]:
        part = (time - first).total_seconds() / span if last > first else 0.5
        x = _LEFT + part * (_WIDTH - _LEFT - _RIGHT)
        return x, _HEIGHT - _BOTTOM - speed / top * (_HEIGHT - _TOP - _BOTTOM)

    lines = []
    for (label, points), shape in zip(series.items(), _SHAPES, strict=False):
        places = [place(*point) for point in points]
        lines.append(
            {
                "label": f"{label}: {points[-1][1]:.3g} GB/s",
                "sample": Quoted("".join(_mark(shape, 6, 6))),
                "path": Quoted(" ".join(f"{x:.1f},{y:.1f}" for x, y in places)),
                "marks": [Quoted(mark) for x, y in places for mark in _mark(shape, x, y)],
            }
        )
    return {
        "lines": lines,
        "ticks": [_tick(part * top, place(first, part * top)[1]) for part in (0, 0.5, 1)],
        "first": first.strftime("%Y-%m-%d"),
        "last": last.strftime("%Y-%m-%d") if last.date() > first.date() else "",
        "words": "; ".join(_words(label, points) for label, points in series.items()),
    }


def _tick(value: float, y: float) -> dict[str, Quoted]:
    return {"y": Quoted(f"{y:.1f}"), "text": html(f"{value:.3g}")}


def _words(label: str, points: Sequence[tuple[datetime, float]]) -> str:
    ends = [f"{speed:.3g} GB/s on {time:%Y-%m-%d}" for time, speed in (points[0], points[-1])]
    return f"{label}: {' to '.join(dict.fromkeys(ends))}"


def _mark(shape: str, x: float, y: float) -> Iterator[str]:
    if shape in ("circle", "ring"):
        yield f'<circle class="{shape}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    else:
        turn = f' transform="rotate(45 {x:.1f} {y:.1f})"' if shape == "diamond" else ""
        place = f'x="{x - 4:.1f}" y="{y - 4:.1f}"'
        yield f'<rect class="{shape}" {place} width="8" height="8"{turn}/>'


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, ... and their parts; 1 for what is not positive."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value)
