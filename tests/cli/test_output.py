"""Where --output leads: said before the work, in the name that the user gave."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.errors import BuildError, os_error
from envbuilder.files import clean_on_failure, write_atomically
from envbuilder.reporter import Report
from tests.small_disk import fill, small_disk
from tests.verbs import problem_ids

__all__ = ["small_disk"]

# Each verb that writes one file. None of them may come to its work: some would use the network.
VERBS = [
    "lock allreduce",
    "render allreduce --as lua",
    "ci render --site summit --base /sw",
    "sites detect",
    "sites snapshot local",
    "recipes from /nowhere",
    "recipes import /nowhere",
    "report",
]


def run(*words: str) -> Result:
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_is_not_there_is_said_before_the_work(verb: str, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "our.yaml"
    json_option = () if verb.startswith("ci render") else ("--json",)
    answer = run(*verb.split(), "--output", str(file), *json_option)
    assert answer.exit_code == 2, answer.output
    assert f"'{file.parent}'" in answer.stderr
    if json_option:
        assert problem_ids(answer.stdout) == ["output.folder-missing"]
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ""):
        answer = run("lock", "allreduce", "--output", f"{tmp_path}/{name}", "--json")
        assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["output.not-a-file"])
        assert f"'{tmp_path}/{name}'" in answer.stderr.replace(f"'{tmp_path}'", f"'{tmp_path}/'")
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_one_may_not_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    for words in (("lock", "allreduce"), ("render", "allreduce"), ("module", "render")):
        answer = run(*words, "--output", str(tmp_path / "file"), "--json")
        assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["output.not-writable"])
        assert f"'{tmp_path}'" in answer.stderr


def test_a_folder_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("ours")
    answer = run("render", "allreduce", "--output", str(tmp_path / "file" / "below"), "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["output.not-a-folder"])
    assert f"'{tmp_path}/file'" in answer.stderr


def test_a_failed_write_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "file", tmp_path):
        with pytest.raises(OSError) as caught:  # noqa: PT011 - compared below
            write_atomically(path, "text")
        assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    assert list(tmp_path.iterdir()) == []


def test_the_hint_is_of_roots_and_of_outputs() -> None:
    (problem,) = os_error(PermissionError(errno.EACCES, "Permission denied", "/x")).problems
    assert (problem.id, problem.message) == ("file.no-permission", "Permission denied: /x")
    (hint,) = problem.hints
    assert "--root" in hint
    assert "--output" in hint


def test_standard_output_that_takes_nothing_is_no_matter_of_a_root() -> None:
    with (
        Path("/dev/full").open("w", buffering=1) as full,
        pytest.raises(BuildError) as caught,
    ):
        Report(full, full).raw("text\n" * 10_000)
    assert (caught.value.id, caught.value.problems[0].hints) == ("output.write-failed", ())


def test_a_lock_that_is_written_is_printed_as_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envbuilder.workflow import lock

    class Made:
        def text(self) -> str:
            return '{"plan": {}}\n'

    monkeypatch.setattr(lock, "new_lock", lambda *_: Made())
    file = tmp_path / "our.lock.json"
    words = ("lock", "allreduce", "--output", str(file))
    assert run(*words).stdout == ""
    assert json.loads(run(*words, "--json").stdout) == json.loads(file.read_text())


ON_A_FULL_DISK = (
    "recipes import SOURCE --output FILE",
    "recipes from ENVIRONMENT --name new --output FILE",
    "report --output FILE",
    "render allreduce --site local --as lua --output FILE",
    "render allreduce --site local --as all --output DIR",
    "sites detect --output FILE",
)


@pytest.mark.parametrize("verb", ON_A_FULL_DISK, ids=lambda verb: verb.partition(" --output")[0])
def test_a_full_disk_leaves_nothing_that_stops_a_later_run(
    verb: str,
    small_disk: Path,
    tmp_path: Path,
) -> None:
    source = tmp_path / "environment.yml"
    source.write_text("name: x\nchannels: [conda-forge]\ndependencies: [python=3.12, xz]\n")
    filler = fill(small_disk)
    paths = {
        "SOURCE": str(source),
        "ENVIRONMENT": sys.prefix,
        "FILE": str(small_disk / "new.yaml"),
        "DIR": str(small_disk / "new" / "folder"),
    }
    words = [paths.get(word, word) for word in verb.split()]
    answer = run(*words, "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (5, ["file.disk-full"])
    assert [*small_disk.iterdir()] == [filler]
    filler.unlink()
    assert run(*words).exit_code == 0


@pytest.mark.parametrize(("already", "left"), [(["file"], ["file", "new"]), ([], [])])
def test_an_output_folder_that_holds_files_is_not_emptied(
    already: list[str], left: list[str], tmp_path: Path
) -> None:
    for name in already:
        (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError), clean_on_failure(tmp_path):
        make_one_of_two(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def make_one_of_two(folder: Path) -> None:
    (folder / "new").touch()
    (folder / "missing" / "new").touch()


def test_what_a_terminal_obeys_is_escaped(tmp_path: Path) -> None:
    """Names in a bundle are somebody else's; ``bundle verify`` prints them."""
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  a\x1b[2Jb\n", encoding="utf-8")
    (tmp_path / "new\x1b]0;title\x07").touch()
    answer = run("bundle", "verify", str(tmp_path))
    assert answer.exit_code == 8
    assert "\x1b" not in answer.output
    assert "\x07" not in answer.output
    assert r"a\x1b[2Jb" in answer.output
