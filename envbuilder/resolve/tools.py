"""What building from source needs beside the stack: the newest release of each that fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..errors import NoSolutionError
from ..knowledge.ranges import ANY_VERSION, matches, sort_key
from ..knowledge.releases import runs
from ..model.plan import Pin, SourceBuild
from .request import Request

_NAME = re.compile(r"[a-z0-9._+-]+")


def build_tools(
    request: Request, builds: Sequence[SourceBuild], pins: Sequence[Pin]
) -> tuple[Pin, ...]:
    """Return what *builds* need of the index and *pins* do not hold, one pin for each.

    These never run in the environment, and no row speaks of them beside others: what a row does
    speak of (CMake, setuptools) is wanted by the runtime and stands in *pins*.
    """
    there = {pin.component for pin in pins}
    python = next(pin.version for pin in pins if pin.component == "python")
    asked: dict[str, dict[str, str]] = {}
    for build in builds:
        for name, constraint in _needs(request, build):
            if name not in there and name in request.knowledge.releases:
                asked.setdefault(name, {})[build.component] = constraint
    return tuple(_newest(request, name, python, asked[name]) for name in sorted(asked))


def _needs(request: Request, build: SourceBuild) -> Iterator[tuple[str, str]]:
    for need in request.knowledge.components[build.component].build_needs:
        if matches(build.version, need.range):
            yield from need.components.items()
    for each in build.build_requires:
        # A canonical name, and what the row says of it: see Remedy.
        name = _NAME.match(each)
        if name:
            yield name[0], each[name.end() :] or ANY_VERSION


def _newest(request: Request, name: str, python: str, asked: Mapping[str, str]) -> Pin:
    known = request.knowledge.components[name]
    fitting = [
        release
        for release in request.knowledge.releases[name]
        if all(matches(release.version, constraint) for constraint in asked.values())
        and runs(release, request.arch, request.glibc, python)
        and (name, release.version) not in request.refused
    ]
    why = "; ".join(f"{constraint} (building {of})" for of, constraint in asked.items())
    if not fitting or known.pip is None:
        glibc = f", glibc {request.glibc}" if request.glibc else ""
        raise NoSolutionError(
            "plan.no-build-tool",
            f"no release of {name} fits: {why}, Python {python}, {request.arch}{glibc}",
            "use another python in the recipe's stack",
        )
    newest = max(fitting, key=lambda release: sort_key(release.version))
    return Pin(component=name, version=newest.version, origin="pip", locator=known.pip, why=why)
