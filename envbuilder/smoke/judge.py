"""The verdict on one run, from what its ranks recorded. Pure: nothing is read or started here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from ..model.evidence import SmokeResult, Tier
from . import reasons
from .findings import checks, libraries, timings
from .outcome import Expectations, Outcome
from .phrases import exit_text, name_ranks, one_line
from .records import RankRecord, Records, World, label
from .transports import carried, left_out, wrong_api, wrong_library, wrong_transport


def judge(records: Records, outcome: Outcome, expected: Expectations) -> SmokeResult:
    """Return what the run proved, or why it proved nothing; the most telling reason first."""
    ranks = records.ranks
    names = name_ranks(ranks)
    results = checks(ranks, expected.ranks, names)
    why = [
        *reasons.not_started(ranks, outcome, expected),
        *wrong_api(ranks, expected),
        *reasons.wrong_world(ranks, expected, names),
        *reasons.failed_checks(ranks, expected, names),
        *_endings(ranks, outcome, expected, names),
        *reasons.hang(ranks, outcome, expected, names),
        *wrong_library(ranks, expected),
        *wrong_transport(ranks, expected),
    ]
    if not why:
        # Nothing may pass only because no reason above fits it.
        why += [f"{label(c.name, c.dtype, c.bytes)}: {c.detail}" for c in results if not c.passed]
    if not why and outcome.code != 0:
        ending = exit_text(outcome.code)
        why.append(f"every check passed, but {expected.launcher} ended with {ending}")
    failed = bool(why)
    worlds = [record.world for record in ranks if record.world]
    return SmokeResult(
        tier=_tier(ranks, expected, failed=failed),
        verdict="failed" if failed else "passed",
        reasons=(*why, *records.ignored) if failed else (),
        seconds=round(outcome.seconds, 3),
        ranks=expected.ranks,
        nodes=_nodes(ranks),
        launch=one_line(shlex.join(expected.launch)),
        api=expected.api,
        transport=expected.transport,
        carried=carried(ranks),
        runtime=_agreed(f"{world.runtime} {world.runtime_version}" for world in worlds),
        framework=_agreed(world.framework for world in worlds if world.framework),
        mpi=_agreed(_mpi(world) for world in worlds if world.mpi),
        python=_agreed(world.python for world in worlds),
        libraries=libraries(ranks, expected.prefix),
        checks=results,
        left_out=left_out(ranks),
        timings=timings(ranks, expected.ranks),
        stacks={names[source]: text for source, text in outcome.stacks.items() if source in names},
    )


def _endings(
    ranks: Sequence[RankRecord],
    outcome: Outcome,
    expected: Expectations,
    names: Mapping[str, str],
) -> list[str]:
    """Return why ranks did not come to their end: the cause in front of what follows from it.

    An exception makes the launcher end the other ranks; but a rank that was seen to go first is
    itself why others get one (Gloo: connection reset by peer).
    """
    errors = reasons.errors(ranks, names)
    left_behind = reasons.left_behind(outcome, expected)
    deaths = reasons.deaths(ranks, outcome, expected, names)
    if outcome.first_gone:
        return [*deaths, *errors, *left_behind]
    return [*errors, *left_behind, *deaths]


def _tier(ranks: Sequence[RankRecord], expected: Expectations, *, failed: bool) -> Tier:
    """Return the highest tier that was really completed; a failed run never has several ranks."""
    if not failed and expected.ranks > 1:
        return "several nodes" if len(_nodes(ranks)) > 1 else "several ranks"
    if any(_passed_alone(record) for record in ranks):
        return "one rank"
    imported = any(done.check == "import" and done.passed for r in ranks for done in r.done)
    return "imported" if imported else "built"


def _passed_alone(record: RankRecord) -> bool:
    """Return whether a process passed all checks but the one that counts the ranks."""
    return record.ended and all(done.passed or done.check == "world" for done in record.done)


def _nodes(ranks: Iterable[RankRecord]) -> tuple[str, ...]:
    return tuple(sorted({one_line(record.start.host) for record in ranks}))


def _mpi(world: World) -> str:
    return f"{world.mpi} {world.mpi_version}"


def _agreed(values: Iterable[str]) -> str | None:
    """Return what all ranks say, or everything that was said."""
    return one_line(" / ".join(sorted(set(values)))) if (values := [*values]) else None
