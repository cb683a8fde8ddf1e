"""The few files in an image of OCI's layout that say what it holds; nothing of it is run.

Its layer is read once, as a stream: what is not wanted is passed over, and its hash is that of its
name, or nothing of it counts.
"""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from ..errors import UsageError
from ..target_tools.files import CHUNK, open_regular, parse_json
from .contents import LARGEST, LARGEST_FILE, PLAIN_PATH, WANTED, has_content, labels_of
from .oci import ARCHES
from .sif import damaged, no_environment

# Signatures lie in a layout beside its image, as cosign attaches them in a registry: an image of
# its own, whose layers are the texts that were signed, each with its signature as an annotation;
# a text names the digest of the manifest that it is about (Red Hat's simple signing).
# https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md

_PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_CLAIM = "cosign container image signature"


class SignedText(NamedTuple):
    """What was signed, and what is said to be its signature, in base64."""

    text: bytes
    signature: str


def attached_signatures(layout: Path, manifest: ImageManifest) -> Iterator[SignedText]:
    """Yield the texts in a layout that name the image of a manifest as the one that was signed.

    Raises DriftError for a damaged layout.
    """
    digest = f"sha256:{manifest.digest}"
    try:
        for each in attached_to(layout):
            for layer in read_blob(layout, each).document["layers"]:
                signature = layer.get("annotations", {}).get(_SIGNATURE)
                if layer["mediaType"] != _PAYLOAD or not isinstance(signature, str):
                    continue
                claim = read_blob(layout, layer)
                if _names(claim.document, digest):
                    yield SignedText(claim.data, signature)
    except DAMAGED as error:
        raise damaged(layout, str(error)) from error


def _names(claim: dict[str, Any], digest: str) -> bool:
    """Whether a text says of an image that it is signed."""
    said = claim.get("critical", {})
    return bool(
        said.get("type") == _CLAIM and said.get("image", {}).get("docker-manifest-digest") == digest
    )


_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
# Bytes: of an index, a manifest, a configuration.
_LARGEST_DOCUMENT = 4 * 2**20
# What a document raises that is not as the specification has it.
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)
# What cosign puts beside an image: by what ``cosign save`` calls it, or by its tag in a registry.
_ATTACHED = re.compile(r"dev\.cosignproject\.cosign/(?!image$).*|sha256-[0-9a-f]{64}\.[a-z]+")
_SAID = ("kind", "org.opencontainers.image.ref.name")


class LayoutFacts(NamedTuple):
    """What an image says of itself. *arch*: None for one that no recipe has; *size*: in bytes."""

    arch: str | None
    labels: dict[str, str]
    size: int


class ImageManifest(NamedTuple):
    """The manifest of the image in a layout, as it was read once: it names all else by its hash.

    *digest*: the sha256 of *data*, in hex.
    """

    digest: str
    data: bytes
    document: dict[str, Any]


def is_layout(path: Path) -> bool:
    """Whether a folder is in OCI's image layout."""
    return (path / "oci-layout").is_file()


def unpack_layout_records(
    layout: Path, manifest: ImageManifest, inside: Path, folder: Path
) -> LayoutFacts:
    """Write the records of the root *inside* an image into *folder*, as they lie there.

    What is read is what *manifest* names: its hash is compared. Raises UsageError for a layout that
    is none of envbuild's, DriftError for a damaged one.
    """
    try:
        config = read_blob(layout, manifest.document["config"]).document
        layers = [blob(layout, each) for each in manifest.document["layers"]]
        if len(layers) != 1:
            raise UsageError(
                "image.not-from-envbuild",
                f"{layout} has {len(layers)} layers, but an image of envbuild has one",
            )
        total, size = _unpacked(layers[0], inside, folder)
        arches = {value: name for name, value in ARCHES.items()}
        labels = labels_of(json.dumps(config.get("config", {}).get("Labels")))
        arch = arches.get(str(config.get("architecture")))
    except (*DAMAGED, tarfile.TarError) as error:
        raise damaged(layout, str(error)) from error
    except (EOFError, zlib.error) as error:
        raise damaged(layout, "a layer is cut off") from error
    if not total:
        raise no_environment(layout, inside)
    return LayoutFacts(arch, labels, size)


def read_manifest(layout: Path) -> ImageManifest:
    """Return the manifest of a layout's image.

    Raises UsageError for a layout of several images, DriftError for a damaged one.
    """
    try:
        images = [each for each in _listed(layout) if not _is_attached(each)]
        if len(images) != 1:
            raise UsageError(
                "image.not-from-envbuild",
                f"{layout} contains {len(images)} images, but a layout of envbuild contains one",
            )
        return read_blob(layout, images[0])
    except DAMAGED as error:
        raise damaged(layout, str(error)) from error


def attached_to(layout: Path) -> list[dict[str, Any]]:
    """Return what lies in a layout beside its image and says something of it; as DAMAGED has it."""
    return [each for each in _listed(layout) if _is_attached(each)]


def _listed(layout: Path) -> list[dict[str, Any]]:
    index = layout / "index.json"
    return list(_document(_read(index), index.name)["manifests"])


def _is_attached(descriptor: dict[str, Any]) -> bool:
    said = descriptor.get("annotations") or {}
    return any(_ATTACHED.fullmatch(str(said.get(name))) for name in _SAID)


def read_blob(layout: Path, descriptor: dict[str, Any]) -> ImageManifest:
    """Return a document that a descriptor names; it has that hash. Raises as DAMAGED has it."""
    path = blob(layout, descriptor)
    data = _read(path)
    if hashlib.sha256(data).hexdigest() != path.name:
        raise ValueError(f"{path.name} does not match its name")
    return ImageManifest(path.name, data, _document(data, path.name))


def _read(path: Path) -> bytes:
    with open_regular(path) as stream:
        data: bytes = stream.read(_LARGEST_DOCUMENT + 1)
    if len(data) > _LARGEST_DOCUMENT:
        raise ValueError(f"{path.name} is too large")
    return data


def _document(data: bytes, name: str) -> dict[str, Any]:
    found = parse_json(data)
    if not isinstance(found, dict):
        raise ValueError(f"{name} is not a JSON object")  # noqa: TRY004 - of a document
    return found


def blob(layout: Path, descriptor: dict[str, Any]) -> Path:
    """Return the file of a part. Raises as DAMAGED has it."""
    digest = _DIGEST.fullmatch(str(descriptor["digest"]))
    if digest is None:
        raise ValueError("a part has no digest")
    return layout / "blobs" / "sha256" / digest[1]


class _Hashing:
    """A stream that is read, and what was read hashed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._sha256.update(data)
        self.size += len(data)
        return data

    def digest(self) -> str:
        """Return the hash of the whole stream."""
        while self.read(CHUNK):
            pass
        return self._sha256.hexdigest()


def _unpacked(layer: Path, inside: Path, folder: Path) -> tuple[int, int]:
    """Write the records; return how many bytes they have, and how many the layer has."""
    total, below = 0, PurePosixPath(inside).relative_to("/")
    with open_regular(layer) as stream:
        whole = _Hashing(stream)
        with tarfile.open(mode="r|gz", fileobj=whole) as archive:  # type: ignore[call-overload]
            for member in archive:
                path = PurePosixPath(member.name)
                if not member.isreg() or not _is_wanted(path, below):
                    continue
                total += member.size
                if member.size > LARGEST_FILE or total > LARGEST:
                    raise ValueError(f"too many records: {path.name}")
                target = folder / path.relative_to(below)
                target.parent.mkdir(parents=True, exist_ok=True)
                opened = archive.extractfile(member)
                if opened and has_content(target):
                    target.write_bytes(opened.read())
        if whole.digest() != layer.name:
            raise ValueError(f"{layer.name} does not match its name")
    return total, whole.size


def _is_wanted(path: PurePosixPath, below: PurePosixPath) -> bool:
    if not path.is_relative_to(below) or not PLAIN_PATH.fullmatch(str(path)):
        return False
    inner = path.relative_to(below)
    return ".." not in inner.parts and any(
        len(inner.parts) == each.count("/") + 1 and inner.match(each) for each in WANTED
    )
