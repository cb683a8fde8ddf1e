"""URLs that documents may hold: of package indexes, conda channels and git trees.

None carries a user or a password, and none holds what a shell would read as more than a word.
"""

import re
import string
from typing import Annotated
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import AfterValidator

from ..base import spelt
from ..redaction.secret_queries import without_secret_queries, without_secret_query
from ..target_tools.names import without_credentials

IndexUrl = Annotated[
    str,
    spelt(
        r"^(https?|file)://[^\s'\"`$\\<>|;&]+$",
        "an http, https or file URL without spaces, quotes or shell characters",
        500,
    ),
]
"""An index or mirror; credentials belong in netrc or the keyring, never in a document."""


def _without_credentials(url: str) -> str:
    if "@" in url.split("://", 1)[1].split("/", 1)[0]:
        raise ValueError("credentials do not belong in a document: use ~/.netrc or a keyring")
    return url


def refuse_secret_queries(text: str) -> str:
    """Return a text. Raises ValueError if a URL in it has a query that holds a secret."""
    if without_secret_queries(text) != text:
        raise ValueError(
            "a URL with a secret does not belong in a document: set it in the shell or in pip's "
            "configuration, or write the credentials to ~/.netrc"
        )
    return text


CleanUrl = Annotated[
    IndexUrl, AfterValidator(_without_credentials), AfterValidator(refuse_secret_queries)
]

LockUrl = Annotated[
    IndexUrl, AfterValidator(_without_credentials), AfterValidator(without_secret_query)
]
"""The same in a lock. Earlier ones may hold a query with a secret, which is not read."""

RegistryName = Annotated[
    str,
    spelt(
        r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$",
        "a registry of images as its images are named: docker.io, registry.example:5000",
        250,
    ),
]

RegistryUrl = Annotated[
    str,
    spelt(
        r"^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9._/-]*)?$",
        "an http or https URL of a registry, and the path before its names: "
        "https://registry.example/hub",
        500,
    ),
]
"""A copy or proxy of a registry of images; who may read it, skopeo's own files say."""

_CHANNEL_URL = r"(?:https?|file)://[^\s'\"`$\\<>|;&]+|/[A-Za-z0-9._~@+,=:/-]+"


_DEFAULT_PORTS = {"http": 80, "https": 443}
# RFC 3986: what is never percent-encoded, and what else a path may hold as it is.
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_IN_PATHS = "!$&'()*+,;=:@/%-._~"


def plain_url(url: str) -> str:
    """Return an http, https or file URL in the one spelling that names the same (RFC 3986, 6.2).

    Without a slash at its end. Programs that read a channel spell its URL so, and what is known of
    a channel is known of it however it is written. Raises ValueError for what is no such URL.
    """
    parts = urlsplit(url)
    if "?" in url or "#" in url:
        raise ValueError("the URL of a channel must not contain ? or #")
    path = re.sub("%[0-9A-Fa-f]{2}", _escape, parts.path)
    segments: list[str] = []
    for each in quote(path, safe=_IN_PATHS).split("/"):
        if each == "..":
            segments[-1:] = []
        elif each not in ("", "."):
            segments.append(each)
    return "/".join([f"{parts.scheme}://{_authority(parts)}", *segments])


def _escape(match: re.Match[str]) -> str:
    meant = chr(int(match[0][1:], 16))
    return meant if meant in _UNRESERVED else match[0].upper()


def _authority(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme == "file" and host == "localhost":
        return ""
    if not host.isascii():
        host = host.encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"


def _channel(text: str) -> str:
    if text.startswith("/"):
        return plain_url(f"file://{text}")
    if "://" not in text:
        return text
    if without_credentials(text) != text:
        raise ValueError("credentials do not belong in a document: use ~/.netrc or a keyring")
    return plain_url(text)


ChannelUrl = Annotated[
    str,
    spelt(
        f"^({_CHANNEL_URL})$",
        "an http, https or file URL without spaces, quotes or shell characters, or the path of a "
        "folder",
        500,
    ),
    AfterValidator(_channel),
]
"""Where a conda channel lies: a URL, as ``plain_url`` spells it; a folder's path becomes one."""

ChannelName = Annotated[
    str,
    spelt(
        f"^([a-z0-9]+(?:[._+-][a-z0-9]+)*|{_CHANNEL_URL})$",
        "the name of a recorded channel, an http, https or file URL, or the path of a folder",
        500,
    ),
    AfterValidator(_channel),
]
"""A conda channel by the name under which it is recorded, or by its URL."""


def _without_password(url: str) -> str:
    user, at, _ = url.split("://", 1)[1].split("/", 1)[0].rpartition("@")
    if at and (":" in user or not url.startswith("ssh://")):
        raise ValueError("credentials do not belong in a document: git has its own settings")
    return url


_GitUrl = Annotated[
    str,
    spelt(
        r"^((https?|ssh)://[^\s'\"`$\\<>|;&/-]|file:///)[^\s'\"`$\\<>|;&]*$",
        "an https, http, ssh or file URL without spaces, quotes or shell characters",
        500,
    ),
    AfterValidator(_without_password),
]

GitUrl = Annotated[_GitUrl, AfterValidator(refuse_secret_queries)]
"""Where a git tree is fetched from. ssh's user is no secret."""

LockGitUrl = Annotated[_GitUrl, AfterValidator(without_secret_query)]
"""The same in a lock."""
