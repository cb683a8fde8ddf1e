"""pyenv's shims: the program that each stands for, found without starting the shim."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from envbuilder.machine.detection import snapshot
from envbuilder.machine.host import LocalMachine
from envbuilder.machine.interpreters import NotActiveError, behind_shim
from envbuilder.model.site import Site

from .conftest import Machine

SITE = Site(schema_=1, name="here", summary="A site of the tests", arch=("x86_64",))

# What pyenv-rehash writes, with a mark that it was started.
SHIM = """\
#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${{0##*/}}"

export PYENV_ROOT="{root}"
touch "{root}/started"
exec "{root}/libexec/pyenv" exec "$program" "$@"
"""


def install(machine: Machine, *versions: str, chosen: str | None = None) -> Path:
    """Put a pyenv with these versions in front; *chosen*: the text of its version file."""
    root = machine.folder / "pyenv"
    names = {"python", "python3"}
    for version in versions:
        series = ".".join(version.split(".")[:2])
        for name in ("python", "python3", f"python{series}"):
            program = root / "versions" / version / "bin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(f"#!/bin/sh\necho {version}\n")
            program.chmod(0o755)
            names.add(name)
    (root / "shims").mkdir()
    for name in names:
        shim = root / "shims" / name
        shim.write_text(SHIM.format(root=root))
        shim.chmod(0o755)
    if chosen is not None:
        (root / "version").write_text(chosen)
    return root


def found(machine: Machine, name: str, cwd: Path | None = None, **environ: str) -> str | None:
    """Return what a shim stands for, below the folder of the test."""
    root = machine.folder / "pyenv"
    path = f"{root}/shims:{machine.bin}"
    host = LocalMachine({**machine.environ, "PATH": path, **environ}, cwd or machine.home)
    program = behind_shim(f"{root}/shims/{name}", host)
    return program and program.removeprefix(f"{root}/versions/")


def test_the_users_version(machine: Machine) -> None:
    install(machine, "3.9.18", "3.11.7", chosen="3.9.18\n")
    assert found(machine, "python3") == "3.9.18/bin/python3"


@pytest.mark.parametrize("name", ["python", "python3", "python3.11"])
def test_the_variable_before_files(machine: Machine, name: str) -> None:
    install(machine, "3.9.18", "3.11.7", chosen="3.9.18\n")
    assert found(machine, name, PYENV_VERSION="3.11.7") == f"3.11.7/bin/{name}"


def test_the_nearest_file_before_the_users(machine: Machine) -> None:
    install(machine, "3.9.18", "3.11.7", chosen="3.9.18\n")
    inner = machine.folder / "project" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / ".python-version").write_text("# ours\n\n3.11.7 and words\n")
    assert found(machine, "python3", cwd=inner) == "3.11.7/bin/python3"


def test_the_first_of_several_versions_that_has_it(machine: Machine) -> None:
    install(machine, "3.9.18", "3.11.7", chosen="3.9.18\n3.11.7\n")
    assert found(machine, "python3") == "3.9.18/bin/python3"
    assert found(machine, "python3.11") == "3.11.7/bin/python3.11"


@pytest.mark.parametrize("chosen", ["3", "3.1", "python-3.10.9"])
def test_the_newest_that_begins_so(machine: Machine, chosen: str) -> None:
    # 3.1 means no 3.10: pyenv-latest compares whole numbers.
    install(machine, "3.1.5", "3.10.2", "3.10.9", chosen=chosen)
    expected = {"3": "3.10.9", "3.1": "3.1.5", "python-3.10.9": "3.10.9"}[chosen]
    assert found(machine, "python3") == f"{expected}/bin/python3"


def test_what_is_left_to_the_system(machine: Machine) -> None:
    install(machine, "3.9.18", "3.11.7", chosen="system\n3.11.7\n")
    machine.tool("python3", "exit 0")
    assert found(machine, "python3") is None
    # In none of the chosen versions: the system's is taken behind them.
    assert found(machine, "python3", PYENV_VERSION="3.8.1") is None


def test_a_version_that_is_not_chosen(machine: Machine) -> None:
    install(machine, "3.9.18", "3.11.7", "3.11.10", chosen="3.9.18")
    with pytest.raises(NotActiveError) as caught:
        found(machine, "python3.11")
    assert str(caught.value) == "3.11.7 3.11.10"


@pytest.mark.parametrize("version", ["..", "../shims", "/usr"])
def test_a_version_outside_of_pyenv_is_none(machine: Machine, version: str) -> None:
    install(machine, "3.9.18", chosen=version)
    with pytest.raises(NotActiveError):
        found(machine, "python3")


def test_other_scripts_are_what_they_are(machine: Machine) -> None:
    shim = machine.tool("python3", "exec somewhere/else", folder="shims")
    assert behind_shim(str(shim), LocalMachine(machine.environ)) == str(shim)


@pytest.mark.integration
def test_no_shim_is_started(machine: Machine, base_python: str) -> None:
    root = install(machine, "3.9.18", "3.11.7", chosen="3.11.7")
    for name in ("python", "python3", "python3.11"):
        program = root / "versions" / "3.11.7" / "bin" / name
        program.unlink()
        program.symlink_to(base_python)
    detected = snapshot(SITE, {**machine.environ, "PATH": f"{root}/shims"})
    assert [each.path for each in detected.snapshot.interpreters] == [base_python]
    (note,) = detected.notes
    assert note.startswith(f"skipped {root}/shims/python3.9: ")
    assert all(each in note for each in ("3.9.18", "PYENV_VERSION"))
    assert not (root / "started").exists()


@pytest.mark.integration
def test_it_agrees_with_pyenv_itself(tmp_path: Path) -> None:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    program, versions = root / "libexec" / "pyenv", sorted((root / "versions").glob("3.*"))
    if not program.is_file() or not versions or shutil.which("bash") is None:
        pytest.skip("needs pyenv with a Python 3")
    (tmp_path / ".python-version").write_text(f"{versions[-1].name}\n{versions[0].name}\n")
    environ = {"PATH": f"{root}/shims:/usr/bin:/bin", "PYENV_ROOT": str(root), "HOME": "/"}
    host = LocalMachine(environ, tmp_path)
    for shim in (root / "shims" / "python3", root / "shims" / f"python{_series(versions[0])}"):
        done = subprocess.run(
            [program, "which", shim.name],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert behind_shim(str(shim), host) == done.stdout.strip()


def _series(version: Path) -> str:
    return ".".join(version.name.split(".")[:2])
