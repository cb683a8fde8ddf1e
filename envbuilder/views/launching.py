"""Launch lines as text for people."""

from __future__ import annotations

import shlex

from ..model.outcome import LaunchLine


def launch_line(value: LaunchLine) -> str:
    """Return the line as one types it into a shell."""
    return shlex.join(value.words)
