"""HTTP by requests with the settings of pip that requests lacks.

These are the certificates of the system, hosts that need no certificate, and credentials that
belong to a host, also after a redirect.
"""

from __future__ import annotations

import os
import ssl
import warnings
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth, should_bypass_proxies
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from ..target_tools.http_client import PASSING
from .settings import PipSettings

# What reading a body raises, beside OSError.
READ_ERRORS = (HTTPError,)


class HostCredentials(AuthBase):
    """Adds the credentials that the configured places, or ~/.netrc, have for a host."""

    def __init__(self, places: Iterable[str]) -> None:
        parts = [urlsplit(place) for place in places]
        self._pairs = {
            part.netloc.rpartition("@")[2]: (unquote(part.username), unquote(part.password or ""))
            for part in parts
            if part.username
        }

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        url = str(request.url)
        pair = self._pairs.get(urlsplit(url).netloc) or get_netrc_auth(url)
        return HTTPBasicAuth(*pair)(request) if pair else request


class PipSession(requests.Session):
    """Sends requests as pip does. *cert*: certificates; None for those of the system."""

    def __init__(self, settings: PipSettings, cert: str | None) -> None:
        super().__init__()
        self._settings = settings
        self._certificates = cert or _certificates()
        self.auth = HostCredentials((*settings.indexes, *settings.find_links))
        # A file is hashed as it is stored.
        self.headers["Accept-Encoding"] = "identity"

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send a request, also that of a redirect, with the settings for its host."""
        url, proxy = str(request.url), self._settings.proxy
        options["timeout"] = self._settings.timeout
        options["cert"] = self._settings.client_cert
        options["verify"] = False if self._is_trusted(url) else self._certificates
        if proxy:
            direct = should_bypass_proxies(url, no_proxy=None)
            options["proxies"] = {} if direct else {"http": proxy, "https": proxy}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRequestWarning)
            return super().send(request, **options)

    def rebuild_auth(
        self, prepared_request: requests.PreparedRequest, response: requests.Response
    ) -> None:
        """Replace the credentials by those of the host that a redirect names."""
        prepared_request.headers.pop("Authorization", None)
        prepared_request.prepare_auth(self.auth)

    def _is_trusted(self, url: str) -> bool:
        host = urlsplit(url).netloc.rpartition("@")[2]
        return bool({host, host.partition(":")[0]} & set(self._settings.trusted_hosts))


def _certificates() -> str:
    """Return the certificates of the system; those of certifi for a Python that finds none."""
    paths = ssl.get_default_verify_paths()
    named = os.environ.get("REQUESTS_CA_BUNDLE") or paths.cafile or paths.capath
    if named:
        return named
    from certifi import where

    return where()


def status(error: BaseException | None) -> int | None:
    """Return the status of the answer that an error is about."""
    response = getattr(error, "response", None)
    return response.status_code if isinstance(response, requests.Response) else None


def may_pass(error: OSError, _url: str) -> bool:
    """Return whether a retry may succeed."""
    code = status(error)
    return code in PASSING if code else not isinstance(error, requests.exceptions.SSLError)


def reason(error: BaseException) -> str:
    """Return why a request failed, in words."""
    response = getattr(error, "response", None)
    if isinstance(response, requests.Response):
        return f"the server says {response.status_code} {response.reason}"
    inner = getattr(error.args[0] if error.args else None, "reason", None)
    return str(inner or error)
