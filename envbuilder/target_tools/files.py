"""Files: hashes of them, lists of locked ones, writing them so that no reader sees half of one."""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Mapping
from urllib.parse import unquote, urlsplit

CHUNK = 1024 * 1024
# What is read of a file of a root at most, in bytes; LARGE_BYTES of one that has an entry for every
# file of a prefix or every rank.
MAX_BYTES = 64 * 1024 * 1024
LARGE_BYTES = 512 * 1024 * 1024
# A package or git tree unpacks to at most so many times its packed size, beside what any may unpack
# to, and never to more than MOST_UNPACKED. Units: bytes.
UNPACKED_RATIO = 200
FREE_UNPACKED = 64 * 2**20
MOST_UNPACKED = 16 * 2**30
UNPACKED_VARIABLE = "ENVBUILD_UNPACKED_BYTES"
# A line of a list: the URL of a file, or NAME==VERSION, and its hash, as pip reads them too.
LINE = re.compile(r"(\S+) --hash=sha256:([0-9a-f]{64})")
ELF_MAGIC = b"\x7fELF"
KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
}


class IrregularFileError(OSError, ValueError):
    """A FIFO, device, socket, folder or too large file lies where a file is expected.

    To a reader of a record, both: a file that cannot be read, and content that cannot be right.
    """

    def __init__(self, path: "str | Path", fault: str) -> None:
        super().__init__(errno.EINVAL, fault, str(path))

    def __str__(self) -> str:
        return str(self.strerror)


def sha256_of(path: "str | Path") -> str:
    """Return the sha256 of a file as 64 hex digits."""
    whole = hashlib.sha256()
    with open_regular(path) as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            whole.update(chunk)
    return whole.hexdigest()


def read_list(lines: "Iterable[str]") -> "list[tuple[str, str]]":
    """Return (URL or requirement, sha256) of every line. Raises ValueError for an invalid line."""
    found = []
    for line in lines:
        match = LINE.match(line)
        if match is None:
            raise ValueError("not a line with a sha256: {!r}".format(line))
        found.append((match.group(1), match.group(2)))
    return found


def file_name(url: str) -> str:
    """Return the name that the file of a URL has in a folder."""
    return unquote(urlsplit(url).path.rpartition("/")[2])


def entries(folder: "str | Path") -> "list[Path]":
    """Return the entries of a folder, sorted by name; [] if it does not exist."""
    folder = Path(folder)
    return sorted(folder.iterdir()) if folder.is_dir() else []


def real(path: "str | Path") -> str:
    """Return a path with links resolved, as text."""
    return str(Path(path).resolve())


def real_in(root: str, path: str) -> str:
    """Return where a path leads in a system that lies in a folder, as chroot would have it.

    *root*: that folder, "" for this system. Raises OSError for links without end.
    """
    if not root:
        return os.path.realpath(path)
    waiting, here, links = path.split("/")[::-1], "", 0
    while waiting:
        part = waiting.pop()
        if part in ("", "."):
            continue
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        try:
            target = os.readlink("{}{}/{}".format(root, here, part))  # noqa: PTH115
        except (OSError, ValueError):
            here = "{}/{}".format(here, part)
            continue
        links += 1
        if links > 40:
            raise OSError(errno.ELOOP, "too many levels of links", path)
        if target.startswith("/"):
            here = ""
        waiting += target.split("/")[::-1]
    return root + here


def is_below(path: "str | Path", folder: "str | Path") -> bool:
    """Return whether a normal path is a folder or lies below it; links are not resolved."""
    path, folder = str(path), str(folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def irregularity(status: os.stat_result, limit: "int | None" = None) -> "str | None":
    """Return why a file is refused: its kind, or more than *limit* bytes. None: accepted."""
    if not stat.S_ISREG(status.st_mode):
        kind = KINDS.get(stat.S_IFMT(status.st_mode), "of another kind")
        return "it is {}, not a regular file".format(kind)
    if limit is not None and status.st_size > limit:
        return "it is larger than {} bytes".format(limit)
    return None


def open_regular(path: "str | Path", limit: "int | None" = None, links: bool = True) -> "BinaryIO":
    """Return a regular file of at most *limit* bytes, opened for reading bytes; never waits.

    *links*: whether a link to a regular file is accepted. Raises OSError, IrregularFileError for
    other files: a FIFO blocks, and a device may act or never end.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    flags |= 0 if links else os.O_NOFOLLOW
    number = None
    try:
        # Before it is opened: to open a device may act on it.
        status = os.stat(str(path), follow_symlinks=links)  # noqa: PTH116 - Path's is of 3.10
        fault = irregularity(status, limit)
        if fault is None:
            number = os.open(str(path), flags)
            # By now another file may lie there.
            fault = irregularity(os.fstat(number), limit)
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), str(path)) from error
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        fault = "it is a link or socket, not a regular file"
    if fault is None and number is not None:
        return os.fdopen(number, "rb")
    if number is not None:
        os.close(number)
    raise IrregularFileError(path, fault or "")


def read_regular(path: "str | Path", limit: int = MAX_BYTES, links: bool = True) -> bytes:
    """Return the bytes of a regular file of at most *limit* bytes; errors as of open_regular."""
    with open_regular(path, limit, links) as stream:
        return read_opened(stream, path, limit)


def read_opened(stream: "BinaryIO", path: "str | Path", limit: int = MAX_BYTES) -> bytes:
    """Return all bytes of an open file. Raises IrregularFileError for more than *limit*."""
    chunks, size = [], 0
    # The size that a file states may be wrong: some below /proc state 0, others grow. Some of them
    # have nothing to read yet: None.
    for chunk in iter(lambda: stream.read(CHUNK) or b"", b""):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise IrregularFileError(path, "it is larger than {} bytes".format(limit))
    return b"".join(chunks)


def read_text(path: "str | Path") -> str:
    """Return the text of a regular file; errors as of open_regular, UnicodeDecodeError."""
    return read_regular(path).decode("utf-8")


def text_or_none(path: "str | Path") -> "str | None":
    """Return the text of a file; None if it does not exist or is not a regular file."""
    try:
        return read_regular(path).decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError, IrregularFileError):
        return None


def read_end(path: "str | Path", size: int, begin: int = 0) -> str:
    """Return the last *size* bytes of a log, as text, without those before *begin*."""
    with open_regular(path, links=False) as stream:
        stream.seek(max(begin, os.fstat(stream.fileno()).st_size - size))
        return stream.read(size).decode("utf-8", "replace")


def is_elf(path: "str | Path") -> bool:
    """Return whether a file begins as ELF files do."""
    try:
        with open_regular(path) as stream:
            return stream.read(4) == ELF_MAGIC
    except OSError:
        return False


def write_atomically(
    path: Path, text: str, mode: "int | None" = None, is_new: bool = False
) -> None:
    """Replace *path* by *text* at once; on any failure the old file stays and no other is left.

    *mode*: the file's permissions, None: those that the umask leaves, and never that others may
    write it: see ``trust``. *is_new*: raise FileExistsError if *path* exists. Raises OSError, which
    names *path*, never the file beside it.
    """
    mask = os.umask(0)
    os.umask(mask)
    name = None
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=str(path.parent))
        with os.fdopen(number, "w", encoding="utf-8") as file:
            # mkstemp makes private files; others at the site must be able to read ours.
            os.fchmod(file.fileno(), 0o644 & ~mask if mode is None else mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            move_to_new(Path(name), path)
        else:
            Path(name).replace(path)
    except BaseException as error:
        if name is not None:
            with contextlib.suppress(FileNotFoundError):
                Path(name).unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(path), None
        raise


def move_to_new(source: Path, target: Path) -> None:
    """Move a file to a path where nothing is. Raises FileExistsError."""
    try:
        os.link(str(source), str(target))
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(str(target)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        source.replace(target)
    else:
        source.unlink()


def unpacked_limit(packed: int, environ: "Mapping[str, str]") -> int:
    """Return how many bytes *packed* bytes may unpack to: the user's limit, or the usual one.

    Raises ValueError if the user's is not a number.
    """
    stated = environ.get(UNPACKED_VARIABLE)
    if stated and not re.fullmatch("[0-9]{1,18}", stated):
        raise ValueError("{}={!r} is not a number of bytes".format(UNPACKED_VARIABLE, stated))
    if stated:
        return int(stated)
    return min(FREE_UNPACKED + UNPACKED_RATIO * packed, MOST_UNPACKED)


def unpacked_fault(limit: int) -> str:
    """Return why an archive is refused that unpacks to more than a limit, and what raises it."""
    return "it unpacks to more than {} bytes; {}=BYTES sets another limit".format(
        limit, UNPACKED_VARIABLE
    )


def make_folder(folder: Path) -> "list[Path]":
    """Make a folder, and those above it, that others may not write, whatever the umask.

    Returns those that are new. A folder that exists stays as it is. For a folder in a root that a
    group may share see ``sharing.make_folder``.
    """
    if folder.is_dir():
        return []
    made = make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o755)
        made.append(folder)
    return made


def copy_texts(source: Path, target: Path) -> None:
    """Copy the contents of the files of a folder without bytecode; modes are those of new files.

    A bundle may be read-only, or have been unpacked for a group.
    """
    for here, folders, names in os.walk(str(source)):
        folders[:] = [each for each in folders if each != "__pycache__"]
        there = target / Path(here).relative_to(source)
        there.mkdir(exist_ok=True)
        for name in names:
            shutil.copyfile(str(Path(here, name)), str(there / name))


def let_nobody_else_write(path: Path) -> None:
    """Remove the write permission of group and others from a new file or folder."""
    path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o022)


def make_read_only(folder: Path) -> None:
    """Take the write permission from everything below *folder* and from itself."""
    for here, _, names in os.walk(str(folder), topdown=False):
        for name in names:
            drop_write(Path(here, name))
        drop_write(Path(here))


def drop_write(path: Path) -> None:
    """Take the write permission from a file or folder; a link has none of its own."""
    if not path.is_symlink():
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)


def remove_tree(folder: Path) -> None:
    """Remove a folder with its read-only parts, or a file of that name. A missing one is no error.

    Links are not followed. Modes are changed only where they are in the way.
    """
    if folder.is_symlink() or not folder.is_dir():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder.unlink()
        return
    for here, _, _ in os.walk(str(folder)):
        mode = os.lstat(here).st_mode
        if mode & 0o700 != 0o700 and not stat.S_ISLNK(mode):
            Path(here).chmod(stat.S_IMODE(mode) | 0o700)
    shutil.rmtree(str(folder))


def write_json(path: "str | Path", value: object) -> None:
    """Write a file of JSON that is never there in part."""
    write_atomically(Path(path), json.dumps(value, indent=1) + "\n")


def canonical_json(value: object) -> str:
    """Return the one spelling of *value* that is hashed and written: sorted, indented, UTF-8."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def read_json(path: "str | Path", limit: int = MAX_BYTES) -> "Any":
    """Parse a regular file of JSON. Raises OSError, ValueError."""
    return parse_json(read_regular(path, limit).decode("utf-8"))


def parse_json(text: "str | bytes") -> "Any":
    """Parse JSON. Raises ValueError, also if it is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
