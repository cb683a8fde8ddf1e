"""Fixtures that tests of all parts share."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest


@pytest.fixture
def need() -> Callable[[str], str]:
    """Return a function that gives a program's path, or skips the test naming what is missing."""

    def path_of(program: str) -> str:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not on this machine")
        return found

    return path_of
