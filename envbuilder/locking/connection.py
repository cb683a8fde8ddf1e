"""Reading an index over the network as pip reads it: its proxy, certificates, credentials."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..redaction.secret_queries import without_secret_queries, without_secret_query
from ..target_tools.files import CHUNK, parse_json, sha256_of
from ..target_tools.http_client import with_retries
from ..target_tools.names import normalize
from ..target_tools.processes import now
from .settings import PipSettings

if TYPE_CHECKING:
    from pypi_simple import ProjectPage
    from requests import Response

    from .pip_session import PipSession

T = TypeVar("T")

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
_JSON = "application/vnd.pypi.simple.v1+json"
_HTML = ("application/vnd.pypi.simple.v1+html", "text/html")
# As pip asks (PEP 691).
_ACCEPT = f"{_JSON}, {_HTML[0]}; q=0.1, {_HTML[1]}; q=0.01"
_GONE = 404
# Seconds for a whole page: the largest ones of public indexes are a few MB.
PAGE_SECONDS = 120.0


class Unreachable(Exception):  # noqa: N818 - what it means is decided by who asks several places
    """A place of the configuration did not answer, or not with what was asked for."""

    def __init__(self, place: str, reason: object) -> None:
        self.place = _CREDENTIALS.sub("", without_secret_query(place))
        self.reason = _CREDENTIALS.sub("", without_secret_queries(str(reason)))
        super().__init__(f"{self.place}: {self.reason}")


class Connection:
    """Asks servers. Credentials of an index are used for all files of its host, else ~/.netrc."""

    def __init__(self, settings: PipSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._cert = settings.cert or environ.get("SSL_CERT_FILE")

    def project_page(self, index: str, name: str) -> ProjectPage | None:
        """Return what an index says of a project; None: it does not have it."""
        from .pip_session import status

        try:
            return self.page(f"{index.rstrip('/')}/{normalize(name)}/", name, place=index)
        except Unreachable as problem:
            if status(problem.__cause__) != _GONE:
                raise
        return None

    def page(self, url: str, name: str, place: str | None = None) -> ProjectPage:
        """Return what a page of links says of a project. Raises Unreachable; it names *place*."""

        def read(answer: Response) -> tuple[str, str, bytes]:
            return answer.url, answer.headers.get("Content-Type", ""), _body(answer)

        with _told_of(place or url):
            return _page(*self._ask(url, read, accept=_ACCEPT), name)

    def read_whole(self, url: str) -> tuple[str, int]:
        """Return sha256 and bytes of a file by fetching it; raises Unreachable."""

        def read(answer: Response) -> tuple[str, int]:
            whole, size = hashlib.sha256(), 0
            for chunk in answer.iter_content(CHUNK):
                whole.update(chunk)
                size += len(chunk)
            return whole.hexdigest(), size

        with _told_of(url):
            return self._ask(url, read)

    def fetch(self, url: str, target: Path) -> str:
        """Write a file and return its sha256. Raises Unreachable, with nothing written."""
        partial = target.with_name(f".{target.name}.part")

        def read(answer: Response) -> str:
            with partial.open("wb") as stream:
                for chunk in answer.iter_content(CHUNK):
                    stream.write(chunk)
            return str(sha256_of(partial))

        try:
            with _told_of(url):
                found = self._ask(url, read)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        return found

    def size(self, url: str) -> int | None:
        """Return the bytes of a file, None where the server does not say: nothing hangs on it."""
        try:
            length = self._ask(
                url, lambda answer: answer.headers.get("Content-Length") or "", 0, method="HEAD"
            )
        except (OSError, ValueError):
            return None
        return int(length) if length.isdigit() else None

    def _ask(
        self,
        url: str,
        read: Callable[[Response], T],
        retries: int | None = None,
        *,
        method: str = "GET",
        accept: str = "*/*",
    ) -> T:
        """Return what *read* makes of the answer; *retries*: None for as many as pip does."""
        from .pip_session import READ_ERRORS, may_pass

        address = _CREDENTIALS.sub("", url)
        headers = {"Accept": accept}

        def ask() -> T:
            with self._session.request(
                method, address, headers=headers, stream=True, allow_redirects=True
            ) as answer:
                answer.raise_for_status()
                try:
                    return read(answer)
                except READ_ERRORS as error:
                    raise OSError(str(error)) from error

        retries = self._settings.retries if retries is None else retries
        return with_retries(ask, address, retries, may_pass)

    @cached_property
    def _session(self) -> PipSession:
        # lazy import: 0.2 s
        from .pip_session import PipSession

        return PipSession(self._settings, self._cert)


@contextmanager
def _told_of(place: str) -> Iterator[None]:
    """Turn what comes of a place that does not answer, or with no page, into Unreachable."""
    # lazy import: 0.3 s
    from pypi_simple import UnsupportedRepoVersionError

    from .pip_session import reason

    try:
        yield
    # That of a certificate that is not there is an OSError too.
    except OSError as error:
        raise Unreachable(place, reason(error)) from error
    except (ValueError, UnsupportedRepoVersionError) as error:
        raise Unreachable(place, error) from error


def _body(answer: Response) -> bytes:
    """Return the body of a page. Raises ValueError where it takes too long, or urllib3's HTTPError.

    The timeout of a connection is for each piece that arrives, so a server that sends little by
    little would never be given up.
    """
    end = now() + PAGE_SECONDS
    pieces = []
    for piece in iter(lambda: answer.raw.read1(CHUNK), b""):
        pieces.append(piece)
        if now() > end:
            raise ValueError(f"the page did not arrive within {PAGE_SECONDS:g} s")
    return b"".join(pieces)


def _page(url: str, content_type: str, body: bytes, name: str) -> ProjectPage:
    """Raises ValueError for what is no page of an index."""
    from pypi_simple import ProjectPage

    header = Message()
    header["Content-Type"] = content_type
    kind = header.get_content_type()
    if kind == _JSON:
        return ProjectPage.from_json_data(parse_json(body), url)
    if kind in _HTML:
        return ProjectPage.from_html(name, body, url, header.get_content_charset())
    raise ValueError(f"the content type is {kind}")
