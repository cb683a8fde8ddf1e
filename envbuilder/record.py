"""The evidence of an environment, read back; ``target_tools`` keeps it."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from .errors import BuildError
from .model.evidence import Evidence
from .target_tools.proving.evidence import RECORD


def read_all(folder: Path) -> tuple[Evidence, ...]:
    """Return every record of an environment, oldest first. Raises BuildError for a damaged one."""
    # By number: as text 10000 comes before 9999.
    runs = {int(path.parent.name): path for path in folder.glob(f"[0-9]*/{RECORD}")}
    return tuple(_read(runs[number]) for number in sorted(runs))


def _read(path: Path) -> Evidence:
    try:
        return Evidence.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise BuildError(
            f"the evidence {path} is damaged: {error.errors()[0]['msg']}",
            "the environment itself is untouched; envbuild smoke proves it again",
        ) from error
