"""Reaching a given moment of a ``create``, from outside, and holding it there.

Each moment has a sign, a file that appears or is written then; ``held.py`` keeps the command there.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from held import Moment
from integration_tools import PATIENCE, Done, finish, start

from envbuilder.model.plan import Lock

# The files' clock is coarser than ours, in nanoseconds.
CLOCK_STEP = 10_000_000

HELD = Path(__file__).with_name("held.py")


def _signs(home: Path, identity: str) -> Mapping[str, tuple[Path, str]]:
    """Return, for each moment, the folder and pattern of what appears or is written then."""
    build, prefix = home / f"{identity}.build", home / identity
    return {
        "lock": (home / ".scratch" / "asking", "venv/bin/python*"),
        "venv": (build, "logs/*-venv.log"),
        "fetch": (build, "logs/*-fetch.log"),
        # Half installed: pip has begun to write packages.
        "install": (prefix, "lib/python*/site-packages/numpy"),
        "runtime": (build, "runtime-build"),
        "check": (build, "logs/*-check.log"),
        # The ranks are up.
        "smoke": (home / f"{identity}.evidence", "*/ranks/*"),
    }


STEPS = ("lock", "venv", "fetch", "install", "runtime", "check", "smoke")


@dataclass(frozen=True)
class Held:
    """A command that does not get past a moment before the gate is opened."""

    running: subprocess.Popen[str]
    gate: Path

    def finish(self) -> Done:
        """Open the gate and wait for the command's end."""
        self.gate.touch()
        return finish(self.running)


def hold(
    words: Sequence[str | Path],
    folder: Path,
    pattern: str,
    gate: Path,
    env: Mapping[str, str | None] | None = None,
) -> Held:
    """Start ``envbuild WORDS``; return as soon as a file of *folder* that fits is written.

    *gate* is a path at which nothing is yet. Fails if the command ends before.
    """
    moment = Moment(folder, pattern, time.time_ns() - CLOCK_STEP, gate)
    running = start([sys.executable, HELD, *moment.words(), *words], env=env)
    wait_until(moment.has_come, running, pattern)
    return Held(running, gate)


def hold_at(
    moment: str,
    words: Sequence[str | Path],
    root: Path,
    lock: Lock,
    gate: Path,
    env: Mapping[str, str | None] | None = None,
) -> Held:
    """Start a ``create`` of *lock* in *root*; return as soon as it is at *moment*."""
    folder, pattern = _signs(root / lock.plan.recipe, lock.id())[moment]
    return hold(words, folder, pattern, gate, env)


def wait_until(reached: Callable[[], bool], running: subprocess.Popen[str], what: str) -> None:
    """Poll until *reached*; fail if *running* ends before, or hangs."""
    until = time.monotonic() + PATIENCE
    while not reached():
        if running.poll() is not None or time.monotonic() > until:
            running.kill()
            pytest.fail(f"it was never at {what!r}: {finish(running)}")
        time.sleep(0.01)


# Runs the command with one function replaced by sudden death.
SUDDEN_DEATH = """
import os, signal, sys
from envbuilder.cli import main
from envbuilder.target_tools.root import publish

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

assert hasattr(publish, sys.argv[1])
setattr(publish, sys.argv[1], die)
sys.argv = ["envbuild", *sys.argv[2:]]
main()
"""

# Just before the modulefile is written, and just before the default is replaced.
LAST_MOMENTS = ("publish", "set_default")
