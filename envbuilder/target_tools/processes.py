"""Starting programs, and these tools themselves, as processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 60
# So many of the last lines are shown of a process that failed.
SHOWN_LINES = 8


def output_of(words, environ=None):
    """Return what a program prints on stdout, stripped; None if it cannot be asked."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def run_tool(words, environ=None, timeout=None):
    """Run one of these tools by this Python: (what it prints, None), or (None, lines that say why).

    In a process of its own, as what it imports or loads may crash or never end.
    """
    try:
        child = subprocess.run(
            [sys.executable, str(Path(__file__).resolve().parent), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, [f"it did not end within {timeout} s"]
    if child.returncode == 0:
        return child.stdout.decode("utf-8"), None
    lines = child.stderr.decode("utf-8", "replace").strip().splitlines()[-SHOWN_LINES:]
    if child.returncode < 0:
        lines.append(f"its process was ended by signal {-child.returncode}")
    return None, lines


def processors():
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
