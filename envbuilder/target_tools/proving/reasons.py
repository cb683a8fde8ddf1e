"""Why a run failed, in plain words: each function looks for one kind of reason.

``ranks`` are the records, ``outcome`` and ``expected`` those of ``judge``, ``names`` the name of
each record.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..messages import exit_text, listing, one_line
from .answers import expected as expected_answer
from .binding import CLOCK_SKEW
from .findings import BARRIER, barrier_problem, carried, libraries
from .rank_failures import RankFailures
from .records import RankRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .judge import Expectations, Outcome
    from .records import RankRecord


def name_ranks(ranks: "Sequence[RankRecord]") -> "dict[str, str]":
    """Return a name for each record's source: its rank, and its process if the rank is not unique.

    Several processes may each believe to be rank 0.
    """
    times = Counter(record.rank for record in ranks)
    names = {}
    for record in ranks:
        name = f"process {record.start.pid} on {one_line(record.start.host)}"
        if record.rank is not None:
            name = f"rank {record.rank}" + (f" ({name})" if times[record.rank] > 1 else "")
        names[record.source] = name
    return names


def place(record: "RankRecord") -> str:
    """Return where a record stops: inside a check, or after one."""
    if record.current:
        return f"in {one_line(record.current.label)}"
    return f"after {one_line(record.done[-1].label)}" if record.done else "before import"


def by_place(
    ranks: "Iterable[RankRecord]", names: "Mapping[str, str]"
) -> "list[tuple[str, list[str]]]":
    """Return (place, names of the ranks there), the place that was reached first in front.

    Ranks wait for the one that is behind, so that one tells most.
    """
    groups: "dict[str, list[str]]" = {}
    for record in sorted(ranks, key=lambda record: len(record.events)):
        groups.setdefault(place(record), []).append(names[record.source])
    return [(where, sorted(group)) for where, group in groups.items()]


# So many failed checks are reasons of their own; of more, only their number is told.
SPELT_OUT = 8
LOG_LINES = 6
ALLREDUCE = "allreduce"
# NCCL carries the data of a node, or of all nodes; Horovod's hierarchical allreduce leaves the
# way between nodes to MPI.
BESIDE = {"nccl": {"nccl", "mpi"}}
# Without these nothing is shown, whatever a record says of its end.
NEEDED = ("import", "init", "world", ALLREDUCE, "shutdown")


def ending_of(outcome: "Outcome", expected: "Expectations") -> str:
    """Return how the launcher ended."""
    return f"{expected.launcher} ended with {exit_text(outcome.code)}"


def not_started(
    ranks: "Sequence[RankRecord]", outcome: "Outcome", expected: "Expectations"
) -> "list[str]":
    """Fewer or more processes reported than were asked for."""
    found, requested = len(ranks), expected.ranks
    if found == requested:
        return []
    if found > requested:
        return [f"{found} processes reported, but {requested} were requested"]
    if outcome.timed_out:
        reported = f"only {found}" if ranks else "none"
        reason = f"hung: after {expected.timeout:g} s {reported} of {requested} ranks had reported"
        reason += f", and {expected.launcher} was still running"
    elif ranks:
        reason = f"{ending_of(outcome, expected)}, but only {found} of {requested} ranks reported"
    else:
        but = "but" if outcome.code == 0 else "and"
        reason = f"{ending_of(outcome, expected)} {but} started no rank: none of {requested}"
        reason += " reported"
    return [reason + from_log(outcome)]


def from_log(outcome: "Outcome") -> str:
    """Return the beginning and the end of the log; of a good ending nothing needs to be shown."""
    lines = [one_line(line) for line in outcome.log.splitlines() if line.strip(" =-")]
    if not lines or outcome.code == 0:
        return ""
    if len(lines) > 2 * LOG_LINES:
        lines = [*lines[:LOG_LINES], "...", *lines[-LOG_LINES:]]
    return "\nfrom the log:" + "".join(f"\n  {line}" for line in lines)


def wrong_api(ranks: "Sequence[RankRecord]", expected: "Expectations") -> "list[str]":
    """The ranks talked through something that the proof is not about."""
    others = sorted({one_line(record.start.api) for record in ranks} - {expected.api})
    if not others:
        return []
    return [f"the ranks used {listing(others)}; the proof requires {expected.api}"]


def each_alone(ranks: "Sequence[RankRecord]", expected: "Expectations") -> bool:
    """Return whether several processes started, each in a world of size 1."""
    sizes = [record.world.size for record in ranks if record.world]
    return expected.ranks > 1 and len(sizes) > 1 and set(sizes) == {1}


def wrong_world(
    ranks: "Sequence[RankRecord]", expected: "Expectations", names: "Mapping[str, str]"
) -> "list[str]":
    """The ranks have no common world, or two are the same one."""
    numbers = Counter(record.world.rank for record in ranks if record.world)
    if each_alone(ranks, expected):
        count = sum(numbers.values())
        return [f"{count} processes started, each alone (size 1): {why_alone(ranks, expected)}"]
    return [
        f"rank {rank} exists {count} times: "
        + listing([names[r.source] for r in ranks if r.world and r.world.rank == rank])
        for rank, count in sorted(numbers.items())
        if count > 1
    ]


def why_alone(ranks: "Sequence[RankRecord]", expected: "Expectations") -> str:
    """Return why no process knows of another."""
    if expected.transport not in (None, "mpi"):
        return f"{expected.launcher} did not give them their rank and the number of ranks"
    loaded = libraries(ranks, expected.prefix)
    paths = ", ".join(each["path"] for each in loaded if each["kind"] == "mpi")
    other = f"{expected.launcher} belongs to another MPI than the library the ranks load"
    return f"{other} ({paths})" if paths else other


def failed_checks(
    ranks: "Sequence[RankRecord]", expected: "Expectations", names: "Mapping[str, str]"
) -> "list[str]":
    """A check failed on a rank; ranks with the same problem are grouped."""
    groups: "dict[tuple[int, str, str], list[str]]" = {}
    for record in ranks:
        for position, done in enumerate(record.done):
            obvious = done.check == "world" and each_alone(ranks, expected)
            if not done.passed and not obvious:
                key = (position, one_line(done.label), one_line(done.problem or "failed"))
                groups.setdefault(key, []).append(names[record.source])
    reasons = [
        f"{listing(members)}: {label}: {problem}"
        for (_, label, problem), members in sorted(groups.items(), key=lambda item: item[0][0])
    ]
    late = barrier_problem(ranks, names)
    reasons += [f"{BARRIER}: {late}"] if late else []
    more = len(reasons) - SPELT_OUT
    return reasons if more <= 0 else [*reasons[:SPELT_OUT], f"and {more} more checks failed"]


def endings(
    ranks: "Sequence[RankRecord]",
    outcome: "Outcome",
    expected: "Expectations",
    names: "Mapping[str, str]",
) -> "list[str]":
    """Return why ranks did not finish; the cause comes before its consequences.

    After an exception the launcher ends the other ranks. A rank that was seen to die first is the
    cause of exceptions on others (Gloo: connection reset by peer).
    """
    failed = errors(ranks, names)
    if outcome.left_behind:
        left = f"{outcome.left_behind} of its processes were still running; envbuild ended them"
        failed.append(f"{ending_of(outcome, expected)} while {left}")
    died = deaths(ranks, outcome, expected, names)
    return [*died, *failed] if outcome.first_gone else [*failed, *died]


def errors(ranks: "Sequence[RankRecord]", names: "Mapping[str, str]") -> "list[str]":
    """An exception ended a rank."""
    groups: "dict[str, list[tuple[str, str]]]" = {}
    for record in ranks:
        error = record.failure
        if error:
            what = f"{error.type}: {error.message}".rstrip(": ")
            members = groups.setdefault(f"{place(record)}: {one_line(what)}", [])
            members.append((names[record.source], error.traceback))
    return [
        f"{listing([name for name, _ in members])} failed {what}\n{members[0][1].rstrip()}"
        for what, members in groups.items()
    ]


def deaths(
    ranks: "Sequence[RankRecord]",
    outcome: "Outcome",
    expected: "Expectations",
    names: "Mapping[str, str]",
) -> "list[str]":
    """Ranks whose record stops early, before the time limit.

    After one rank dies, fails or remains, the launcher or the runner ends the others: that is not
    a separate reason.
    """
    unfinished = [record for record in ranks if is_unfinished(record)]
    if outcome.timed_out or not unfinished:
        return []
    ending = ending_of(outcome, expected)
    if outcome.code is None:
        ending = f"{expected.launcher} did not notice"
    failures = RankFailures(outcome.log)
    first = [record for record in unfinished if record.source == outcome.first_gone]
    # Beside a rank that failed, the last one was most likely ended by the launcher.
    alone = len(unfinished) == 1 and not any(record.failure for record in ranks)
    reported = [r for r in unfinished if failures.certain(r) or (alone and failures.of(r))]
    # Nothing was waited for yet: a stack is what a rank left as it crashed.
    crashed = [r for r in unfinished if failures.crash and r.source in outcome.stacks]
    reported = crashed or first or reported
    if reported:
        return [
            f"{names[r.source]} died {place(r)}: "
            f"{(failures.crash if crashed else failures.of(r)) or ending}; its record stops there"
            # A library that cannot start says why on the way out, and nowhere else.
            + ("" if r.world else from_log(outcome))
            for r in reported
        ]
    if outcome.left_behind or any(record.failure for record in ranks):
        return []
    where = ", ".join(f"{listing(members)} {at}" for at, members in by_place(unfinished, names))
    stops = "their records stop" if len(unfinished) > 1 else "its record stops"
    log = from_log(outcome)
    return [f"stopped without an error: {where}; {stops} there, and {ending}{log}"]


def hang(
    ranks: "Sequence[RankRecord]",
    outcome: "Outcome",
    expected: "Expectations",
    names: "Mapping[str, str]",
) -> "list[str]":
    """The time was up."""
    if not outcome.timed_out or not ranks:
        return []
    begin = f"hung: after {expected.timeout:g} s"
    unfinished = [record for record in ranks if is_unfinished(record)]
    told = {"gone": "gone, last seen ", "stopped": "stopped ", None: ""}
    parts = []
    for state, words in told.items():
        states = ((each, outcome.states.get(each.source)) for each in unfinished)
        members = [each for each, found in states if (found if found in told else None) == state]
        parts += [
            f"{listing(group)} {'was' if len(group) == 1 else 'were'} {words}{at}"
            for at, group in by_place(members, names)
        ]
    if not parts:
        return [f"{begin} every rank had ended, but {expected.launcher} was still running"]
    failed = [names[record.source] for record in ranks if record.failure]
    ended = [names[record.source] for record in ranks if record.ended]
    parts += [f"{listing(m)} had {what}" for m, what in ((failed, "failed"), (ended, "ended")) if m]
    return [f"{begin} {', '.join(parts)}" + ("; stacks follow" if outcome.stacks else "")]


def is_unfinished(record: "RankRecord") -> bool:
    """Return whether a record tells neither of its end nor of an exception."""
    return not record.ended and not record.failure


def wrong_library(ranks: "Sequence[RankRecord]", expected: "Expectations") -> "list[str]":
    """The loaded MPI library is not the planned one.

    A run over another transport need not load any, but what it loads must be right.
    """
    mpi = expected.mpi
    if mpi is None or not any(record.libraries for record in ranks):
        return []
    loaded = [each for each in libraries(ranks, expected.prefix) if each["kind"] == "mpi"]
    if not loaded:
        none = f"no rank had loaded a libmpi; the plan takes MPI from {mpi.source}"
        return [none] if expected.transport in (None, "mpi") else []
    if not mpi.known:
        paths = ", ".join(each["path"] for each in loaded)
        return [f"cannot tell whether {paths} is the plan's MPI, that of {mpi.source}"]
    return [
        f"the ranks loaded {each['path']} ({each['owner']}); the plan takes MPI from {mpi.source}"
        for each in loaded
        if not mpi.holds(each["path"])
    ]


def wrong_transport(ranks: "Sequence[RankRecord]", expected: "Expectations") -> "list[str]":
    """Another transport carried the allreduce than the requested one, or an unknown one."""
    came_so_far = any(record.first("carried") for record in ranks)
    if expected.transport is None or not came_so_far:
        return []
    sums = [each for each in carried(ranks) if each["operation"] == ALLREDUCE]
    transports = {each["transport"] for each in sums}
    asks = f"the proof requires {expected.transport}, but"
    if not transports:
        return [f"{asks} nothing shows what carried the allreduce"]
    if expected.transport in transports <= BESIDE.get(expected.transport, {expected.transport}):
        return []
    reason = "; ".join(f"{each['transport']} ({each['source']})" for each in sums)
    return [f"{asks} the allreduce was carried by {reason}"]


def incomplete(
    ranks: "Sequence[RankRecord]", expected: "Expectations", names: "Mapping[str, str]"
) -> "list[str]":
    """A record reports success without the events that a success requires."""
    for record in ranks:
        lacking = [name for name in NEEDED if name not in {done.check for done in record.done}]
        lacking += [name for name in ("init", "libraries", "carried") if not record.first(name)]
        if not record.ended:
            lacking.append("end")
        said = [f"has no {each}" for each in lacking[:1]]
        if record.world and record.world.size != expected.ranks:
            said.append(f"states {record.world.size} ranks")
        if record.world and not 0 <= record.world.rank < expected.ranks:
            said.append("is of a rank that was not requested")
        if record.ended and record.end and record.end.failed:
            said.append(f"counts {record.end.failed} failed checks, but lists none")
        if said:
            return [f"the record of {names[record.source]} {listing(said)}"]
    return []


def of_another_run(
    ranks: "Sequence[RankRecord]",
    outcome: "Outcome",
    expected: "Expectations",
    names: "Mapping[str, str]",
) -> "list[str]":
    """A record reports sums, a process or times that are not of this run."""
    for record in ranks:
        problem = wrong_answer(record, expected) or wrong_process(record, outcome)
        if problem:
            return [f"{names[record.source]} {problem}: its record is of another run"]
    return []


def wrong_answer(record: "RankRecord", expected: "Expectations") -> "str | None":
    """Return the sum that the data of this run do not have, or None."""
    if expected.nonce is None:
        return None
    for done in record.done:
        if done.check == ALLREDUCE:
            answer = expected_answer(expected.nonce, done.dtype, done.bytes, expected.ranks)
            if answer is None or answer != done.answer:
                return f"states another sum of {one_line(done.label)}"
    return None


def wrong_process(record: "RankRecord", outcome: "Outcome") -> "str | None":
    """Return why the process of a record was not one of this run, or None."""
    observation = outcome.observation
    if observation is None:
        return None
    for event in filter(None, (record.start, record.end)):
        early = observation.begin - event.unix
        late = event.unix - observation.end
        if max(early, late) > CLOCK_SKEW:
            when = f"{early:.0f} s before" if early > late else f"{late:.0f} s after"
            return f"states a time {when} the run"
    if observation.can_observe(record) and record.source not in observation.observed:
        return f"states process {record.start.pid}, which did not run on this node"
    return None
