"""Where a release of the package index runs: on which architecture, glibc and Python."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier

from .ranges import ANY_VERSION, matches, series
from .rows import Release

# What tells one glibc from another: its releases are 2.17, 2.28, ...
_GLIBC_PARTS = 2


def runs(release: Release, arch: str, glibc: str | None, python: str) -> bool:
    """Whether it has wheels for a machine and a Python there. *glibc* None: as ``runs_on`` says."""
    return runs_on(release, arch, glibc) and has_wheels_for(release, python)


def runs_on(release: Release, arch: str, glibc: str | None) -> bool:
    """Whether it has wheels for a machine, whatever the Python.

    *glibc* None: it is not known, and pip will judge when the lock is made.
    """
    right_arch = not release.arch or arch in release.arch
    return release.wheels and right_arch and glibc_suffices(release, glibc)


def glibc_suffices(release: Release, glibc: str | None) -> bool:
    """Whether all its wheels run on this glibc; one that is not known is taken to do."""
    if release.glibc is None or glibc is None:
        return True
    return series(release.glibc, _GLIBC_PARTS) <= series(glibc, _GLIBC_PARTS)


def has_wheels_for(release: Release, python: str) -> bool:
    """Whether it has wheels for a Python, given as ``3.12`` or ``3.12.4``."""
    here = ".".join(python.split(".")[:2])
    return (not release.pythons or here in release.pythons) and admits(release, python)


def admits(release: Release, python: str) -> bool:
    """Whether its Requires-Python admits a Python; a text that is no range admits none."""
    try:
        return matches(python, release.requires_python or ANY_VERSION)
    except InvalidSpecifier:
        return False
