"""Which published environment is the one that a lock decides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.model.plan import Lock
from envbuilder.root import environment_lock
from envbuilder.target_tools.root import publish, store

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import CASES

LOCK = CASES[0].lock


def publish_as(home: store.Home, identity: str, lock: Lock) -> store.Version:
    for folder in (home.prefix(identity), home.build(identity)):
        folder.mkdir()
    (home.build(identity) / environment_lock.LOCK).write_text(lock.text(), encoding="utf-8")
    version = publish.reserve(home, identity, "lua")
    publish.publish(home, version, "-- never loaded\n")
    return version


@pytest.fixture
def home(tmp_path: Path) -> store.Home:
    root = store.open_root(tmp_path / "root", "local", "x86_64")
    return store.open_home(root, LOCK.plan.recipe)


def reworded(lock: Lock, words: str) -> Lock:
    return lock.model_copy(update={"plan": lock.plan.model_copy(update={"summary": words})})


def with_python(lock: Lock, path: str) -> Lock:
    return lock.model_copy(update={"plan": lock.plan.model_copy(update={"python": path})})


def test_the_newest_of_the_same_decisions_is_found_whatever_it_is_called(home: store.Home) -> None:
    assert environment_lock.find_published(home, LOCK) is None
    first = publish_as(home, "0123456789ab", reworded(LOCK, "first"))
    assert environment_lock.find_published(home, LOCK) == first
    second = publish_as(home, "ba9876543210", reworded(LOCK, "second"))
    publish_as(home, "other", with_python(LOCK, "/usr/bin/python3.12"))
    assert environment_lock.find_published(home, LOCK) == second
    publish.withdraw(home, second)
    assert environment_lock.find_published(home, LOCK) == first


def test_what_cannot_be_read_is_not_what_is_looked_for(home: store.Home) -> None:
    first = publish_as(home, "0123456789ab", LOCK)
    second = publish_as(home, "ba9876543210", LOCK)
    (home.build(second.id) / environment_lock.LOCK).write_text('{"schema": 1', encoding="utf-8")
    assert environment_lock.find_published(home, LOCK) == first
    with pytest.raises(BuildError, match="the lock of allreduce/2 is missing or damaged"):
        environment_lock.read_lock(home, second)
    (home.build(first.id) / environment_lock.LOCK).unlink()
    assert environment_lock.find_published(home, LOCK) is None


@pytest.mark.parametrize("text", [None, '{"schema": 1', with_python(LOCK, "/usr/bin/other").text()])
def test_what_is_called_by_the_id_is_it_whatever_became_of_its_lock(
    home: store.Home, text: str | None
) -> None:
    """Else its prefix, which jobs may use, would be removed and built again."""
    version = publish_as(home, LOCK.id(), LOCK)
    stored = home.build(version.id) / environment_lock.LOCK
    stored.unlink() if text is None else stored.write_text(text, encoding="utf-8")
    assert environment_lock.find_published(home, LOCK) == version
