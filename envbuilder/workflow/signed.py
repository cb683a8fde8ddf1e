"""``--key``: nothing is taken from a file or an image that is not signed with the key named.

The bytes that are verified are the bytes that are used: a caller opens a file once.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import DriftError, UsageError
from .context import Context
from .options import SignatureOptions

if TYPE_CHECKING:
    from ..images import ImageManifest
    from .blob_signatures import Buffer, PublicKey


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
    # lazy import: most files are taken without a key
    from .blob_signatures import mapped

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
    from ..images import attached_signatures

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
    from .blob_signatures import read_key

    assert signed.key is not None  # noqa: S101 - for the type
    return read_key(context.path(signed.key))


def _signature_file(file: Path, signed: SignatureOptions, context: Context) -> Path:
    return context.path(signed.signature or f"{file}.sig")


def _fault(data: Buffer, key: PublicKey, beside: Path) -> str | None:
    """Return why bytes are not signed with a key, by the signature in a file; None if they are."""
    from .blob_signatures import read_signature

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
