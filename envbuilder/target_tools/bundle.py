"""What a bundle holds, and whether it is as it was packed; for install-bundle and for envbuild.

``install.sh`` has to compare the files before any of them runs, so that it does so by itself: a
test holds both to the same answers.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .errors import UsageError
from .files import CHUNK, open_regular, parse_json, sha256_of
from .proving.records import is_integer, is_number, is_text, or_none, several
from .root import attestations
from .root.layout import DEFAULT_FILES
from .root.registry import PREFIX
from .root.stamp import NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .proving.records import Test

FACTS = "bundle.json"
SUMS = "SHA256SUMS"
LOCK = "build/lock.json"
BILL = "build/" + attestations.SBOM
PREDICATE = "build/" + attestations.PREDICATE
# What is read whole, and how much of each at most, in bytes.
TEXTS = (FACTS, SUMS, LOCK, BILL, PREDICATE)
TEXT_BYTES = 64 * 2**20
# sha256sum begins a line with a backslash where a name has one or a line's end: no name of ours.
SUM = re.compile(r"([0-9a-f]{64})  ([^\0\n\\]+)")


class BundleContents(NamedTuple):
    """The contents of a bundle.

    files: path in the bundle -> sha256; None for an entry that is neither a file nor a folder.
    texts: the bytes of those files of TEXTS that exist.
    """

    files: "dict[str, str | None]"
    texts: "dict[str, bytes]"


def read_folder(folder: Path) -> BundleContents:
    """Return the contents of a bundle in a folder; links are not followed. Raises OSError."""
    files: "dict[str, str | None]" = {}
    texts: "dict[str, bytes]" = {}
    for here, folders, names in os.walk(str(folder), onerror=_raise):
        links = [each for each in folders if Path(here, each).is_symlink()]
        for path in (Path(here, each) for each in (*names, *links)):
            regular = path.is_file() and not path.is_symlink()
            name = path.relative_to(folder).as_posix()
            if regular and name in TEXTS:
                files[name], texts[name] = _hashed_text(path)
            else:
                files[name] = sha256_of(path) if regular else None
    return BundleContents(files, texts)


def _hashed_text(path: Path) -> "tuple[str, bytes]":
    """Return the sha256 and the first TEXT_BYTES bytes of a file, both of one read."""
    with open_regular(path) as file:
        text = file.read(TEXT_BYTES)
        whole = hashlib.sha256(text)
        for chunk in iter(lambda: file.read(CHUNK), b""):
            whole.update(chunk)
    return whole.hexdigest(), text


def _text(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(TEXT_BYTES)


def _raise(error: OSError) -> NoReturn:
    raise error


def is_inside(path: Any) -> bool:
    """Return whether a value is the path of something in a folder, and cannot lead out of it."""
    return is_text(path) and "\0" not in path and not {"", ".", ".."} & set(path.split("/"))


def changes(contents: BundleContents) -> "list[str]":
    """Return one line for each file that differs from the packed one, sorted by name."""
    if SUMS not in contents.texts:
        return [f"{SUMS}: missing"]
    try:
        sums = read_sums(contents.texts[SUMS])
    except ValueError as error:
        return [f"{SUMS}: {error}"]
    files = {name: sha256 for name, sha256 in contents.files.items() if name != SUMS}
    said = {name: "missing" for name in sums if name not in files}
    said.update({name: "added" for name in files if name not in sums})
    said.update({name: "not a regular file" for name, sha256 in files.items() if sha256 is None})
    for name in set(files) - set(said):
        if files[name] != sums[name]:
            said[name] = "other content"
    return [f"{name}: {said[name]}" for name in sorted(said)]


def read_sums(data: bytes) -> "dict[str, str]":
    """Return the sha256 of every file that SHA256SUMS names. Raises ValueError."""
    sums = {}
    for line in data.decode("utf-8").split("\n")[:-1]:
        match = SUM.fullmatch(line)
        if match is None or not is_inside(match.group(2)):
            raise ValueError(f"unexpected line: {line[:100]!r}")
        if match.group(2) in sums:
            raise ValueError(f"{match.group(2)} is listed twice")
        sums[match.group(2)] = match.group(1)
    return sums


def is_name(value: Any) -> bool:
    """Return whether a value is a name as documents have it."""
    return is_text(value) and bool(NAME.match(value))


def is_step(value: Any) -> bool:
    """Return whether a value can be the id of a step: neither an option nor a path."""
    return is_text(value) and re.fullmatch("[a-z0-9][a-z0-9-]*", value) is not None


def holds(fields: "Mapping[str, Test]") -> "Test":
    """Return a test for JSON objects that have these fields, and possibly others."""

    def check(value: object) -> bool:
        return isinstance(value, dict) and all(
            name in value and fields[name](value[name]) for name in fields
        )

    return check


ABOUT = ("environment", "id", "site", "arch")
IS_PROOF = holds(
    {
        "api": is_text,
        "transport": or_none(is_text),
        "launch": several(is_text),
        "request": holds({"ranks": lambda value: is_integer(value) and value > 0}),
        "smoke": is_inside,
    }
)
IS_PROVING = holds(
    {
        "about": holds(dict.fromkeys(ABOUT, is_text)),
        "components": several(is_text),
        "timeout": lambda value: is_number(value) and value > 0,
        "max-bytes": lambda value: is_integer(value) and value > 0,
        "mpi-from": lambda value: value in (None, "prefix", "wrapper"),
        "proofs": lambda value: bool(value) and several(IS_PROOF)(value),
    }
)
# What bundle.json says, and which values are any.
FIELDS: "dict[str, Test]" = {
    "schema": lambda value: value == 1,
    "name": is_name,
    "id": lambda value: is_text(value) and bool(PREFIX.fullmatch(value)),
    "site": is_name,
    "arch": is_name,
    "dialect": lambda value: is_text(value) and value in DEFAULT_FILES,
    "modulefile": is_inside,
    "placeholder": lambda value: is_text(value) and value.startswith("/"),
    "placed": several(is_inside),
    "steps": lambda value: bool(value) and several(is_step)(value),
    "proving": IS_PROVING,
    "job": or_none(is_inside),
    "submit": or_none(is_text),
}


def read_facts(data: bytes) -> "dict[str, Any]":
    """Parse bundle.json. Raises ValueError if a field is missing or invalid."""
    facts = parse_json(data.decode("utf-8"))
    if not isinstance(facts, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - of what was written
    for name, is_right in FIELDS.items():
        if name not in facts:
            raise ValueError(f"{name} is missing")
        if not is_right(facts[name]):
            raise ValueError(f"{name} has a wrong value: {json.dumps(facts[name])[:100]}")
    about = facts["proving"]["about"]
    if [about[name] for name in ABOUT] != [facts[name] for name in ("name", *ABOUT[1:])]:
        raise ValueError("the proof and the environment to publish do not match")
    return facts


def facts_of(bundle: Path) -> "dict[str, Any]":
    """Read and parse the bundle.json of a folder. Raises OSError, UsageError."""
    try:
        return read_facts(_text(bundle / FACTS))
    except ValueError as error:
        raise UsageError(
            "bundle.damaged",
            f"{bundle / FACTS} is damaged: {error}",
            "nothing was changed; copy or unpack the bundle again",
        ) from error
