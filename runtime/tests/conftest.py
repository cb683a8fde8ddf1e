"""What holds for all tests."""

import signal

import pytest
from hypothesis import HealthCheck, settings

from distributed_dl_training import _handle, _threads

# How long an example takes, or is made, tells of the machine alone.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def pytest_configure():
    """Let Ctrl-C count: what a shell runs in the background, and starts in turn, ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def ranks_are_threads(monkeypatch):
    """Count for each rank that is a thread here only what it has asked, not pytest's threads."""
    monkeypatch.setattr(_handle, "threads_that_may_ask", list)
    monkeypatch.setattr(_threads, "unseen_threads", int)
