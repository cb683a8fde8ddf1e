"""The machine that envbuild runs on: its search path, its files, and its programs' answers.

Nothing is written, and no answer is waited for without end.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..errors import EnvbuildError
from ..process import GRACE, run
from ..target_tools.messages import one_line

_ARCHS = ("ppc64le", "aarch64", "x86_64")


def emulator(host: LocalMachine, arch: str) -> str | None:
    """Return what the kernel says of its emulator for *arch*; None where it has none enabled."""
    text = host.read(f"/proc/sys/fs/binfmt_misc/qemu-{arch}") or ""
    return text if text.startswith("enabled") else None


def emulated_archs(host: LocalMachine) -> list[str]:
    """Return the architectures whose programs the kernel hands to an emulator."""
    return [arch for arch in _ARCHS if emulator(host, arch)]


T = TypeVar("T")
# The scripts of builds look for wheels here first.
WHEEL_CACHE = "ENVBUILD_WHEEL_CACHE"

# Seconds a program gets to say its version. Slow file systems need one or two.
PATIENCE = 5.0
# Threads, not processes: they only wait.
WORKERS = 8
# What is looked at of a program's output, in characters; a version stands at the top.
ENOUGH = 20_000
# The same of one that is asked for everything it knows: ompi_info --all prints some 600,000.
EVERYTHING = 4_000_000
# What may still run when the time is up: the grace times of a group that will not end.
ENDING = 2 * GRACE + 1.0


class ProgramOutput(NamedTuple):
    """What a program printed. ``trouble`` says why it is no answer; None: it ended well."""

    stdout: str
    stderr: str
    trouble: str | None

    @property
    def text(self) -> str:
        """Both outputs: many programs print their version on stderr."""
        return f"{self.stdout}\n{self.stderr}"


def first_line(text: str) -> str:
    """Return the line that says most: a traceback's last, of anything else the first."""
    lines = [line for line in text[:ENOUGH].splitlines() if line.strip()]
    if not lines:
        return ""
    return one_line(lines[-1] if lines[0].startswith("Traceback") else lines[0], 200)


def quiet_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which programs are asked: plain words, and no file left behind."""
    # BASH_ENV would run the module system's start-up in every wrapper script.
    kept = {name: value for name, value in environ.items() if name not in {"BASH_ENV", "LANGUAGE"}}
    return {**kept, "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}


def ask(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: Path | None = None,
    patience: float = PATIENCE,
    enough: int = ENOUGH,
) -> ProgramOutput:
    """Run *command* for at most *patience* seconds. Whatever goes wrong is in the answer.

    *enough*: how many characters of each output are kept.
    """
    try:
        finished = run(command, env=quiet_environment(environ), cwd=cwd, timeout=patience)
    except (EnvbuildError, OSError, ValueError) as error:
        return ProgramOutput("", "", one_line(f"cannot start: {error}", 200))
    out, err = finished.stdout[:enough], finished.stderr[:enough]
    trouble = None
    if finished.code is None:
        trouble = f"did not answer within {patience:g} s"
    elif finished.code < 0:
        trouble = f"was ended by signal {-finished.code}"
    elif finished.code:
        reason = first_line(err) or first_line(out)
        trouble = one_line(f"exit code {finished.code}" + (f": {reason}" if reason else ""))
    return ProgramOutput(out, err, trouble)


def together(jobs: Sequence[Callable[[], T]], limit: float) -> list[T | None]:
    """Return the results of *jobs* in their order; None for one not ended after *limit* seconds.

    The threads are daemons: one that hangs on a dead file server holds up neither the caller nor
    the end of the program, as a thread pool would.
    """
    todo = deque(enumerate(jobs))
    results: dict[int, T] = {}
    failures: list[BaseException] = []

    def work() -> None:
        while True:
            try:
                index, job = todo.popleft()
            except IndexError:
                return
            try:
                results[index] = job()
            except BaseException as error:  # raised again in the caller's thread
                failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(WORKERS, len(jobs)))]
    until = time.monotonic() + limit
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if failures:
        raise failures[0]
    return [results.get(index) for index in range(len(jobs))]


# What is read of a file, in characters.
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


# False where one may not look, where Path.is_file() raises.
is_file, is_folder, is_there = os.path.isfile, os.path.isdir, os.path.exists


def runs(path: str) -> bool:
    """Return whether this is a program that the user may start."""
    return is_file(path) and os.access(path, os.X_OK)


def text_of(path: Path) -> str | None:
    """Return the beginning of a file's text, None when it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(FILE_LIMIT)
    except OSError:
        return None


def names_in(folder: str | Path) -> list[str]:
    """Return what is in a folder, sorted; nothing where one may not look."""
    try:
        return sorted(each.name for each in Path(folder).iterdir())
    except OSError:
        return []


class SearchPath(NamedTuple):
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
            tuple(PATH_WITHOUT_PATH.split(":")), (f"PATH is not set: using {PATH_WITHOUT_PATH}",)
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
            notes.append(f"PATH entry {entry!r} is not a searchable folder")
    return SearchPath(tuple(folders), tuple(dict.fromkeys(notes)))


@dataclass(frozen=True)
class LocalMachine:
    """What doctor and the snapshot look through.

    *files* is where /etc, /proc and /sys are found: another folder than ``/`` is a recorded
    machine. *patience* is how long a program may take to answer, in seconds.
    """

    environ: Mapping[str, str]
    cwd: Path | None = None
    files: Path = Path("/")
    patience: float = PATIENCE

    @cached_property
    def path(self) -> SearchPath:
        return search_path(self.environ)

    def at(self, path: str) -> Path:
        """Return where the machine's absolute *path* is."""
        return self.files / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Return the text of a file of the machine, None when it cannot be read."""
        return text_of(self.at(path))

    def names(self, path: str) -> list[str]:
        """Return what is in a folder of the machine, sorted; nothing where one may not look."""
        return names_in(self.at(path))

    def every(self, name: str) -> tuple[str, ...]:
        """Return every program *name* on the search path, the one that a shell runs first."""
        paths = (f"{folder.rstrip('/')}/{name}" for folder in self.path.folders)
        return tuple(path for path in paths if runs(path))

    def which(self, name: str) -> str | None:
        """Return the program that a shell runs for *name*, None when there is none."""
        return next(iter(self.every(name)), None)

    def ask(self, *command: str, enough: int = ENOUGH) -> ProgramOutput:
        """Run *command* and return what it says about itself."""
        return ask(command, self.environ, cwd=self.cwd, patience=self.patience, enough=enough)

    def home(self) -> Path | None:
        """Return $HOME where it is set to an absolute path."""
        value = self.environ.get("HOME", "")
        return Path(value) if value.startswith("/") else None


def cache_folder(host: LocalMachine) -> Path | None:
    """Return the cache folder as XDG has it, None when neither XDG_CACHE_HOME nor HOME is set."""
    stated = host.environ.get("XDG_CACHE_HOME", "")
    if stated.startswith("/"):
        return Path(stated) / "envbuild"
    home = host.home()
    return home / ".cache" / "envbuild" if home else None


def wheel_cache(host: LocalMachine) -> Path | None:
    """Return the folder of wheels built from source, as scripts of builds find it; None if none."""
    stated = host.environ.get(WHEEL_CACHE, "")
    if stated.startswith("/"):
        return Path(stated)
    caches = cache_folder(host)
    return caches / "wheels" if caches else None


def temp_folder(host: LocalMachine) -> Path:
    """Return the folder for temporary files, as Python chooses it from the environment."""
    stated = (host.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    return Path(next((folder for folder in stated if folder.startswith("/")), "/tmp"))  # noqa: S108
