"""Easyconfigs are read as data: nothing in them runs, and every other expression has a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.documents.source import source_of
from envbuilder.errors import DocumentError
from envbuilder.formats.easyconfig import read

HEAD = "name = 'Own'\nversion = '1.0'\ntoolchain = {'name': 'GCC', 'version': '2023a'}\n"


def software(text: str) -> tuple[dict[str, str], list[int]]:
    """Return the software with its bounds, and the lines of the notes."""
    asked, notes = read(source_of((HEAD + text).encode(), "own.eb"))
    return dict(asked.software), [int(note.split(":")[1]) for note in notes]


@pytest.mark.parametrize(
    ("text", "found", "lines"),
    [
        ("dependencies = [('A', '1')]\n", {"A": "==1"}, []),
        ("dependencies = [('A', '1')] + [('B', '2')]\n", {"A": "==1", "B": "==2"}, []),
        (
            "dependencies = [('A', '1')]\ndependencies += [('B', '2')]\n",
            {"A": "==1", "B": "==2"},
            [],
        ),
        ("local_v = '2'\ndependencies = [('A', local_v + '.1')]\n", {"A": "==2.1"}, []),
        ("dependencies = [('A', '%s.%s' % ('1', '2'))]\n", {"A": "==1.2"}, []),
        ("dependencies = [('A', version)]\n", {"A": "==1.0"}, []),
        ("dependencies = [('A', '%(pyver)s'), ('B', '2')]\n", {"B": "==2"}, [4]),
        ("dependencies = [(name, x()), ('B', '2')]\n", {"B": "==2"}, [4]),
        ("dependencies = list(range(3))\n", {}, [4]),
        ("for i in (1, 2):\n    dependencies = []\n", {}, [4]),
        ("exts_list = [('torch', '2'), ('own', version)]\n", {}, [4]),
        # It would fill the memory.
        ("dependencies = [('A', '%999999999s' % 'x')]\n", {}, [4]),
    ],
)
def test_dependencies(text: str, found: dict[str, str], lines: list[int]) -> None:
    assert software(text) == ({"Own": "==1.0", **found}, lines)


def test_nothing_runs(tmp_path: Path) -> None:
    file = tmp_path / "written"
    code = f"open({str(file)!r}, 'w')"
    software(f"{code}\ndescription = {code}\ndependencies = [('A', {code})]\n")
    assert not file.exists()


@pytest.mark.parametrize("text", ["name = \n", "name = 'x'\nversion = f()\n", "(" * 9000])
def test_what_is_no_easyconfig_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(DocumentError) as raised:
        read(source_of(text.encode(), "own.eb"))
    assert raised.value.problems[0].place is not None
