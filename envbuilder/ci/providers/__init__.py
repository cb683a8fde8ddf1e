"""Providers: what a pipeline of ``envbuild ci`` is written for.

Each is a module that satisfies ``Provider``.
"""

from __future__ import annotations

from . import github, gitlab, jenkins
from .protocol import Provider

PROVIDERS: dict[str, Provider] = {"gitlab": gitlab, "github": github, "jenkins": jenkins}
"""Every provider by its name; the first is taken where the user names none."""
