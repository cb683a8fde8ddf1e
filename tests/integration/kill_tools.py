"""Reaching a given moment of a ``create``, from outside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from integration_tools import finish

from envbuilder.model.plan import Lock

# The files' clock is coarser than ours, in nanoseconds.
CLOCK_STEP = 10_000_000


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


def wait_for(moment: str, root: Path, lock: Lock, running: subprocess.Popen[str]) -> None:
    """Return as soon as *running* is at *moment*; fail if it ends before."""
    folder, pattern = _signs(root / lock.plan.recipe, lock.id())[moment]
    since = time.time_ns() - CLOCK_STEP

    def reached() -> bool:
        try:
            return any(path.lstat().st_mtime_ns >= since for path in folder.glob(pattern))
        except FileNotFoundError:
            return False

    wait_until(reached, running, moment)


def wait_until(
    reached: Callable[[], bool], running: subprocess.Popen[str], what: str, patience: float = 120.0
) -> None:
    """Poll until *reached*; fail if *running* ends before, or after *patience* seconds."""
    until = time.monotonic() + patience
    while not reached():
        if running.poll() is not None or time.monotonic() > until:
            running.kill()
            pytest.fail(f"it was never at {what!r}: {finish(running)}")
        time.sleep(0.01)


# Runs the command with one function replaced by sudden death.
SUDDEN_DEATH = """
import os, signal, sys
from envbuilder.cli import main
from envbuilder.root import publish

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

assert hasattr(publish, sys.argv[1])
setattr(publish, sys.argv[1], die)
sys.argv = ["envbuild", *sys.argv[2:]]
main()
"""

# Just before the modulefile is written, and just before the default is replaced.
LAST_MOMENTS = ("publish", "set_default")
