"""The numbers of an environment: what its registry says, and what its modulefiles do.

Modulefiles are what users load, so they count where the two differ.
"""

import json
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any, Callable, Mapping

from .. import sharing
from ..files import (
    MAX_BYTES,
    IrregularFileError,
    canonical_json,
    entries,
    irregularity,
    read_json,
    text_or_none,
    write_atomically,
)
from ..sharing import STAMP
from .layout import DEFAULT_FILES, Home, Version, is_folder

SCHEMA = 1
IDENTITY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*$")
# What a prefix is called: so many digits of its lock's hash. Nothing else is one.
PREFIX = re.compile(r"[0-9a-f]{12}")
MODULEFILE = re.compile(r"([1-9][0-9]{0,8})(\.lua)?")
MOST_NUMBERS = 10**9 - 1
NOTHING: "Mapping[int, Version]" = MappingProxyType({})


def read_registry(home: Home) -> "tuple[Version, ...]":
    """Return the numbers of an environment, removed ones too, in their order.

    Modulefiles take precedence, because users load them: a registry that is lost, damaged, edited
    or restored from a backup removes no number and changes none.
    """
    told = {each.number: each for each in registered(home)[0]}
    numbers = {**told, **{each.number: each for each in from_modulefiles(home, told)}}
    return tuple(numbers[number] for number in sorted(numbers))


def problems(home: Home) -> "list[str]":
    """Return the problems of the registry and the modulefiles, and how they are resolved."""
    found = []
    problem = registered(home)[1]
    if problem is not None:
        found.append(
            f"{home.registry_file} is damaged: {problem}; the numbers come from its "
            "modulefiles; the next envbuild create or remove writes the file again"
        )
    names = {*DEFAULT_FILES.values(), home.last_number_file.name}
    for path in entries(home.modulefiles):
        if path.name in names or MODULEFILE.fullmatch(path.name):
            try:
                fault = irregularity(path.stat(), MAX_BYTES)
            except OSError as error:
                fault = error.strerror
            more = f"; envbuild rollback {home.name} --to N writes it again"
            if fault:
                more = more if path.name in DEFAULT_FILES.values() else ""
                found.append(f"cannot read {path}: {fault}{more}")
            elif path.name in DEFAULT_FILES.values() and number_in(path) is None:
                found.append(f"{path} names no default{more}")
    return found


def registered(home: Home) -> "tuple[list[Version], str | None]":
    """Return the readable versions of the registry alone, and its problem or None."""
    try:
        registry = read_json(home.registry_file)
    except (FileNotFoundError, NotADirectoryError):
        return [], None
    except IrregularFileError as error:
        return [], str(error)
    except ValueError as error:
        return [], f"not JSON: {error}"
    values = registry.get("versions", []) if isinstance(registry, dict) else None
    if not isinstance(values, list):
        return [], "it must contain a list of versions"
    versions: "dict[int, Version]" = {}
    problem = None
    for value in values:
        version = read_version(value)
        if version is None or version.number in versions:
            fault = "not a version" if version is None else "duplicate number"
            problem = problem or f"{fault}: {json.dumps(value)[:100]}"
        else:
            versions[version.number] = version
    return list(versions.values()), problem


def heal_registry(home: Home, say: "Callable[[str], None]") -> None:
    """Write a damaged registry again, and keep the damaged file. The lock must be held."""
    problem = registered(home)[1]
    if problem:
        aside = home.registry_file.with_name(f"{STAMP}.damaged")
        versions = read_registry(home)
        home.registry_file.replace(aside)
        write_registry(home, versions)
        say(
            f"{home.registry_file} was damaged ({problem}): wrote a new one, the old one is {aside}"
        )


def from_modulefiles(home: Home, told: "Mapping[int, Version]" = NOTHING) -> "list[Version]":
    """Return the numbers whose modulefile names a prefix of the environment that is there.

    *told*: the versions of the registry, for modulefiles that cannot be read or name several
    prefixes. Raises OSError if a modulefile cannot be read and the registry lacks its number.
    """
    found = []
    for path in entries(home.modulefiles):
        match = MODULEFILE.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        number = int(match.group(1))
        dialect = "lua" if match.group(2) else "tcl"
        before = told.get(number)
        try:
            named = named_prefixes(home, path)
        except OSError:
            if before is None:
                raise
            continue
        there = [identity for identity in named if is_folder(home.prefix(identity))]
        if before and before.id in there:
            there = [before.id]
        if there:
            found.append(Version(number, there[0], dialect))
    return found


def named_prefixes(home: Home, path: Path) -> "list[str]":
    """Return the ids of the prefixes of an environment that a modulefile names.

    The root may have several paths, so only the end of a path is compared. A modulefile that is not
    read (see ``problems``) names none.
    """
    text = text_or_none(path) or ""
    found = re.findall(rf"/{re.escape(home.name)}/({PREFIX.pattern})(?![0-9A-Za-z._-])", text)
    return list(dict.fromkeys(found))


def read_version(value: "Any") -> "Version | None":
    """Parse a version of the registry; return None if it is invalid."""
    try:
        version = Version(**value)
        right = type(version.number) is int and 0 < version.number <= MOST_NUMBERS
        right = right and version.dialect in DEFAULT_FILES and isinstance(version.removed, bool)
        right = right and bool(IDENTITY.match(version.id))
    except TypeError:
        right = False
    return version if right else None


def write_registry(home: Home, versions: "tuple[Version, ...]") -> None:
    """Replace the registry at once."""
    home.make_folder(home.folder)
    registry = {"schema": SCHEMA, "versions": [each._asdict() for each in versions]}
    with sharing.readable(home.group):
        write_atomically(home.registry_file, canonical_json(registry))


def default_number(home: Home) -> "int | None":
    """Return the number of the default, from the file that defines ``module load NAME``."""
    numbers = (number_in(home.modulefiles / name) for name in DEFAULT_FILES.values())
    return next((each for each in numbers if each is not None), None)


def number_in(path: Path) -> "int | None":
    """Return the number that the file of a default names, or None."""
    match = re.search(r'["/]([0-9]{1,9})"', text_or_none(path) or "")
    return int(match.group(1)) if match else None


def removal_hints(home: Home, version: Version) -> "tuple[str, ...]":
    """Return the commands that remove a number; a default is replaced first."""
    name, root = f"{home.name}/{version.number}", f"--root '{home.root}'"
    if version.number != default_number(home):
        return (f"envbuild remove {name} {root} removes it",)
    everything = f"envbuild remove {home.name} --all {root} removes all numbers"
    others = {each.number for each in from_modulefiles(home)} - {version.number}
    if not others:
        return (everything,)
    # As rollback chooses: the newest before it, else the newest of all.
    other = max([each for each in others if each < version.number] or others)
    rollback = f"envbuild rollback {home.name} --to {other} {root} makes another the default first"
    return rollback, everything
