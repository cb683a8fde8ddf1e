"""The shipped sites, and that what is recorded of Taurus is what its modulefiles do."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.load import load_site
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.knowledge.rows import Knowledge
from envbuilder.machine.detection import snapshot_text
from envbuilder.machine.modules.merge import merged
from envbuilder.machine.modules.trees import age_note
from envbuilder.model.site import Site, Snapshot, Tree
from envbuilder.workflow.entries import entries
from tests import goldens
from tests.shipped import read_shipped

from .site_tools import PRELOADS, TODAY, TREES, taken_tree

SITES = data.RECIPES / "sites"
NAMES = sorted(path.stem for path in SITES.glob("*.yaml"))

# The folder on Taurus that the folder `modules` of the tests stands for.
MODULES = "/sw/modules"
SOURCE = (
    "HPC compendium of ZIH, TU Dresden, and the site notes on Horovod (which modules); "
    "what they load is from EasyBuild's easyconfigs of these names, without small libraries"
)


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_shipped().value


def site_of(name: str, known: Knowledge) -> Site:
    return load_site(SITES / f"{name}.yaml", known, entries()).value


def snapshot_of(site: Site) -> Snapshot:
    assert site.snapshot is not None
    return load_snapshot(SITES / site.snapshot)


def as_documented(found: Snapshot, folder: Path) -> Snapshot:
    """Return what was found in the tests' trees as what the documentation says of Taurus."""
    paths = [tree.path.replace(str(folder), MODULES) for tree in found.trees]
    return Snapshot(
        schema_=1,
        kind="documented",
        taken="2021-12-01",
        source=SOURCE,
        module_system="Lmod",
        preload=found.preload,
        trees=tuple(Tree(path=path) for path in paths),
        modules=found.modules,
    )


def test_the_sites_that_are_shipped() -> None:
    assert NAMES == ["debian-ppc64le", "summit", "taurus-alpha", "taurus-ml", "taurus-scs5"]
    assert {path.stem for path in SITES.glob("*.json")} == {f"{name}.snapshot" for name in NAMES}


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(PRELOADS))
def test_the_shipped_snapshot_is_that_of_the_modulefiles(name: str) -> None:
    taken = taken_tree(name)
    assert taken.notes == ()
    expected = snapshot_text(as_documented(taken.snapshot, TREES / name / "modules"))
    goldens.compare(SITES / f"{name}.snapshot.json", expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_is_written_as_the_tool_writes_it(name: str, known: Knowledge) -> None:
    path = SITES / f"{name}.snapshot.json"
    assert path.read_text() == snapshot_text(load_snapshot(path))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_site_states_is_of_modules_that_are_there(name: str, known: Knowledge) -> None:
    site = site_of(name, known)
    found = snapshot_of(site)
    names = {module.name for module in found.modules}
    assert {module.name for module in site.modules} <= names
    assert set(site.preload) <= names
    assert found.preload == site.preload
    assert merged(site, found)[1] == ()


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_snapshot_says_that_it_is_from_documentation(name: str, known: Knowledge) -> None:
    note = age_note(snapshot_of(site_of(name, known)), TODAY)
    assert note is not None
    assert "from documentation" in note


@pytest.mark.parametrize("name", NAMES)
def test_what_modules_load_is_described_too(name: str, known: Knowledge) -> None:
    modules = {module.name: module for module in snapshot_of(site_of(name, known)).modules}
    loaded = {each for module in modules.values() for each in module.loads}
    parents = {n for m in modules.values() for one in m.parents for n in one}
    assert loaded | parents <= set(modules)


def test_tensorflow_of_powerai_brings_an_mpi_that_may_be_replaced(known: Knowledge) -> None:
    site = site_of("taurus-ml", known)
    modules, _ = merged(site, snapshot_of(site))
    found = next(m for m in modules if m.name == "TensorFlow/1.14.0-PythonAnaconda-3.6")
    expected = {"tensorflow": "1.14.0", "numpy": "1.14.5", "spectrum-mpi": "10.3"}
    assert found.provides == expected
    assert found.shadowable == ("spectrum-mpi",)
    assert found.loads == ("PythonAnaconda/3.6",)
    assert found.home == "/sw/installed/TensorFlow/1.14.0-PythonAnaconda-3.6"


def test_only_a_source_makes_an_mpi_cuda_aware(known: Knowledge) -> None:
    stated = {
        module.name
        for name in NAMES
        for module in site_of(name, known).modules
        if "cuda_aware" in module.facts
    }
    assert stated == {"OpenMPI/3.1.1-gcccuda-2018b", "OpenMPI/3.1.3-gcccuda-2019a"}
