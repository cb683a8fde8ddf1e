"""Say at the end of ``ci/test.sh`` how each lane ended, what failed, and what was skipped.

A lane is what a folder of reports tells of it: ``NAME.log``, what it said; ``NAME.code``, its exit
status, which is missing as long as it runs; ``NAME.cpu``, its CPU seconds, the user's and the
system's; and ``NAME.xml``, pytest's report, where pytest ran.
Each failure comes with the end of what pytest says of it, and the names come last: where a run's
output is cut, its end is kept. Run it as ``python ci/summary.py FOLDER``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# Of each failure, of what the test wrote, and of a lane that failed without a failed test.
LINES, WRITTEN_LINES = 40, 10
# Failures that are told in full; of the others the names.
TOLD = 15
# What pytest puts over what was written; before a reason, and what differs from engine to engine.
HEADING = re.compile(r"^-+ Captured \w+ -+\n*", re.MULTILINE)
BEFORE_A_REASON = re.compile(r"engine \w+ with \w+: |[\w.]+Error: |^Skipped: ")


@dataclass(frozen=True)
class Failure:
    """A test that failed, or that could not be set up, collected or cleaned up after."""

    test: str
    text: str


@dataclass(frozen=True)
class Lane:
    """How one lane ended: ``code`` is None where it did not."""

    name: str
    code: int | None
    cpu: float | None
    log: str
    failures: tuple[Failure, ...]
    skipped: Counter[str]

    @property
    def good(self) -> bool:
        return self.code == 0 and not self.failures

    @property
    def last_line(self) -> str:
        lines = [line for line in self.log.splitlines() if line.strip()]
        return lines[-1].strip("= ") if lines else "it said nothing"

    @property
    def ending(self) -> str:
        if self.code is None:
            return "did not end"
        return "passed" if self.good else f"FAILED ({self.code})"


def read(folder: Path) -> list[Lane]:
    """Return the lanes whose reports are in a folder."""
    names = sorted(log.name.removesuffix(".log") for log in folder.glob("*.log"))
    return [_lane(folder, name) for name in names]


def _lane(folder: Path, name: str) -> Lane:
    code = folder / f"{name}.code"
    cases = list(_cases(folder / f"{name}.xml"))
    return Lane(
        name=name,
        code=int(code.read_text()) if code.is_file() else None,
        cpu=_cpu(folder / f"{name}.cpu"),
        log=(folder / f"{name}.log").read_text(encoding="utf-8", errors="replace"),
        failures=tuple(each for case in cases for each in _failures(case)),
        skipped=Counter(
            BEFORE_A_REASON.sub("", skip.get("message", ""))
            for case in cases
            for skip in case.iterfind("skipped[@type='pytest.skip']")
        ),
    )


def _cpu(report: Path) -> float | None:
    """Return the CPU seconds; None where the lane has not ended."""
    words = report.read_text().split() if report.is_file() else []
    try:
        return sum(map(float, words[-2:])) if len(words) >= 2 else None
    except ValueError:
        return None


def _cases(report: Path) -> Iterator[ElementTree.Element]:
    """Yield the tests of a report; none where pytest was ended before it wrote all of it."""
    try:
        yield from ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
    except (FileNotFoundError, ElementTree.ParseError):
        return


def _failures(case: ElementTree.Element) -> Iterator[Failure]:
    words = case.get("classname", "").split(".")
    module = "/".join(word for word in words if word[:1].islower())
    classes = [word for word in words if word[:1].isupper()]
    test = "::".join([*([f"{module}.py"] if module else []), *classes, case.get("name", "")])
    written = [
        line
        for stream in ("system-out", "system-err")
        for line in _end(HEADING.sub("", case.findtext(stream, "")), WRITTEN_LINES)
    ]
    for bad in (*case.iterfind("failure"), *case.iterfind("error")):
        yield Failure(test, "\n".join((*_end(bad.text or bad.get("message", ""), LINES), *written)))


def _end(text: str, lines: int) -> list[str]:
    return text.rstrip().splitlines()[-lines:]


def lines(lanes: Sequence[Lane]) -> Iterator[str]:
    """Yield the summary: what was skipped, what failed in full, the lanes, the names."""
    failed = [(lane, failure) for lane in lanes for failure in lane.failures]
    reasons = sum((lane.skipped for lane in lanes), Counter[str]())
    if reasons:
        yield "== skipped"
    for reason, count in reasons.most_common():
        where = [lane.name for lane in lanes if lane.skipped[reason]]
        yield f"{count:5} {reason} ({'; '.join(where)})"
    for lane, failure in failed[:TOLD]:
        yield f"== {lane.name}: {failure.test}"
        yield failure.text
    for lane in lanes:
        if not lane.good and not lane.failures:
            yield f"== {lane.name}: its last lines"
            yield from _end(lane.log, LINES)
    if lanes:
        yield "== lanes"
    for lane in lanes:
        took = f" ({lane.cpu:.0f} CPU s)" if lane.cpu is not None else ""
        yield f"{lane.ending:11} {lane.name}: {lane.last_line}{took}"
    for lane, failure in failed:
        yield f"FAILED {lane.name}: {failure.test}"


if __name__ == "__main__":
    for line in lines(read(Path(sys.argv[1]))):
        sys.stdout.write(f"{line}\n")
