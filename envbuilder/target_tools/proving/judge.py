"""The verdict on one run, from what its ranks recorded. Pure: nothing is read or started here."""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..messages import exit_text, one_line
from . import reasons
from .findings import carried, checks, left_out, libraries, or_none, processes, timings
from .mpi_library import PlanMpi
from .reasons import name_ranks
from .records import RankRecord, RankRecords, label


class Expectations(NamedTuple):
    """The requested run, and the facts of its plan.

    launch: the words of the command that starts the ranks.
    timeout: seconds.
    prefix: its real path.
    api, transport: what the ranks must talk through, and what must carry the data; a transport of
        None: anything.
    mpi: the PlanMpi; None: the plan holds no MPI.
    nonce: of the run, on which its data depend; None: of ranks that recorded no sums.
    """

    ranks: int
    launch: "tuple[str, ...]"
    timeout: float
    prefix: str
    api: str = "numpy"
    transport: "str | None" = None
    mpi: "PlanMpi | None" = None
    host: "tuple[str, ...]" = ()
    nonce: "str | None" = None

    @property
    def launcher(self) -> str:
        """The name of the program that starts the ranks."""
        return PurePosixPath(self.launch[0]).name


class LauncherNode(NamedTuple):
    """What was observed on the node of the launcher.

    boot_id, pid_namespace: of the runner; "" where the kernel hides them.
    begin, end: seconds since 1970.
    observed: the records whose processes were seen alive, with their start times.
    """

    host: str
    boot_id: str
    pid_namespace: str
    begin: float
    end: float
    observed: "tuple[str, ...]"

    def can_observe(self, record: RankRecord) -> bool:
        """Return whether a rank that ran had to be seen: on this node, in this PID namespace."""
        place = (record.start.clock, record.start.pid_namespace)
        return all(place) and place == (self.boot_id, self.pid_namespace)


class Outcome(NamedTuple):
    """How the run ended, as observed from outside.

    code: of the launcher; negative for a signal, None: it had to be ended.
    timed_out: the time was up; without it and without a code, waiting had become useless.
    log: what launcher and ranks printed.
    states: running, stopped or gone: of each process at the time limit, by the name of its record;
        absent: cannot be seen.
    stacks: of each process at the time limit, by the name of its record.
    left_behind: processes that still ran when the launcher had ended by itself.
    first_gone: the record of the process that was seen to go first and before its end, if one was.
    observation: None: of a run that an earlier release made.
    """

    code: "int | None"
    timed_out: bool
    seconds: float
    log: str = ""
    states: "dict[str, str]" = {}  # noqa: RUF012 - never changed
    stacks: "dict[str, str]" = {}  # noqa: RUF012
    left_behind: int = 0
    first_gone: "str | None" = None
    observation: "LauncherNode | None" = None


def judge(records: RankRecords, outcome: Outcome, expected: Expectations) -> "dict[str, Any]":
    """Return the result of a run, as the JSON of a SmokeResult.

    The most specific reason comes first.
    """
    ranks = records.ranks
    names = name_ranks(ranks)
    results = checks(ranks, expected.ranks, names)
    why = [
        *reasons.not_started(ranks, outcome, expected),
        *reasons.wrong_api(ranks, expected),
        *reasons.wrong_world(ranks, expected, names),
        *reasons.failed_checks(ranks, expected, names),
        *reasons.endings(ranks, outcome, expected, names),
        *reasons.hang(ranks, outcome, expected, names),
        *reasons.wrong_library(ranks, expected),
        *reasons.wrong_transport(ranks, expected),
    ]
    if not why:
        # Nothing may pass only because no reason above fits it.
        bad = [each for each in results if not each["passed"]]
        why += [f"{label(c['name'], c['dtype'], c['bytes'])}: {c['detail']}" for c in bad]
    why = why or reasons.incomplete(ranks, expected, names)
    why = why or reasons.of_another_run(ranks, outcome, expected, names)
    if not why and outcome.code != 0:
        ending = exit_text(outcome.code)
        why.append(f"every check passed, but {expected.launcher} ended with {ending}")
    worlds = [record.world for record in ranks if record.world]
    nodes = sorted({one_line(record.start.host) for record in ranks})
    return {
        "tier": tier(ranks, expected, nodes, failed=bool(why)),
        "verdict": "failed" if why else "passed",
        "reasons": [*why, *records.ignored] if why else [],
        "seconds": round(outcome.seconds, 3),
        "ranks": expected.ranks,
        "nodes": nodes,
        "launch": one_line(" ".join(map(shlex.quote, expected.launch))),
        "api": expected.api,
        "transport": expected.transport,
        "carried": carried(ranks),
        "runtime": agreed(runtime_words(world) for world in worlds),
        "framework": agreed(world.framework for world in worlds if world.framework),
        "mpi": agreed(f"{world.mpi} {world.mpi_version}" for world in worlds if world.mpi),
        "python": agreed(world.python for world in worlds),
        "environment": environment(ranks),
        "processes": processes(ranks, outcome.observation),
        "libraries": libraries(ranks, expected.prefix, expected.host),
        "checks": results,
        "left-out": left_out(ranks),
        "timings": timings(ranks, expected.ranks),
        "stacks": {names[each]: text for each, text in outcome.stacks.items() if each in names},
    }


def tier(
    ranks: "Sequence[RankRecord]", expected: Expectations, nodes: "list[str]", failed: bool
) -> str:
    """Return the highest tier that was really completed; a failed run never has several ranks."""
    if not failed and expected.ranks > 1:
        return "several nodes" if len(nodes) > 1 else "several ranks"
    if any(passed_alone(record) for record in ranks):
        return "one rank"
    imported = any(done.check == "import" and done.passed for r in ranks for done in r.done)
    return "imported" if imported else "built"


def passed_alone(record: RankRecord) -> bool:
    """Return whether a process passed all checks but the one that counts the ranks."""
    return record.ended and all(done.passed or done.check == "world" for done in record.done)


def environment(ranks: "Sequence[RankRecord]") -> "dict[str, str]":
    """Return the variables that affect communication, with their values on all ranks."""
    every = [record.start.environment for record in ranks]
    found = {}
    for name in sorted({name for each in every for name in each}):
        values = {each.get(name, "(not set)") or "(empty)" for each in every}
        found[name] = one_line(" / ".join(sorted(values)))
    return found


def runtime_words(world: "Any") -> str:
    """Return name and version of a runtime, and how it runs TensorFlow's graphs, if known."""
    words = f"{world.runtime} {world.runtime_version}"
    built = (world.build_record or {}).get("tensorflow")
    implementation = built.get("implementation") if isinstance(built, dict) else None
    known = implementation in ("op", "py-function")
    return f"{words}, tensorflow: {implementation}" if known else words


def agreed(values: "Iterable[str]") -> "str | None":
    """Return the value of all ranks, or their different values joined by slashes."""
    return or_none(" / ".join(sorted(set(values))) or None)
