from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.library import catalogue, find, search_path
from envbuilder.errors import EnvbuildError, Problem, UsageError
from envbuilder.text import nearest, shown


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in ((first, ["horovod"]), (second, ["horovod", "allreduce", "sites/taurus"])):
        for name in names:
            path = folder / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("schema: 1\n")
    (second / "notes.txt").touch()
    (second / ".hidden.yaml").touch()
    (second / "Not A Name.yaml").touch()
    return first, second


def refusal(name: str, folders: tuple[Path, ...]) -> Problem:
    with pytest.raises(UsageError) as caught:
        find("recipe", name, folders)
    (problem,) = caught.value.problems
    return problem


def test_first_folder_wins(folders: tuple[Path, Path]) -> None:
    first, second = folders
    assert find("recipe", "horovod", folders) == first / "horovod.yaml"
    assert find("recipe", "allreduce", folders) == second / "allreduce.yaml"
    assert find("site", "taurus", folders) == second / "sites" / "taurus.yaml"


def test_catalogue(folders: tuple[Path, Path]) -> None:
    first, second = folders
    assert catalogue("recipe", folders) == [
        ("allreduce", second / "allreduce.yaml"),
        ("horovod", first / "horovod.yaml"),
    ]
    assert catalogue("site", folders) == [("taurus", second / "sites" / "taurus.yaml")]


def test_paths(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = folders
    assert find("recipe", str(second / "allreduce.yaml"), ()) == second / "allreduce.yaml"
    monkeypatch.chdir(first)
    assert find("recipe", "horovod.yaml", ()) == Path("horovod.yaml")
    assert find("recipe", "../second/allreduce.yaml", ()) == Path("../second/allreduce.yaml")


def test_unknown_name(folders: tuple[Path, Path]) -> None:
    first, second = folders
    problem = refusal("allreduc", folders)
    assert problem.id == "document.not-found"
    assert all(each in problem.message for each in ("'allreduc'", "'allreduce'"))
    available, searched = problem.hints
    assert available.endswith(": allreduce, horovod")
    assert f"{first}, {second}" in searched


def test_unknown_site(folders: tuple[Path, Path]) -> None:
    with pytest.raises(UsageError, match="'taurus'") as caught:
        find("site", "tarus", folders)
    assert caught.value.id == "document.not-found"


def test_nothing_there(tmp_path: Path) -> None:
    problem = refusal("x", (tmp_path,))
    assert (problem.id, problem.message) == ("document.not-found", "unknown recipe 'x'")
    assert problem.hints[0].endswith(": none")


def test_unknown_path(folders: tuple[Path, Path]) -> None:
    _, second = folders
    problem = refusal(f"{second}/allreduse.yaml", ())
    assert problem.id == "document.not-found"
    assert all(each in problem.message for each in ("'allreduse.yaml'", "'allreduce.yaml'"))
    assert problem.hints == (f"searched: {second}",)


@pytest.mark.parametrize("target", ["gone.yaml", "link.yaml"])
def test_a_link_that_leads_nowhere(target: str, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(target)
    problem = refusal(str(link), ())
    assert (problem.id, problem.hints) == ("document.dangling-link", ())
    assert problem.message.startswith(f"'{shown(str(link))}' ")
    assert problem.message.endswith(target)


@pytest.mark.parametrize("name", ["../allreduce", "../../etc/passwd", "/etc/passwd", "./allreduce"])
def test_what_is_neither_name_nor_document(name: str, folders: tuple[Path, Path]) -> None:
    problem = refusal(name, folders)
    assert problem.id == "document.invalid-file-name"
    assert f"'{name}'" in problem.message


@pytest.mark.parametrize(
    "name", ["", ".", "..", "-rf", "a\nb", "a\0b", "\x1b[31m", "x" * 10_000, "ALLREDUCE!", "*", "~"]
)
def test_odd_names(name: str, folders: tuple[Path, Path]) -> None:
    _, message, _, hints = problem = refusal(name, folders)
    assert problem.id == "document.not-found"
    assert all(text.isprintable() and len(text) < 1000 for text in (message, *hints))


@pytest.mark.parametrize("path", ["a\0b/c.yaml", "/" + "x" * 5000 + ".yaml", "/nowhere/x\n.yaml"])
def test_odd_paths(path: str) -> None:
    _, message, _, hints = refusal(path, ())
    assert all(text.isprintable() and len(text) < 1000 for text in (message, *hints))


def test_search_path(tmp_path: Path) -> None:
    one, two, gone = tmp_path / "one", tmp_path / "two", tmp_path / "gone"
    one.mkdir()
    two.mkdir()
    environ = {"ENVBUILD_PATH": f"{two}::{gone}:{one}"}
    assert search_path({}, ()) == (data.RECIPES,)
    assert search_path(environ, ()) == (two, one, data.RECIPES)
    assert search_path(environ, (one,)) == (one, two, data.RECIPES)


def test_folder_of_the_command_line_must_exist(tmp_path: Path) -> None:
    with pytest.raises(EnvbuildError) as caught:
        search_path({}, (tmp_path / "gone",))
    assert caught.value.id == "recipes.folder-missing"


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("runtim", "runtime"),
        ("Runtime", "runtime"),
        ("max_bytes", "max-bytes"),
        ("max bytes", "max-bytes"),
        ("zzz", None),
        ("", None),
        ("runtime" * 100, None),
    ],
)
def test_nearest(word: str, expected: str | None) -> None:
    assert nearest(word, ["runtime", "max-bytes", "smoke"]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m\u202e\ud800", "\\x1b[31m\\u202e\\ud800"),
        ("x" * 61, "x" * 60 + "..."),
        ("x" * 60, "x" * 60),
    ],
)
def test_shown(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_finding_needs_no_heavy_library() -> None:
    program = (
        "import sys; from envbuilder.documents.library import catalogue, find, search_path;"
        "print(sorted({'pydantic', 'yaml', 'jinja2', 'packaging', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=data.RECIPES.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
