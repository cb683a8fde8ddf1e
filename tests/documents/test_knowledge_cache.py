"""The cache of the shipped knowledge: the same as the YAML, never stale, never somebody else's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents import knowledge_cache as kept
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.knowledge_cache import knowledge_folder
from envbuilder.errors import DocumentError
from envbuilder.knowledge.rows import Knowledge

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


# The smallest files of the shipped knowledge: what is done to a cache of them is done to any.
SMALL = ("components.yaml", "symptoms.yaml")


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a part of the shipped knowledge, in the place of the shipped one."""
    folder = tmp_path / "recipes"
    (folder / "knowledge").mkdir(parents=True)
    for name in SMALL:
        shutil.copy(data.RECIPES / "knowledge" / name, folder / "knowledge")
    monkeypatch.setattr(data, "RECIPES", folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "knowledge"


def the_file(cache: Path) -> Path:
    (file,) = cache.iterdir()
    return file


def no_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on YAML cannot be read."""

    def refuse(folder: Path) -> None:
        raise AssertionError(f"{folder} is read as YAML")

    monkeypatch.setattr("envbuilder.documents.rows.read_sheets", refuse)


def test_it_is_the_same_knowledge_as_the_yaml(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that ships."""
    slow = load_knowledge([data.RECIPES])
    first = load_knowledge([data.RECIPES], cache)
    no_yaml(monkeypatch)
    quick = load_knowledge([data.RECIPES], cache)
    assert slow == first == quick
    assert slow.sha256 == quick.sha256
    assert [path.name for path in quick.paths][:2] == ["components.yaml", "versions.yaml"]


def test_a_pattern_that_was_checked_is_not_compiled_again(
    recipes: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling those of all symptoms was 8 % of a plan's instructions."""
    found = load_knowledge([recipes], cache).value.symptoms
    compiled: list[object] = []
    monkeypatch.setattr(re, "compile", compiled.append)
    assert load_knowledge([recipes], cache).value.symptoms == found
    assert not {each.pattern for each in found} & {*map(str, compiled)}


def edited(folder: Path) -> Path:
    path = folder / "knowledge" / "symptoms.yaml"
    path.write_text(path.read_text().replace("id: no-network", "id: no-route"))
    return path


def test_an_edited_file_counts_at_once(recipes: Path, cache: Path) -> None:
    before = load_knowledge([recipes], cache)
    edited(recipes)
    after = load_knowledge([recipes], cache)
    assert "no-route" in {each.id for each in after.value.symptoms}
    assert after.sha256 != before.sha256


def test_a_removed_and_an_added_file_count_at_once(recipes: Path, cache: Path) -> None:
    load_knowledge([recipes], cache)
    path = recipes / "knowledge" / "symptoms.yaml"
    text = path.read_text()
    path.unlink()
    assert load_knowledge([recipes], cache).value.symptoms == ()
    path.write_text(text)
    assert load_knowledge([recipes], cache).value.symptoms


def test_another_release_of_envbuild_reads_anew(
    recipes: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_knowledge([recipes], cache)
    monkeypatch.setattr(kept, "__version__", "99")
    assert kept.find(cache, recipes / "knowledge") is None


def test_changed_code_reads_anew(
    recipes: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "knowledge.py").touch()
    monkeypatch.setattr(kept, "_CODE", (tmp_path,))
    load_knowledge([recipes], cache)
    assert kept.find(cache, recipes / "knowledge") is not None
    os.utime(tmp_path / "knowledge.py", (1, 1))
    assert kept.find(cache, recipes / "knowledge") is None


@pytest.mark.parametrize("damage", ["", "{", '{"knowledge": {}, "sources": {}}', None])
def test_a_damaged_one_is_replaced(damage: str | None, recipes: Path, cache: Path) -> None:
    known = load_knowledge([recipes], cache).value
    file = the_file(cache)
    whole = file.read_bytes()
    file.write_bytes(whole[:-100] if damage is None else damage.encode())
    assert load_knowledge([recipes], cache).value == known
    assert the_file(cache).read_bytes() == whole


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_one_that_others_can_write_is_not_believed(mode: int, recipes: Path, cache: Path) -> None:
    load_knowledge([recipes], cache)
    assert kept.find(cache, recipes / "knowledge") is not None
    the_file(cache).chmod(mode)
    assert kept.find(cache, recipes / "knowledge") is None


def test_one_of_another_user_or_where_others_write_is_not_believed(
    recipes: Path, cache: Path
) -> None:
    load_knowledge([recipes], cache)
    file = the_file(cache)
    for folder in (cache, cache.parent):
        mode = folder.stat().st_mode
        folder.chmod(0o775)
        assert kept.find(cache, recipes / "knowledge") is None
        folder.chmod(mode)
    assert kept.find(cache, recipes / "knowledge") is not None
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 65534, 65534)
    assert kept.find(cache, recipes / "knowledge") is None


def test_it_is_written_for_this_user_alone_whatever_the_umask(recipes: Path, cache: Path) -> None:
    before = os.umask(0)
    try:
        load_knowledge([recipes], cache)
    finally:
        os.umask(before)
    assert the_file(cache).stat().st_mode & 0o777 == 0o600


def test_a_cache_that_cannot_be_written_costs_only_time(recipes: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    known = load_knowledge([recipes]).value
    assert load_knowledge([recipes], tmp_path / "file" / "cache").value == known


def test_old_ones_are_removed_and_nothing_else(recipes: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    for name in ("knowledge-old.json", "knowledge-new.json", "notes.json"):
        (cache / name).touch()
    for name in ("knowledge-old.json", "notes.json"):
        os.utime(cache / name, (1, 1))
    load_knowledge([recipes], cache)
    names = {path.name for path in cache.iterdir()}
    assert names >= {"knowledge-new.json", "notes.json"}
    assert (len(names), "knowledge-old.json" in names) == (3, False)


def test_what_is_wrong_is_never_kept(recipes: Path, cache: Path, tmp_path: Path) -> None:
    path = recipes / "knowledge" / "symptoms.yaml"
    first = path.read_text().partition("\n  - id: ")[2].partition("\n  - id: ")[0]
    path.write_text(f"{path.read_text()}\n  - id: {first}\n")
    with pytest.raises(DocumentError) as caught:
        load_knowledge([recipes], cache)
    assert caught.value.id == "knowledge.duplicate-id"
    assert not cache.exists()


def test_a_folder_of_ones_own_is_merged_over_it(
    tmp_path: Path, cache: Path, known: Knowledge
) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "components.yaml").write_text(
        "schema: 1\ncomponents:\n  numpy: {summary: Ours, pip: our-numpy}\n"
    )
    folders = [tmp_path, data.RECIPES]
    first, merged = load_knowledge(folders, cache), load_knowledge(folders, cache)
    from_yaml = load_knowledge(folders)
    assert merged.value.components["numpy"].pip == "our-numpy"
    assert merged.value.advisories == known.advisories
    assert first == merged == from_yaml
    assert merged.sha256 == from_yaml.sha256


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ENVBUILD_KNOWLEDGE_CACHE": "here", "HOME": "/home/me"}, "/cwd/here"),
        ({"XDG_CACHE_HOME": "/caches", "HOME": "/home/me"}, "/caches/envbuild/knowledge"),
        ({"HOME": "/home/me"}, "/home/me/.cache/envbuild/knowledge"),
        ({}, None),
    ],
)
def test_where_it_is_kept(environ: dict[str, str], folder: str | None) -> None:
    found = knowledge_folder(environ, Path("/cwd"))
    assert found == (Path(folder) if folder else None)


@pytest.mark.integration
def test_reading_it_needs_no_yaml(cache: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from envbuilder import data\n"
        "from envbuilder.documents.knowledge import load_knowledge\n"
        "assert load_knowledge([data.RECIPES], Path(sys.argv[1])).value.advisories\n"
        "print('yaml' in sys.modules)\n"
    )
    words = [sys.executable, "-c", program, str(cache)]
    said = [subprocess.run(words, check=True, capture_output=True).stdout for _ in range(2)]
    assert said == [b"True\n", b"False\n"]
