"""``validate --watch-list``: what changed since last time, and nothing where nothing did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import zoo
from typer.testing import CliRunner, Result
from zoo import Made

from envbuilder.cli import app


@pytest.fixture
def watched(first: Made, tmp_path: Path) -> tuple[Path, Made, Made]:
    """Return a list of two environments, one by its path and one beside the list."""
    folder = tmp_path / "lists"
    one, two = zoo.copy(first, tmp_path / "one"), zoo.copy(first, folder / "two")
    file = folder / "watched.txt"
    file.write_text(f"# of the group\n\n{one.prefix}\n  two\n{one.prefix}\n")
    return file, one, two


def watch(file: Path, *words: str) -> Result:
    words = ("validate", "--watch-list", str(file), *words)
    env = {
        "COLUMNS": "80",
        "HOME": str(file.parent.parent),
        "PYTHONPATH": "",
        "LD_LIBRARY_PATH": "",
    }
    return CliRunner().invoke(app, list(words), env=env)


def test_what_changed_is_told_once(watched: tuple[Path, Made, Made]) -> None:
    file, one, _ = watched
    begun = watch(file)
    assert begun.exit_code == 0, begun.output
    assert "two (first looked at): nothing is wrong" in begun.stdout
    # cron mails what is printed.
    assert watch(file).output == ""
    loader = one.packages / "yaml" / "loader.py"
    kept = loader.read_bytes()
    loader.unlink()
    told = watch(file)
    assert told.exit_code == 4
    assert "  new  error package.gone: PyYAML" in told.stdout
    assert "1 environment as last time" in told.stdout
    assert "two" not in told.stdout
    still = watch(file)
    assert (still.exit_code, still.output) == (0, "")
    loader.write_bytes(kept)
    mended = watch(file)
    assert mended.exit_code == 0
    assert "  gone error package.gone: PyYAML" in mended.stdout
    assert watch(file).output == ""


def test_one_that_cannot_be_looked_at(watched: tuple[Path, Made, Made]) -> None:
    """What was found of it is kept: it is neither mended nor new when it comes back."""
    file, one, _ = watched
    (one.packages / "yaml" / "loader.py").unlink()
    assert watch(file).exit_code == 4
    one.prefix.rename(one.prefix.with_name("away"))
    gone = watch(file)
    assert gone.exit_code == 4
    assert "cannot be looked at: this is no environment of Python" in " ".join(gone.stdout.split())
    assert (watch(file).exit_code, watch(file).output) == (0, "")
    one.prefix.with_name("away").rename(one.prefix)
    back = watch(file, "--json")
    (said,) = json.loads(back.stdout)["changed"]
    assert (said["readable"], said["new"], said["gone"]) == (True, [], [])


def test_what_is_accepted_is_no_news(watched: tuple[Path, Made, Made]) -> None:
    file, one, _ = watched
    watch(file)
    (one.packages / "yaml" / "loader.py").unlink()
    baseline = file.with_name("baseline.yaml")
    baseline.write_text("schema: 1\naccepted: [{id: package.gone, reason: it is known}]\n")
    assert watch(file, "--baseline", str(baseline)).output == ""


def test_nothing_but_the_state_is_written(watched: tuple[Path, Made, Made]) -> None:
    file, _, two = watched
    watch(file)
    shutil.rmtree(two.prefix)
    assert sorted(each.name for each in file.parent.iterdir()) == [
        "watched.txt",
        "watched.txt.last",
    ]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("# none\n", (), "names 0 environments"),
        ("a\n", ("b",), "--watch-list names the environments"),
        ("a\n", ("--fix",), "--as and --fix are of one"),
    ],
)
def test_usage(text: str, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text(text)
    done = watch(file, *words)
    assert (done.exit_code, said in done.stderr) == (2, True), done.output


def test_a_state_that_is_damaged(watched: tuple[Path, Made, Made]) -> None:
    file, _, _ = watched
    file.with_name("watched.txt.last").write_text('{"schema": 1, "environments": []}')
    done = watch(file)
    assert done.exit_code == 2
    assert "watched.txt.last:1" in done.stderr
