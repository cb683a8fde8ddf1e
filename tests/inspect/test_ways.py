"""The zoo, and how good it says validate is: the table in docs/validating.md."""

from __future__ import annotations

import copy
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zoo
from ways import BROKEN, HEALTHY, Way

from envbuilder.model.validation import Finding
from envbuilder.target_tools.files import sha256_of
from envbuilder.target_tools.manifest import look, record
from envbuilder.validate.command import validate
from envbuilder.validate.options import ComparisonOptions, ValidateOptions
from envbuilder.workflow.context import Context
from tests import goldens
from tests.layers import CHECKOUT

pytestmark = pytest.mark.thorough

PAGE = CHECKOUT / "docs" / "validating.md"
MARK = "<!-- printed by tests/inspect/test_ways.py -->\n"


class Outcome(NamedTuple):
    """What was found of an environment, and whether it was as before afterwards."""

    name: str
    way: Way
    findings: tuple[Finding, ...]
    touched: bool

    @property
    def ids(self) -> set[str]:
        return {each.id for each in self.findings}

    @property
    def found(self) -> bool:
        return self.way.wanted in self.ids

    @property
    def more(self) -> set[str]:
        """What was found beside what is broken, and does not come with it."""
        own = {self.way.wanted, *self.way.also}
        alarms = {each.id for each in self.findings if each.severity != "info"}
        return {each for each in alarms if not any(fnmatch(each, name) for name in own)}


def looked_at(name: str, way: Way, first: zoo.Made, folder: Path, context: Context) -> Outcome:
    """Make the environment, validate it in its shell, and compare all files around it."""
    made = zoo.copy(first, folder / "env")
    shell = way.make(made)
    outside = copy.copy(context)
    environ = {**context.environ, **(shell if isinstance(shell, dict) else {})}
    object.__setattr__(outside, "environ", environ)
    compared = ComparisonOptions(
        site=str(folder / "there.yaml") if way.site else None,
        recipe=str(folder / "asked.yaml") if way.recipe else None,
    )
    before = tree(folder)
    prefix = None if way.loaded else str(made.prefix)
    options = ValidateOptions(loaded=way.loaded, compared=compared)
    value = validate(prefix, None, outside, options)
    after = tree(folder)
    shutil.rmtree(folder)
    return Outcome(name, way, value.findings, touched=before != after)


def tree(folder: Path) -> dict[str, Any]:
    """Return size, mode and time of all files, with the hash of those that are no copies' links.

    What is a link to a file of the first one is hashed there, before and after all.
    """
    found: dict[str, Any] = look(folder)
    own = [name for name, each in found.items() if "size" in each and is_own(folder / name)]
    return {**found, "hashes": [sha256_of(folder / name) for name in own]}


def contents(folder: Path) -> dict[str, Any]:
    """Return the hash of each file, or where a link leads. That links were made sets a time."""
    files = record(folder, "later")["files"]
    return {name: each.get("sha256") or each.get("link") for name, each in files.items()}


def is_own(path: Path) -> bool:
    return path.stat().st_nlink == 1


def test_what_was_broken_is_found_and_nothing_else(
    first: zoo.Made, tmp_path: Path, context: Context, need: Callable[[str], str]
) -> None:
    """All of them in one test, whose numbers are the table in docs; none of them is touched."""
    need("gcc")
    need("g++")
    whole = contents(first.prefix)
    outcomes = {
        kind: [
            looked_at(name, way, first, tmp_path / f"{kind}{n}", context)
            for n, (name, way) in enumerate(ways.items())
        ]
        for kind, ways in (("broken", BROKEN), ("healthy", HEALTHY))
    }
    everything = [each for those in outcomes.values() for each in those]
    assert {o.name: sorted(o.ids) for o in outcomes["broken"] if not o.found or o.more} == {}
    alarms = {
        o.name: [e.summary for e in o.findings if e.severity != "info"] for o in outcomes["healthy"]
    }
    assert {name: summaries for name, summaries in alarms.items() if summaries} == {}
    # Every file of it and around it has its size, mode, time and content.
    assert [o.name for o in everything if o.touched] == []
    assert contents(first.prefix) == whole
    for each in (finding for o in everything for finding in o.findings):
        assert each.evidence
        assert each.why
        assert each.fix
        assert each.source.startswith("https://")
    assert len(BROKEN) >= 60
    assert len(HEALTHY) >= 20
    text = PAGE.read_text(encoding="utf-8")
    told = text.partition(MARK)[0] + MARK + "\n".join(page(outcomes)) + "\n"
    goldens.compare(PAGE, told)


def page(outcomes: dict[str, list[Outcome]]) -> Iterator[str]:
    broken, healthy = outcomes["broken"], outcomes["healthy"]
    alarms = [o for o in healthy if any(e.severity == "error" for e in o.findings)]
    right = sum(o.found for o in broken)
    yield f"Of {len(broken)} broken environments {right} are found with their id,"
    yield f"{sum(bool(o.more) for o in broken)} with a finding that is not theirs."
    yield f"Of {len(healthy)} healthy ones {len(alarms)} are said to have an error,"
    warned = [o for o in healthy if any(e.severity == "warning" for e in o.findings)]
    yield f"{len(warned)} to have a warning."
    yield ""
    yield "| id | environments | found | broken in this way |"
    yield "| --- | --- | --- | --- |"
    by_id: dict[str, list[Outcome]] = defaultdict(list)
    for each in broken:
        by_id[each.way.wanted].append(each)
    for name, those in by_id.items():
        ways = "; ".join(o.name for o in those)
        yield f"| `{name}` | {len(those)} | {sum(o.found for o in those)} | {ways} |"
    yield ""
    yield f"The healthy ones: {'; '.join(HEALTHY)}."
