"""What lies where in a root: the places of one environment, and one of its numbers."""

from pathlib import Path
from typing import NamedTuple

from .. import sharing
from ..sharing import STAMP

DEFAULT_FILES = {"lua": ".modulerc.lua", "tcl": ".version"}
# In a build folder: it was copied from a bundle, whole.
BUNDLED = "bundle.complete"
# Beside the evidence: every file of the prefix.
MANIFEST = "manifest.json"


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
        """The number of the group that shares the root; None: it is not shared."""
        return sharing.declared_group(self.root)

    def make_folder(self, folder: Path) -> None:
        """Make a folder of the environment; the group that shares the root may write there."""
        sharing.make_folder(folder, self.group)

    def prefix(self, identity: str) -> Path:
        """Return the prefix of an id; it is never moved."""
        return self.folder / identity

    def build(self, identity: str) -> Path:
        """Return the folder that the prefix is built from."""
        return self.folder / f"{identity}.build"

    def mark(self, identity: str) -> Path:
        """Return the file that marks a build and its prefix as made by envbuild."""
        return self.build(identity) / STAMP

    def evidence(self, identity: str) -> Path:
        """Return the folder of the evidence."""
        return self.folder / f"{identity}.evidence"

    def manifest(self, identity: str) -> Path:
        """Return the manifest of the prefix."""
        return self.evidence(identity) / MANIFEST

    def modulefile(self, version: Version) -> Path:
        """Return the modulefile of a number."""
        return self.modulefiles / f"{version.number}{'.lua' if version.dialect == 'lua' else ''}"

    def images(self, number: int) -> "tuple[Path, ...]":
        """Return the image that is published as a number: N-ARCH.sif; () for an environment."""
        return tuple(sorted(self.folder.glob(f"{number}-*.sif")))


def is_folder(path: Path) -> bool:
    """Whether there is a folder itself, and no link to one."""
    return path.is_dir() and not path.is_symlink()
