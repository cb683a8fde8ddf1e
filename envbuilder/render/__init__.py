"""Rendering: pure functions from a lock to the texts of files. Nothing is written or run here."""

from .build import render_build, render_shell, render_smoke, render_text
from .dialects import Dialect
from .modulefile import render_default, render_modulefile
from .renderable import Renderable, UnlockedPlan
from .subject import JobParts, Subject

__all__ = [
    "Dialect",
    "JobParts",
    "Renderable",
    "Subject",
    "UnlockedPlan",
    "render_build",
    "render_default",
    "render_modulefile",
    "render_shell",
    "render_smoke",
    "render_text",
]
