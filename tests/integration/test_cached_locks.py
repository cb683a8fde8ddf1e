"""A lock that was made within the hour serves another root."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from integration_tools import LOCK_CACHE, Envbuild, small_recipe, write_wheel
from kill_tools import hold

from envbuilder.model.plan import Lock

ASKED = "resolve packages against the index"
FITS = "reusing a lock made just now (use --relock to resolve again)"

Create = Callable[..., tuple[str, str]]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel in a folder of its own."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    return write_wheel(folder, "good = True\n")


@pytest.fixture
def create(envbuild: Envbuild, wheel: Path, tmp_path: Path) -> Create:
    """Return what locks a recipe with that wheel in a root; it tells the id and what was said.

    Nothing is built: ``create`` is ended once its lock is written.
    """
    more = f'packages: [tinywheel]\nfind-links: ["{wheel.parent.as_uri()}"]\n'
    recipe = small_recipe(tmp_path, "twice", more=more)

    def run(root: str, *words: str, **env: str) -> tuple[str, str]:
        create = ("create", recipe, "--root", tmp_path / root, *words)
        folder = tmp_path / root / "twice"
        held = hold(create, folder, "lock.json", tmp_path / f"gate-{root}", env)
        held.running.send_signal(signal.SIGINT)
        done = held.finish()
        assert done.code == 128 + signal.SIGINT, done.text
        lock = Lock.model_validate_json((folder / "lock.json").read_text(encoding="utf-8"))
        return lock.id(), done.err

    return run


@pytest.mark.long
def test_pip_is_asked_once_for_two_roots_and_again_when_that_is_said(create: Create) -> None:
    first, said = create("one")
    assert ASKED in said
    second, said = create("two")
    assert (second, FITS in said, ASKED in said) == (first, True, False)
    # A place that takes nothing costs a warning.
    third, said = create("three", "--relock", **{LOCK_CACHE: "/dev/null/locks"})
    assert (third, FITS in said, ASKED in said) == (first, False, True)
    assert "warning: cannot cache the lock: " in said
