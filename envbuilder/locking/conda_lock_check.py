"""The consistency of what a lock holds of conda channels; see ``lock_check``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..knowledge.artifacts import CondaArchive
from ..knowledge.channels import CHANNEL_ORIGINS, NOARCH, SUBDIRS, package_name, spec_name
from ..model.plan import Lock, Pin

# What a MatchSpec begins with: an optional channel, and the package's name.
_NAMED = re.compile(r"(?:[^\s\[]+::)?([A-Za-z0-9_.+-]+)")
# Virtual packages are the target's.
_VIRTUAL = "__"


def of_packages(lock: Lock) -> Iterator[str]:
    """Yield packages that are not what they are said to be, or not for the plan's architecture."""
    names: set[str] = set()
    for each in lock.conda_packages:
        if each.name in names:
            yield f"two conda packages have the name {each.name}"
        names.add(each.name)
        stem = f"{each.name}-{each.version}-{each.build}"
        if each.filename not in (f"{stem}.conda", f"{stem}.tar.bz2"):
            yield f"the conda package {stem} is the file {each.filename}"
        if each.subdir not in (None, NOARCH, SUBDIRS[lock.plan.arch]):
            yield f"the conda package {stem} is for {each.subdir}, not for {lock.plan.arch}"
        if each.channel is not None and each.url != f"{each.channel}/{each.subdir}/{each.filename}":
            yield f"the conda package {stem} is of {each.channel}, but its URL is {each.url}"


def of_pins(lock: Lock) -> Iterator[str]:
    """Yield pins of channels without just their package, and wheels of the same distribution."""
    packages = {each.name: each for each in lock.conda_packages}
    for pin in _pins(lock):
        package = packages.get(package_name(pin.locator))
        if package is None:
            yield f"{pin} has no conda package"
        elif package.version != pin.version:
            yield f"{pin} has the conda package {package.filename}"
    wheels = {each.name: each for each in lock.index_files if not each.build_only}
    for each in lock.conda_packages:
        if each.distribution in wheels:
            yield f"{each.distribution} comes from {each.filename} and from pip"


def of_closure(lock: Lock) -> Iterator[str]:
    """Yield packages that nothing needs, and those that are needed and not there."""
    packages = {each.name: each for each in lock.conda_packages}
    todo = {package_name(pin.locator) for pin in _pins(lock)} & packages.keys()
    specs = {spec_name(each) for each in lock.plan.conda_specs}
    # What the target has itself, such as __glibc, no package brings.
    asked = {each for each in specs if not each.startswith(_VIRTUAL)}
    yield from (
        f"{each} is requested, but has no conda package" for each in asked - packages.keys()
    )
    todo |= ({"pip"} | asked) & packages.keys()
    needed: set[str] = set()
    while todo:
        name = todo.pop()
        needed.add(name)
        needs = _needs(packages[name])
        yield from (
            f"{name} needs {each}, which has no conda package"
            for each in sorted(needs - packages.keys())
        )
        todo |= (needs & packages.keys()) - needed
    for name in sorted(packages.keys() - needed):
        yield f"no package needs {packages[name].filename}"


def _pins(lock: Lock) -> Iterator[Pin]:
    pins = (*lock.plan.pins, *lock.plan.build_pins)
    return (pin for pin in pins if pin.origin in CHANNEL_ORIGINS)


def _needs(package: CondaArchive) -> set[str]:
    matches = (_NAMED.match(each) for each in package.depends)
    names = {match[1].lower() for match in matches if match}
    return {each for each in names if not each.startswith(_VIRTUAL)}


CONDA_CHECKS: tuple[Callable[[Lock], Iterator[str]], ...] = (
    of_packages,
    of_pins,
    of_closure,
)
