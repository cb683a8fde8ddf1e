"""Whether stored evidence counts. Every reader of evidence calls ``judge_again``.

Tier and times are derived from the records of the ranks and compared with those in the evidence.
"""

import calendar
import json
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ..files import IrregularFileError, open_regular
from .binding import CLOCK_SKEW, is_bound, misfit
from .findings import TIME_FORMAT, end_time, execution
from .judge import Expectations, LauncherNode, Outcome, judge
from .records import RECORD_BYTES, RECORD_FILES, RankRecords, read_ranks
from .runner import RECORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

    from .binding import EarlierEvidence

# What the judge says again of the same records, whatever release said it first.
SAME = ("tier", "nodes", "mpi", "runtime", "timings")
PARTS = {"checks": ("name", "dtype", "bytes", "passed"), "libraries": ("kind", "path")}


class Worth(NamedTuple):
    """Why evidence does not count (None: it counts), and when its ranks ended."""

    problem: "str | None"
    time: str


def judge_again(
    run: Path,
    evidence: "Mapping[str, Any]",
    subject: "Mapping[str, Any] | None",
    earlier: "EarlierEvidence | None",
    now: float,
) -> Worth:
    """Return what an Evidence (as JSON) in the folder *run* is worth as evidence of *subject*.

    *subject*: the values of BOUND of the environment; None: its lock cannot be read. *earlier*:
    None: in an image, where evidence that is not bound never counts. *now*: seconds since 1970.
    """
    stated = evidence["time"]
    if subject is None:
        return Worth("the lock of its environment cannot be read", stated)
    problem = misfit(evidence, subject) or dated(stated, now)
    if problem or evidence["result"]["verdict"] != "passed":
        return Worth(problem, stated)
    nonce = nonce_of(run / RECORDS)
    if nonce is None:
        return Worth(f"its folder {RECORDS} contains no record of a rank", stated)
    records = read_ranks(run / RECORDS, nonce)
    if evidence["schema"] == 1:
        problem = contradiction(records, evidence, None, None)
        unlisted = earlier.misfit(run) if earlier else "it is not bound to this image"
        return Worth(problem or unlisted, stated)
    if not is_bound(nonce, evidence):
        return Worth("the records of its ranks are of another environment or run", stated)
    problem = contradiction(records, evidence, nonce, observation_of(evidence))
    if problem:
        return Worth(problem, stated)
    derived = end_time(records.ranks, 0.0)
    if abs(seconds_of(stated) - seconds_of(derived)) > CLOCK_SKEW:
        return Worth(f"it states {stated}, but its ranks ended at {derived}", derived)
    return Worth(dated(derived, now), derived)


def dated(moment: str, now: float) -> "str | None":
    """Return the problem of a time in the future, or None."""
    return f"its time is in the future: {moment}" if seconds_of(moment) > now + CLOCK_SKEW else None


def seconds_of(moment: str) -> float:
    """Return a time of an evidence in seconds since 1970."""
    return float(calendar.timegm(time.strptime(moment, TIME_FORMAT)))


def observation_of(evidence: "Mapping[str, Any]") -> "LauncherNode | None":
    """Return what was observed during the run of an Evidence."""
    if evidence.get("run") is None:
        return None
    fields = {name.replace("-", "_"): value for name, value in evidence["run"].items()}
    return LauncherNode(**fields)


def contradiction(
    records: RankRecords,
    evidence: "Mapping[str, Any]",
    nonce: "str | None",
    observation: "LauncherNode | None",
) -> "str | None":
    """Return how the ranks' records contradict a passed result, or None: they are judged again."""
    result = evidence["result"]
    if nonce is not None and observation is None:
        return "it does not state its run"
    # What passed ended by itself; and how it was started does not matter to what is compared.
    outcome = Outcome(0, timed_out=False, seconds=result["seconds"], observation=observation)
    requested = {name: result[name] for name in ("ranks", "api", "transport")}
    expected = Expectations(
        launch=("launcher",), timeout=result["seconds"], prefix="/", nonce=nonce, **requested
    )
    if execution(records.ranks) != evidence["execution"]:
        return f"its ranks were {execution(records.ranks)}"
    again = judge(records, outcome, expected)
    if again["verdict"] != "passed":
        return str(again["reasons"][0]).split("\n")[0]
    for name in SAME if nonce is None else (*SAME, "processes"):
        if again[name] != result[name]:
            return f"another {name}"
    for name, keys in PARTS.items():
        said = [[[each[key] for key in keys] for each in told[name]] for told in (again, result)]
        if said[0] != said[1]:
            return f"other {name}"
    return None


def nonce_of(folder: "Path") -> "str | None":
    """Return the nonce of the run that wrote the records; None without records."""
    paths = sorted(folder.glob(RECORD_FILES))
    found = Counter(filter(None, map(first_nonce, paths)))
    # Records that cannot be read are of no run, and none that passed has such.
    return found.most_common(1)[0][0] if found else ("" if paths else None)


def first_nonce(path: "Path") -> "str | None":
    """Return the nonce in the first line of a record; None if the line is invalid."""
    try:
        with open_regular(path, RECORD_BYTES, links=False) as file:
            line = file.readline(RECORD_BYTES)
    except IrregularFileError:
        return None
    try:
        nonce = json.loads(line.decode("utf-8"))["nonce"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return nonce if isinstance(nonce, str) else None
