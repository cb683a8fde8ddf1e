"""Environments of a root by their names: ``NAME`` or ``NAME/NUMBER``."""

from __future__ import annotations

from ..errors import UsageError
from ..model.places import BuildFolders
from ..target_tools.root.layout import Home, Version
from ..target_tools.root.publish import find_version, published
from ..target_tools.root.registry import default_number
from ..target_tools.root.stamp import Root


def places_of(home: Home, identity: str) -> BuildFolders:
    """Return where the environment of an id lies."""
    return BuildFolders(prefix=home.prefix(identity), build=home.build(identity))


def find(root: Root, environment: str) -> tuple[Home, Version]:
    """Return what ``NAME`` (its default) or ``NAME/NUMBER`` means in *root*."""
    name, slash, number = environment.partition("/")
    homes = {home.name: home for home in root.homes()}
    if name not in homes:
        there = ", ".join(homes) or "none yet"
        raise UsageError(
            "environment.unknown-name",
            f"there is no environment {name!r} in {root.path}",
            f"there: {there}",
        )
    if slash and not (number.isascii() and number.isdigit()):
        raise UsageError(
            "environment.malformed-number",
            f"{environment!r} has no number after the name; example: {name}/2",
        )
    return homes[name], find_version(homes[name], int(number) if number else None)


def check_not_image(home: Home, version: Version) -> None:
    """Raise UsageError for a number that is an image: its programs run in containers."""
    for image in home.images(version.number):
        raise UsageError(
            "environment.is-image",
            f"{home.name}/{version.number} is an image",
            f"use the path of the image instead of its name: {image}",
        )


def names(root: Root, *, numbers: bool) -> tuple[str, ...]:
    """Return the names of a root's environments; with *numbers* each published ``NAME/NUMBER``."""
    if not numbers:
        return tuple(home.name for home in root.homes())
    return tuple(
        f"{home.name}/{version.number}" for home in root.homes() for version in published(home)
    )


def number_before_default(home: Home) -> int:
    """Return the newest number before the default. Raises UsageError where there is none."""
    default = default_number(home)
    hint = f"list the numbers with envbuild list and use one: envbuild rollback {home.name} --to N"
    if default is None:
        raise UsageError(
            "environment.no-default", f"cannot roll back {home.name}: it has no default", hint
        )
    earlier = [each.number for each in published(home) if each.number < default]
    if not earlier:
        raise UsageError(
            "environment.no-previous",
            f"cannot roll back: there is no number before {home.name}/{default}",
            hint,
        )
    return max(earlier)
