"""Targets: where a prefix is made. Each is a module that satisfies ``Target``."""

from __future__ import annotations

from . import bundle, here
from .protocol import Target

TARGETS: dict[str, Target] = {"here": here, "bundle": bundle}
"""Every target by its name; the first that suits is taken where the user names none."""


def default_target(arch: str, machine: str) -> str:
    """Return the name of the target for *arch* on a machine of architecture *machine*."""
    return next(name for name, each in TARGETS.items() if arch == machine or each.OTHER_ARCH)
