"""Signatures that lie in a layout beside its image, as cosign attaches them in a registry.

An image of its own, whose layers are the texts that were signed, each with its signature as an
annotation; a text names the digest of the manifest that it is about (Red Hat's simple signing).
https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .oci_contents import DAMAGED, attached_to, blob, damaged, manifest_of, read_document

_PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_CLAIM = "cosign container image signature"


class SignedText(NamedTuple):
    """What was signed, and what is said to be its signature, in base64."""

    text: bytes
    signature: str


def signed_manifest(layout: Path) -> Path:
    """Return the manifest of a layout's image: it names all else by its hash, itself by its own.

    Raises UsageError for a layout of several images, DriftError for a damaged one.
    """
    try:
        path = manifest_of(layout)
        read_document(path, checked=True)
    except DAMAGED as error:
        raise damaged(layout, str(error)) from error
    return path


def attached_signatures(layout: Path) -> Iterator[SignedText]:
    """Yield the texts in a layout that name its image as the one that was signed.

    Raises DriftError for a damaged layout.
    """
    digest = f"sha256:{signed_manifest(layout).name}"
    try:
        for each in attached_to(layout):
            for layer in read_document(blob(layout, each), checked=True)["layers"]:
                signature = layer.get("annotations", {}).get(_SIGNATURE)
                if layer["mediaType"] != _PAYLOAD or not isinstance(signature, str):
                    continue
                path = blob(layout, layer)
                if _names(read_document(path, checked=True), digest):
                    yield SignedText(path.read_bytes(), signature)
    except DAMAGED as error:
        raise damaged(layout, str(error)) from error


def _names(claim: dict[str, Any], digest: str) -> bool:
    """Whether a text says of an image that it is signed."""
    said = claim.get("critical", {})
    return bool(
        said.get("type") == _CLAIM and said.get("image", {}).get("docker-manifest-digest") == digest
    )
