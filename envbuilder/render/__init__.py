"""Rendering: pure functions from a lock to the texts of files. Nothing is written or run here."""

from .build import render_build, render_install, render_smoke
from .dialects import Dialect
from .launch import launch, launch_by_hand
from .modulefile import render_default, render_modulefile

__all__ = [
    "Dialect",
    "launch",
    "launch_by_hand",
    "render_build",
    "render_default",
    "render_install",
    "render_modulefile",
    "render_smoke",
]
