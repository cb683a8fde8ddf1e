"""``--key``: nothing is taken from a file or an image that is not signed with the key named.

The bytes that are verified are the bytes that are used: a caller opens a file once. A signature
lies beside its file, as of ``cosign sign-blob --key``: what an ECDSA key on the curve P-256 (over
SHA-256) or an Ed25519 key makes of the file's bytes, as base64; OpenSSL makes the same. cosign from
3.0 on puts it into an object of JSON, of which nothing else is read: a log and a certificate tell
nothing to who has the key. No key is ever made here.
https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
"""

from __future__ import annotations

import base64
import hashlib
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from ..errors import DriftError, MissingToolError, UsageError
from ..target_tools.files import parse_json
from .context import Context
from .options import SignatureOptions

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from ..images.oci_contents import ImageManifest

# Bytes: of a signature or a key; a Sigstore bundle with a log's proof has a few thousand.
_LARGEST = 1 << 20


Buffer = bytes | memoryview


class PublicKey(NamedTuple):
    """A key. *id*: sha256 of its SubjectPublicKeyInfo (DER), in hex, as cosign has it."""

    id: str
    public: EllipticCurvePublicKey | Ed25519PublicKey

    def signed(self, data: Buffer, signature: str) -> bool:
        """Whether a signature, as ``read_signature`` gives it, is this key's, of these bytes."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
        from cryptography.hazmat.primitives.hashes import SHA256

        try:
            said = base64.b64decode("".join(signature.split()), validate=True)
            if isinstance(self.public, EllipticCurvePublicKey):
                self.public.verify(said, data, ECDSA(SHA256()))
            else:
                self.public.verify(said, data)
        except (InvalidSignature, ValueError):
            return False
        return True


def read_key(path: Path) -> PublicKey:
    """Return the public key in a PEM file. Raises UsageError for another, MissingToolError."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            PublicFormat,
            load_pem_public_key,
        )
    except ImportError as error:
        raise MissingToolError(
            "signature.cryptography-missing",
            f"the package cryptography, which verifies signatures, is not available: {error}",
            "run pip install 'envbuild[signatures]' in envbuild's own Python",
        ) from error
    hint = "cosign public-key --key KEY or openssl pkey -in KEY -pubout writes one"
    try:
        public = load_pem_public_key(_bytes(path))
    except OSError as error:
        raise UsageError("key.not-readable", f"cannot read {path}: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            "key.not-pem", f"{path} is not a public key in PEM: {error}", hint
        ) from error
    p256 = isinstance(public, EllipticCurvePublicKey) and isinstance(public.curve, SECP256R1)
    if not (p256 or isinstance(public, Ed25519PublicKey)):
        raise UsageError(
            "key.unsupported-type",
            f"{path} is neither an ECDSA key on P-256 nor an Ed25519 key",
        )
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), public)  # type: ignore[arg-type]


def read_signature(path: Path) -> str:
    """Return the base64 in the file of a signature. Raises OSError, ValueError."""
    text = _bytes(path).decode("ascii")
    if not text.lstrip().startswith("{"):
        return text
    try:
        said = parse_json(text)
        return str(said.get("base64Signature") or said["messageSignature"]["signature"])
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError("it does not contain a signature of a file") from error


def _bytes(path: Path) -> bytes:
    with path.open("rb") as stream:
        data = stream.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ValueError("it is too large")
    return data


@contextmanager
def mapped(stream: IO[bytes]) -> Iterator[Buffer]:
    """Give the bytes of an open file, which memory need not hold. Raises OSError."""
    if not os.fstat(stream.fileno()).st_size:
        # mmap(2) has none of no length.
        yield b""
        return
    with (
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as pages,
        memoryview(pages) as data,
    ):
        yield data


def check_no_key(file: Path | None, signed: SignatureOptions) -> None:
    """Raise UsageError where a key is named for what cannot be signed; *file*: None for no file."""
    if _requires_key(signed):
        what = f"{file} is a folder" if file else "no file is given"
        raise UsageError(
            "signature.not-applicable",
            f"--key applies to a lock, a bundle's archive, a SIF file or an OCI layout; {what}",
            "to build from a signed lock: envbuild create --locked FILE --key KEY",
        )


def check_signed(
    file: Path, content: bytes | IO[bytes], signed: SignatureOptions, context: Context
) -> None:
    """Raise DriftError unless a file is signed with the key; do nothing where no key is named.

    *content*: the bytes of the file, or the open file. Raises UsageError for a key that is none,
    MissingToolError without what verifies.
    """
    if not _requires_key(signed):
        return
    key, beside = _read_key(signed, context), _signature_file(file, signed, context)
    if isinstance(content, bytes):
        fault = _fault(content, key, beside)
    else:
        with mapped(content) as data:
            fault = _fault(data, key, beside)
    _report(file, key, fault, signed, context)


def check_signed_image(
    layout: Path, manifest: ImageManifest, signed: SignatureOptions, context: Context
) -> None:
    """Raise DriftError unless the image of an OCI layout is signed with the key.

    The signature is of its manifest: in a file, or in the layout. Raises as ``check_signed`` does.
    """
    if not _requires_key(signed):
        return
    from ..images.oci_contents import attached_signatures

    key, beside = _read_key(signed, context), _signature_file(layout, signed, context)
    if signed.signature is not None or beside.exists():
        fault = _fault(manifest.data, key, beside)
    else:
        attached = list(attached_signatures(layout, manifest))
        fault = "none of its signatures is by this key"
        if not attached:
            fault = f"it is not signed: no signature in it or in {beside}"
        elif any(key.signed(each.text, each.signature) for each in attached):
            fault = None
    _report(layout, key, fault, signed, context)


def _requires_key(signed: SignatureOptions) -> bool:
    if signed.key is None and signed.signature is not None:
        raise UsageError(
            "key.missing",
            "--signature needs --key",
            "add --key FILE with the public key",
        )
    return signed.key is not None


def _read_key(signed: SignatureOptions, context: Context) -> PublicKey:
    assert signed.key is not None  # noqa: S101 - for the type
    return read_key(context.path(signed.key))


def _signature_file(file: Path, signed: SignatureOptions, context: Context) -> Path:
    return context.path(signed.signature or f"{file}.sig")


def _fault(data: Buffer, key: PublicKey, beside: Path) -> str | None:
    """Return why bytes are not signed with a key, by the signature in a file; None if they are."""
    try:
        signature = read_signature(beside)
    except (OSError, ValueError) as error:
        return f"cannot read its signature: {error}"
    return None if key.signed(data, signature) else f"{beside} is not a signature of it"


def _report(
    file: Path, key: PublicKey, fault: str | None, signed: SignatureOptions, context: Context
) -> None:
    if fault:
        raise DriftError(
            "signature.not-verified",
            f"{file}: {fault}; key {key.id} ({signed.key})",
            "the file was changed, or signed with another key; it was not used",
        )
    context.reporter.say(f"{file}: signed with key {key.id}")
