"""Fixtures that tests of all parts share."""

from __future__ import annotations

import os
import shutil
import signal
from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes, or is made, tells of the machine alone. The checkout stays as it is.
settings.register_profile(
    "any machine", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """Let Ctrl-C count, which background processes of a shell ignore; keep the user's state."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # The roots of tests are not the user's. A folder that cannot be made: nothing is remembered.
    os.environ["XDG_STATE_HOME"] = "/dev/null/state"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the default run some cases of a test that has the mark ``sample``."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for those in cases.values():
        count = those[0].get_closest_marker("sample").args[0]
        kept = {number * len(those) // count for number in range(count)}
        for number, item in enumerate(those):
            if number not in kept:
                item.add_marker(pytest.mark.long)


@pytest.fixture
def need() -> Callable[[str], str]:
    """Return a function that gives a program's path, or skips the test naming what is missing."""

    def path_of(program: str) -> str:
        found = shutil.which(program)
        if found is None:
            pytest.skip(f"{program} is not on this machine")
        return found

    return path_of
