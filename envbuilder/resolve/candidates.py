"""Who could provide a component: the site's modules, its interpreters, the recorded index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from ..model.knowledge import Knowledge, Release
from ..model.ranges import ANY_VERSION
from ..model.site import Interpreter, Origin, Snapshot, StatedModule


@dataclass(frozen=True)
class Candidate:
    """One provider of one component in one version."""

    component: str
    version: str
    origin: Origin
    locator: str
    module: StatedModule | None = None


def matches(version: str, constraint: str) -> bool:
    """Whether *version* lies in the range; a module's toolchain suffix is not part of it.

    PEP 440 order, as pip has it; pre-releases only where the range names one.
    """
    if constraint == ANY_VERSION:
        return True
    parsed = parse(version)
    specifiers = SpecifierSet(constraint)
    return parsed is not None and specifiers.contains(
        parsed, prereleases=bool(specifiers.prereleases)
    )


def parse(version: str) -> Version | None:
    """Return the version, cut before the first part that PEP 440 does not know; None: none left.

    ``2.3.7-fosscuda-2018b`` reads as 2.3.7, ``7.3.0-2.30`` as 7.3.0.
    """
    plain = version.split("-", 1)[0]
    try:
        return Version(plain)
    except InvalidVersion:
        return None


def newest_first(candidates: list[Candidate]) -> list[Candidate]:
    """Sort by version, newest first, then by locator, so that equal inputs give equal answers."""
    by_locator = sorted(candidates, key=lambda c: c.locator)
    return sorted(by_locator, key=lambda c: parse(c.version) or Version("0"), reverse=True)


def pythons(snapshot: Snapshot, arch: str) -> Iterator[tuple[Candidate, Interpreter]]:
    """Yield the interpreters that can make a virtualenv for *arch*, modules' and the system's."""
    of_path = {interpreter.path: interpreter for interpreter in snapshot.interpreters}
    claimed = set()
    for module in snapshot.modules:
        if "python" in module.provides and module.python is not None:
            claimed.add(module.python)
            known = of_path.get(module.python)
            interpreter = known or Interpreter(
                path=module.python,
                version=module.provides["python"],
                arch=arch,
                can_make_venv=True,
            )
            version = module.provides["python"]
            yield Candidate("python", version, "module", module.name, module), interpreter
    for interpreter in snapshot.interpreters:
        usable = interpreter.can_make_venv and interpreter.arch == arch
        if usable and interpreter.path not in claimed:
            candidate = Candidate("python", interpreter.version, "system", interpreter.path)
            yield candidate, interpreter


def from_modules(component: str, snapshot: Snapshot) -> Iterator[Candidate]:
    """Yield the modules that are stated to provide *component*."""
    for module in snapshot.modules:
        if component in module.provides:
            version = module.provides[component]
            yield Candidate(component, version, "module", module.name, module=module)


@dataclass(frozen=True)
class Target:
    """What a binary wheel must fit."""

    arch: str
    python: str
    glibc: str | None


def from_index(component: str, knowledge: Knowledge, target: Target) -> Iterator[Candidate]:
    """Yield the recorded releases that have a wheel for the target."""
    known = knowledge.components.get(component)
    if known is None or known.pip is None:
        return
    for release in knowledge.releases.get(component, ()):
        if _fits(release, target):
            yield Candidate(component, release.version, "pip", known.pip)


def _fits(release: Release, target: Target) -> bool:
    series = ".".join(target.python.split(".")[:2])
    return (
        release.wheels
        and (not release.arch or target.arch in release.arch)
        and (not release.pythons or series in release.pythons)
        and _new_enough(target.glibc, release.glibc)
        and _admits(release.requires_python, target.python)
    )


def _new_enough(there: str | None, needed: str | None) -> bool:
    """Whether the glibc that is there suffices; an unknown one is left to pip to judge."""
    if there is None or needed is None:
        return True
    return Version(there) >= Version(needed)


def _admits(requires_python: str | None, python: str) -> bool:
    if requires_python is None:
        return True
    try:
        return SpecifierSet(requires_python).contains(python, prereleases=True)
    except InvalidSpecifier:
        return False
