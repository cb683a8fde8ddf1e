"""The distributions that folders of packages hold, as their metadata tells them."""

import csv
import io
import re
import sys
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple

from .files import entries, open_regular
from .names import normalize

# Where Python looks for packages. The program itself adds no folder to it.
PATH = [folder for folder in sys.path if folder]
ENDINGS = (".dist-info", ".egg-info")
METADATA = ("METADATA", "PKG-INFO", "")
# In the .dist-info of a wheel that envbuild built: what it was made of.
INSIDE = "envbuild_build.json"
# What is read at most. RECORD has a line for every file: some 100 bytes.
LARGEST_METADATA = 4 * 1024 * 1024
_LARGEST_RECORD = 64 * 1024 * 1024


class Distribution(NamedTuple):
    """A distribution: its name as its metadata spells it, which is a folder or a file."""

    name: str
    version: str
    path: Path

    @property
    def folder(self) -> Path:
        """The folder of packages that it lies in."""
        return self.path.parent


def listed(folder: "str | Path") -> "Iterator[Distribution]":
    """Yield the distributions of a folder, by the names of their metadata: quick."""
    for entry in entries(folder):
        match = re.match(r"(.+?)-([^-]+?)(-py[\d.]+)?\.(dist|egg)-info$", entry.name)
        if match:
            yield Distribution(match.group(1), match.group(2), entry)


def described(folder: "str | Path") -> "Iterator[Distribution]":
    """Yield the distributions of a folder by their metadata; skip those without name or version."""
    for entry in entries(folder):
        if entry.name.endswith(ENDINGS):
            yield from _read(entry)


def _read(entry: Path) -> "list[Distribution]":
    fields = read_metadata(entry) or {}
    if "name" in fields and "version" in fields:
        return [Distribution(fields["name"][0], fields["version"][0], entry)]
    return []


def read_metadata(entry: Path) -> "dict[str, list[str]] | None":
    """Return the fields of a distribution's metadata: name in lower case -> its texts, in order.

    Returns None if there is no metadata file. The description is left out.
    """
    for path in (entry / name for name in METADATA):
        try:
            with open_regular(path) as stream:
                text = stream.read(LARGEST_METADATA).decode("utf-8", "replace")
        except OSError:
            continue
        return parse_fields(text)
    return None


def parse_fields(text: str) -> "dict[str, list[str]]":
    """Return the fields in front of the first empty line: name in lower case -> its texts."""
    found: "dict[str, list[str]]" = {}
    for line in text.replace("\r\n", "\n").split("\n"):
        if not line:
            break
        name, colon, value = line.partition(":")
        # Lines that go on begin with a blank; of what is read here none does.
        if colon and not line.startswith((" ", "\t")):
            found.setdefault(name.lower(), []).append(value.strip())
    return found


def find(name: str, path: "Iterable[str | Path] | None" = None) -> "Distribution | None":
    """Return the distribution of that name that Python finds first, or None."""
    for folder in PATH if path is None else path:
        for each in listed(folder):
            if normalize(each.name) == normalize(name):
                return each
    return None


def version_of(name: str) -> "str | None":
    """Return the version of a distribution that Python finds first, or None."""
    each = find(name)
    return each and each.version


def records(metadata: Path) -> "dict[str, tuple[str, str]]":
    """Return the rows of a distribution's RECORD: path -> (hash, size); {} without one.

    Hash and size are texts, empty where the row has none.
    """
    try:
        return read_record(metadata / "RECORD")
    except (OSError, ValueError):
        return {}


def read_record(path: Path) -> "dict[str, tuple[str, str]]":
    """Return the rows of a RECORD: path -> (hash, size). Raises OSError, ValueError."""
    with open_regular(path) as stream:
        return parse_record(stream.read(_LARGEST_RECORD).decode("utf-8", "surrogateescape"))


def parse_record(text: str) -> "dict[str, tuple[str, str]]":
    """Return the rows of a RECORD: path -> (hash, size). Raises ValueError."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise ValueError("not a table of files: {}".format(error)) from error
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}
