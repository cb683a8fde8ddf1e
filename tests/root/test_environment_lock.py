"""Which published environment is the one that a lock decides."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from envbuilder.errors import BuildError
from envbuilder.model.decisions import earlier_sha256
from envbuilder.model.plan import Lock
from envbuilder.root import environment_lock
from envbuilder.target_tools.root import layout, publish, store
from tests.made_up_files import locked

sys.path.insert(0, str(Path(__file__).parent.parent / "render"))
from render_cases import CASES

LOCK = locked(CASES[0].lock.plan)


def publish_as(home: layout.Home, identity: str, lock: Lock) -> layout.Version:
    for folder in (home.prefix(identity), home.build(identity)):
        folder.mkdir()
    (home.build(identity) / environment_lock.LOCK).write_text(lock.text(), encoding="utf-8")
    version = publish.reserve(home, identity, "lua")
    publish.publish(home, version, "-- never loaded\n")
    return version


def publish_earlier(home: layout.Home, lock: Lock) -> layout.Version:
    """Publish under the id of a release that hashed all that a lock says."""
    return publish_as(home, earlier_sha256(lock.text())[:12], lock)


@pytest.fixture
def home(tmp_path: Path) -> layout.Home:
    root = store.open_root(tmp_path / "root", "local", "x86_64")
    return store.open_home(root, LOCK.plan.recipe)


def reworded(lock: Lock, words: str) -> Lock:
    return lock.model_copy(update={"plan": lock.plan.model_copy(update={"summary": words})})


def with_message_size(lock: Lock, size: int) -> Lock:
    smoke = lock.plan.smoke.model_copy(update={"max_bytes": size})
    return lock.model_copy(update={"plan": lock.plan.model_copy(update={"smoke": smoke})})


def test_the_newest_of_the_same_decisions_is_found_whatever_it_is_called(home: layout.Home) -> None:
    assert environment_lock.find_published(home, LOCK) is None
    first = publish_earlier(home, reworded(LOCK, "first"))
    assert environment_lock.find_published(home, LOCK) == first
    second = publish_earlier(home, reworded(LOCK, "second"))
    publish_earlier(home, reworded(with_message_size(LOCK, 1024), "third"))
    assert environment_lock.find_published(home, LOCK) == second
    publish.withdraw(home, second)
    assert environment_lock.find_published(home, LOCK) == first


def test_what_cannot_be_read_is_not_what_is_looked_for(home: layout.Home) -> None:
    first = publish_earlier(home, reworded(LOCK, "first"))
    second = publish_earlier(home, reworded(LOCK, "second"))
    (home.build(second.id) / environment_lock.LOCK).write_text('{"schema": 1', encoding="utf-8")
    assert environment_lock.find_published(home, LOCK) == first
    with pytest.raises(BuildError) as raised:
        environment_lock.read_lock(home, second)
    assert raised.value.id == "environment.lock-unreadable"
    assert "allreduce/2" in str(raised.value)
    (home.build(first.id) / environment_lock.LOCK).unlink()
    assert environment_lock.find_published(home, LOCK) is None


@pytest.mark.parametrize("text", [None, '{"schema": 1', with_message_size(LOCK, 1024).text()])
def test_what_is_called_by_the_id_is_it_whatever_became_of_its_lock(
    home: layout.Home, text: str | None
) -> None:
    """Else its prefix, which jobs may use, would be removed and built again."""
    version = publish_as(home, LOCK.id(), LOCK)
    stored = home.build(version.id) / environment_lock.LOCK
    stored.unlink() if text is None else stored.write_text(text, encoding="utf-8")
    assert environment_lock.find_published(home, LOCK) == version


def test_a_lock_that_is_not_its_folders_is_refused_and_named(home: layout.Home) -> None:
    """A smaller smoke test, as every other decision, makes another id."""
    version = publish_as(home, LOCK.id(), with_message_size(LOCK, 1024))
    with pytest.raises(BuildError) as raised:
        environment_lock.read_lock(home, version)
    assert raised.value.id == "environment.lock-damaged"
    assert str(LOCK.id()) in str(raised.value)
