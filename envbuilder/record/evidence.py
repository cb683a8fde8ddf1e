"""Keeping what was proved: one numbered folder per smoke test, one JSON record each."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ..errors import BuildError
from ..model.base import canonical_json
from ..model.evidence import Evidence

RECORD = "evidence.json"


def next_run(folder: Path) -> Path:
    """Make and return the folder for the next run: ``<folder>/0001`` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()]
    number = max(numbers, default=0)
    while True:
        number += 1
        run = folder / f"{number:04}"
        try:
            run.mkdir()
        except FileExistsError:
            continue  # another test of the same environment began at the same moment
        return run


def append(run: Path, evidence: Evidence) -> Path:
    """Write the record of a run; a run has one record, so an existing one is an error."""
    path = run / RECORD
    with path.open("x", encoding="utf-8") as file:
        file.write(canonical_json(evidence.plain()))
    return path


def read_all(folder: Path) -> tuple[Evidence, ...]:
    """Return every record of an environment, oldest first. Raises BuildError for a damaged one."""
    if not folder.is_dir():
        return ()
    return tuple(_read(path) for path in sorted(folder.glob(f"[0-9]*/{RECORD}")))


def _read(path: Path) -> Evidence:
    try:
        return Evidence.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise BuildError(
            f"the evidence {path} is damaged: {error.errors()[0]['msg']}",
            "the environment itself is untouched; envbuild smoke proves it again",
        ) from error
