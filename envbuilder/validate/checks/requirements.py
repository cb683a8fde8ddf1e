"""What distributions require of each other, of Python and of the machine."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ...inspect.facts import Environment, InstalledDistribution, arch_of
from ...inspect.observation import seen
from ...target_tools.names import normalize
from .protocol import Outcome, Undecided, Violation, checks

# A requirement of an extra alone: most are, and to parse them all takes half of the time.
_LONGEST = 2000
_UNREADABLE = "the requirement cannot be read"
_NO_BASE = "the base Python, which may have the package, is not on this machine"
_NO_SERIES = "the version of the Python is unknown"
_OF_EXTRA = re.compile(r";[^;]*\bextra\s*==\s*['\"]([^'\"]*)['\"]")


class Required(NamedTuple):
    """What a distribution requires. ``version``: what is there; None: nothing is."""

    owner: InstalledDistribution
    requirement: Requirement
    version: str | None


class _Unread(NamedTuple):
    """A requirement that cannot be judged, and why."""

    owner: InstalledDistribution
    text: str
    reason: str


def required(environment: Environment) -> tuple[Required, ...]:
    """Return what the distributions require here."""
    return tuple(each for each in _looked_at(environment) if isinstance(each, Required))


@lru_cache(maxsize=1)
def _looked_at(environment: Environment) -> tuple[Required | _Unread, ...]:
    """Return what the distributions require here.

    Extras are looked at where another distribution asks for them.
    """
    return tuple(_required(environment))


def unmet(environment: Environment) -> tuple[Required, ...]:
    """Return every requirement that does not hold."""
    return tuple(each for each in required(environment) if not is_met(each))


def is_met(each: Required) -> bool:
    """Whether what is there is what is required."""
    return each.version is not None and admits(each.requirement, each.version)


def _required(environment: Environment) -> Iterator[Required | _Unread]:
    markers = _marker_values(environment)
    waiting = [(each, "") for each in environment.distributions]
    looked = set(waiting)
    while waiting:
        each, extra = waiting.pop()
        for requirement in _requirements(each, extra, markers):
            if isinstance(requirement, _Unread):
                yield requirement
                continue
            found = environment.found.get(normalize(requirement.name))
            if found is None and environment.away and environment.system_packages:
                yield _Unread(each, str(requirement), _NO_BASE)
                continue
            if found is None:
                yield Required(each, requirement, None)
                continue
            other = found[1]
            yield Required(each, requirement, other.version)
            for wanted in sorted(requirement.extras):
                if (other, wanted) not in looked:
                    looked.add((other, wanted))
                    waiting.append((other, wanted))


def _requirements(
    each: InstalledDistribution, extra: str, markers: Mapping[str, str]
) -> Iterator[Requirement | _Unread]:
    """Yield what a distribution requires here: of itself, or of one of its extras."""
    for text in each.requires:
        if len(text) > _LONGEST:
            yield _Unread(each, f"{text[:60]}...", _UNREADABLE)
            continue
        only = _OF_EXTRA.search(text)
        if only and " or " not in text and normalize(only[1]) != normalize(extra):
            continue
        requirement = _parsed(text)
        if requirement is None:
            yield _Unread(each, text, _UNREADABLE)
            continue
        if _holds(requirement.marker, {**markers, "extra": extra}) is None:
            yield _Unread(each, text, "the marker compares values that cannot be compared")
            continue
        # What holds without the extra as well was looked at without it.
        if _holds(requirement.marker, {**markers, "extra": extra}) and not (
            extra and _holds(requirement.marker, {**markers, "extra": ""})
        ):
            yield requirement


@cache
def _parsed(text: str) -> Requirement | None:
    """Return a requirement; None for what is none, or is nested without end."""
    try:
        return Requirement(text)
    except (InvalidRequirement, RecursionError):
        return None


def _holds(marker: Marker | None, values: Mapping[str, str]) -> bool | None:
    """Return whether a marker holds; None if it compares what cannot be compared."""
    try:
        return marker is None or marker.evaluate(dict(values))
    except (UndefinedComparison, UndefinedEnvironmentName, ValueError, RecursionError):
        return None


def admits(requirement: Requirement, version: str) -> bool:
    if requirement.url:
        return True
    try:
        return requirement.specifier.contains(Version(version), prereleases=True)
    except ValueError:  # an old spelling, or a number that is too long for one
        return True


def _is_comparable(version: str) -> bool:
    """Whether a version is one of today's form, and no number in it is too long."""
    try:
        Version(version)
    except ValueError:
        return False
    return True


def _marker_values(environment: Environment) -> dict[str, str]:
    """Return the values of environment markers in the Python of the environment."""
    python = environment.interpreter
    version = python.version or python.series or "3"
    return {
        "implementation_name": "cpython",
        "implementation_version": version,
        "os_name": "posix",
        "platform_machine": arch_of(python.machine) or "",
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": version,
        "python_version": python.series or ".".join(version.split(".")[:2]),
        "sys_platform": "linux",
    }


def _metadata(environment: Environment, each: InstalledDistribution) -> str:
    return f"{environment.short(each.path)}/METADATA"


def _missing(environment: Environment) -> Iterator[Outcome]:
    for unread in _looked_at(environment):
        if isinstance(unread, _Unread):
            yield Undecided(unread.reason, f"{unread.owner}: {unread.text}")
    for each, requirement, version in unmet(environment):
        if version is None:
            wanted = f"{requirement.name}{requirement.specifier}"
            where = _metadata(environment, each)
            yield Violation(
                f"{each} requires {wanted}, which is not installed",
                (seen(where, "Requires-Dist", requirement),),
                fix=f"pip install {shlex.quote(wanted)}",
            )


def _other_version(environment: Environment) -> Iterator[Outcome]:
    for each, requirement, version in required(environment):
        if version is not None and requirement.specifier and not _is_comparable(version):
            text = f"{each}: {requirement.name}{requirement.specifier}, {version} is there"
            yield Undecided("the version cannot be compared", text)
    for each, requirement, version in unmet(environment):
        if version is not None:
            found = environment.found[normalize(requirement.name)][1]
            yield Violation(
                f"{each} requires {requirement.name}{requirement.specifier}, {version} is there",
                (
                    seen(_metadata(environment, each), "Requires-Dist", requirement),
                    seen(_metadata(environment, found), "Version", version),
                ),
            )


def _other_python(environment: Environment) -> Iterator[Outcome]:
    python = environment.interpreter.version or environment.interpreter.series
    if python is None:
        yield Undecided(_NO_SERIES)
        return
    # Of a series alone every patch release may be meant: 3.11 does not decide >=3.11.4.
    releases = [python] if environment.interpreter.version else [f"{python}.0", f"{python}.999"]
    for each in environment.distributions:
        try:
            wanted = SpecifierSet(each.requires_python or "")
            fits = {Version(release) in wanted for release in releases}
        except ValueError:
            text = f"{each}: {each.requires_python}"
            yield Undecided("the version or range of Python cannot be read", text)
            continue
        if len(fits) > 1:
            text = f"{each}: {each.requires_python}"
            yield Undecided("only the series of the Python is known", text)
        elif fits == {False}:
            yield Violation(
                f"{each} requires Python {each.requires_python}, this is {python}",
                (seen(_metadata(environment, each), "Requires-Python", each.requires_python),),
            )


def _other_abi(environment: Environment) -> Iterator[Outcome]:
    series = environment.interpreter.series
    if series is None:
        yield Undecided(_NO_SERIES)
        return
    number = series.replace(".", "")
    yield from _other_suffix(environment)
    for each in environment.distributions:
        if each.tags and not any(_tag_fits(tag, number) for tag in each.tags):
            yield Violation(
                f"{each} is of a wheel for {each.tags[0]}, this is Python {series}",
                (seen(f"{environment.short(each.path)}/WHEEL", "Tag", ", ".join(each.tags)),),
            )


def _other_suffix(environment: Environment) -> Iterator[Violation]:
    """Look for modules whose names end for another Python, without one for this beside them."""
    series = environment.interpreter.series
    if series is None:
        return
    own = re.compile(rf"\.(cpython-{series.replace('.', '')}\w*-[^.]+|abi3)\.so$")
    stems: dict[str, list[str]] = {}
    for each in environment.libraries:
        if ".cpython-" in each.path or own.search(each.path):
            stems.setdefault(each.stem, []).append(each.path)
    for paths in stems.values():
        if not any(own.search(path) for path in paths):
            yield Violation(
                f"{environment.name(paths[0])} is for another Python, this is Python {series}",
                tuple(seen(environment.short(path), "suffix") for path in paths),
            )


def _tag_fits(tag: str, number: str) -> bool:
    """Whether the Python and the ABI of a wheel's tag fit CPython *number*: 311."""
    pythons, _, rest = tag.partition("-")
    abis, _, _ = rest.partition("-")
    for python in pythons.split("."):
        match = re.fullmatch(r"(cp|py)(\d)(\d*)", python)
        if match is None:
            continue
        kind, major, minor = match.groups()
        older = major == number[0] and int(minor or 0) <= int(number[1:])
        exact = major + minor == number
        for abi in abis.split("."):
            if (abi == "none" and older) or (abi == "abi3" and older):
                return True
            if kind == "cp" and exact and abi.startswith(f"cp{number}"):
                return True
    return False


CHECKS = checks(
    {
        "package.requirement-missing": _missing,
        "package.requirement-unmet": _other_version,
        "package.python-unmet": _other_python,
        "package.other-abi": _other_abi,
    }
)
