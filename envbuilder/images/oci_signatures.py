"""Signatures that lie in a layout beside its image, as cosign attaches them in a registry.

An image of its own, whose layers are the texts that were signed, each with its signature as an
annotation; a text names the digest of the manifest that it is about (Red Hat's simple signing).
https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .oci_contents import DAMAGED, ImageManifest, attached_to, read_blob
from .sif import damaged

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
