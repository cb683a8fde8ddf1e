"""Signatures of conda packages, as conda's content trust has them, and whether they hold.

A channel's ``repodata.json`` has ``signatures`` then: of each file, by the public key, an ed25519
signature of its record. What verifies one is cryptography, which few Pythons have.
"""

import json
import mmap
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .files import read_json


def add_signatures(records, cache):
    """Add to records what their channels say of their signatures."""
    folders = sorted({(each["channel"], each["subdir"]) for each in records})
    read = {folder: signatures_of("/".join(folder), cache) for folder in folders}
    for each in records:
        signatures, packages = read[each["channel"], each["subdir"]]
        name = each["url"].rpartition("/")[2]
        if isinstance(signatures.get(name), dict):
            each["signatures"], each["signed"] = signatures[name], packages.get(name, {})


def signatures_of(url, cache):
    """Return the signatures and the records of a channel's subdir, by file; nothing of most.

    rattler reads neither, and keeps what it was given.
    """
    path = repodata_file(url, cache)
    if path is None or not path.is_file() or not mentions(path, b'"signatures"'):
        return {}, {}
    said = json.loads(path.read_text(encoding="utf-8"))
    signatures = said.get("signatures")
    packages = {**said.get("packages", {}), **said.get("packages.conda", {})}
    return (signatures if isinstance(signatures, dict) else {}), packages


def mentions(path, word):
    """Return whether bytes are in a file: it may have hundreds of megabytes."""
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(word) >= 0


def repodata_file(url, cache):
    """Return the repodata of a subdir: its own, or what rattler keeps of it, as conda does.

    Beside a kept file lies what it was read from (NAME.info.json).
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path), "repodata.json")
    for info in sorted(cache.glob("*.info.json")):
        if read_json(info).get("url", "").startswith(url + "/repodata.json"):
            return info.with_name(info.name.replace(".info.json", ".json"))
    return None


def holds(key, signature, data):
    """Return whether a signature of bytes was made with an ed25519 key; both are hex digits.

    Raises ImportError without cryptography.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True
