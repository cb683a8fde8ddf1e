"""Snapshots under real Environment Modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.machine.detection import DetectionResult

from .site_tools import TODAY, environ, loaded_after, make_site, modulefiles, take, tcl_init

pytestmark = pytest.mark.integration

FILES = {
    "GCCcore/12": "setenv EBROOTGCCCORE /sw/GCCcore/12\nconflict GCCcore\n",
    "GCC/12": "if { ![ is-loaded GCCcore/12 ] } {\n    module load GCCcore/12\n}\nconflict GCC\n",
    "OpenMPI/4": "if { ![ is-loaded GCC/12 ] } {\n    module load GCC/12\n}\nfamily mpi\n",
    "OpenMPI/5": "",
    "OpenMPI/.version": 'set ModulesVersion "4"\n',
    "App/1": "module load OpenMPI\nprereq GCC\n",
    "Later/1": "prereq OpenMPI\nprereq GCC/12\n",
    "Many/1": "prereq Of\nprereq OpenMPI\n",
    **{f"Of/{number}": "" for number in range(101)},
    "Broken/1": "this is no command\n",
    "OnBroken/1": "module load Broken/1\n",
    "Gate/1": "prepend-path MODULEPATH @BEHIND@\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tcl")
    behind = modulefiles(folder / "behind", {"Deep/1": "#%Module1.0\nmodule load GCC/12\n"})
    texts = {name: f"#%Module1.0\n{text}" for name, text in FILES.items()}
    texts["Gate/1"] = texts["Gate/1"].replace("@BEHIND@", str(behind))
    return modulefiles(folder / "tree", texts)


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tcl_init(tmp_path_factory.mktemp("init"))


@pytest.fixture(scope="module")
def taken(tree: Path, init: str) -> DetectionResult:
    return take(make_site(init, tree, system="tcl"), environ(), TODAY)


def test_what_is_there(taken: DetectionResult) -> None:
    found = {module.name: module for module in taken.snapshot.modules}
    assert found["GCC/12"].loads == ("GCCcore/12",)
    assert found["GCCcore/12"].home == "/sw/GCCcore/12"
    assert found["OpenMPI/4"].families == ("mpi",)
    assert found["OpenMPI/4"].default
    assert not found["OpenMPI/5"].default
    assert found["App/1"].loads == ("OpenMPI/4",)
    assert found["App/1"].parents == (("GCC/12",),)
    # A bare name is met by every version, the default first.
    assert found["Later/1"].parents == (("OpenMPI/4", "GCC/12"), ("OpenMPI/5", "GCC/12"))
    assert found["Many/1"].parents == (("Of/100", "OpenMPI/4"),)
    assert found["Deep/1"].parents == (("Gate/1",),)
    assert "Modules Release" in (taken.snapshot.module_system or "")
    assert len(taken.snapshot.trees) == 2


def test_what_is_broken_is_named(taken: DetectionResult) -> None:
    broken, on_broken, many = taken.notes
    assert many.startswith("module Many/1 ")
    assert broken.startswith("module Broken/1 ")
    assert broken.endswith(': invalid command name "this"')
    assert on_broken.startswith("module OnBroken/1 ")
    assert "Broken/1, " in on_broken


def test_it_loads_what_the_snapshot_says(tree: Path, init: str) -> None:
    site = make_site(init, tree, system="tcl")
    assert loaded_after(site, "OpenMPI/4") == {"OpenMPI/4", "GCC/12", "GCCcore/12"}


def test_preloads_open_trees_here_too(tree: Path, init: str) -> None:
    site = make_site(init, tree, preload=("Gate/1",), system="tcl")
    found = {m.name: m for m in take(site, environ(), TODAY).snapshot.modules}
    # A bare name is met by every version, the default first.
    assert found["Later/1"].parents == (("OpenMPI/4", "GCC/12"), ("OpenMPI/5", "GCC/12"))
    assert found["Many/1"].parents == (("Of/100", "OpenMPI/4"),)
    assert found["Deep/1"].parents == ()
