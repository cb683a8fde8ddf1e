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

# A text of hundreds of megabytes is looked at in parts of so many bytes: what is in memory of it
# stays small. They overlap by what the record of a package may take.
PART = 1 << 24
LONGEST = 1 << 18
FILES = (b'.conda"', b'.tar.bz2"')


def add_signatures(records, cache):
    """Add to records what their channels say of their signatures."""
    by_folder = {}
    for each in records:
        name = each["url"].rpartition("/")[2]
        by_folder.setdefault((each["channel"], each["subdir"]), {})[name] = each
    for folder, named in sorted(by_folder.items()):
        said = signatures_of("/".join(folder), cache, named)
        for name, (signatures, record) in said.items():
            if signatures:
                named[name].update(signatures=signatures, signed=record)


def signatures_of(url, cache, names):
    """Return the signatures of files of a channel's subdir, and their records; nothing of most.

    rattler reads neither, and keeps what it was given.
    """
    path = repodata_file(url, cache)
    if path is None or not path.is_file() or not mentions(path, b'signatures"'):
        return {}
    found = {name: ({}, {}) for name in names}
    for name, value in values_of(path, names):
        # By public key, each an object; a record has its name.
        found[name]["name" in value].update(value)
    return found


def parts_of(path):
    """Yield the parts of a file with what is around each: bytes, and where the part is in them."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        for begin in range(0, size, PART):
            first, last = max(0, begin - LONGEST), min(size, begin + PART + LONGEST)
            access = mmap.ACCESS_READ
            with mmap.mmap(stream.fileno(), last - first, access=access, offset=first) as text:
                yield text, begin - first, min(size, begin + PART) - first


def mentions(path, word):
    """Return whether bytes are in a file."""
    return any(text.find(word) >= 0 for text, _, _ in parts_of(path))


def values_of(path, names):
    """Yield names of files that are keys in a JSON text, anywhere, each with its value, an object.

    Parsed whole, the text of a large channel takes gigabytes. A name in the middle of another text
    is none: the quotes around it are escaped.
    """
    wanted = {name.encode(): name for name in names}
    for text, first, last in parts_of(path):
        for begin, end in names_in(text, first, last):
            name = wanted.get(text[begin:end])
            value = name and object_after(text, end + 1)
            if value:
                yield name, value


def names_in(text, first, last):
    """Yield where names of files begin and end, whose ends begin between *first* and *last*."""
    for suffix in FILES:
        at = text.find(suffix, first)
        while 0 <= at < last:
            yield text.rfind(b'"', max(0, at - LONGEST), at) + 1, at + len(suffix) - 1
            at = text.find(suffix, at + 1)


def object_after(text, at):
    """Return the object after a key; None where something else is there."""
    after = text[at : at + LONGEST].lstrip()
    if after[:1] != b":":
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(after[1:].decode("utf-8", "replace").lstrip())
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


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
