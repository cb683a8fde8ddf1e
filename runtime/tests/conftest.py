"""What holds for all tests."""

import signal


def pytest_configure():
    """Let Ctrl-C count: what a shell runs in the background, and starts in turn, ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
