"""How the jobs of ``ci run`` ended, as one table."""

from __future__ import annotations

from collections.abc import Iterator

from ..views.layout import columns, joined
from .values import JobResult, RunResult

_MARKS = {"passed": "ok", "failed": "FAILED", "not run": "-"}


@joined
def finished(value: RunResult) -> Iterator[str]:
    """Yield a row for each recipe and architecture, then why those that failed did."""
    stages = tuple(dict.fromkeys(each.stage for each in value.jobs))
    rows: dict[str, dict[str, JobResult]] = {}
    for each in value.jobs:
        rows.setdefault(each.matrix, {})[each.stage] = each
    table = [("", *stages, "seconds")]
    for name, jobs in rows.items():
        marks = (_MARKS[jobs[each].state] if each in jobs else "" for each in stages)
        table.append((name, *marks, f"{sum(each.seconds for each in jobs.values()):.0f}"))
    yield columns(table, indent="")
    for each in value.failed:
        yield from ("", f"{each.job}: {each.reason}", f"  exit code {each.code}, log: {each.log}")
    good = sum(all(each.state == "passed" for each in jobs.values()) for jobs in rows.values())
    yield from ("", f"{good} of {len(rows)} passed")
