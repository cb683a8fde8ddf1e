"""What lies where in a root, and the stamp that says for which site and architecture it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, ValidationError

from ..errors import BuildError, UsageError
from ..files import write_atomically
from ..model.base import Document, Name, canonical_json
from ..model.places import Dialect, Places
from ..model.recipe import Arch

STAMP = ".envbuild.json"
SCHEMA = 1


class Stamp(Document):
    """To which site and architecture a root belongs."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    site: Name
    arch: Arch


class Version(Document):
    """One published number of an environment; a number is never given twice."""

    number: int = Field(ge=1)
    id: str
    dialect: Dialect
    removed: bool = False


class Registry(Document):
    """The numbers of one environment."""

    schema_: int = Field(default=SCHEMA, alias="schema")
    versions: tuple[Version, ...] = ()

    def of_id(self, identity: str) -> Version | None:
        """Return the number that prefix *identity* is or was going to be published as."""
        return next((v for v in self.versions if v.id == identity and not v.removed), None)

    def next_number(self) -> int:
        """Return the first number that was never used."""
        return max((v.number for v in self.versions), default=0) + 1


class Home:
    """The places of one environment in a root: whatever lies there has its name here alone."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.folder = root / name
        self.registry_file = self.folder / STAMP
        self.lock_file = self.folder / "in-use.lock"
        # Held for moments, by whoever changes the default or takes a number away.
        self.default_lock = self.folder / "default.lock"
        # The lock that the last create made.
        self.last_lock = self.folder / "lock.json"
        # For work that leaves nothing; who holds the lock may remove what a killed one left.
        self.scratch = self.folder / ".scratch"
        self.modulefiles = root / "modulefiles" / name

    def prefix(self, identity: str) -> Path:
        return self.folder / identity

    def build(self, identity: str) -> Path:
        return self.folder / f"{identity}.build"

    def places(self, identity: str) -> Places:
        return Places(prefix=self.prefix(identity), build=self.build(identity))

    def evidence(self, identity: str) -> Path:
        return self.folder / f"{identity}.evidence"

    def modulefile(self, version: Version) -> Path:
        return self.modulefiles / f"{version.number}{'.lua' if version.dialect == 'lua' else ''}"


@dataclass(frozen=True)
class Root:
    """A root that exists and is stamped."""

    path: Path
    site: str
    arch: str

    def home(self, name: str) -> Home:
        return Home(self.path, name)

    def homes(self) -> Iterator[Home]:
        """Yield every environment of the root, by name."""
        for folder in sorted(self.path.iterdir()):
            if (folder / STAMP).is_file():
                yield Home(self.path, folder.name)


def is_root(path: Path) -> bool:
    """Whether there is a root."""
    return _read_stamp(path) is not None


def read_root(path: Path) -> Root:
    """Open a root that must exist. Raises UsageError if it does not or is not a root."""
    stamp = _read_stamp(path)
    if stamp is None:
        raise UsageError(
            f"there is no root at {path}",
            "envbuild create makes one; --root DIR names another",
        )
    return Root(path, stamp.site, stamp.arch)


def open_root(path: Path, site: str, arch: Arch) -> Root:
    """Open the root for *site* and *arch*, making and stamping it if it is new.

    Raises UsageError when it belongs to another site or architecture, BuildError when it cannot
    be written.
    """
    stamp = _read_stamp(path)
    if stamp is None:
        if path.exists() and not path.is_dir():
            raise UsageError(
                f"{path} is a file, not a folder", "give --root a new or an empty folder"
            )
        if path.is_dir() and any(path.iterdir()):
            raise UsageError(
                f"{path} is not empty and not a root of envbuild",
                "give --root a new or an empty folder",
            )
        stamp = Stamp(site=site, arch=arch)
        path.mkdir(parents=True, exist_ok=True)
        write_atomically(path / STAMP, canonical_json(stamp.plain()))
    if stamp.arch != arch:
        raise UsageError(
            f"the root {path} holds environments for {stamp.arch}, not for {arch}",
            "architectures often share a file system: give each its own --root",
        )
    if stamp.site != site:
        raise UsageError(
            f"the root {path} belongs to site {stamp.site}, not to {site}",
            f"use --site {stamp.site}, or another --root",
        )
    (path / "modulefiles").mkdir(exist_ok=True)
    return Root(path, stamp.site, stamp.arch)


def _read_stamp(path: Path) -> Stamp | None:
    try:
        text = (path / STAMP).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    schema = _schema_of(text)
    if schema is not None and schema > SCHEMA:
        raise UsageError(
            f"the root {path} was made by a newer envbuild: its schema is {schema}, "
            f"this one knows {SCHEMA}",
            "update envbuild, or use another --root",
        )
    try:
        return Stamp.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(
            f"{path / STAMP} is damaged: {error.errors()[0]['msg']}",
            'it should hold {"schema": 1, "site": "...", "arch": "..."}',
        ) from error


def _schema_of(text: str) -> int | None:
    try:
        value = json.loads(text)["schema"]
    except (ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, int) else None


def open_home(root: Root, name: str) -> Home:
    """Return the places of an environment, made where they are new.

    The registry is written at once, so that a build that fails is listed and can be removed.
    """
    home = root.home(name)
    home.folder.mkdir(exist_ok=True)
    if not home.registry_file.exists():
        write_registry(home, Registry())
    return home


def read_registry(home: Home) -> Registry:
    """Return the numbers of an environment; none yet is an empty registry."""
    try:
        return Registry.model_validate_json(home.registry_file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Registry()
    except ValidationError as error:
        raise BuildError(
            f"{home.registry_file} is damaged: {error.errors()[0]['msg']}",
            "the environments beside it are untouched; restore the file from a backup",
        ) from error


def write_registry(home: Home, registry: Registry) -> None:
    """Replace the registry at once."""
    home.folder.mkdir(exist_ok=True)
    write_atomically(home.registry_file, canonical_json(registry.plain()))


DEFAULT_FILES: dict[Dialect, str] = {"lua": ".modulerc.lua", "tcl": ".version"}


def default_number(home: Home) -> int | None:
    """Return the number that ``module load NAME`` means, read from the file that says so."""
    for name in DEFAULT_FILES.values():
        try:
            text = (home.modulefiles / name).read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        match = re.search(r'["/](\d+)"', text)
        if match:
            return int(match.group(1))
    return None
