"""The compiled form of the shipped knowledge: current, the same as the YAML, never stale."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents import load_knowledge
from envbuilder.documents.compile import compiled_text, write
from envbuilder.documents.compiled import COMPILED, current
from envbuilder.model.knowledge import Knowledge

SHIPPED = data.RECIPES / "knowledge" / COMPILED

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the shipped knowledge with a compiled form of its own."""
    folder = tmp_path / "recipes"
    shutil.copytree(data.RECIPES / "knowledge", folder / "knowledge")
    write(folder)
    return folder


def test_it_is_current() -> None:
    """Where it is not: python -m envbuilder.documents.compile, or ENVBUILD_UPDATE_GOLDENS=1."""
    if os.environ.get("ENVBUILD_UPDATE_GOLDENS") == "1":
        write(data.RECIPES)
    assert SHIPPED.read_text() == compiled_text(data.RECIPES)


def test_it_is_the_same_knowledge_as_the_yaml(copied: Path) -> None:
    quick = load_knowledge([copied], shipped=copied)
    slow = load_knowledge([copied], shipped=None)
    assert current(copied / "knowledge") is not None
    assert quick == slow
    assert quick.sha256 == slow.sha256
    assert [path.name for path in quick.paths][:2] == ["components.yaml", "versions.yaml"]


def edited(folder: Path) -> Path:
    path = folder / "knowledge" / "symptoms.yaml"
    path.write_text(path.read_text().replace("id: no-network", "id: no-route"))
    return path


def test_an_edited_file_counts_at_once(copied: Path) -> None:
    before = load_knowledge([copied], shipped=copied)
    edited(copied)
    after = load_knowledge([copied], shipped=copied)
    assert "no-route" in {each.id for each in after.value.symptoms}
    assert after.sha256 != before.sha256


def test_a_removed_file_counts_at_once(copied: Path) -> None:
    (copied / "knowledge" / "symptoms.yaml").unlink()
    assert load_knowledge([copied], shipped=copied).value.symptoms == ()


def test_an_added_file_counts_at_once(copied: Path) -> None:
    path = copied / "knowledge" / "symptoms.yaml"
    text = path.read_text()
    path.unlink()
    write(copied)
    path.write_text(text)
    assert load_knowledge([copied], shipped=copied).value.symptoms


@pytest.mark.parametrize("damage", ["", "{", '{"knowledge": {}, "sources": {}}'])
def test_a_damaged_one_is_left_alone(damage: str, copied: Path, known: Knowledge) -> None:
    (copied / "knowledge" / COMPILED).write_text(damage)
    assert load_knowledge([copied], shipped=copied).value == known


def test_one_that_is_cut_off_is_left_alone(copied: Path, known: Knowledge) -> None:
    path = copied / "knowledge" / COMPILED
    path.write_bytes(path.read_bytes()[:-100])
    assert load_knowledge([copied], shipped=copied).value == known


def test_that_of_another_folder_is_not_trusted(copied: Path) -> None:
    path = copied / "knowledge" / COMPILED
    path.write_text(path.read_text().replace('"id":"no-network"', '"id":"no-route"'))
    ids = {each.id for each in load_knowledge([copied]).value.symptoms}
    assert "no-network" in ids


def test_a_folder_of_ones_own_is_merged_over_it(tmp_path: Path, known: Knowledge) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "components.yaml").write_text(
        "schema: 1\ncomponents:\n  numpy: {summary: Ours, pip: our-numpy}\n"
    )
    merged = load_knowledge([tmp_path, data.RECIPES])
    from_yaml = load_knowledge([tmp_path, data.RECIPES], shipped=None)
    assert merged.value.components["numpy"].pip == "our-numpy"
    assert merged.value.advisories == known.advisories
    assert merged == from_yaml
    assert merged.sha256 == from_yaml.sha256


@pytest.mark.integration
def test_reading_it_needs_no_yaml() -> None:
    program = (
        "import sys\n"
        "from envbuilder import data\n"
        "from envbuilder.documents import load_knowledge\n"
        "assert load_knowledge([data.RECIPES]).value.advisories\n"
        "sys.exit('yaml' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
