"""Evidence that is read back, against what its ranks recorded, where their records are kept."""

import json
from collections import Counter
from pathlib import Path

from ..files import IrregularFileError, open_regular
from .findings import execution
from .judge import Expectations, Outcome, judge
from .records import RECORD_BYTES, RECORD_FILES, read_ranks
from .runner import RECORDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What the judge says again of the same records, whatever release said it first.
SAME = ("tier", "nodes", "mpi", "runtime", "timings")
PARTS = {"checks": ("name", "dtype", "bytes", "passed"), "libraries": ("kind", "path")}


def refuted(run: "Path", told_execution: str, result: "dict[str, Any]") -> "str | None":
    """Return how the ranks' records contradict a passed result, or None.

    The records are judged again. *run*: the folder of one smoke test; *result*: a SmokeResult
    as JSON; *told_execution*: native or emulated, as the evidence says.
    """
    folder = run / RECORDS
    nonce = nonce_of(folder)
    if nonce is None or result["verdict"] != "passed":
        return None
    # What passed ended by itself; and how it was started does not matter to what is compared.
    outcome = Outcome(code=0, timed_out=False, seconds=result["seconds"])
    asked = {name: result[name] for name in ("ranks", "api", "transport")}
    expected = Expectations(launch=("launcher",), timeout=result["seconds"], prefix="/", **asked)
    records = read_ranks(folder, nonce)
    if execution(records.ranks) != told_execution:
        return f"its ranks were {execution(records.ranks)}"
    again = judge(records, outcome, expected)
    if again["verdict"] != "passed":
        return str(again["reasons"][0]).split("\n")[0]
    for name in SAME:
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
