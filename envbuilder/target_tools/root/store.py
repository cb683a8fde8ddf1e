"""What lies where in a root, and the stamp that says for which site and architecture it is."""

import errno
import json
import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Callable, Mapping, NamedTuple

from .. import sharing
from ..errors import UsageError
from ..files import canonical_json, entries, make_folder, read_json, write_atomically
from ..sharing import STAMP

SCHEMA = 1
# Of the stamp of a root. Only one that is shared has the new one: earlier releases would make
# files there that the other members cannot change.
STAMP_SCHEMA = 2
DEFAULT_FILES = {"lua": ".modulerc.lua", "tcl": ".version"}
# In a build folder: it was copied from a bundle, whole.
BUNDLED = "bundle.complete"


class Version(NamedTuple):
    """One published number of an environment; a number is never given twice."""

    number: int
    id: str
    dialect: str
    removed: bool = False


class Home:
    """The places of one environment in a root: whatever lies there has its name here alone."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.folder: Path = root / name
        self.registry_file: Path = self.folder / STAMP
        self.lock_file: Path = self.folder / "in-use.lock"
        # Held for moments, by whoever changes the default or takes a number away.
        self.default_lock: Path = self.folder / "default.lock"
        # The lock that the last create made.
        self.last_lock: Path = self.folder / "lock.json"
        # For work that leaves nothing; who holds the lock may remove what a killed one left.
        self.scratch: Path = self.folder / ".scratch"
        self.modulefiles: Path = root / "modulefiles" / name
        # The highest number that was given, beside the modulefiles: what becomes of the folder of
        # the environment, a backup of it say, does not touch it. Module systems ignore it.
        self.last_number_file: Path = self.modulefiles / ".last-number"

    @property
    def group(self) -> "int | None":
        """The group that shares the root, by its number; None: it is one user's."""
        return sharing.declared_group(self.root)

    def prefix(self, identity: str) -> Path:
        """Return the prefix of an id; it is never moved."""
        return self.folder / identity

    def build(self, identity: str) -> Path:
        """Return the folder that the prefix is built from."""
        return self.folder / f"{identity}.build"

    def mark(self, identity: str) -> Path:
        """Return the file that says that a build, and its prefix, are ours to remove."""
        return self.build(identity) / STAMP

    def evidence(self, identity: str) -> Path:
        """Return the folder of what was proved."""
        return self.folder / f"{identity}.evidence"

    def manifest(self, identity: str) -> Path:
        """Return the file that says what the files of the prefix were."""
        return self.evidence(identity) / "manifest.json"

    def modulefile(self, version: Version) -> Path:
        """Return the modulefile of a number."""
        return self.modulefiles / f"{version.number}{'.lua' if version.dialect == 'lua' else ''}"


class Root(NamedTuple):
    """A root that exists and is stamped."""

    path: Path
    site: str
    arch: str
    # What the group that shares it is called; None: it is one user's.
    shared: "str | None" = None

    def home(self, name: str) -> Home:
        """Return the places of an environment."""
        return Home(self.path, name)

    def homes(self) -> "list[Home]":
        """Return every environment of the root, by name; one whose registry is lost, too."""
        homes = [Home(self.path, each.name) for each in sorted(self.path.iterdir())]
        return [each for each in homes if each.registry_file.is_file() or from_modulefiles(each)]


def is_root(path: Path) -> bool:
    """Whether there is a root."""
    return find_root(path) is not None


def read_root(path: Path) -> Root:
    """Open a root that must exist. Raises UsageError if it does not or is not a root."""
    found = find_root(path)
    if found is None:
        raise UsageError(
            f"there is no root at {path}",
            "envbuild create makes one; --root DIR names another",
        )
    return found


# What a root's path must not hold, and what would come of it in an environment there.
UNSAFE = {
    ";": "ld.so and CMake would split their lists of folders there",
    "$": "the activate script of a virtualenv and the first lines of its programs would run it",
    "`": "the activate script of a virtualenv and the first lines of its programs would run it",
    '"': "it would end a quoted path in the scripts of a virtualenv",
    "\\": "the scripts of a virtualenv would leave it out",
}


def check_root_path(path: Path) -> None:
    """Raise UsageError for a root whose path the scripts of an environment cannot hold."""
    for character in str(path):
        if character in UNSAFE:
            raise UsageError(
                f"the root {path} holds a {character!r}: {UNSAFE[character]}",
                "give --root a folder whose path has none",
            )


def open_root(
    path: Path, site: str, arch: str, shared: "str | None" = None, others: bool = False
) -> Root:
    """Open the root for *site* and *arch* to write in it, making and stamping it if it is new.

    *shared*: the group that a new one is shared with, and that one that is there must be. *others*:
    it may be another site's.

    Raises UsageError when it belongs to another site, architecture or group, or when its path
    cannot be in scripts, OSError when it cannot be written.
    """
    check_root_path(path)
    found = find_root(path)
    if found is None:
        if path.exists() and not path.is_dir():
            raise UsageError(
                f"{path} is a file, not a folder", "give --root a new or an empty folder"
            )
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                f"{path} is not empty and not a root of envbuild",
                "give --root a new or an empty folder",
            )
        found = Root(path, site, arch, shared)
    if found.arch != arch:
        raise UsageError(
            f"the root {path} holds environments for {found.arch}, not for {arch}",
            "architectures often share a file system: give each its own --root",
        )
    if found.site != site and not others:
        raise UsageError(
            f"the root {path} belongs to site {found.site}, not to {site}",
            f"use --site {found.site}, or another --root",
        )
    check_same_group(found, shared)
    if not (path / STAMP).exists():
        make_root(found)
    check_writable(found)
    make_folder(path / "modulefiles")
    return found


def make_root(root: Root) -> None:
    """Make and stamp a root. Raises UsageError for a group that cannot share it, OSError."""
    stamp = {"schema": SCHEMA, "site": root.site, "arch": root.arch}
    if root.shared is None:
        make_folder(root.path)
        write_atomically(root.path / STAMP, canonical_json(stamp))
        return
    group = sharing.group_number(root.shared)
    if not sharing.may_write(group):
        raise UsageError(
            f"you are not in group {root.shared}: you cannot share a root with it",
            "groups shows yours; after a change to them, log in anew",
        )
    make_folder(root.path)
    if root.path.stat().st_uid not in (0, os.geteuid()) and os.geteuid() != 0:
        raise UsageError(
            f"{root.path} belongs to {sharing.owner_of(root.path)}, who alone can share it",
            "give --root a folder of your own, or a new one",
        )
    try:
        sharing.share_folder(root.path, group)
    except PermissionError as error:
        raise UsageError(
            f"{sharing.misfit(root.path, group)}, and it belongs to {sharing.owner_of(root.path)}",
            repair(root.path, root.shared),
        ) from error
    stamp = dict(stamp, schema=STAMP_SCHEMA, group=root.shared)
    write_atomically(root.path / STAMP, canonical_json(stamp), mode=0o644)


def repair(folder, group):
    """Return the advice for a folder that does not fit the group that shares the root."""
    mode = f"{sharing.FOLDER_MODE:o}"
    return f"its owner can mend it: chgrp {group} '{folder}' && chmod {mode} '{folder}'"


def check_same_group(root, shared):
    """Raise UsageError if a root is not shared with the group that was asked for."""
    if shared in (None, root.shared):
        return
    said = f"shared with group {root.shared}" if root.shared else "not shared with any group"
    raise UsageError(
        f"the root {root.path} is {said}",
        f"a root is shared from its beginning: give --shared {shared} another --root",
    )


def check_writable(root: Root) -> None:
    """Raise UsageError in a shared root for who is no member, or if its modes do not fit.

    For every verb that changes something, before it does. In a root of one user its modes decide.
    Raises OSError where the file system is read-only.
    """
    if os.statvfs(str(root.path)).f_flag & os.ST_RDONLY:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(root.path))
    if root.shared is None:
        return
    if not sharing.may_write(sharing.group_number(root.shared)):
        raise UsageError(
            f"the root {root.path} is shared with group {root.shared}, and you are not in it",
            "its environments can be loaded, listed and shown; nothing was changed",
            "after you became a member, log in anew",
        )
    found = misfits(root)
    if found:
        folder = found[0][0]
        raise UsageError(
            f"the root is shared with group {root.shared}, but {found[0][1]}",
            repair(folder, root.shared),
        )


def misfits(root: Root, *homes: Home) -> "list[tuple[Path, str]]":
    """Return the folders of a root and of environments that do not fit the stamp, each with why.

    Nothing for one that is not shared. A group without a number here fits nowhere.
    """
    if root.shared is None:
        return []
    folders = [root.path, root.path / "modulefiles"]
    folders += [each for home in homes for each in (home.folder, home.modulefiles)]
    try:
        group = sharing.group_number(root.shared)
    except UsageError as error:
        return [(root.path, str(error))]
    found = [(each, sharing.misfit(each, group)) for each in folders if each.is_dir()]
    return [(folder, why) for folder, why in found if why]


def find_root(path):
    """Return the root that a folder is, stamped or not; None for any other folder."""
    return read_stamp(path) or root_of_bundles(path)


def root_of_bundles(path):
    """Return the root that bundles of an earlier release made, which wrote no stamp.

    They published without a proof, as number 1, from a build folder that says that it was copied;
    its lock says for which site. Nothing is written: ``open_root`` stamps it.
    """
    for folder in entries(path / "modulefiles"):
        home = Home(path, folder.name)
        builds = [home.build(each.id) for each in from_modulefiles(home)]
        for build in builds:
            if not (build / BUNDLED).is_file():
                continue
            try:
                plan = read_json(build / "lock.json")["plan"]
                stamp = {name: plan[name] for name in ("site", "arch")}
            except (OSError, ValueError, TypeError, KeyError):
                continue
            if stamp_problem(stamp) is None:
                return Root(path, stamp["site"], stamp["arch"])
    return None


def read_stamp(path):
    """Return the root that a folder is, None for any other folder."""
    file = path / STAMP
    try:
        stamp = read_json(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        stamp, problem = {}, f"no JSON: {error}"
    else:
        problem = stamp_problem(stamp)
    schema = stamp.get("schema") if isinstance(stamp, dict) else None
    if isinstance(schema, int) and schema > STAMP_SCHEMA:
        raise UsageError(
            f"the root {path} was made by a newer envbuild: its schema is {schema}, "
            f"this one knows {STAMP_SCHEMA}",
            "update envbuild, or use another --root",
        )
    if problem:
        raise UsageError(
            f"{file} is damaged: {problem}",
            'it should hold {"schema": 1, "site": "...", "arch": "..."}, of a shared root '
            '{"schema": 2, ..., "group": "..."}',
        )
    stranger = sharing.stamp_writer(path) if "group" in stamp else None
    if stranger:
        raise UsageError(
            f"{file} says that group {stamp['group']} shares the root, and {stranger} wrote it; "
            f"the folder is {sharing.owner_of(path)}'s, who alone can share it",
            "if it was meant so, that user writes the file anew; else use another --root",
        )
    return Root(path, stamp["site"], stamp["arch"], stamp.get("group"))


def stamp_problem(stamp):
    """Return what is wrong with a stamp, or None."""
    if not isinstance(stamp, dict):
        return "no object"
    if set(stamp) - {"schema", "group"} != {"site", "arch"}:
        return "it must hold site and arch"
    if ("group" in stamp) != (stamp.get("schema") == STAMP_SCHEMA):
        return "schema 2 names the group that shares the root, and schema 1 none"
    group = stamp.get("group", "-")
    if not (isinstance(group, str) and group.isprintable() and group.strip()):
        return "its group must be a name"
    names = all(isinstance(stamp[n], str) and NAME.match(stamp[n]) for n in ("site", "arch"))
    return None if names else "site and arch must be names"


NAME = re.compile(r"[a-z0-9]+([._+-][a-z0-9]+)*$")
IDENTITY = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*$")
# What a prefix is called: so many digits of its lock's hash. Nothing else is one.
PREFIX = re.compile(r"[0-9a-f]{12}")
MODULEFILE = re.compile(r"([1-9][0-9]{0,8})(\.lua)?")
MOST_NUMBERS = 10**9 - 1
NOTHING = MappingProxyType({})


def open_home(root: Root, name: str) -> Home:
    """Return the places of an environment, made where they are new.

    The registry is written at once, so that a build that fails is listed and can be removed.
    """
    home = root.home(name)
    for folder, why in misfits(root, home):
        raise UsageError(
            f"the root is shared with group {root.shared}, but {why}", repair(folder, root.shared)
        )
    make_folder(home.folder)
    if not home.registry_file.exists():
        write_registry(home, ())
    return home


def read_registry(home: Home) -> "tuple[Version, ...]":
    """Return the numbers of an environment, removed ones too, in their order.

    What a modulefile names counts, as that is what is loaded: a registry that is lost, damaged,
    edited, or older, as from a backup, takes nothing away and gives no number another meaning.
    """
    told = {each.number: each for each in registered(home)[0]}
    numbers = {**told, **{each.number: each for each in from_modulefiles(home, told)}}
    return tuple(numbers[number] for number in sorted(numbers))


def registry_problem(home: Home) -> "str | None":
    """Return what is wrong with the registry, and what becomes of it; None for a whole one."""
    problem = registered(home)[1]
    if problem is None:
        return None
    return (
        f"{home.registry_file} is damaged: {problem}; the numbers are those of its modulefiles, "
        "and the next envbuild create or remove of it writes that file anew"
    )


def registered(home):
    """Return what the registry alone says, as far as it can be read, and what is wrong with it."""
    try:
        registry = read_json(home.registry_file)
    except (FileNotFoundError, NotADirectoryError):
        return [], None
    except ValueError as error:
        return [], f"no JSON: {error}"
    values = registry.get("versions", []) if isinstance(registry, dict) else None
    if not isinstance(values, list):
        return [], "it must hold a list of versions"
    versions, problem = {}, None
    for value in values:
        version = read_version(value)
        if version is None or version.number in versions:
            fault = "this is no version" if version is None else "this number is there twice"
            problem = problem or f"{fault}: {json.dumps(value)[:100]}"
        else:
            versions[version.number] = version
    return list(versions.values()), problem


def heal_registry(home: Home, say: "Callable[[str], None]") -> None:
    """Write a damaged registry anew, and keep the damaged one. The lock must be held."""
    problem = registered(home)[1]
    if problem:
        aside = home.registry_file.with_name(f"{STAMP}.damaged")
        versions = read_registry(home)
        home.registry_file.replace(aside)
        write_registry(home, versions)
        say(f"{home.registry_file} was damaged ({problem}): written anew, the old one is {aside}")


def from_modulefiles(home: Home, told: "Mapping[int, Version]" = NOTHING) -> "list[Version]":
    """Return the numbers whose modulefile names a prefix of the environment that is there.

    *told*: what the registry says, for a modulefile that cannot be read, and where it names several
    prefixes. Raises OSError for one that cannot be read and is not told.
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
    """Return the ids of the prefixes of an environment that a modulefile speaks of.

    The root may be reached by several paths: what counts is the end of it.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(rf"/{re.escape(home.name)}/({PREFIX.pattern})(?![0-9A-Za-z._-])", text)
    return list(dict.fromkeys(found))


def is_folder(path: Path) -> bool:
    """Whether there is a folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def read_version(value):
    """Return a number of the registry; None for what is none."""
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
    make_folder(home.folder)
    registry = {"schema": SCHEMA, "versions": [each._asdict() for each in versions]}
    with sharing.readable(home.group):
        write_atomically(home.registry_file, canonical_json(registry))


def default_number(home: Home) -> "int | None":
    """Return the number that ``module load NAME`` means, read from the file that says so."""
    for name in DEFAULT_FILES.values():
        try:
            text = (home.modulefiles / name).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            continue
        match = re.search(r'["/]([0-9]{1,9})"', text)
        if match:
            return int(match.group(1))
    return None
