"""``envbuild bundle install``: which bundle it takes, what it runs, how that ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app


def bundle(folder: Path, script: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "install.sh").write_text(script, encoding="utf-8")
    return folder


def install(folder: Path, root: Path) -> Result:
    words = ["bundle", "install", str(folder), "--root", str(root)]
    return CliRunner().invoke(app, words, env={"COLUMNS": "80"})


@pytest.mark.parametrize("given", ["x", "."])
def test_the_installer_is_run_with_the_root(given: str, tmp_path: Path) -> None:
    bundle(tmp_path / "packed" / "x", 'echo "first"; echo "installed in $1"\n')
    (tmp_path / "packed" / "x.tar.gz").touch()
    done = install(tmp_path / "packed" / given, tmp_path / "root")
    assert (done.exit_code, done.stdout) == (0, f"installed in {tmp_path}/root\n")


@pytest.mark.parametrize(("code", "ends"), [(2, 2), (5, 5), (6, 6), (1, 5), (70, 5)])
def test_it_ends_as_the_installer_does(code: int, ends: int, tmp_path: Path) -> None:
    folder = bundle(tmp_path / "x", f"echo 'why it is so'; exit {code}\n")
    done = install(folder, tmp_path / "root")
    assert done.exit_code == ends
    assert f"{folder}/install.sh" in done.stderr
    assert f"exit code {code}\n" in done.stderr
    assert "  | why it is so\n" in done.stderr


def test_no_bundle_and_several(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    done = install(tmp_path / "none", tmp_path / "root")
    assert done.exit_code == 2
    assert f"{tmp_path}/none" in done.stderr
    for name in ("a", "b"):
        bundle(tmp_path / "two" / name, "exit 1\n")
    done = install(tmp_path / "two", tmp_path / "root")
    assert (done.exit_code, "there is 2 bundles" in done.stderr) == (2, False)
    assert "contains 2 unpacked bundles" in done.stderr
