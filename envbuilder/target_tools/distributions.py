"""The distributions that folders of packages hold, as their metadata tells them."""

import re
import sys
from pathlib import Path
from typing import NamedTuple

from .files import entries
from .names import normalize

# Where Python looks for packages. The program itself adds no folder to it.
PATH = [folder for folder in sys.path if folder]
ENDINGS = (".dist-info", ".egg-info")
METADATA = ("METADATA", "PKG-INFO", "")


class Distribution(NamedTuple):
    """A distribution: its name as its metadata spells it, which is a folder or a file."""

    name: str
    version: str
    path: Path

    @property
    def folder(self):
        """The folder of packages that it lies in."""
        return self.path.parent


def listed(folder):
    """Yield the distributions of a folder, by the names of their metadata: quick."""
    for entry in entries(folder):
        match = re.match(r"(.+?)-([^-]+?)(-py[\d.]+)?\.(dist|egg)-info$", entry.name)
        if match:
            yield Distribution(match.group(1), match.group(2), entry)


def described(folder):
    """Yield the distributions of a folder, by what their metadata says; none that is broken."""
    for entry in entries(folder):
        if entry.name.endswith(ENDINGS):
            yield from _read(entry)


def _read(entry):
    for path in (entry / name for name in METADATA):
        if path.is_file():
            head = path.read_text(encoding="utf-8", errors="replace").split("\n\n")[0]
            fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
            if len(fields) == 2:
                return [Distribution(fields["Name"], fields["Version"], entry)]
    return []


def find(name, path=None):
    """Return the distribution of that name that Python finds first, or None."""
    for folder in PATH if path is None else path:
        for each in listed(folder):
            if normalize(each.name) == normalize(name):
                return each
    return None


def version_of(name):
    """Return the version of a distribution that Python finds first, or None."""
    each = find(name)
    return each and each.version


def records(metadata):
    """Return the rows of a distribution's RECORD: path -> (hash, size); {} without one.

    Hash and size are texts, empty where the row has none.
    """
    try:
        text = (metadata / "RECORD").read_text(encoding="utf-8")
    except OSError:
        return {}
    rows = [line.rsplit(",", 2) for line in text.splitlines()]
    return {row[0].strip('"'): (row[1], row[2]) for row in rows if len(row) == 3}
