"""The archive of a git tree: the same bytes wherever, whenever and by whichever git it is made.

``git archive`` promises no such thing, and obeys the tree's own .gitattributes; tarfile fills its
headers otherwise from one Python to the next. So the sha256 of a tree is that of this archive:

- a POSIX tar (ustar) of the tree's files and links below one folder, sorted by the bytes of their
  paths; folders have no members of their own;
- a file has mode 0644, or 0755 where git has it as executable; a link 0777; all belong to user and
  group 0, without names;
- the time of every member is that of the commit;
- a path or target that is longer than 100 bytes, or not ASCII, stands in a pax header before the
  member, and cut to 100 bytes in its own header;
- two blocks of zeros end it, and nothing is compressed.
"""

import hashlib
from typing import BinaryIO, Iterable

BLOCK = 512
FIELD = 100
# The most that eleven octal digits say.
LARGEST = 8**11 - 1
FILE, LINK, PAX = b"0", b"2", b"x"


def header(kind: bytes, path: bytes, mode: int, size: int, time: int, target: bytes = b"") -> bytes:
    """Return the block before a member's content."""
    fields = [
        path[:FIELD].ljust(FIELD, b"\0"),
        b"%07o\0" % mode,
        b"%07o\0" % 0,
        b"%07o\0" % 0,
        b"%011o\0" % size,
        b"%011o\0" % time,
        b" " * 8,
        kind,
        target[:FIELD].ljust(FIELD, b"\0"),
        b"ustar\00000",
    ]
    block = b"".join(fields).ljust(BLOCK, b"\0")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def record(name: bytes, value: bytes) -> bytes:
    """Return a line of a pax header, which begins with its own length."""
    rest = b" " + name + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode("ascii") + rest


def padding(size: int) -> bytes:
    """Return the padding after so many bytes."""
    return b"\0" * (-size % BLOCK)


def fits(value: bytes) -> bool:
    """Return whether a path fits the field of a header, for every reader of tars."""
    return len(value) <= FIELD and all(byte < 128 for byte in value)


class TreeArchive:
    """Writes an archive to *stream*; members must be added in their order.

    *top*: the folder of all members. *time*: of the commit, in seconds since 1970.
    """

    def __init__(self, stream: "BinaryIO", top: str, time: int) -> None:
        """Start an empty archive."""
        self._stream = stream
        self._top = top.encode("utf-8") + b"/"
        self._time = min(max(time, 0), LARGEST)
        self._hash = hashlib.sha256()
        self._size = 0

    def add_file(self, path: bytes, executable: bool, size: int, chunks: "Iterable[bytes]") -> None:
        """Add a file of *size* bytes. Raises ValueError where *chunks* are not as many."""
        if size > LARGEST:
            raise ValueError("more than 8 GiB")
        self._begin(FILE, path, 0o755 if executable else 0o644, size)
        before = self._size
        for chunk in chunks:
            self._write(chunk)
        if self._size - before != size:
            raise ValueError(f"{self._size - before} bytes instead of {size}")
        self._write(padding(size))

    def add_link(self, path: bytes, target: bytes) -> None:
        """Add a symbolic link."""
        self._begin(LINK, path, 0o777, 0, target)

    def end(self) -> "tuple[str, int]":
        """Write the end; return sha256 and size of the archive in bytes."""
        self._write(b"\0" * BLOCK * 2)
        return self._hash.hexdigest(), self._size

    def _begin(self, kind: bytes, path: bytes, mode: int, size: int, target: bytes = b"") -> None:
        path = self._top + path
        values = ((b"linkpath", target), (b"path", path))
        more = b"".join(record(name, value) for name, value in values if not fits(value))
        if more:
            self._write(header(PAX, b"././@PaxHeader", 0o644, len(more), self._time))
            self._write(more + padding(len(more)))
        self._write(header(kind, path, mode, size, self._time, target))

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._hash.update(data)
        self._size += len(data)
