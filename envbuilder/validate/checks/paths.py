"""Packages from outside that come before those of the environment."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...inspect.facts import Environment, InstalledDistribution, PackageFolder
from ...inspect.observation import seen
from .protocol import Violation, checks


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


CHECKS = checks(
    {
        "path.user-site": partial(_hidden_by, kind="user"),
        "path.pythonpath": partial(_hidden_by, kind="pythonpath"),
    }
)
