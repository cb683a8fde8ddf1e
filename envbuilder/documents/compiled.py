"""The compiled form of the shipped knowledge: one JSON file, quick to read.

It names the sha256 of every YAML file that it came from and counts only where they are those of the
files beside it, so that an edited file is never overlooked. A test holds it current.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..model.base import CHECKED, Document, Sha256
from ..model.knowledge import Knowledge

NAMES = (
    "components.yaml",
    "versions.yaml",
    "symptoms.yaml",
    "advisories.yaml",
    "couplings.yaml",
    "toolchains.yaml",
    "flags.yaml",
)
"""The files of a folder of knowledge, in the order in which they are read and hashed."""

COMPILED = "compiled.json"


class _File(Document):
    sources: dict[str, Sha256]
    knowledge: Knowledge


@dataclass(frozen=True)
class Current:
    """Compiled knowledge with the sha256 of each file that it came from."""

    value: Knowledge
    hashes: Mapping[Path, str]


def current(folder: Path) -> Current | None:
    """Return the compiled knowledge of a folder; None: none is there, or the files differ."""
    try:
        text = (folder / COMPILED).read_bytes()
        hashes = {path: _sha256(path) for name in NAMES if (path := folder / name).is_file()}
    except OSError:
        return None
    try:
        read = _File.model_validate_json(
            text, strict=True, by_alias=True, by_name=False, context=CHECKED
        )
    except ValidationError:
        return None  # of another release of envbuild, or cut off: the YAML is there
    if read.sources != {path.name: sha256 for path, sha256 in hashes.items()}:
        return None
    return Current(read.knowledge, hashes)


def text_of(value: Knowledge, hashes: Mapping[Path, str]) -> str:
    """Return the text of the compiled file: what has its default is left out, one row a line."""
    plain = value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    sections = {
        "knowledge": plain,
        "sources": {path.name: sha256 for path, sha256 in hashes.items()},
    }
    return _spelt(sections, 3) + "\n"


def _spelt(value: object, levels: int) -> str:
    """Return JSON with keys sorted; the outer *levels* with a line for each entry."""
    if levels and isinstance(value, dict) and value:
        inner = (f"{json.dumps(key)}:{_spelt(value[key], levels - 1)}" for key in sorted(value))
        return "{\n" + ",\n".join(inner) + "\n}"
    if levels and isinstance(value, list) and value:
        return "[\n" + ",\n".join(_spelt(each, levels - 1) for each in value) + "\n]"
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
