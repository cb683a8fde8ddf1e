"""Module names of two sites, with readings that were written before any reader was run on them.

tests/field/names/README.md says what is graded, and which facts may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from envbuilder.knowledge.names import NameReading, read_name
from envbuilder.machine.modules.names import provided_by_name, stems, unread_modules
from envbuilder.model.site import StatedModule
from tests.shipped import read_shipped

FOLDER = Path(__file__).parents[1] / "field" / "names"
COMPONENTS = read_shipped().value.components
ALIASES = stems(COMPONENTS)
GRADED = ("mpi", "cuda", "nccl", "cudnn", "compiler", "python", "framework", "tool")
ESSENTIAL = [
    "toolchain",
    "toolchain_version",
    "compiler",
    "compiler_version",
    "cuda",
    "python",
    "framework",
]
# What the truth calls otherwise, and what it knows that is no component of envbuild.
CALLED = {"intel-mpi": "impi"}
SHARE = 0.97


@cache
def truth() -> list[dict[str, Any]]:
    texts = [file.read_text(encoding="utf-8") for file in sorted(FOLDER.glob("*.yaml"))]
    return [row for text in texts for row in yaml.load(text, yaml.CSafeLoader)]


def rows(*classes: str) -> Iterator[dict[str, Any]]:
    yield from (row for row in truth() if not classes or row["class"] in classes)


def accepted(row: dict[str, Any]) -> set[tuple[str, str] | None]:
    """Return each component and version that is right for a row; None: no reading is right."""
    right: set[tuple[str, str] | None] = set()
    for other in (row["component"], *(row.get("also") or ())):
        if isinstance(other, dict):
            right.add((other["component"], other["version"]))
        elif other == "none":
            right.add(None)
        else:
            right.add((CALLED.get(other, other), row["version"]))
    return right


def reading(name: str) -> tuple[str, str] | None:
    provided = provided_by_name(name, ALIASES)
    return next(iter(provided.items()), None)


def wrong_facts(row: dict[str, Any], read: NameReading) -> dict[str, str]:
    stated = {name: str(value) for name, value in row["facts"].items()}
    wrong = {name: value for name, value in read.facts.items() if stated.get(name, value) != value}
    missing = {
        name: stated[name] for name in ESSENTIAL if name in stated and name not in read.facts
    }
    added = {name: read.facts[name] for name in ESSENTIAL if name in read.facts.keys() - stated}
    return wrong | missing | added


def test_names_of_what_is_known_are_read() -> None:
    graded = list(rows(*GRADED))
    assert {called(row) for row in graded} <= COMPONENTS.keys()
    unread = [row["name"] for row in graded if reading(row["name"]) not in accepted(row)]
    assert {row["class"] for row in graded} == set(GRADED)
    assert len(unread) <= (1 - SHARE) * len(graded), unread
    shown = {
        name for name, _ in unread_modules([StatedModule(name=name) for name in unread], COMPONENTS)
    }
    assert shown == set(unread)


def called(row: dict[str, Any]) -> str:
    component: str = row["component"]
    return CALLED.get(component, component)


def test_no_name_is_read_wrongly() -> None:
    """Components of envbuild that the truth was not asked for are named by their own word."""
    wrong = {}
    for row in rows():
        read = reading(row["name"])
        own_word = read is not None and read[0] in row["name"].lower().replace("_", "-")
        asked_for = row["component"] != "none" or row["class"] not in ("other", "trap")
        if read is not None and read not in accepted(row) and (asked_for or not own_word):
            wrong[row["name"]] = read
    assert wrong == {}


def test_facts_of_graded_names_are_read() -> None:
    wrong = {}
    for row in rows(*GRADED):
        read = read_name(row["name"], ALIASES)
        if read is not None and (facts := wrong_facts(row, read)):
            wrong[row["name"]] = facts
    assert wrong == {}
