"""Everything here compiles and runs: it needs gcc."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden_texts import golden  # noqa: F401 - a fixture
from tests.pythons import find_python

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
    program = find_python("3.6", "3.7", "3.8", "3.9")
    if program is None:
        pytest.skip("no Python 3.6 to 3.9 on this machine")
    return str(program)
