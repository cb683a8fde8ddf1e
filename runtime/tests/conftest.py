"""What holds for all tests."""

import signal

import pytest

from distributed_dl_training import _handle


def pytest_configure():
    """Let Ctrl-C count: what a shell runs in the background, and starts in turn, ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def ranks_are_threads(monkeypatch):
    """Count for each rank that is a thread here only what it has asked, not pytest's threads."""
    monkeypatch.setattr(_handle, "threads_that_may_ask", list)
