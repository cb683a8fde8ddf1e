"""What pip cannot be asked about without running it: the files of sources, their hashes, sizes.

pip runs the setup.py of sources to learn what they need. Their names, versions and hashes are on
the index's own pages (PEP 503, 691), which are read here, from the places that pip's configuration
names.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit
from urllib.request import url2pathname

from ..errors import BuildError
from ..redaction.secret_queries import without_secret_query
from ..target_tools.files import file_name, sha256_of
from .connection import Connection, Unreachable
from .failures import Refusal, index_unreachable
from .settings import PipSettings

if TYPE_CHECKING:
    from pypi_simple import ProjectPage

# The form of sources since PEP 625, and of nearly all before: what the build unpacks.
_ENDING = ".tar.gz"
# So many sizes are asked for at once.
_AT_ONCE = 8


@dataclass(frozen=True)
class SourceFile:
    """An sdist as its index or folder tells it. ``yanked``: why it should not be taken, or None.

    ``sha256`` and ``size`` (bytes) are None where the page does not say. ``unhashed``: the index
    whose page gives no sha256, so that it is that of the file as it was sent; None: a page gave it.
    ``index``: the place whose link to the file holds a secret, which ``url`` is without.
    """

    filename: str
    version: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: str | None = None
    unhashed: str | None = None
    index: str | None = None


@dataclass(frozen=True)
class Link:
    """A link to a file, as a page or folder has it. ``sha256``: None where none is given.

    ``url``: without credentials. ``secret``: whether these were a query.
    """

    url: str
    sha256: str | None = None
    secret: bool = False


@dataclass(frozen=True)
class IndexFiles:
    """The files that an index, or a folder or page of find-links, has of a distribution.

    ``place``: which one, without credentials.
    """

    place: str
    links: tuple[Link, ...]


class Index:
    """All places of the settings, asked in order: folders first.

    One class with many small methods: each asks the same places over the same connection.
    """

    def __init__(self, settings: PipSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._places = (*settings.find_links, *settings.indexes)
        self._connection = Connection(settings, environ)

    def sdist(self, component: str, name: str, version: str, *, exact: bool) -> SourceFile:
        """Return the sources of a release, with hash and size.

        *exact*: the user asked for this very version, so a yanked one may be taken, as pip does
        (PEP 592). Raises Refusal for a release that the places do not offer, so that another may
        be chosen, and BuildError where none of them has the distribution, or one that might have
        it cannot be reached.
        """
        from packaging.version import Version

        files: list[SourceFile] = []
        silent: list[Unreachable] = []
        for place in self._settings.find_links:
            with _collected(silent):
                files += self._linked_sdists(place, name)
        for place in self._settings.indexes:
            page = None
            with _collected(silent):
                page = self._page(place, name)
            if page is not None:
                files += _on_page(page, name, place, is_index=True)
            if self._settings.ordered and (silent or (page and page.packages)):
                break
        here = [each for each in files if Version(each.version) == Version(version)]
        if not here:
            raise self._missing(component, name, version, files, silent)
        fit = [each for each in here if exact or each.yanked is None]
        if not fit:
            reason = here[0].yanked or "no reason given"
            raise Refusal(component, version, f"{name} {version} is yanked: {reason}")
        try:
            return self._hashed(fit[0])
        except Unreachable as problem:
            raise index_unreachable(problem.place, problem.reason) from problem

    def sizes(self, urls: Iterable[str]) -> dict[str, int]:
        """Return the bytes of each file, without those whose server does not say."""
        names = list(dict.fromkeys(urls))
        with ThreadPoolExecutor(_AT_ONCE) as workers:
            sizes = workers.map(self._size, names)
        return {url: size for url, size in zip(names, sizes, strict=True) if size is not None}

    def files_of(self, names: Iterable[str]) -> dict[str, tuple[IndexFiles, ...]]:
        """Return by name what every index that has the distribution has of it, in order.

        Raises BuildError for an index that cannot be asked: another must not stand in for it.
        """
        wanted = list(dict.fromkeys(names))
        try:
            with ThreadPoolExecutor(_AT_ONCE) as workers:
                return dict(zip(wanted, workers.map(self._files, wanted), strict=True))
        except Unreachable as problem:
            raise index_unreachable(problem.place, problem.reason) from problem

    def find_links_of(self, name: str) -> Iterator[IndexFiles]:
        """Yield what each folder and page of find-links has of a distribution, in order.

        One that does not answer is left out.
        """
        for place in self._settings.find_links:
            with _collected([]):
                links = (_link(url, sha256) for url, sha256 in self._offers(place, name))
                yield IndexFiles(without_credentials(place), tuple(links))

    @property
    def places(self) -> tuple[str, ...]:
        """All places that are asked, without credentials."""
        return tuple(without_credentials(each) for each in self._places)

    def links(
        self, name: str, first: str, silent: list[Unreachable]
    ) -> Iterator[tuple[str, str | None]]:
        """Yield URL and sha256 of each file that any place has of a distribution.

        Those of folders and pages of links, of the index *first*, of the others. Places that do not
        answer go to *silent*.
        """
        for place in self._settings.find_links:
            with _collected(silent):
                yield from self._offers(place, name)
        own = [each for each in self._settings.indexes if without_credentials(each) == first]
        # A page of links was asked already, and what is no URL is no index.
        stranger = first not in self.places and "://" in first
        for place in dict.fromkeys((*([first] if stranger else own), *self._settings.indexes)):
            with _collected(silent):
                yield from _offers_on(self._page(place, name))

    def fetch(self, url: str, sha256: str | None, folder: Path) -> Path:
        """Return the path of a file, fetched or copied into a folder.

        Raises BuildError where it cannot be had, or is another one than *sha256* says.
        """
        local, path = local_path(url), folder / file_name(url)
        try:
            if local is None:
                found = self._connection.fetch(url, path)
            else:
                # What is used is the copy that was hashed, whatever becomes of the file.
                shutil.copyfile(local, path)
                found = sha256_of(path)
        except Unreachable as problem:
            raise BuildError(
                "index.fetch-failed", f"cannot fetch {problem.place}: {problem.reason}"
            ) from problem
        except OSError as error:
            raise BuildError(
                "index.file-unreadable", f"cannot read {local or path}: {error.strerror}"
            ) from error
        if sha256 is not None and found != sha256:
            raise BuildError(
                "index.checksum-mismatch",
                f"{without_credentials(url)} has the sha256 {found}, not {sha256}",
            )
        return path

    def _files(self, name: str) -> tuple[IndexFiles, ...]:
        pages = ((place, self._page(place, name)) for place in self._settings.indexes)
        return tuple(
            IndexFiles(without_credentials(place), links)
            for place, page in pages
            if (links := tuple(_link(*each) for each in _offers_on(page)))
        )

    def _offers(self, place: str, name: str) -> Iterator[tuple[str, str | None]]:
        """Yield URL and sha256 of the files in a folder of find-links, or on a page of links."""
        local = local_path(place)
        if local is None:
            yield from _offers_on(self._connection.page(place, name))
        elif local.is_dir():
            for path in sorted(local.absolute().iterdir()):
                # As pip does, which takes links of pages in a folder.
                if path.suffix in (".html", ".htm"):
                    yield from _offers_on(_html_page(path, name))
                else:
                    yield path.as_uri(), None
        else:
            yield from _offers_on(_html_page(local, name))

    def _page(self, place: str, name: str) -> ProjectPage | None:
        """Return what an index says of a distribution; None: it does not have it."""
        local = local_path(place)
        if local is None:
            return self._connection.project_page(place, name)
        return _html_page(local / name / "index.html", name)

    def _linked_sdists(self, place: str, name: str) -> Iterator[SourceFile]:
        """Yield the sources in a folder of find-links, or on a page of links."""
        local = local_path(place)
        if local is None:
            yield from _on_page(self._connection.page(place, name), name, place)
        elif local.is_dir():
            yield from _in_folder(local, name)
        else:
            page = _html_page(local, name)
            yield from _on_page(page, name, place) if page else ()

    def _missing(
        self,
        component: str,
        name: str,
        version: str,
        found: list[SourceFile],
        silent: list[Unreachable],
    ) -> Exception:
        if silent:
            return index_unreachable(silent[0].place, silent[0].reason)
        if found:
            where = "no place that pip is configured with has sources of"
            return Refusal(component, version, f"{where} {name} {version} ({_ENDING})")
        places = ", ".join(self.places)
        return BuildError(
            "index.no-sources",
            f"cannot build {component}: no sources of {name} in "
            f"{places or 'any place, because pip is configured without an index'}",
            f"put {name}-{version}.tar.gz into a folder of find-links, or set pip-indexes to a "
            "complete mirror (recipe or site file)",
        )

    def _hashed(self, file: SourceFile) -> SourceFile:
        """Return the file with hash and size; one that its index gives no hash of is read whole."""
        path = local_path(file.url)
        sha256, size = file.sha256, file.size
        if path is not None:
            sha256, size = sha256 or sha256_of(path), path.stat().st_size
        elif sha256 is None:
            sha256, size = self._connection.read_whole(file.url)
        elif size is None:
            size = self._connection.size(file.url)
        return replace(file, url=without_credentials(file.url), sha256=sha256, size=size)

    def _size(self, url: str) -> int | None:
        path = local_path(url)
        if path is not None:
            return path.stat().st_size if path.is_file() else None
        return self._connection.size(url)


def without_credentials(url: str) -> str:
    """A mirror's user, password or secret query must not end in a file that others read."""
    parts = urlsplit(without_secret_query(url))
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def local_path(place: str) -> Path | None:
    """Return the path of a ``file:`` address or plain path, None for one of the network."""
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", place) else Path(place).expanduser()


@contextmanager
def _collected(silent: list[Unreachable]) -> Iterator[None]:
    """Keep a place that does not answer for later: another may have what is wanted."""
    try:
        yield
    except Unreachable as problem:
        silent.append(problem)


def _link(url: str, sha256: str | None) -> Link:
    return Link(without_credentials(url), sha256, is_secret_link(url))


def is_secret_link(url: str) -> bool:
    """Whether the query of a URL holds a secret."""
    return without_secret_query(url) != url


def _on_page(
    page: ProjectPage, name: str, place: str, *, is_index: bool = False
) -> Iterator[SourceFile]:
    origin = without_credentials(place)
    for each in page.packages:
        # As pip: what a link shows may be anything.
        filename = file_name(each.url)
        version = _version_of(filename, name)
        if version:
            yanked = (each.yanked_reason or "no reason given") if each.is_yanked else None
            sha256 = each.digests.get("sha256")
            unhashed = origin if is_index and not sha256 else None
            index = origin if is_secret_link(each.url) else None
            yield SourceFile(
                filename, version, each.url, sha256, each.size, yanked, unhashed, index
            )


def _offers_on(page: ProjectPage | None) -> Iterator[tuple[str, str | None]]:
    for each in page.packages if page else ():
        yield each.url, each.digests.get("sha256")


def _html_page(file: Path, name: str) -> ProjectPage | None:
    if not file.is_file():
        return None
    # lazy import: 0.3 s
    from pypi_simple import ProjectPage

    return ProjectPage.from_html(name, file.read_bytes(), base_url=file.as_uri())


def _in_folder(folder: Path, name: str) -> Iterator[SourceFile]:
    for path in sorted(folder.iterdir()):
        version = _version_of(path.name, name)
        if path.is_file() and version:
            yield SourceFile(path.name, version, path.absolute().as_uri())


def _version_of(filename: str, name: str) -> str | None:
    """Return the version of a file that is named as sources of the distribution are, else None."""
    from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename
    from packaging.version import InvalidVersion

    if not filename.endswith(_ENDING):
        return None
    try:
        found, version = parse_sdist_filename(filename)
    except (InvalidSdistFilename, InvalidVersion):
        return None
    return str(version) if found == canonicalize_name(name) else None
