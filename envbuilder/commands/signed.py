"""``--key``: nothing is taken from a file or an image that is not signed with the key named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DriftError, UsageError
from .context import Context
from .options import SignatureOptions

if TYPE_CHECKING:
    from ..blob_signatures import PublicKey


def check_signed(file: Path | None, signed: SignatureOptions, context: Context) -> None:
    """Raise DriftError unless a file, or an image in OCI's layout, is signed with the key.

    Nothing where no key is named. *file*: None where the user named none that could be signed.
    Raises UsageError for a key that is none, MissingToolError without what verifies.
    """
    if signed.key is None:
        if signed.signature is not None:
            raise UsageError("--signature is verified with --key FILE, which is not said")
        return
    # lazy import: most files are taken without a key
    from ..blob_signatures import read_key
    from ..images import is_layout

    if file is None or (file.is_dir() and not is_layout(file)):
        what = f"{file} is a folder" if file else "no file is named"
        raise UsageError(
            f"--key is for a lock, a bundle's archive, a SIF file or an OCI layout; {what}",
            "envbuild create --locked FILE --key KEY builds of a lock that is signed",
        )
    key = read_key(context.path(signed.key))
    beside = context.path(signed.signature or f"{file}.sig")
    wrong = _wrong(file, key, beside, asked=signed.signature is not None)
    if wrong:
        raise DriftError(
            f"{file}: {wrong}; key {key.id} ({signed.key})",
            "it was changed, or signed by somebody else: nothing of it was used",
        )
    context.reporter.say(f"{file}: signed with key {key.id}")


def _wrong(file: Path, key: PublicKey, beside: Path, *, asked: bool) -> str | None:
    """Return why a file is not signed with a key. *asked*: whether the user named the signature."""
    from ..blob_signatures import mapped, read_signature
    from ..images import attached_signatures, is_layout, signed_manifest

    if is_layout(file) and not (asked or beside.exists()):
        said = list(attached_signatures(file))
        if not said:
            return f"no signature of it is in it, nor in {beside}"
        if any(key.signed(each.text, each.signature) for each in said):
            return None
        return "none of the signatures in it is of this key"
    try:
        signature = read_signature(beside)
    except (OSError, ValueError) as error:
        return f"its signature cannot be read: {error}"
    with mapped(signed_manifest(file) if is_layout(file) else file) as data:
        good = key.signed(data, signature)
    return None if good else f"{beside} is no signature of it"
