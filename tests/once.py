"""What all processes of pytest have in common: one makes it, the others wait."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that *make* fills, for reading only.

    Where that fails or skips, whoever asks next tries again.
    """
    base = factory.getbasetemp()
    # pytest's processes side by side have the folder above in common.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    with (folder / "made.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not (folder / "made").is_file():
            make(folder)
            (folder / "made").touch()
    return folder
