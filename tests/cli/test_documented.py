"""Commands of the documents that need no network, as they are written there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click import Command
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from envbuilder.cli import EXIT_CODES, app
from envbuilder.errors import ExitCode
from tests.layers import CHECKOUT


def first_command(document: str, heading: str) -> list[str]:
    """Return the words behind ``envbuild`` of the first command below a heading."""
    text = (CHECKOUT / document).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    match = re.search(r"^    envbuild ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert match, f"{document} has no command below {heading}"
    return shlex.split(match[1].replace("\\\n", " "))


@pytest.mark.parametrize(
    ("document", "heading"),
    [
        ("docs/launching.md", "Job scripts"),
        ("README.md", "A stack that works, or why there is none"),
    ],
)
def test_a_documented_command_runs(
    document: str, heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, first_command(document, heading))
    assert answer.exit_code == 0, answer.output


def _commands(group: TyperGroup, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Command]]:
    for name, each in group.commands.items():
        if isinstance(each, TyperGroup):
            yield from _commands(each, (*words, name))
        else:
            yield " ".join((*words, name)), each


def test_the_readme_names_the_commands_without_json() -> None:
    line = get_command(app)
    assert isinstance(line, TyperGroup)
    without = {
        name
        for name, each in _commands(line)
        if not each.hidden and not any("--json" in option.opts for option in each.params)
    }
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    named = re.search(r"own file format \((.*?)\)", text)
    assert named
    assert set(re.findall("`(.*?)`", named[1])) == without


def test_every_exit_code_is_told_and_every_one_that_is_told_there_is() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    listed = re.search(r"- exit codes: ((?:.|\n  )*)", text)
    assert listed
    for told in (listed[1], EXIT_CODES):
        assert {int(each) for each in re.findall(r"\d+", told)} == {int(each) for each in ExitCode}
    sources = "".join(path.read_text() for path in (CHECKOUT / "envbuilder").rglob("*.py"))
    assert [each.name for each in ExitCode if f"ExitCode.{each.name}" not in sources] == []


def test_commands_over_a_root_name_it() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    block = text.partition("support engineer\n")[2].partition("\nA site file")[0]
    for verb in ("list", "info", "smoke", "launch", "rollback", "diff", "catalogue"):
        [line] = re.findall(rf"^    envbuild {verb} .*", block, re.MULTILINE)
        assert "--root DIR" in line
