"""Files that were edited, cut or mixed up: read, or refused with a place; never a traceback."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuilder.documents.source import Source, source_of
from envbuilder.errors import DocumentError
from envbuilder.formats import conda_lock, environment_yml, explicit, pixi_lock
from envbuilder.formats.packages import PackageList
from tests.formats.test_environment_yml import TEXT as ENVIRONMENT
from tests.formats.test_package_lists import WHOLE

DATA = Path(__file__).parent / "data"
READERS: dict[str, tuple[str, Callable[[Source], tuple[object, object]]]] = {
    "explicit": (explicit.write(WHOLE), explicit.read),
    "conda-lock": (
        (DATA / "conda-lock.yml").read_text(),
        lambda source: conda_lock.read(source, "linux-64"),
    ),
    "pixi": (
        (DATA / "pixi.lock").read_text(),
        lambda source: pixi_lock.read(source, "linux-64", "dev"),
    ),
    "environment.yml": (ENVIRONMENT, environment_yml.read),
}
# What takes the place of a value, a key or a line.
OTHERS = [
    "",
    "[]",
    "{}",
    "[a, {b: c}]",
    "null",
    "1.10",
    "'",
    "x: y",
    "- x",
    "\t",
    "%",
    "://",
    "a-b",
]


def damaged(text: str, draw: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(draw.randint(1, 3)):
        number = draw.randrange(len(lines))
        line = lines[number]
        what = draw.randrange(6)
        if what == 0:
            del lines[number]
        elif what == 1:
            lines.insert(number, draw.choice(lines))
        elif what == 2:
            lines[number] = line.partition(":")[0] + ": " + draw.choice(OTHERS)
        elif what == 3:
            indent = line[: len(line) - len(line.lstrip())]
            lines[number] = indent + draw.choice(OTHERS)
        elif what == 4:
            cut = draw.randrange(len(line) + 1)
            lines[number] = line[:cut] + draw.choice(OTHERS) + line[cut:]
        else:
            del lines[number:]
        lines = lines or [""]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("form", READERS)
def test_a_damaged_file_is_read_or_refused(form: str) -> None:
    text, read = READERS[form]
    refused = 0
    for seed in range(100):
        changed = damaged(text, random.Random(seed))
        try:
            found, _ = read(source_of(changed.encode(), "file"))
            if isinstance(found, PackageList):
                pixi_lock.write(found)
                conda_lock.write(found)
        except DocumentError as error:
            refused += 1
            for each in error.problems:
                assert each.place is not None, changed
                assert each.place.line > 0, changed
                assert each.message, changed
    assert 10 < refused < 100
