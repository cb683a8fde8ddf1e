"""Hashes of module trees, changes since a snapshot, its age."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from envbuilder.machine.modules.trees import age_note, changed_trees, tree_sha256
from envbuilder.model.site import Snapshot, Tree

from .site_tools import modulefiles


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return modulefiles(
        tmp_path / "tree", {"A/1.lua": 'load("B/1")', "B/1.lua": "", "B/.modulerc.lua": "x"}
    )


def recorded(*trees: Path, kind: str = "live", taken: str | None = "2026-11-01") -> Snapshot:
    found = tuple(Tree(path=str(each), sha256=tree_sha256(each)) for each in trees)
    plain = {"kind": kind, "taken": taken, "trees": [each.model_dump() for each in found]}
    return Snapshot.model_validate(plain)


def test_nothing_changed(tree: Path) -> None:
    assert changed_trees(recorded(tree)) == ()


def test_a_copy_elsewhere_is_the_same(tree: Path, tmp_path: Path) -> None:
    files = {str(p.relative_to(tree)): p.read_text() for p in tree.rglob("*") if p.is_file()}
    assert tree_sha256(modulefiles(tmp_path / "copy", files)) == tree_sha256(tree)


@pytest.mark.parametrize("change", ["content", "name", "new", "gone", "hidden"])
def test_any_change_is_seen(tree: Path, change: str) -> None:
    before = recorded(tree)
    file = tree / "A" / "1.lua"
    if change == "content":
        # The same size, and the time set back: only the content tells.
        about = file.stat()
        file.write_text('load("C/1")')
        assert file.stat().st_size == about.st_size
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    elif change == "name":
        file.rename(tree / "A" / "2.lua")
    elif change == "new":
        (tree / "A" / "2.lua").write_text("")
    elif change == "gone":
        file.unlink()
    else:
        (tree / "B" / ".modulerc.lua").write_text("y")
    assert changed_trees(before) == (str(tree),)


def test_links_count_by_what_they_lead_to(tree: Path, tmp_path: Path) -> None:
    target = modulefiles(tmp_path / "all", {"C/1.lua": "one"})
    (tree / "C").symlink_to(target / "C")
    (tree / "loop").symlink_to(tree)
    (tree / "gone.lua").symlink_to(tmp_path / "nowhere")
    before = recorded(tree)
    assert changed_trees(before) == ()
    (target / "C" / "1.lua").write_text("two")
    assert changed_trees(before) == (str(tree),)


def test_trees_elsewhere_cannot_be_compared(tree: Path) -> None:
    before = recorded(tree)
    there = Tree(path="/no/such/tree", sha256="0" * 64)
    documented = Tree(path=str(tree))
    trees = (there, documented)
    assert changed_trees(before.model_copy(update={"trees": trees})) == ()


def test_the_age_of_a_snapshot(tree: Path) -> None:
    assert age_note(recorded(tree), date(2027, 4, 30)) is None
    note = age_note(recorded(tree), date(2027, 5, 1))
    assert note is not None
    assert "181 days old (taken 2026-11-01)" in note
    assert age_note(recorded(tree, taken=None), date(2030, 1, 1)) is None


def test_a_snapshot_from_documentation_says_of_which_day(tree: Path) -> None:
    note = age_note(recorded(tree, kind="documented", taken="2021-12-01"), date(2021, 12, 2))
    assert note is not None
    assert "from documentation of 2021-12-01" in note
