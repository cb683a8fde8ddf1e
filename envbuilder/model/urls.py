"""URLs that documents may hold: of package indexes, conda channels and git trees.

None carries a user or a password, and none holds what a shell would read as more than a word.
"""

from typing import Annotated

from pydantic import AfterValidator

from ..target_tools.names import without_credentials
from .base import spelt

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


CleanUrl = Annotated[IndexUrl, AfterValidator(_without_credentials)]

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


def _channel(text: str) -> str:
    if text.startswith("/"):
        return f"file://{text.rstrip('/')}"
    if "://" not in text:
        return text
    if without_credentials(text) != text:
        raise ValueError("credentials do not belong in a document: use ~/.netrc or a keyring")
    return text.rstrip("/")


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
"""Where a conda channel lies: a URL, without a slash at its end; a folder's path becomes one."""

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


GitUrl = Annotated[
    str,
    spelt(
        r"^((https?|ssh)://[^\s'\"`$\\<>|;&/-]|file:///)[^\s'\"`$\\<>|;&]*$",
        "an https, http, ssh or file URL without spaces, quotes or shell characters",
        500,
    ),
    AfterValidator(_without_password),
]
"""Where a git tree is fetched from. ssh's user is no secret."""
