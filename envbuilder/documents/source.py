"""Reading a document's bytes: a regular file, of a bearable size, UTF-8, without odd characters."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..errors import DocumentError, Place, Problem, UsageError
from ..text import shown

# The largest document that is read, in bytes. The largest shipped one has 14 kB.
MAX_BYTES = 1024 * 1024

_BOM = b"\xef\xbb\xbf"
_LINE_BREAK = re.compile(r"\r\n|\r|\n")

# Control characters, what YAML 1.1 takes as further line breaks (editors do not, and positions
# would be wrong), and what makes text look different from what is read (bidirectional overrides).
_ODD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)


class Source(NamedTuple):
    """A document as text, with the name that messages show and the sha256 of its bytes."""

    file: str
    text: str
    sha256: str


def read(path: Path, limit: int = MAX_BYTES) -> Source:
    """Read a document of at most *limit* bytes.

    Raises UsageError when *path* cannot be read at all, DocumentError when it holds no text.
    """
    return source_of(read_bytes(path, limit), name_of(path))


def name_of(path: Path) -> str:
    """Return the name that messages show for a document."""
    return shown(str(path), limit=4096)


def source_of(data: bytes, file: str) -> Source:
    """Return a document of these bytes. Raises DocumentError when they hold no text."""
    text = _text(data.removeprefix(_BOM), file)
    odd = _ODD.search(text)
    if odd:
        _refuse(
            "document.control-character",
            place_of(text, odd.start(), file),
            f"this character is not allowed in a document: U+{ord(odd.group()):04X}",
            "delete it, and check that the file is UTF-8 text",
        )
    return Source(file, text, hashlib.sha256(data).hexdigest())


def place_of(text: str, index: int, file: str) -> Place:
    """Return line and column, from 1, of the character at *index*."""
    lines = _LINE_BREAK.split(text[:index])
    return Place(file, len(lines), len(lines[-1]) + 1)


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a document. Raises UsageError for what is no regular file of the size."""
    place = Place(name_of(path))
    try:
        with open(path, "rb", opener=_without_waiting) as opened:
            mode = os.fstat(opened.fileno()).st_mode
            if not stat.S_ISREG(mode):
                what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
                raise UsageError("document.not-a-file", f"not a file but {what}", place=place)
            # The size that the file claims is not to be trusted: some under /proc say 0.
            data = opened.read(limit + 1)
    except IsADirectoryError:
        raise UsageError("document.not-a-file", "not a file but a folder", place=place) from None
    except FileNotFoundError:
        raise UsageError("document.not-found", "no such file", place=place) from None
    except OSError as error:
        raise UsageError(
            "document.not-readable", f"cannot read the file: {error.strerror}", place=place
        ) from error
    except ValueError as error:  # a NUL in the path
        raise UsageError("document.not-a-path", f"not a path: {error}", place=place) from error
    if len(data) > limit:
        raise UsageError(
            "document.too-large",
            f"too large for a document: more than {limit} bytes",
            "check that this is the right file",
            place=place,
        )
    return data


def _without_waiting(path: str, flags: int) -> int:
    """Open a path; without O_NONBLOCK the open of a FIFO would wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _text(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        _refuse(
            "document.not-utf8",
            place_of(before, len(before), file),
            f"not UTF-8: byte 0x{data[error.start]:02x}",
            "save the file as UTF-8",
        )


def _refuse(problem_id: str, place: Place, message: str, *hints: str) -> NoReturn:
    raise DocumentError((Problem(problem_id, message, place, hints),))
