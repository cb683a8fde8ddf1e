"""The modulefile of Tcl module systems."""

from __future__ import annotations

from ..modulefile import render_modulefile
from ..subject import Subject

FILE = "{name}.tcl"
SUMMARY = "the modulefile of Tcl module systems"


def render(subject: Subject) -> str:
    """Return the modulefile; nothing is proved of it yet."""
    example = subject.example() if subject.example else None
    return render_modulefile(subject.source, subject.places, subject.number, None, "tcl", example)
