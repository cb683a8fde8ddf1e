"""Every rendered file, read by the tools of its language."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from render_cases import CASES, Case
from render_tools import lmod_folder, need

pytestmark = pytest.mark.integration


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    case: Case = request.param
    for name, text in case.files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_bash_parses_every_script(folder: Path) -> None:
    scripts = sorted(folder.glob("*.sh"))
    assert [path.name for path in scripts] == ["build.sh", "environment.sh", "shell.sh", "smoke.sh"]
    for script in scripts:
        done = subprocess.run([need("bash"), "-n", script], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_shellcheck_finds_nothing(folder: Path, request: pytest.FixtureRequest) -> None:
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or need(
        "shellcheck"
    )
    case: Case = request.node.callspec.params["folder"]
    # Hostile text in quotes draws notes ("expressions do not expand in single quotes").
    severity = "warning" if case.name == "hostile" else "style"
    scripts = sorted(folder.glob("*.sh"))
    done = subprocess.run(
        [program, f"--severity={severity}", *scripts], capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("", 0)


def test_luac_parses_the_modulefiles(folder: Path) -> None:
    for name in ("modulefile.lua", ".modulerc.lua"):
        done = subprocess.run(
            [need("luac", "luac5.3", "luac5.1"), "-p", folder / name],
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_lmod_knows_every_function_of_the_modulefile(folder: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree" / "env"
    tree.mkdir(parents=True)
    shutil.copy(folder / "modulefile.lua", tree / "3.lua")
    program = lmod_folder() / "libexec" / "check_module_tree_syntax"
    done = subprocess.run([program, tree.parent], capture_output=True, text=True)
    assert done.returncode == 0
    assert "No errors found" in done.stdout + done.stderr


def test_tclsh_parses_the_modulefiles(folder: Path) -> None:
    for name in ("modulefile.tcl", ".version"):
        text = (folder / name).read_text(encoding="utf-8")
        script = f"puts [info complete [read [open {{{folder / name}}}]]]"
        done = subprocess.run([need("tclsh")], input=script, capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == ("1", "")
        assert text.startswith("#%Module1.0\n")
