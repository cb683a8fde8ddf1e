"""Whether a file is signed with a public key, by a signature beside it: ``cosign sign-blob --key``.

The signature is what an ECDSA key on the curve P-256 (over SHA-256) or an Ed25519 key makes of the
file's bytes, as base64; OpenSSL makes the same. cosign from 3.0 on puts it into an object of JSON,
of which nothing else is read: a log and a certificate tell nothing to who has the key. No key is
ever made here. https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
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

from ..errors import MissingToolError, UsageError
from ..target_tools.files import parse_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

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
