"""A published environment as its users meet it: a new shell, the module, ranks that agree."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from integration_tools import Envbuild
from module_tools import (
    MY_ALLREDUCE,
    SHELLS,
    SUMS,
    in_lmod,
    machine_openmpi,
    path_without_mpi,
    snapshot,
)

Machine = Callable[[str], dict[str, str]]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return the variables of a machine whose own Open MPI is hidden, or present and in front."""
    hidden = path_without_mpi(tmp_path_factory.mktemp("hidden") / "bin")
    apart = tmp_path_factory.mktemp("present") / "openmpi"

    def variables(way: str) -> dict[str, str]:
        if way == "hidden":
            return {"PATH": hidden}
        installed = apart if apart.exists() else machine_openmpi().link(apart)
        path = dict.fromkeys([str(installed / "bin"), *os.environ["PATH"].split(":")])
        return {"PATH": ":".join(path), "LD_LIBRARY_PATH": str(installed / "lib")}

    return variables


@pytest.mark.parametrize("way", ["hidden", "present"])
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.sample(2)
def test_in_a_new_shell_the_ranks_agree_and_unloading_gives_everything_back(
    shell: str, way: str, built_root: Path, machine: Machine, tmp_path: Path
) -> None:
    env = machine(way)
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    lines = [f"module use '{built_root}/modulefiles'", "env -0 >before"]
    lines += ["module load allreduce", "env -0 >loaded", "mpiexec -n 2 python my_allreduce.py"]
    lines += ["module unload allreduce", "env -0 >after"]
    done = in_lmod(shell, lines, tmp_path, env)
    before, loaded, after = (snapshot(tmp_path / name) for name in ("before", "loaded", "after"))
    prefix = loaded["VIRTUAL_ENV"]
    assert Path(prefix).parent == built_root / "allreduce"
    said = sorted(done.out.splitlines())
    assert [line.split(": ")[0] for line in said] == ["rank 0 of 2", "rank 1 of 2"], done.text
    for line in said:
        assert f": {SUMS} {prefix}/" in line
        assert line.endswith(f" ['{prefix}/lib/libmpi.so.12']")
    assert done.err == ""
    changed = {name: value for name, value in loaded.items() if before.get(name) != value}
    assert changed == {
        "VIRTUAL_ENV": prefix,
        "PYTHONNOUSERSITE": "1",
        "PATH": f"{prefix}/bin:{env['PATH']}",
    }
    assert after == before


def test_validate_finds_nothing_wrong_with_it(envbuild: Envbuild, built_root: Path) -> None:
    done = envbuild("validate", "allreduce", "--verify", "--root", built_root)
    assert (done.code, done.out.splitlines()[-1]) == (0, "No problems found.")


def test_validate_looks_at_the_loaded_module(
    built_root: Path, machine: Machine, tmp_path: Path
) -> None:
    lines = [f"module use '{built_root}/modulefiles'", "module load allreduce"]
    lines += [f"'{sys.executable}' -P -m envbuilder validate --loaded --json"]
    done = in_lmod("bash", lines, tmp_path, machine("hidden"))
    value = json.loads(done.out)
    assert (value["modules"], value["findings"]) == (["allreduce/1"], [])
    assert Path(value["path"]).parent == built_root / "allreduce"


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.sample(1)
def test_help_and_whatis_say_what_was_proved(
    shell: str, envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    info = json.loads(envbuild("info", "allreduce", "--root", built_root, "--json").out)
    evidence = info["evidence"][0]
    lines = [f"module use '{built_root}/modulefiles'"]
    lines += ["module help allreduce", "module whatis allreduce"]
    said = in_lmod(shell, lines, tmp_path).text
    pins = [
        f"{p['component']}@{p['version']} <- {p['origin']}" for p in info["lock"]["plan"]["pins"]
    ]
    for text in (
        "allreduce/1: Collective runtime on numpy and MPI",
        *pins,
        f"Proved: several ranks, native, {evidence['time']}",
        f"MPI: {evidence['result']['mpi']}",
        f"libmpi: {info['prefix']}/lib/libmpi.so.12 (from prefix)",
        "mpiexec -n 2 python PROGRAM.py",
        f": Proved: several ranks, {evidence['time']}",
        ": Version: 1",
    ):
        assert text in said


@pytest.mark.parametrize(
    ("env", "loaded"),
    [({}, "allreduce/2"), ({"LMOD_DISABLE_SAME_NAME_AUTOSWAP": "yes"}, "allreduce/1")],
)
def test_two_numbers_are_never_loaded_at_once(
    env: dict[str, str], loaded: str, built_root: Path, tmp_path: Path
) -> None:
    shutil.copytree(built_root / "modulefiles", tmp_path / "tree")
    first = tmp_path / "tree" / "allreduce" / "1.lua"
    shutil.copy(first, first.with_name("2.lua"))
    lines = ["module use tree", "env -0 >before", "module load allreduce/1"]
    lines += ["module load allreduce/2", 'echo "$LOADEDMODULES"', 'echo "$VIRTUAL_ENV"']
    lines += ["module purge", "env -0 >after"]
    done = in_lmod("bash", lines, tmp_path, env)
    # A site that forbids the swap has Lmod refuse; what was loaded stays whole.
    assert ("Your site prevents the automatic" in done.err) == bool(env)
    prefix = next((built_root / "allreduce").glob("*/pyvenv.cfg")).parent
    assert done.out.splitlines() == [loaded, str(prefix)]
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")
