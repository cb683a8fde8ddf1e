"""Everything here compiles and runs: it needs gcc."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture(autouse=True)
def compilers(need: Callable[[str], str]) -> None:
    """Skip without the compilers."""
    for program in ("gcc", "c++"):
        need(program)


@pytest.fixture(scope="session")
def old_python() -> str:
    """Return the oldest Python of this machine that the programs are for, or skip."""
    for minor in (6, 7, 8, 9):
        program = shutil.which(f"python3.{minor}")
        # A pyenv has shims of Pythons that it does not give to everybody.
        if program and subprocess.run([program, "-c", "import venv"], check=False).returncode == 0:
            return program
    pytest.skip("no Python 3.6 to 3.9 on this machine")
