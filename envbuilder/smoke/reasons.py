"""Why a run failed, in plain words: each function looks for one kind of reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .findings import BARRIER, barrier_problem, libraries
from .outcome import Expectations, Outcome
from .phrases import by_place, exit_text, listing, one_line, place
from .rank_failures import read_deaths
from .records import RankRecord

# So many failed checks are reasons of their own; of more, only their number is told.
SPELT_OUT = 8
LOG_LINES = 6


def not_started(ranks: Sequence[RankRecord], outcome: Outcome, expected: Expectations) -> list[str]:
    """Fewer or more processes reported than were asked for."""
    launcher, requested = expected.launcher, expected.ranks
    if len(ranks) == requested:
        return []
    if len(ranks) > requested:
        return [f"{len(ranks)} processes reported, {requested} were asked for"]
    if outcome.timed_out:
        reported = f"only {len(ranks)}" if ranks else "none"
        return [
            f"hung: after {expected.timeout:g} s {reported} of {requested} ranks had reported, and "
            f"{launcher} still ran" + _from_log(outcome)
        ]
    ending = f"{launcher} ended with {exit_text(outcome.code)}"
    if ranks:
        return [
            f"{ending}, but only {len(ranks)} of {requested} ranks reported{_from_log(outcome)}"
        ]
    but = "but" if outcome.code == 0 else "and"
    return [f"{ending} {but} started no rank: none of {requested} reported" + _from_log(outcome)]


def _from_log(outcome: Outcome) -> str:
    """Return the beginning and the end of the log; of a good ending nothing needs to be shown."""
    lines = [one_line(line) for line in outcome.log.splitlines() if line.strip(" =-")]
    if not lines or outcome.code == 0:
        return ""
    if len(lines) > 2 * LOG_LINES:
        lines = [*lines[:LOG_LINES], "...", *lines[-LOG_LINES:]]
    return "\nfrom the log:" + "".join(f"\n  {line}" for line in lines)


def each_alone(ranks: Sequence[RankRecord], expected: Expectations) -> bool:
    """Return whether several processes came up, none of which knows of another."""
    worlds = [record.world for record in ranks if record.world]
    return expected.ranks > 1 and len(worlds) > 1 and all(world.size == 1 for world in worlds)


def wrong_world(
    ranks: Sequence[RankRecord], expected: Expectations, names: Mapping[str, str]
) -> list[str]:
    """The ranks have no common world, or two are the same one."""
    if each_alone(ranks, expected):
        count = sum(1 for record in ranks if record.world)
        return [f"{count} processes started, each alone (size 1): {_why_alone(ranks, expected)}"]
    times = Counter(record.world.rank for record in ranks if record.world)
    twins = (rank for rank, count in sorted(times.items()) if count > 1)
    return [
        f"rank {rank} is there {times[rank]} times: "
        + listing([names[r.source] for r in ranks if r.world and r.world.rank == rank])
        for rank in twins
    ]


def _why_alone(ranks: Sequence[RankRecord], expected: Expectations) -> str:
    if expected.transport not in (None, "mpi"):
        return f"{expected.launcher} told none of them its rank and the number of ranks"
    loaded = libraries(ranks, expected.prefix)
    paths = ", ".join(library.path for library in loaded if library.kind == "mpi")
    other = f"{expected.launcher} belongs to another MPI than the library the ranks load"
    return f"{other} ({paths})" if paths else other


def failed_checks(
    ranks: Sequence[RankRecord], expected: Expectations, names: Mapping[str, str]
) -> list[str]:
    """A check did not pass on a rank; ranks that say the same are named together."""
    groups: dict[tuple[int, str, str], list[str]] = {}
    for record in ranks:
        for position, done in enumerate(record.done):
            obvious = done.check == "world" and each_alone(ranks, expected)
            if not done.passed and not obvious:
                key = (position, done.label, one_line(done.problem or "failed"))
                groups.setdefault(key, []).append(names[record.source])
    reasons = [
        f"{listing(members)}: {label}: {problem}"
        for (_, label, problem), members in sorted(groups.items(), key=lambda item: item[0][0])
    ]
    late = barrier_problem(ranks, names)
    if late:
        reasons.append(f"{BARRIER}: {late}")
    more = len(reasons) - SPELT_OUT
    return reasons if more <= 0 else [*reasons[:SPELT_OUT], f"and {more} more checks failed"]


def errors(ranks: Sequence[RankRecord], names: Mapping[str, str]) -> list[str]:
    """An exception ended a rank."""
    groups: dict[str, list[RankRecord]] = {}
    for record in ranks:
        if record.failure:
            what = f"{record.failure.type}: {record.failure.message}".rstrip(": ")
            groups.setdefault(f"{place(record)}: {one_line(what)}", []).append(record)
    return [
        f"{listing([names[record.source] for record in members])} failed {what}\n"
        + (members[0].failure.traceback.rstrip() if members[0].failure else "")
        for what, members in groups.items()
    ]


def left_behind(outcome: Outcome, expected: Expectations) -> list[str]:
    """The launcher ended and ranks did not."""
    if not outcome.left_behind:
        return []
    ending = f"{expected.launcher} ended with {exit_text(outcome.code)}"
    return [f"{ending} while {outcome.left_behind} of its processes still ran; they were ended"]


def deaths(
    ranks: Sequence[RankRecord],
    outcome: Outcome,
    expected: Expectations,
    names: Mapping[str, str],
) -> list[str]:
    """Ranks whose record stops before its end although the time was not up.

    When one rank dies, fails or is left behind, the launcher or we end the others: that is no
    reason of its own.
    """
    unfinished = [record for record in ranks if _unfinished(record)]
    if outcome.timed_out or not unfinished:
        return []
    ending = f"{expected.launcher} ended with {exit_text(outcome.code)}"
    if outcome.code is None:
        ending = f"{expected.launcher} did not notice"
    failures = read_deaths(outcome.log)
    first = next((r for r in unfinished if r.source == outcome.first_gone), None)
    # Beside a rank that failed, the last one was most likely ended by the launcher.
    alone = len(unfinished) == 1 and not any(record.failure for record in ranks)
    reported = [r for r in unfinished if failures.certain(r) or (alone and failures.of(r))]
    reported = [first] if first else reported
    if reported:
        return [
            f"{names[r.source]} died {place(r)}: {failures.of(r) or ending}; its record stops there"
            # A library that cannot start says why on the way out, and nowhere else.
            + ("" if r.world else _from_log(outcome))
            for r in reported
        ]
    if outcome.left_behind or any(record.failure for record in ranks):
        return []
    where = ", ".join(f"{listing(members)} {at}" for at, members in by_place(unfinished, names))
    stops = "their records stop" if len(unfinished) > 1 else "its record stops"
    log = _from_log(outcome)
    return [f"stopped without a word: {where}; {stops} there, and {ending}{log}"]


def hang(
    ranks: Sequence[RankRecord],
    outcome: Outcome,
    expected: Expectations,
    names: Mapping[str, str],
) -> list[str]:
    """The time was up."""
    if not outcome.timed_out or not ranks:
        return []
    begin = f"hung: after {expected.timeout:g} s"
    unfinished = [record for record in ranks if _unfinished(record)]
    ended = [names[record.source] for record in ranks if record.ended]
    failed = [names[record.source] for record in ranks if record.failure]
    parts = []
    for state, words in (("gone", "gone, last seen "), ("stopped", "stopped "), (None, "")):
        members = [r for r in unfinished if _state(r, outcome) == state]
        parts += [
            f"{listing(group)} {'was' if len(group) == 1 else 'were'} {words}{at}"
            for at, group in by_place(members, names)
        ]
    if not parts:
        return [f"{begin} every rank had come to its end, but {expected.launcher} still ran"]
    parts += [f"{listing(m)} had {what}" for m, what in ((failed, "failed"), (ended, "ended")) if m]
    return [f"{begin} {', '.join(parts)}" + ("; stacks follow" if outcome.stacks else "")]


def _state(record: RankRecord, outcome: Outcome) -> str | None:
    state = outcome.states.get(record.source)
    return state if state in ("gone", "stopped") else None


def _unfinished(record: RankRecord) -> bool:
    return not record.ended and not record.failure
