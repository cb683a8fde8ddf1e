"""Lmod's modulefile."""

from __future__ import annotations

from ..modulefile import render_modulefile
from ..subject import Subject

FILE = "{name}.lua"
SUMMARY = "Lmod's modulefile"


def render(subject: Subject) -> str:
    """Return the modulefile; nothing is proved of it yet."""
    example = subject.example() if subject.example else None
    return render_modulefile(subject.source, subject.places, subject.number, None, "lua", example)
