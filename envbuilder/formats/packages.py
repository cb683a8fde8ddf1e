"""The packages of an environment as other tools' files list them: values that all forms share.

A conda package is one file of a channel, and its URL says which: CHANNEL/SUBDIR/NAME-VERSION-BUILD
and ``.conda`` or ``.tar.bz2``. A list may lack hashes: what is made of it may then not be a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from ..errors import Place

ENDINGS = (".conda", ".tar.bz2")
NOARCH = "noarch"
# Where conda has its own channels, and what it calls them together.
OWN_CHANNELS, DEFAULTS = "https://repo.anaconda.com", "defaults"
# As conda names them: https://docs.conda.io/projects/conda-build, "Package naming conventions".
_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]*)-(?P<version>[A-Za-z0-9_.+!~]+)-"
    r"(?P<build>[A-Za-z0-9_.+]+)"
)
_SUBDIR = re.compile(r"noarch|[a-z]+-[a-z0-9]+")
# What a lock takes for one, too.
_URL = re.compile(r"(?:https?|file)://[^\s#?'\"`$\\<>|;&\[\]]+")
# User and password, and the token that anaconda.org puts into the path.


@dataclass(frozen=True)
class CondaEntry:
    """A conda package in a list. ``depends``: MatchSpecs. ``place``: where it is written.

    ``size``: bytes. What the list does not say is None.
    """

    url: str
    sha256: str | None = None
    md5: str | None = None
    size: int | None = None
    depends: tuple[str, ...] = ()
    place: Place = field(default=Place(""), compare=False)

    @property
    def filename(self) -> str:
        return unquote(self.url.rpartition("/")[2])

    @property
    def subdir(self) -> str:
        return self.url.split("/")[-2]

    @property
    def channel(self) -> str:
        """The URL of the channel."""
        return self.url.rsplit("/", 2)[0]

    @property
    def name(self) -> str:
        return self._part("name")

    @property
    def version(self) -> str:
        return self._part("version")

    @property
    def build(self) -> str:
        """Its build string: py36h2de5eaf_0."""
        return self._part("build")

    def _part(self, part: str) -> str:
        match = _FILE.fullmatch(_stem(self.filename) or "")
        if match is None:
            raise ValueError(f"not the URL of a conda package: {self.url}")
        return match[part]


@dataclass(frozen=True)
class PipEntry:
    """A file of the package index in a list. ``depends``: requirements."""

    name: str
    version: str
    url: str
    sha256: str | None = None
    depends: tuple[str, ...] = ()
    place: Place = field(default=Place(""), compare=False)


@dataclass(frozen=True)
class PackageList:
    """The packages of an environment on one platform, a subdir of conda: ``linux-64``.

    ``channels``: URLs or names, the first one first. ``indexes``: where pip's files come from.
    Packages are sorted by their names.
    """

    platform: str
    channels: tuple[str, ...]
    conda: tuple[CondaEntry, ...]
    pip: tuple[PipEntry, ...] = ()
    indexes: tuple[str, ...] = ()

    def sorted(self) -> PackageList:
        """Return the same with its packages in their order."""
        conda = sorted(self.conda, key=lambda each: (each.name, each.url))
        pip = sorted(self.pip, key=lambda each: (each.name, each.url))
        return replace(self, conda=tuple(conda), pip=tuple(pip))


def url_fault(url: str) -> str | None:
    """Say why a URL is none of a conda package; None: it is one."""
    if not _URL.fullmatch(url):
        return "not an http, https or file URL"
    parts = url.partition("://")[2].split("/")
    stem = _stem(unquote(parts[-1]))
    if stem is None:
        return f"it does not end in {' or '.join(ENDINGS)}"
    if not _FILE.fullmatch(stem):
        return f"{parts[-1]} is not NAME-VERSION-BUILD"
    if len(parts) < 3 or not _SUBDIR.fullmatch(parts[-2]):
        return "it has no subdir such as linux-64 or noarch before the file"
    return None


def _stem(filename: str) -> str | None:
    ending = next((each for each in ENDINGS if filename.endswith(each)), None)
    return filename[: -len(ending)] if ending else None


def platform_of(entries: Iterable[CondaEntry]) -> str | None:
    """Return the one platform of packages; None where they are of several, or all noarch."""
    found = {each.subdir for each in entries} - {NOARCH}
    return found.pop() if len(found) == 1 else None


def in_order(entries: Iterable[CondaEntry]) -> Iterator[CondaEntry]:
    """Yield packages behind what they depend on, as far as that is possible, otherwise by name.

    conda links an explicit list in its order; python and pip depend on each other.
    """
    by_name = {each.name: each for each in sorted(entries, key=lambda each: each.name)}
    done: set[str] = set()
    for start in by_name:
        # Not recursive: an environment may be deeper than Python's stack.
        todo = [(start, False)]
        while todo:
            name, last = todo.pop()
            if last:
                yield by_name[name]
            elif name not in done:
                done.add(name)
                needs = {spec_name(each) for each in by_name[name].depends} & by_name.keys()
                todo.append((name, True))
                todo += [(each, False) for each in sorted(needs - done, reverse=True)]


def spec_name(spec: str) -> str:
    """Return the name in a MatchSpec: python of ``python >=3.8``."""
    return re.split(r"[\s=<>!~\[]", spec.rpartition("::")[2].strip(), maxsplit=1)[0].lower()
