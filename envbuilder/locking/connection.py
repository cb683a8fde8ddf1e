"""Reading an index over the network as pip reads it: its proxy, certificates, credentials."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from .settings import PipSettings

if TYPE_CHECKING:
    import requests
    from pypi_simple import ProjectPage

_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
_CHUNK = 1024 * 1024


class Unreachable(Exception):  # noqa: N818 - what it means is decided by who asks several places
    """A place of the configuration did not answer, or not with what was asked for."""

    def __init__(self, place: str, reason: object) -> None:
        self.place = _CREDENTIALS.sub("", place)
        self.reason = _CREDENTIALS.sub("", str(reason))
        super().__init__(f"{self.place}: {self.reason}")


class Connection:
    """Asks servers. Credentials of an index are used for all files of its host, else ~/.netrc."""

    def __init__(self, settings: PipSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        # Where nothing names certificates, requests has variables and a bundle of its own.
        self._verify = settings.cert or environ.get("SSL_CERT_FILE") or True
        self._made: requests.Session | None = None

    def project_page(self, index: str, name: str) -> ProjectPage | None:
        """Return what an index says of a project; None: it does not have it."""
        # Late: 0.3 s.
        from pypi_simple import NoSuchProjectError, PyPISimple

        try:
            client = PyPISimple(_CREDENTIALS.sub("", index), session=self._session())
            return client.get_project_page(name, timeout=self._settings.timeout)
        except NoSuchProjectError:
            return None
        except _unusable() as error:
            raise Unreachable(index, error) from error

    def page(self, url: str, name: str) -> ProjectPage:
        """Return what a page of links says of a project; raises Unreachable."""
        from pypi_simple import ProjectPage

        try:
            answer = self._ask("GET", url)
            answer.raise_for_status()
            return ProjectPage.from_response(answer, name)
        except _unusable() as error:
            raise Unreachable(url, error) from error

    def read_whole(self, url: str) -> tuple[str, int]:
        """Return sha256 and bytes of a file by fetching it; raises Unreachable."""
        whole, size = hashlib.sha256(), 0
        try:
            with self._ask("GET", url, stream=True) as answer:
                answer.raise_for_status()
                for chunk in answer.iter_content(_CHUNK):
                    whole.update(chunk)
                    size += len(chunk)
        except _unusable() as error:
            raise Unreachable(url, error) from error
        return whole.hexdigest(), size

    def size(self, url: str) -> int | None:
        """Return the bytes of a file, None where the server does not say: nothing hangs on it."""
        try:
            # Unpacked on the way, it would have another length.
            packed = {"Accept-Encoding": "identity"}
            answer = self._ask("HEAD", url, allow_redirects=True, headers=packed)
        except _unusable():
            return None
        length = answer.headers.get("Content-Length", "")
        return int(length) if answer.ok and length.isdigit() else None

    def _ask(self, method: str, url: str, **more: Any) -> requests.Response:
        plain = _CREDENTIALS.sub("", url)
        return self._session().request(method, plain, timeout=self._settings.timeout, **more)

    def _session(self) -> requests.Session:
        if self._made is None:
            self._made = _new_session(self._settings, self._verify)
        return self._made


def _unusable() -> tuple[type[Exception], ...]:
    """Return what comes of a place that does not answer, or with something that is no page."""
    from pypi_simple import UnsupportedContentTypeError, UnsupportedRepoVersionError

    # Those of requests are OSErrors, as is that of a certificate that is not there.
    return (OSError, ValueError, UnsupportedContentTypeError, UnsupportedRepoVersionError)


def _new_session(settings: PipSettings, verify: str | bool) -> requests.Session:
    # Late: 95 ms.
    import requests
    from requests.adapters import HTTPAdapter
    from requests.auth import HTTPBasicAuth
    from requests.utils import get_netrc_auth
    from urllib3 import Retry, disable_warnings
    from urllib3.exceptions import InsecureRequestWarning

    passwords = _passwords((*settings.indexes, *settings.find_links))

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = request.url or ""
        pair = passwords.get(urlsplit(url).netloc) or get_netrc_auth(url)
        return HTTPBasicAuth(*pair)(request) if pair else request

    class Trusting(HTTPAdapter):
        """For a trusted-host: takes any certificate."""

        def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
            super().cert_verify(conn, url, False, cert)  # type: ignore[no-untyped-call]  # noqa: FBT003

        def build_connection_pool_key_attributes(
            self, request: Any, verify: Any, cert: Any = None
        ) -> Any:
            return super().build_connection_pool_key_attributes(request, False, cert)  # noqa: FBT003

    # As pip: https://pip.pypa.io/en/stable/cli/pip/#cmdoption-retries
    again = Retry(
        total=settings.retries, status_forcelist=(500, 502, 503, 520), backoff_factor=0.25
    )
    session = requests.Session()
    session.verify = verify
    session.cert = settings.client_cert
    session.auth = sign
    if settings.proxy:
        session.proxies = {"http": settings.proxy, "https": settings.proxy}
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=again))
    if settings.trusted_hosts:
        # Who trusts a host was told by pip what that means.
        disable_warnings(InsecureRequestWarning)
    for host in settings.trusted_hosts:
        for end in ("/",) if ":" in host else ("/", ":"):
            session.mount(f"https://{host}{end}", Trusting(max_retries=again))
    return session


def _passwords(places: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return user and password by host, of the addresses that hold them."""
    return {
        parts.netloc.rpartition("@")[2]: (unquote(parts.username), unquote(parts.password or ""))
        for parts in map(urlsplit, places)
        if parts.username
    }
