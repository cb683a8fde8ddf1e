"""The machine that is looked at: its environment, its search path and its files. Never written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .probe import ENOUGH, PATIENCE, ProgramOutput, ask

# What a program may print that is asked for everything it knows, in characters: ompi_info --all
# prints some 600,000.
_EVERYTHING = 4_000_000

# What is read of a file under /etc, /proc or /sys, in characters.
FILE_LIMIT = 1_000_000

# What a shell without PATH would search; with an empty PATH no program is found at all.
PATH_WITHOUT_PATH = "/usr/bin:/bin"

_ARCH_NAMES = {"amd64": "x86_64", "arm64": "aarch64", "powerpc64le": "ppc64le"}


def arch_name(machine: str) -> str:
    """Return the name that recipes use for what a kernel or a compiler calls *machine*."""
    return _ARCH_NAMES.get(machine, machine)


def machine_arch() -> str:
    """Return the architecture that programs of this machine see."""
    return arch_name(os.uname().machine)


def glibc_version() -> str | None:
    """Return the version of the C library that programs get here, None if it is not glibc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return None
    return version if name == "glibc" and version else None


def is_file(path: str | Path) -> bool:
    """Return whether this is a file; False where one may not look (Path.is_file() raises)."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str | Path) -> bool:
    """Return whether this is a folder; False where one may not look."""
    return os.path.isdir(path)  # noqa: PTH112


def is_there(path: str | Path) -> bool:
    """Return whether anything is there; False where one may not look."""
    return os.path.exists(path)  # noqa: PTH110


def runs(path: str) -> bool:
    """Return whether this is a program that the user may start."""
    return is_file(path) and os.access(path, os.X_OK)


@dataclass(frozen=True)
class SearchPath:
    """The folders of PATH that are searched, and what is odd about the others."""

    folders: tuple[str, ...]
    notes: tuple[str, ...]


def search_path(environ: Mapping[str, str]) -> SearchPath:
    """Return the folders of PATH, each real one once.

    Empty and relative entries are left out: looking at a machine must not run whatever lies in
    the current folder.
    """
    if "PATH" not in environ:
        return SearchPath(
            tuple(PATH_WITHOUT_PATH.split(":")), (f"PATH is not set: {PATH_WITHOUT_PATH} is used",)
        )
    folders: list[str] = []
    notes: list[str] = []
    seen: set[str] = set()
    for entry in environ["PATH"].split(":"):
        if not entry.startswith("/") or "\0" in entry:
            notes.append(f"PATH entry {entry!r} is relative to the current folder: not searched")
            continue
        real = os.path.realpath(entry)
        if real in seen:
            continue
        seen.add(real)
        if is_folder(real):
            folders.append(entry)
        else:
            notes.append(f"PATH entry {entry!r} is no folder that can be searched")
    return SearchPath(tuple(folders), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class Host:
    """What doctor and the snapshot look through.

    *files* is where /etc, /proc and /sys are found: another folder than ``/`` is a recorded
    machine. *patience* is how long a program may take to answer, in seconds.
    """

    environ: Mapping[str, str]
    cwd: Path | None = None
    files: Path = Path("/")
    patience: float = PATIENCE
    path: SearchPath = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", search_path(self.environ))

    def at(self, path: str) -> Path:
        """Return where the machine's absolute *path* is."""
        return self.files / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Return the text of a file of the machine, None when it cannot be read."""
        try:
            with self.at(path).open(encoding="utf-8", errors="replace") as file:
                return file.read(FILE_LIMIT)
        except OSError:
            return None

    def every(self, name: str) -> tuple[str, ...]:
        """Return every program *name* on the search path, the one that a shell runs first."""
        paths = (f"{folder.rstrip('/')}/{name}" for folder in self.path.folders)
        return tuple(path for path in paths if runs(path))

    def which(self, name: str) -> str | None:
        """Return the program that a shell runs for *name*, None when there is none."""
        return next(iter(self.every(name)), None)

    def ask(self, *command: str) -> ProgramOutput:
        """Run *command* and return what it says about itself."""
        return self._ask(command, ENOUGH)

    def ask_all(self, *command: str) -> ProgramOutput:
        """Run *command* and return all that it says, not only the beginning."""
        return self._ask(command, _EVERYTHING)

    def _ask(self, command: tuple[str, ...], enough: int) -> ProgramOutput:
        return ask(command, self.environ, cwd=self.cwd, patience=self.patience, enough=enough)

    def home(self) -> Path | None:
        """Return $HOME where it is set to an absolute path."""
        value = self.environ.get("HOME", "")
        return Path(value) if value.startswith("/") else None
