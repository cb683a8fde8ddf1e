"""How a base is named: a folder, an image as skopeo and Apptainer spell it, or what builds one.

Syntax: containers-transports(5) of github.com/containers/image. A name without a registry is
Docker Hub's, as everywhere.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import UsageError
from ..model.places import REGISTRY
from ..text import shown
from .sif import is_sif

_HUB = "docker.io"
# github.com/distribution/reference; a digest of another kind than sha256 is in no registry.
_REPOSITORY = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?P<repository>{_REPOSITORY}(?:/{_REPOSITORY})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@sha256:(?P<digest>[0-9a-f]{64}))?"
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?")

# What is read of a file to tell what it is; behind comments, which may be long.
_HEAD = 64 * 1024
_COMMENTS = rb"(?i)(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*"
_DEFINITION = re.compile(_COMMENTS + rb"bootstrap[ \t]*:")
_DOCKERFILE = re.compile(_COMMENTS + rb"(?:from|arg)[ \t]")

FileKind = Literal["oci", "oci-archive", "docker-archive", "sif", "tar"]
_FILES: tuple[FileKind, ...] = ("oci", "oci-archive", "docker-archive")


@dataclass(frozen=True)
class RegistryImage:
    """An image of a registry; ``digest`` in hex, of its manifest or of a list of these."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        return f"{self.registry}/{self.repository}"

    def __str__(self) -> str:
        return f"{self.name}@sha256:{self.digest}" if self.digest else f"{self.name}:{self.tag}"


@dataclass(frozen=True)
class ImageFile:
    """An image in a folder or a file of this machine; of ``tar``, the system itself."""

    kind: FileKind
    path: Path
    tag: str | None = None

    @property
    def name(self) -> str:
        """What it is called; where it lies is nobody else's business."""
        return f"{self.path.name}:{self.tag}" if self.tag else self.path.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BuildFile:
    """A Dockerfile or a definition file, which makes a base of another one.

    Of a Dockerfile: ``context``: the folder that COPY reads, None for that of the file.
    ``arguments``: the values of ``--build-arg``.
    """

    kind: Literal["containerfile", "definition"]
    path: Path
    context: Path | None = None
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def folder(self) -> Path:
        """The folder that the paths in the file are relative to."""
        return self.context or self.path.parent

    def __str__(self) -> str:
        return self.name


Named = RegistryImage | ImageFile | BuildFile
"""What a base is made of that is no folder with a system."""


def parse_base(text: str, cwd: Path) -> Named | Path:
    """Return what ``--base`` names; a path is a folder that holds a system. Raises UsageError."""
    if text.startswith(REGISTRY):
        return parse_registry_image(text.removeprefix(REGISTRY))
    try:
        return _of_path(text, cwd)
    except PermissionError as error:
        raise UsageError(
            "base.not-readable",
            f"--base {shown(text)}: you may not read {error.filename}",
            "ask its owner for permission, or name another base",
        ) from error


def _of_path(text: str, cwd: Path) -> ImageFile | BuildFile | Path:
    kind, colon, rest = text.partition(":")
    found = next((each for each in _FILES if colon and each == kind), None)
    if found:
        path, _, tag = rest.partition(":")
        return ImageFile(found, _there(cwd / path, text), tag or None)
    path_named = cwd / text
    return _of_file(path_named) if path_named.is_file() else path_named


def _of_file(path: Path) -> ImageFile | BuildFile:
    """Return what a file is, by what it begins with; what nothing else is, is an archive."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if is_sif(head):
        return ImageFile("sif", path)
    if _DEFINITION.match(head):
        return BuildFile("definition", path)
    return BuildFile("containerfile", path) if _DOCKERFILE.match(head) else ImageFile("tar", path)


def _there(path: Path, text: str) -> Path:
    if not path.exists():
        raise UsageError("base.missing", f"--base {shown(text)}: {path} does not exist")
    return path


def parse_registry_image(text: str) -> RegistryImage:
    """Return the image that a name without ``docker://`` means. Raises UsageError."""
    host, slash, rest = text.partition("/")
    if "@" in host and slash:
        # Not shown: it is a password, as often as not.
        raise UsageError(
            "base.credentials-in-name",
            "--base contains a user; credentials do not belong in the name of an image",
            "store credentials with skopeo login REGISTRY (file: REGISTRY_AUTH_FILE)",
        )
    # As Docker tells a registry from the first part of a name.
    if not slash or not (re.search(r"[.:]", host) or host == "localhost"):
        host, rest = _HUB, text if slash else f"library/{text}"
    match = _NAME.fullmatch(rest)
    if match is None or not _HOST.fullmatch(host):
        raise UsageError(
            "base.malformed-name",
            f"{shown(text)} is not the name of an image of a registry",
            f"examples: {REGISTRY}{_HUB}/library/debian@sha256:..., {REGISTRY}debian:12",
        )
    tag, digest = match["tag"], match["digest"]
    return RegistryImage(host, match["repository"], tag if tag or digest else "latest", digest)


def is_loopback(registry: str) -> bool:
    """Whether a registry is one of this machine: such are spoken to without TLS, as Docker does."""
    host = registry.rpartition(":")[0] or registry
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
