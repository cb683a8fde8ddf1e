"""Packages from outside that come before those of the environment."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.facts import Environment, InstalledDistribution, PackageFolder
from ...inspect.observation import seen
from .protocol import Violation, check

_SITE = "https://docs.python.org/3/library/site.html"


def _hidden_by(environment: Environment, kind: str) -> Iterator[Violation]:
    """Yield the distributions that one outside hides: another folder is searched before theirs."""
    for key, (folder, first) in environment.found.items():
        if folder.kind == kind:
            for other, hidden in _others(environment, folder, key):
                same = "the same release" if hidden.version == first.version else hidden.version
                yield Violation(
                    f"{first} of {folder.path} is used, not {same} of {other.path}",
                    (seen(first.path, "Version", first.version), seen(hidden.path)),
                    severity="info" if hidden.version == first.version else None,
                )
                break


def _others(
    environment: Environment, first: PackageFolder, key: str
) -> Iterator[tuple[PackageFolder, InstalledDistribution]]:
    for folder in environment.folders:
        if folder is not first:
            for each in folder.distributions:
                if each.key == key:
                    yield folder, each


def _user_site(environment: Environment) -> Iterator[Violation]:
    yield from _hidden_by(environment, "user")


def _pythonpath(environment: Environment) -> Iterator[Violation]:
    yield from _hidden_by(environment, "pythonpath")


CHECKS = (
    check(
        _user_site,
        id="path.user-site",
        layer="metadata",
        faults=("hidden",),
        severity="warning",
        title="a package in the user's home hides a package of the environment",
        why="the environment behaves differently for this user than for other users, and on nodes "
        "with another home",
        fix="set PYTHONNOUSERSITE=1, or pip uninstall the package outside of the environment",
        source=_SITE,
    ),
    check(
        _pythonpath,
        id="path.pythonpath",
        layer="variables",
        faults=("hidden",),
        severity="warning",
        title="a package on PYTHONPATH hides a package of the environment",
        why="PYTHONPATH comes before every environment, also for programs of another Python",
        fix="unset PYTHONPATH in this shell, or unload the module that sets it",
        source="https://docs.python.org/3/using/cmdline.html#envvar-PYTHONPATH",
    ),
)
