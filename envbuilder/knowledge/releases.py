"""Where a release of the package index runs: on which architecture, glibc and Python."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.specifiers import InvalidSpecifier

from .components import Release
from .ranges import ANY_VERSION, matches, series, sort_key

# What tells one glibc from another: its releases are 2.17, 2.28, ...
_GLIBC_PARTS = 2
# So many ranges of releases with the same Pythons are listed.
_MOST_FITS = 3


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


def pythons_text(release: Release) -> str:
    """Return the Pythons of its wheels in words; '' if it is for all of them."""
    if not release.pythons:
        return f"Python {release.requires_python}" if release.requires_python else ""
    ordered = sorted(release.pythons, key=sort_key)
    ends = ordered[:: max(1, len(ordered) - 1)]
    return f"Python {' to '.join(ends)}"


def fit_text(component: str, releases: Sequence[Release]) -> str:
    """Return which Pythons releases of a component are for, the newest first; '' if unknown."""
    texts: dict[str, list[str]] = {}
    for each in sorted(releases, key=lambda one: sort_key(one.version), reverse=True):
        if pythons_text(each):
            texts.setdefault(pythons_text(each), []).append(each.version)
    listed = [
        f"{' to '.join(dict.fromkeys((versions[-1], versions[0])))} for {text}"
        for text, versions in texts.items()
    ]
    more = f" and {len(listed) - _MOST_FITS} more" if len(listed) > _MOST_FITS else ""
    return f"{component} {', '.join(listed[:_MOST_FITS])}{more}" if listed else ""
