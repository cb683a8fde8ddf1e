"""Keeping locks: how long, how whole, and that nothing else in the folder is touched."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from envbuilder.commands.context import Context
from envbuilder.commands.kept import LIFETIME, find, keep
from envbuilder.model.plan import Lock
from tests.cli.published import planned

# What is written has the machine's own time.
NOW = datetime.now(timezone.utc)
NAME = "0123456789abcdef" * 4 + ".json"


class Ear:
    """Hears what a user would be told."""

    def __init__(self) -> None:
        self.warned: list[str] = []

    def say(self, line: str) -> None:
        raise AssertionError(line)

    def warn(self, line: str) -> None:
        self.warned.append(line)

    @contextlib.contextmanager
    def working(self, title: str) -> Iterator[None]:
        raise AssertionError(title)
        yield

    steps = working  # type: ignore[assignment]


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def context(ear: Ear, tmp_path: Path) -> Context:
    return Context(environ={}, cwd=tmp_path, clock=lambda: NOW, tell=ear)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def lock() -> Lock:
    return Lock(plan=planned("allreduce"), artifacts=())


def aged(path: Path, age: timedelta) -> Path:
    """Let a file have been written so long before NOW."""
    path.touch()
    seconds = (NOW - age).timestamp()
    os.utime(path, (seconds, seconds))
    return path


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=80), "1 min ago"),
        (timedelta(minutes=-2), "2 min ago"),
        (timedelta(minutes=59), "59 min ago"),
        (LIFETIME, None),
        (-LIFETIME, None),
        (timedelta(days=400), None),
    ],
    ids=str,
)
def test_a_lock_is_found_for_an_hour(
    context: Context, lock: Lock, tmp_path: Path, age: timedelta, told: str | None
) -> None:
    file = tmp_path / "folder" / "locks" / NAME
    keep(file, lock, context)
    found = find(aged(file, age), NOW)
    assert (found and found.told()) == told
    assert found is None or found.lock == lock


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', "\udcff"])
def test_what_is_not_a_lock_is_as_if_it_were_not_there(
    context: Context, lock: Lock, tmp_path: Path, text: str
) -> None:
    file = tmp_path / NAME
    assert find(file, NOW) is None
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert find(aged(file, timedelta(0)), NOW) is None
    keep(file, lock, context)
    assert find(aged(file, timedelta(0)), NOW)


def test_old_ones_are_removed_and_nothing_else(
    context: Context, lock: Lock, tmp_path: Path, ear: Ear
) -> None:
    old = timedelta(hours=2)
    gone = [aged(tmp_path / name, old) for name in (NAME.replace("0", "1"), f".{NAME}.a1b2c3")]
    others = ("thesis.json", f"copy-of-{NAME}", NAME.removesuffix(".json"), NAME.upper())
    stay = [aged(tmp_path / name, old) for name in others]
    stay.append(aged(tmp_path / NAME.replace("0", "2"), timedelta(minutes=5)))
    folder = tmp_path / NAME.replace("0", "3")
    folder.mkdir()
    aged(folder, old)
    keep(tmp_path / NAME, lock, context)
    assert [path for path in gone if path.exists()] == []
    assert [path for path in (*stay, folder) if not path.exists()] == []
    assert ear.warned == []


def test_a_place_that_cannot_be_written_is_told(context: Context, lock: Lock, ear: Ear) -> None:
    keep(Path("/dev/null/locks") / NAME, lock, context)
    (warning,) = ear.warned
    assert warning.startswith("the lock is not kept for another create: [Errno ")
