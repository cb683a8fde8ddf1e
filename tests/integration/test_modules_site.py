"""A site with real modules: the environment is built from them and loads them.

The trees under site/ are made the way EasyBuild makes them: a toolchain that the other modules
load, an Open MPI and a Python. They wrap this machine's Open MPI and the interpreter of the tests.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import COMMAND, Done, Envbuild
from module_tools import (
    AS_ROOT,
    MY_ALLREDUCE,
    SHELLS,
    SUMS,
    Cluster,
    in_lmod,
    lmod_init,
    make_cluster,
    modulecmd,
    new_shell,
    path_without_mpi,
    snapshot,
)

SCIPY = "SciPy-bundle/2023.02-gfbf-2022b"
TENSORFLOW = "TensorFlow/2.11.0-foss-2022b"
# Its name puts it behind OpenMPI where nothing else says which is loaded first.
NCCL = "nccl/2.16.2-GCCcore-12.2.0-CUDA-12.0.0"

# The program of a user whose MPI is Open MPI: more ranks than cores are asked for.
RANKS = "mpiexec --oversubscribe -n 2 python my_allreduce.py"


@dataclass(frozen=True)
class Creation:
    """A ``create`` at a cluster, and its outcome."""

    cluster: Cluster
    root: Path
    done: Done


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the variables of a machine that has an MPI in its modules only."""
    return {"PATH": path_without_mpi(tmp_path_factory.mktemp("hidden") / "bin")}


def _lmod(folder: Path) -> tuple[Cluster, Path, Path]:
    cluster = make_cluster(folder, "lua", lmod_init("bash"))
    return cluster, cluster.recipe("onmodules"), cluster.document


def _tcl(folder: Path) -> tuple[Cluster, Path, Path]:
    # What the package's own init/bash comes to, which names the places of an installed package.
    init = folder / "init.bash"
    init.write_text(f"eval \"$(tclsh '{modulecmd()}' bash autoinit)\"\n", encoding="utf-8")
    cluster = make_cluster(folder, "tcl", str(init))
    return cluster, cluster.recipe("onmodules"), cluster.document


def old_numpy(cluster: Cluster) -> Path:
    """Put a numpy where module SciPy-bundle has PYTHONPATH point to; return the folder."""
    packages = cluster.folder / "apps" / SCIPY / "lib" / "python" / "site-packages"
    (packages / "numpy").mkdir(parents=True)
    # It does not even import here, like one that was compiled for another Python.
    (packages / "numpy" / "__init__.py").write_text("raise ImportError('numpy.core.multiarray')\n")
    (packages / "numpy-1.23.5.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: numpy\nVersion: 1.23.5\n"
    (packages / "numpy-1.23.5.dist-info" / "METADATA").write_text(metadata, encoding="utf-8")
    return packages


def _shadowing(folder: Path) -> tuple[Cluster, Path, Path]:
    """A TensorFlow whose modules bring an older numpy, which the site's document leaves out."""
    cluster = make_cluster(folder, "lua", lmod_init("bash"))
    # The step that makes the virtualenv asks whether the module's TensorFlow is there at all.
    (old_numpy(cluster) / "tensorflow").mkdir()
    loads = f"{SCIPY}, {cluster.module('Python')}, GCCcore/12.2.0"
    stated = f'{{name: {TENSORFLOW}, provides: {{tensorflow: "2.11.0"}}, loads: [{loads}]}}'
    return (
        cluster,
        cluster.recipe("tf", tensorflow=TENSORFLOW),
        cluster.stating("shadowing", stated),
    )


Start = Callable[[str], Creation]


@pytest.fixture(scope="module")
def created(
    envbuild: Envbuild, hidden: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Start:
    """Return a function that makes a build when it is first requested, or skips the test."""
    prepare = {"lmod": _lmod, "tcl": _tcl, "shadowing": _shadowing}
    made: dict[str, Creation] = {}

    def of_kind(kind: str) -> Creation:
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind)
            cluster, recipe, site = prepare[kind](folder)
            words = ("create", recipe, "--site", site, "--root", folder / "root")
            made[kind] = Creation(cluster, folder / "root", envbuild(*words, env=hidden))
        return made[kind]

    return of_kind


@pytest.fixture
def on_lmod(created: Start) -> Creation:
    creation = created("lmod")
    assert creation.done.code == 0, creation.done.text
    return creation


def info(envbuild: Envbuild, creation: Creation) -> dict[str, Any]:
    answer = envbuild("info", "onmodules", "--root", creation.root, "--json")
    loaded: dict[str, Any] = json.loads(answer.out)
    return loaded


def test_create_takes_the_sites_modules_and_proves_them(
    envbuild: Envbuild, on_lmod: Creation
) -> None:
    cluster = on_lmod.cluster
    own = (cluster.module("Python"), cluster.module("OpenMPI"))
    assert f" of the site: {', '.join(sorted(own))}\n" in on_lmod.done.out
    told = info(envbuild, on_lmod)
    origins = {p["component"]: (p["origin"], p["locator"]) for p in told["lock"]["plan"]["pins"]}
    assert origins == {
        "python": ("module", own[0]),
        "openmpi": ("module", own[1]),
        "numpy": ("pip", "numpy"),
        "mpi4py": ("pip", "mpi4py"),
    }
    log = Path(f"{told['prefix']}.build", "logs", "01-modules.log").read_text(encoding="utf-8")
    assert set(log.splitlines()) - {"== modules"} == cluster.everything
    result = told["evidence"][0]["result"]
    assert (result["verdict"], result["tier"]) == ("passed", "several ranks")
    assert result["mpi"] == f"Open MPI {cluster.openmpi.version}"
    library = str(cluster.openmpi.library.resolve())
    assert result["libraries"] == [{"kind": "mpi", "owner": "system", "path": library}]


def expect_ranks(done: Done, creation: Creation) -> None:
    library = creation.cluster.openmpi.library.resolve()
    ranks = sorted(line for line in done.out.splitlines() if line.startswith("rank "))
    assert [line.split(": ")[0] for line in ranks] == ["rank 0 of 2", "rank 1 of 2"], done.text
    for line in ranks:
        assert f": {SUMS} {creation.root}/onmodules/" in line
        assert line.endswith(f" ['{library}']")


def snapshots(folder: Path) -> list[dict[str, str]]:
    return [snapshot(folder / name) for name in ("before", "unloaded", "purged")]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.sample(1)
def test_its_module_loads_all_it_needs_in_a_new_shell(
    shell: str, on_lmod: Creation, hidden: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    lines = [f"module use '{on_lmod.cluster.tree}' '{on_lmod.root}/modulefiles'"]
    lines += ["env -0 >before", "module load onmodules", 'echo "loaded:$LOADEDMODULES"', RANKS]
    lines += ["module unload onmodules", "env -0 >unloaded"]
    lines += ["module load onmodules", "module purge", "env -0 >purged", "module -t list"]
    done = in_lmod(shell, lines, tmp_path, {**hidden, **AS_ROOT})
    expect_ranks(done, on_lmod)
    loaded = next(line for line in done.out.splitlines() if line.startswith("loaded:"))
    assert set(loaded.split(":")[1:]) == {*on_lmod.cluster.everything, "onmodules/1"}
    before, unloaded, purged = snapshots(tmp_path)
    assert unloaded == before
    assert purged == before
    assert "No modules loaded" in done.text
    text = (on_lmod.root / "modulefiles" / "onmodules" / "1.lua").read_text(encoding="utf-8")
    for name in ("Python", "OpenMPI"):
        assert f'depends_on("{on_lmod.cluster.module(name)}")\n' in text


def test_two_environments_exclude_each_other(
    on_lmod: Creation, built_root: Path, tmp_path: Path
) -> None:
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    trees = (on_lmod.cluster.tree, on_lmod.root / "modulefiles", built_root / "modulefiles")
    lines = ["module use " + " ".join(f"'{tree}'" for tree in trees), "module load onmodules"]
    lines += ["module load allreduce", 'echo "$LOADEDMODULES"']
    done = in_lmod("bash", [*lines, "mpiexec -n 2 python my_allreduce.py"], tmp_path)
    assert 'automatically replacing "onmodules/1" with "allreduce/1"' in done.err
    loaded, *ranks = done.out.splitlines()
    # The modules of the first went with it: its Open MPI would be in front of nothing now.
    assert loaded == "allreduce/1"
    assert len(ranks) == 2
    assert all(f": {SUMS} {built_root}/allreduce/" in line for line in ranks)


def smoke_line(creation: Creation) -> str:
    return shlex.join([*COMMAND, "smoke", "onmodules", "--root", str(creation.root)])


@pytest.mark.long
def test_what_the_caller_has_loaded_does_not_matter(on_lmod: Creation, tmp_path: Path) -> None:
    old_numpy(on_lmod.cluster)
    other = "OpenMPI/3.1.4-GCC-12.2.0"
    lines = [f"module use '{on_lmod.cluster.tree}'", f"module load {SCIPY} {other}"]
    lines += ['echo "$LOADEDMODULES $PYTHONPATH"', smoke_line(on_lmod)]
    done = in_lmod("bash", lines, tmp_path)
    loaded, verdict, *_ = done.out.splitlines()
    assert other in loaded
    assert loaded.endswith("/site-packages")
    assert verdict.startswith("passed: several ranks, 2 ranks on "), done.text
    assert f"mpi library: {on_lmod.cluster.openmpi.library.resolve()}\n" in done.out


def test_a_module_that_went_after_publishing(on_lmod: Creation, tmp_path: Path) -> None:
    module = on_lmod.cluster.tree / "GCC" / "12.2.0.lua"
    text = module.read_text(encoding="utf-8")
    lines = [f"module use '{on_lmod.cluster.tree}' '{on_lmod.root}/modulefiles'"]
    lines += [smoke_line(on_lmod), 'echo "code $?"']
    lines += ["env -0 >before", "module load onmodules", "env -0 >after"]
    try:
        module.unlink()
        done = in_lmod("bash", lines, tmp_path)
    finally:
        module.write_text(text, encoding="utf-8")
    assert done.out == "code 6\n"
    name = on_lmod.cluster.module("OpenMPI")
    assert f" the module {name} " in done.err
    assert done.err.count('"GCC/12.2.0"') >= 2, "Lmod names it to whoever loads the module, too"
    assert snapshot(tmp_path / "after") == snapshot(tmp_path / "before")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.long
def test_the_same_as_tcl_modules(
    shell: str, created: Start, envbuild: Envbuild, hidden: dict[str, str], tmp_path: Path
) -> None:
    creation = created("tcl")
    assert creation.done.code == 0, creation.done.text
    result = info(envbuild, creation)["evidence"][0]["result"]
    assert result["mpi"] == f"Open MPI {creation.cluster.openmpi.version}"

    def module(words: str) -> str:
        command = f"tclsh '{modulecmd()}' {shell} {words}"
        return f"eval `{command}`" if shell == "tcsh" else f'eval "$({command})"'

    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    lines = [module(f"use '{creation.cluster.tree}' '{creation.root}/modulefiles'")]
    lines += ["env -0 >before", module("load onmodules"), 'echo "loaded:$LOADEDMODULES"', RANKS]
    lines += [module("unload onmodules"), "env -0 >unloaded"]
    lines += [module("load onmodules"), module("purge"), "env -0 >purged"]
    done = new_shell(shell, lines, tmp_path, {**hidden, **AS_ROOT})
    expect_ranks(done, creation)
    loaded = next(line for line in done.out.splitlines() if line.startswith("loaded:"))
    assert set(loaded.split(":")[1:]) == {*creation.cluster.everything, "onmodules/1"}
    before, unloaded, purged = snapshots(tmp_path)
    assert unloaded == before
    assert purged == before


@pytest.fixture(scope="module")
def other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return make_cluster(tmp_path_factory.mktemp("other"), "lua", lmod_init("bash"))


def expect_nothing_published(envbuild: Envbuild, root: Path) -> None:
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []
    assert list((root / "modulefiles").iterdir()) == []


@pytest.mark.long
def test_a_module_that_swaps_another_silently(
    other_cluster: Cluster, envbuild: Envbuild, tmp_path: Path
) -> None:
    stated = f'{{name: {NCCL}, provides: {{nccl: "2.16.2"}}, loads: [GCCcore/12.2.0]}}'
    site = other_cluster.stating("swapping", stated)
    recipe = other_cluster.recipe("nccl", nccl="*")
    words = ("create", recipe, "--site", site, "--root", tmp_path / "root")
    done = envbuild(*words)
    assert done.code == 5
    assert "of site swapping" in done.err
    mine = other_cluster.module("OpenMPI")
    assert f" load: {mine}\n" in done.err
    assert "plan: OpenMPI/3.1.4-GCC-12.2.0\n" in done.err
    expect_nothing_published(envbuild, tmp_path / "root")
    # Where the site forbids the swap, Lmod refuses the module itself.
    done = envbuild(*words, env={"LMOD_DISABLE_SAME_NAME_AUTOSWAP": "yes"})
    assert done.code == 5
    assert "Your site prevents the automatic" in done.err
    assert f" the module {NCCL} " in done.err


@pytest.mark.long
def test_a_module_that_is_not_there(
    other_cluster: Cluster, envbuild: Envbuild, tmp_path: Path
) -> None:
    stated = '{name: CUDA/12.0.0, provides: {cuda: "12.0.0"}}'
    site = other_cluster.stating("missing", stated)
    recipe = other_cluster.recipe("cuda", cuda="*")
    done = envbuild("create", recipe, "--site", site, "--root", tmp_path / "root")
    assert done.code == 5
    assert " the module CUDA/12.0.0 " in done.err
    assert "hint: the plan loads: " in done.err
    expect_nothing_published(envbuild, tmp_path / "root")


def test_a_module_that_shadows_a_pinned_package(created: Start, envbuild: Envbuild) -> None:
    creation = created("shadowing")
    done = creation.done
    folder = creation.cluster.folder / "apps" / SCIPY / "lib" / "python" / "site-packages"
    assert done.code == 5, done.text
    assert f"finds 1.23.5 in {folder}\n" in done.err
    assert f"set by module {SCIPY}\n" in done.err
    expect_nothing_published(envbuild, creation.root)


@pytest.mark.long
def test_a_module_that_went_after_the_lock_was_made(
    created: Start, envbuild: Envbuild, hidden: dict[str, str]
) -> None:
    creation = created("shadowing")
    cluster, folder = creation.cluster, creation.cluster.folder
    module = cluster.tree / f"{TENSORFLOW}.lua"
    text = module.read_text(encoding="utf-8")
    words = ("--site", folder / "shadowing.yaml", "--root", creation.root)
    try:
        module.unlink()
        done = envbuild("create", folder / "tf.yaml", *words, env=hidden)
    finally:
        module.write_text(text, encoding="utf-8")
    assert done.code == 5
    assert "error: step modules " in done.err
    assert f" the module {TENSORFLOW} " in done.err
    expect_nothing_published(envbuild, creation.root)
