"""Compile installed packages: by every processor, or as it was done for an earlier environment.

    python -I target_tools bytecode REQUIREMENTS

REQUIREMENTS holds lines "NAME==VERSION --hash=sha256:HEX", as pip installed them into the
environment of the Python that runs this. What cannot be compiled, such as a template, is left as it
is: pip does so too.

The bytecode of a wheel is kept under the wheel's sha256 and the kind of Python that made it, in
ENVBUILD_BYTECODE_CACHE; else in envbuild/bytecode below XDG_CACHE_HOME or ~/.cache. It may be
removed at any time. What is there is not taken if others may have written it, it is damaged, of
another wheel or Python, or for a source of another size; that the sources are the wheel's, pip has
seen to.
"""

import collections
import concurrent.futures
import contextlib
import importlib.util
import json
import marshal
import multiprocessing
import os
import sys
import sysconfig
import zipfile
import zlib
from pathlib import Path

from .distributions import listed, records
from .files import let_nobody_else_write, make_folder, read_list
from .in_root import say
from .names import normalize
from .processes import processors
from .trust import distrust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Sequence, TypeVar

    T = TypeVar("T")

# Magic, flags (not before 3.7), time and size of the source: what comes before the code itself.
HEADER = 16 if sys.version_info >= (3, 7) else 12
MAGIC = importlib.util.MAGIC_NUMBER
# What was kept before this number may have been written by Python itself to a full disk: cut off.
FORM = 2
KIND = f"{sys.implementation.cache_tag}-{MAGIC[:2].hex()}-{FORM}"
INDEX = "index.json"
# Files that a process compiles before it asks for more.
TOGETHER = 20
# From 3.14 on Python would start its workers anew, and they would not find this package.
FORKED: "dict[str, Any]" = (
    {} if sys.version_info < (3, 7) else {"mp_context": multiprocessing.get_context("fork")}
)


def cache_folder() -> "Path | None":
    """Return the folder of the bytecode cache, or None."""
    named = os.environ.get("ENVBUILD_BYTECODE_CACHE")
    if named:
        return Path(named).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111
    # Without a home "~" stays as it is; a relative path is ignored, as its specification wants.
    return Path(caches) / "envbuild" / "bytecode" if os.path.isabs(caches) else None  # noqa: PTH117


class WheelSources:
    """The installed files of one wheel: their folder, and the sources relative to it."""

    def __init__(self, sha256: "str | None", folder: "Path | str", names: "list[str]") -> None:
        """Store its parts. *sha256*: None for one whose bytecode is not cached."""
        self.sha256 = sha256
        self.folder = str(folder)
        self.names = names

    def source(self, name: str) -> str:
        """Return the path of a source."""
        return os.path.join(self.folder, name)  # noqa: PTH118 - thousands of them

    def archive(self, cache: Path) -> Path:
        """Return where its bytecode is kept."""
        return Path(cache) / f"{self.sha256}-{KIND}.zip"


def sources_of(metadata: Path) -> "list[str]":
    """Return the Python files that a RECORD lists, of those that lie in its folder."""
    names = records(metadata)
    return sorted(n for n in names if n.endswith(".py") and not n.startswith(("..", "/")))


def installed(requirements: "Iterable[str]") -> "list[WheelSources]":
    """Return the wheels of a list of requirements that are installed here."""
    pins = read_list(requirements)
    hashes = {normalize(pin.partition("==")[0]): sha256 for pin, sha256 in pins}
    paths = sysconfig.get_paths()
    found = []
    for folder in sorted({paths["purelib"], paths["platlib"]}):
        for each in listed(folder):
            sha256 = hashes.get(normalize(each.name))
            if sha256 and each.path.name.endswith(".dist-info"):
                found.append(WheelSources(sha256, folder, sources_of(each.path)))
    return found


# ---------------------------------------------------------------- one wheel


def restore(wheel: WheelSources, cache: Path) -> "list[str]":
    """Write the bytecode that is kept of a wheel; return the sources that are not served."""
    path = wheel.archive(cache)
    reason = distrust(path)
    if reason:
        say(f"warning: cached bytecode skipped: {path}: {reason}")
        return wheel.names
    try:
        with zipfile.ZipFile(str(path)) as archive:
            sizes = index_of(archive, wheel)
            return [name for name in wheel.names if not restored(wheel, archive, sizes, name)]
    except UnwritableError:
        raise
    except FileNotFoundError:
        return wheel.names
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        say(f"warning: cached bytecode refused: {path}: {error}")
        return wheel.names


def index_of(archive: zipfile.ZipFile, wheel: WheelSources) -> "dict[str, int | None]":
    """Return the sizes of the sources of an archive; None for a source that cannot be compiled."""
    index = json.loads(archive.read(INDEX).decode("utf-8"))
    if (index["wheel"], index["kind"]) != (wheel.sha256, KIND):
        raise ValueError("it belongs to wheel {} and {}".format(index["wheel"], index["kind"]))
    return dict(index["sizes"])


def restored(
    wheel: WheelSources, archive: zipfile.ZipFile, sizes: "dict[str, int | None]", name: str
) -> bool:
    """Write the bytecode of one source; return False if it does not fit."""
    source = wheel.source(name)
    status = os.stat(source)  # noqa: PTH116 - thousands of them
    if name not in sizes:
        return False
    if sizes[name] is None:
        return True
    if sizes[name] != status.st_size:
        return False
    write(source, status, archive.read(name))
    return True


def header_of(status: os.stat_result) -> bytes:
    """Return the header of the bytecode of a source."""
    header = MAGIC + (bytes(4) if HEADER == 16 else b"")
    for number in (int(status.st_mtime), status.st_size):
        header += (number & 0xFFFFFFFF).to_bytes(4, "little")
    return header


def write(source: str, status: os.stat_result, code: bytes) -> None:
    """Write the bytecode of a source as a whole, or nothing; its folder may be missing."""
    path = importlib.util.cache_from_source(source)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103,PTH120 - thousands of them
        with open(path, "wb") as stream:  # noqa: PTH123
            stream.write(header_of(status) + code)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
        # The disk that is full is the environment's: nothing is wrong with what is kept.
        raise UnwritableError(error.errno, error.strerror, path) from error


class UnwritableError(OSError):
    """Bytecode cannot be written beside its source."""


def keep(wheel: WheelSources, cache: Path) -> None:
    """Write the bytecode of a wheel to the cache and replace an existing entry."""
    path = wheel.archive(cache)
    part = path.with_name(f".{path.name}.{os.uname().nodename}.{os.getpid()}")
    try:
        make_folder(path.parent)
        with zipfile.ZipFile(str(part), "w", zipfile.ZIP_DEFLATED) as archive:
            sizes = {name: kept(wheel, archive, name) for name in wheel.names}
            index = {"wheel": wheel.sha256, "kind": KIND, "sizes": sizes}
            archive.writestr(INDEX, json.dumps(index))
        let_nobody_else_write(part)
        part.replace(path)
    except (OSError, EOFError, ValueError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        say(f"note: cannot cache bytecode in {path.parent}: {reason}")
        if part.exists():
            part.unlink()


def kept(wheel: WheelSources, archive: zipfile.ZipFile, name: str) -> "int | None":
    """Add the bytecode of a source to an archive; return the source's size, None without bytecode.

    Raises EOFError, ValueError or TypeError for invalid bytecode: other environments would load it.
    """
    source = wheel.source(name)
    compiled = Path(importlib.util.cache_from_source(source))
    if not compiled.exists():
        return None
    status, data = os.stat(source), compiled.read_bytes()  # noqa: PTH116
    if data[:HEADER] != header_of(status):
        raise ValueError(f"{compiled} does not match its source")
    marshal.loads(data[HEADER:])  # noqa: S302 - Python does the same as soon as it is imported
    archive.writestr(name, data[HEADER:])
    return status.st_size


# ---------------------------------------------------------------- all of them


def compile_source(path: str) -> None:
    """Compile one source as pip does; ignore a file that cannot be compiled.

    Python's compileall does not report a full disk, and leaves a truncated file.
    """
    status = os.stat(path)  # noqa: PTH116
    try:
        with open(path, "rb") as stream:  # noqa: PTH123
            code = compile(stream.read(), path, "exec", dont_inherit=True)
    except Exception:  # whatever it is, who imports it is told
        return
    write(path, status, marshal.dumps(code))


def by_all(
    act: "Callable[..., T]", items: "Sequence[Any]", *more: object, together: int = 1
) -> "list[T]":
    """Return the results of act(item, *more), which every processor works on."""
    several = [[each] * len(items) for each in more]
    try:
        workers = min(processors(), len(items))
        pool = concurrent.futures.ProcessPoolExecutor(workers, **FORKED) if workers > 1 else None
    except (ImportError, OSError):  # no semaphores, as where /dev/shm is missing
        pool = None
    if pool is None:
        return list(map(act, items, *several))
    with pool:
        return list(pool.map(act, items, *several, chunksize=together))


def own_up(wheels: "list[WheelSources]") -> "list[str]":
    """Remove sources that several wheels contain from these wheels, and return their paths.

    It is unknown which wheel's copy was installed last.
    """
    owners = collections.Counter(each.source(name) for each in wheels for name in each.names)
    shared = sorted(path for path, number in owners.items() if number > 1)
    for wheel in wheels if shared else []:
        wheel.names = [name for name in wheel.names if owners[wheel.source(name)] == 1]
    return shared


def settle(wheels: "list[WheelSources]", cache: "Path | None") -> None:
    """Compile all sources of the wheels. Exits if bytecode cannot be written."""
    try:
        settle_all(wheels, cache)
    except UnwritableError as error:
        sys.exit(f"error: {error.strerror}: {error.filename}")


def settle_all(wheels: "list[WheelSources]", cache: "Path | None") -> None:
    """Restore cached bytecode, compile the other sources and cache them."""
    shared = own_up(wheels)
    # The largest first, so that no processor is left with one at the end.
    wheels = sorted(wheels, key=lambda wheel: -len(wheel.names))
    missing = by_all(restore, wheels, cache) if cache else [wheel.names for wheel in wheels]
    new = [(wheel, names) for wheel, names in zip(wheels, missing) if names]
    paths = [wheel.source(name) for wheel, names in new for name in names]
    by_all(compile_source, [*paths, *shared], together=TOGETHER)
    if cache:
        by_all(keep, [wheel for wheel, _ in new], cache)


def main(arguments: "list[str]") -> int:
    """Compile the installed packages; return the exit code."""
    if len(arguments) != 1:
        sys.stderr.write(__doc__)
        return 2
    with Path(arguments[0]).open(encoding="utf-8") as lines:
        settle(installed(lines), cache_folder())
    return 0
