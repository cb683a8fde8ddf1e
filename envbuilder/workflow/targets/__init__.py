"""Targets: where a prefix is made. Each is a module that satisfies ``Target``."""

from __future__ import annotations

from . import bundle, emulation, here, image
from .protocol import Target

TARGETS: dict[str, Target] = {
    "here": here,
    "bundle": bundle,
    "emulation": emulation,
    "image": image,
}
"""Every target by its name; the first that suits is taken where the user names none."""


def default_target(arch: str, machine: str) -> str:
    """Return the name of the target for *arch* on a machine of architecture *machine*."""
    return next(name for name, each in TARGETS.items() if suits(each, arch, machine))


def suits(target: Target, arch: str, machine: str) -> bool:
    """Return whether a target can be for *arch* on a machine of architecture *machine*."""
    return target.OWN_ARCH if arch == machine else target.OTHER_ARCH
