"""The tree of ``envbuild module render``, loaded by real Lmod and by real Environment Modules.

The published environment is the one that other tests read, so that nothing is built here.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from integration_tools import COMMAND, Done, Envbuild
from module_tools import in_lmod, modulecmd, new_shell, snapshot

from envbuilder import __version__

pytestmark = pytest.mark.integration

In = Callable[[list[str], Path], Done]


def in_tcl(lines: list[str], folder: Path) -> Done:
    start = f"eval \"$(tclsh '{modulecmd()}' bash autoinit)\""
    return new_shell("bash", [start, *lines], folder)


SYSTEMS: dict[str, In] = {
    "lua": lambda lines, folder: in_lmod("bash", lines, folder),
    "tcl": in_tcl,
}


@pytest.fixture(scope="module")
def base(envbuild: Envbuild, built_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a base whose root holds allreduce/1, with an envbuild and the tree of modules."""
    base = tmp_path_factory.mktemp("base")
    (base / "local").mkdir()
    (base / "local" / platform.machine()).symlink_to(built_root)
    program = base / "local" / "envbuild" / __version__ / "bin" / "envbuild"
    program.parent.mkdir(parents=True)
    words = " ".join(f"'{word}'" for word in COMMAND)
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    recipes = ("allreduce", "horovod-gloo")
    where = ("--site", "local", "--base", base, "--output", base / "tree")
    done = envbuild("module", "render", *recipes, *where)
    assert done.code == 0, done.text
    return base


@pytest.mark.parametrize("system", SYSTEMS)
def test_envbuild_and_what_it_published_are_loaded(
    system: str, base: Path, built_root: Path, tmp_path: Path
) -> None:
    lines = [
        f"module use '{base}/tree/{system}'",
        "env -0 >before",
        "module load envbuild",
        "envbuild --version",
        'echo "site $ENVBUILD_SITE"',
        "module load allreduce",
        'echo "prefix $VIRTUAL_ENV"',
        "python -c 'import distributed_dl_training.numpy as hvd; print(hvd.__name__)'",
        "module unload allreduce",
        "module unload envbuild",
        "env -0 >after",
    ]
    done = SYSTEMS[system](lines, tmp_path)
    assert len(done.out.splitlines()) == 4, done.text
    version, site, prefix, imported = done.out.splitlines()
    assert (version, site) == (f"envbuild {__version__}", "site local"), done.text
    assert Path(prefix.removeprefix("prefix ")).resolve().parent == built_root / "allreduce"
    assert imported == "distributed_dl_training.numpy"
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_published_one_is_in_the_tree_itself(system: str, base: Path, tmp_path: Path) -> None:
    """With its number and proof, as its own module has them."""
    lines = [f"module use '{base}/tree/{system}'", "module load allreduce/1", "module list"]
    done = SYSTEMS[system]([*lines, "module help allreduce/1"], tmp_path)
    assert "allreduce/1" in done.text
    assert "Proved: several ranks" in done.text or "several ranks" in done.text, done.text
    assert "nothing yet" not in done.text


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_not_built_says_so_and_changes_nothing(
    system: str, base: Path, tmp_path: Path
) -> None:
    root = base / "local" / platform.machine()
    lines = [f"module use '{base}/tree/{system}'", "env -0 >before"]
    lines += [
        "module load horovod-gloo && echo loaded",
        "env -0 >after",
        "module help horovod-gloo",
    ]
    done = SYSTEMS[system](lines, tmp_path)
    said = " ".join(done.text.split())
    assert "horovod-gloo: planned, but not built; to build it: envbuild create horovod-gloo" in said
    assert f"--root {root}" in said
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")
    # Its help can be read before: that is what a tree of plans is for.
    assert "Components:" in said


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_the_program_envbuild_is_not_loaded(
    system: str, envbuild: Envbuild, tmp_path: Path
) -> None:
    where = ("--site", "local", "--base", tmp_path / "none", "--output", tmp_path / "tree")
    assert envbuild("module", "render", "allreduce", *where).code == 0
    lines = [f"module use '{tmp_path}/tree/{system}'", "env -0 >before"]
    lines += ["module load envbuild && echo loaded", "env -0 >after"]
    done = SYSTEMS[system](lines, tmp_path)
    assert f"envbuild: not installed in {tmp_path}/none/local" in " ".join(done.text.split())
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")
