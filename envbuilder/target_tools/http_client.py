"""Opening URLs as pip would: its proxy, certificates, trusted hosts and credentials."""

import http.client
import netrc
import os
import ssl
import time
import urllib.error
import urllib.request
from base64 import b64encode
from urllib.parse import unquote, urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, TypeVar

    T = TypeVar("T")

# Seconds before trying again what failed for a reason that may pass.
PAUSES = (1, 3, 9)
# A server that is busy or broken; what else it answers, it will answer again.
PASSING = (408, 429, 500, 502, 503, 504, 520)


class Signed(urllib.request.BaseHandler):
    """Gives every request, also one that a server sent elsewhere, its own host's credentials."""

    def __init__(self, places: "Iterable[str]") -> None:
        """Store the credentials of the configured *places*; ~/.netrc is read on demand."""
        parts = [urlsplit(each) for each in places]
        self._pairs = {
            each.netloc.rpartition("@")[2]: (unquote(each.username), unquote(each.password or ""))
            for each in parts
            if each.username
        }

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Add the header; it does not go along when a server sends the request elsewhere."""
        pair = self._pairs.get(request.host) or from_netrc(request.host.partition(":")[0])
        if pair:
            word = b64encode(":".join(pair).encode("utf-8")).decode("ascii")
            request.add_unredirected_header("Authorization", "Basic " + word)
        return request

    https_request = http_request


def from_netrc(host: str) -> "tuple[str, str] | None":
    """Return user and password that ~/.netrc or the file in NETRC has for a host, or None."""
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")  # noqa: PTH111 - may be absent
    try:
        entry = netrc.netrc(path).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    return (entry[0], entry[2] or "") if entry else None


class Https(urllib.request.HTTPSHandler):
    """HTTPS with pip's certificates; with any certificate for its trusted hosts."""

    def __init__(
        self, cert: "str | None", client_cert: "str | None", trusted_hosts: "Iterable[str]"
    ) -> None:
        """Read the certificates. Raises OSError if they do not exist."""
        super().__init__()
        self._hosts = set(trusted_hosts)
        self._safe = context(cert, client_cert)
        self._any = context(cert, client_cert)
        self._any.check_hostname = False
        self._any.verify_mode = ssl.CERT_NONE

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open with the context that fits the host; several threads may."""
        trusted = {request.host, request.host.partition(":")[0]} & self._hosts
        chosen = self._any if trusted else self._safe
        return self.do_open(http.client.HTTPSConnection, request, context=chosen)


class Redirects(urllib.request.HTTPRedirectHandler):
    """Knows 308 as well, which Python does from 3.11 on."""

    def http_error_308(
        self,
        request: urllib.request.Request,
        stream: "Any",
        code: int,
        message: str,
        headers: "Any",
    ) -> "Any":
        """Follow the redirect."""
        return self.http_error_301(request, stream, 301, message, headers)


def context(cert: "str | None", client_cert: "str | None") -> ssl.SSLContext:
    """Return an SSL context with the certificates of pip's settings, or those of the system."""
    cert = cert or os.environ.get("REQUESTS_CA_BUNDLE")
    folder = cert if cert and os.path.isdir(cert) else None  # noqa: PTH112
    made = ssl.create_default_context(cafile=None if folder else cert, capath=folder)
    if client_cert:
        made.load_cert_chain(client_cert)
    return made


def make_opener(
    places: "Iterable[str]" = (),
    cert: "str | None" = None,
    client_cert: "str | None" = None,
    proxy: "str | None" = None,
    trusted_hosts: "Iterable[str]" = (),
) -> urllib.request.OpenerDirector:
    """Return an opener for URLs with these settings of pip.

    *places*: indexes and pages of links, whose addresses may hold a user and a password. Raises
    OSError for certificates that are not there.
    """
    # Without one, those of the environment count.
    proxies = {"http": proxy, "https": proxy} if proxy else None
    return urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies),
        Https(cert, client_cert, trusted_hosts),
        Redirects(),
        Signed(places),
    )


def with_retries(
    act: "Callable[[], T]",
    url: str,
    retries: "int | None" = None,
    temporary: "Callable[[OSError, str], bool] | None" = None,
) -> "T":
    """Call *act*, which opens *url*, and retry after temporary errors; return its result.

    Raises OSError, the base class of urllib's errors. *temporary*: by default ``may_pass``.
    """
    temporary = temporary or may_pass
    for pause in (*PAUSES[:retries], None):
        try:
            return attempt(act)
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if pause is None or not temporary(error, url):
                raise
        time.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


def attempt(act: "Callable[[], T]") -> "T":
    """Call *act*; turn an HTTPException of http.client into an OSError."""
    try:
        return act()
    except OSError:
        raise
    except http.client.HTTPException as error:
        raise OSError("malformed response: {}".format(error or type(error).__name__)) from error


def may_pass(error: OSError, url: str) -> bool:
    """Return whether a retry may succeed."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in PASSING
    local = url.startswith("file:")
    return not local and not isinstance(getattr(error, "reason", error), ssl.SSLError)


def reason(error: OSError) -> str:
    """Return why a URL could not be opened, in words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server says {error.code} {error.reason}"
    return str(getattr(error, "reason", error))
