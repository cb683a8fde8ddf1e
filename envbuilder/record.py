"""The evidence of an environment, read back; ``target_tools`` keeps it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from .errors import BuildError
from .model.evidence import Evidence
from .target_tools.proving.evidence import RECORD


def read_all(folder: Path) -> tuple[Evidence, ...]:
    """Return every record of an environment, oldest first. Raises BuildError for a damaged one."""
    return tuple(_read(path) for path in sorted(folder.glob(f"[0-9]*/{RECORD}")))


def _read(path: Path) -> Evidence:
    try:
        return Evidence.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise BuildError(
            f"the evidence {path} is damaged: {error.errors()[0]['msg']}",
            "the environment itself is untouched; envbuild smoke proves it again",
        ) from error
