"""Commands of the documents that need no network, as they are written there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
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


def test_commands_over_a_root_name_it() -> None:
    text = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    block = text.partition("support engineer\n")[2].partition("\nA site file")[0]
    for verb in ("list", "info", "smoke", "launch", "rollback", "diff", "catalogue"):
        [line] = re.findall(rf"^    envbuild {verb} .*", block, re.MULTILINE)
        assert "--root DIR" in line
