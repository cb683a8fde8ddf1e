"""What the names of modules say they were built with: the stack has to hold the same series.

Snapshots record what a module loads. Of a module that a person described, or whose modulefile
loads nothing, the name is all there is: ``nccl/cuda-11.4_2.11.4`` is not for CUDA 12.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..knowledge.names import read_name
from ..knowledge.ranges import series
from .names import Names
from .pool import Pool
from .problem import Candidate, Rule
from .rules import GroundRule, rule_row

NAME_ROWS: Mapping[str, str] = {
    "NAME-CUDA": "a module was built with another CUDA, by its name",
    "NAME-PYTHON": "a module was built for another Python, by its name",
}
"""The ids of these rules, and what they refuse."""

# CUDA 11 and later run what another minor release of theirs was built for; earlier ones do not.
_FIRST_CUDA_WITH_COMPATIBLE_MINORS = 11


def name_table(pool: Pool, names: Names, allow: Mapping[str, str]) -> tuple[GroundRule, ...]:
    """Return a rule for each pair of a tool and its series that some module's name states."""
    stated: dict[tuple[str, str], list[Candidate]] = {}
    for candidate in pool.candidates:
        for tool, series_of_tool in _built_with(candidate, names):
            stated.setdefault((tool, series_of_tool), []).append(candidate)
    return tuple(
        rule
        for (tool, of_tool), candidates in sorted(stated.items())
        for rule in _rules(tool, of_tool, candidates, pool, allow)
    )


def _built_with(candidate: Candidate, names: Names) -> Iterator[tuple[str, str]]:
    """Yield each tool that the name of a candidate's module states, with its series."""
    reading = read_name(candidate.locator, names.of_module) if candidate.module else None
    if reading is None or reading.component != candidate.component:
        return
    for row in NAME_ROWS:
        tool = _tool(row)
        if tool in reading.facts and tool != candidate.component:
            yield tool, _series(tool, reading.facts[tool])


def _tool(row: str) -> str:
    return row.removeprefix("NAME-").lower()


def _series(tool: str, version: str) -> str:
    """Return 11 of CUDA 11.4, 10.2 of CUDA 10.2.89 and 3.7 of Python 3.7.9."""
    numbers = [number for number in version.split(".") if number]
    newer = tool == "cuda" and numbers[0].isdigit()
    if newer and int(numbers[0]) >= _FIRST_CUDA_WITH_COMPATIBLE_MINORS:
        return numbers[0]
    return ".".join(numbers[:2])


def _rules(
    tool: str, of_tool: str, stated: list[Candidate], pool: Pool, allow: Mapping[str, str]
) -> Iterator[GroundRule]:
    wanted = series(of_tool, of_tool.count(".") + 1)
    others = frozenset(
        each.id for each in pool.of(tool) if series(each.version, of_tool.count(".") + 1) != wanted
    )
    if not others:
        return
    name = f"NAME-{tool.upper()}"
    key = f"{name}:{of_tool}"
    summary = f"the name of the module states that it was built with {tool} {of_tool}"
    words = {"given": {stated[0].component: "*"}, "needs": {tool: f"=={of_tool}.*"}}
    fix = f"{tool} {of_tool}, or another module"
    row = rule_row(name, summary, fix, ("the name of the module",), **words)
    rule = Rule(key, name, hard=True, slots=(frozenset(each.id for each in stated), others))
    yield GroundRule(rule, row, reason=allow.get(name))
