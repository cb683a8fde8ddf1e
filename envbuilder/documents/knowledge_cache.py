"""The shipped knowledge as one JSON file in the user's cache: read in 0.02 s instead of 0.3 s.

A file is found by the hashes of the YAML files that it came from and by the state of the code that
read them, so that neither an edited file nor another envbuild is ever overlooked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .. import __version__, files
from ..base import CHECKED, Document, Sha256, canonical_json, sha256_text
from ..knowledge.rows import STEMS, Knowledge
from ..machine.host import LocalMachine, cache_folder
from ..target_tools.files import make_folder, sha256_of

# The code that parses YAML into knowledge and the types of knowledge.
_CODE = tuple(Path(__file__).parent.parent / name for name in ("documents", "knowledge", "model"))
# Seconds after which a file that another envbuild or checkout wrote is removed.
_OLD = 30 * 24 * 3600


class _File(Document):
    sources: dict[str, Sha256]
    knowledge: Knowledge


class LoadedKnowledge(NamedTuple):
    """All knowledge that was found. ``hashes``: the sha256 of each file, 64 digits."""

    value: Knowledge
    hashes: Mapping[Path, str]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order in which they were read."""
        return tuple(self.hashes)

    @property
    def sha256(self) -> str:
        """The sha256 of all names and hashes; not of paths: elsewhere it is the same knowledge."""
        return sha256_text("".join(f"{path.name} {one}\n" for path, one in self.hashes.items()))


def knowledge_folder(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the folder of cached knowledge: that of ENVBUILD_KNOWLEDGE_CACHE, or XDG's."""
    named = environ.get("ENVBUILD_KNOWLEDGE_CACHE")
    if named:
        return cwd / named
    caches = cache_folder(LocalMachine(environ))
    return caches / "knowledge" if caches else None


def find(cache: Path, folder: Path) -> LoadedKnowledge | None:
    """Return what is cached of a folder of knowledge.

    None: nothing is, or not of these files; or others can write it: who chooses what is known to
    be bad chooses what is built.
    """
    try:
        paths = [folder / f"{stem}.yaml" for stem in STEMS]
        hashes = {path: sha256_of(path) for path in paths if path.is_file()}
    except OSError:
        return None
    text = files.read_own(_file(cache, hashes))
    try:
        return _parse(text, hashes) if text else None
    except ValueError:
        return None  # cut off


def store(cache: Path | None, value: Knowledge, hashes: Mapping[Path, str]) -> LoadedKnowledge:
    """Keep knowledge that was read and checked, where that is possible.

    Returns it as ``find`` will: with the names of each mapping in order, not as they were written.
    """
    # What has its default is left out.
    plain = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = canonical_json({"knowledge": plain, "sources": _by_name(hashes)})
    with contextlib.suppress(OSError):
        if cache:
            _write(_file(cache, hashes), text)
    return _parse(text.encode(), hashes)


def _parse(text: bytes, hashes: Mapping[Path, str]) -> LoadedKnowledge:
    """Raises ValueError for what is not the knowledge of these files."""
    read = _File.model_validate_json(
        text, strict=True, by_alias=True, by_name=False, context=CHECKED
    )
    if read.sources != _by_name(hashes):
        raise ValueError("it was made from other files")
    return LoadedKnowledge(read.knowledge, hashes)


def _write(file: Path, text: str) -> None:
    make_folder(file.parent)
    files.write_atomically(file, text, mode=0o600)
    made = file.stat().st_mtime
    for path in file.parent.glob("knowledge-*.json"):
        if path.stat().st_mtime < made - _OLD:
            path.unlink(missing_ok=True)


def _file(cache: Path, hashes: Mapping[Path, str]) -> Path:
    key = sha256_text(canonical_json([__version__, files.code_state(*_CODE), _by_name(hashes)]))
    return cache / f"knowledge-{key}.json"


def _by_name(hashes: Mapping[Path, str]) -> dict[str, str]:
    return {path.name: sha256 for path, sha256 in hashes.items()}
