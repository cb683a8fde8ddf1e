"""Compile the shipped knowledge: ``python -m envbuilder.documents.compile``.

It reads and checks the YAML files, and writes the compiled file beside them. Wrong rows are
reported as they are by every command.
"""

from __future__ import annotations

from pathlib import Path

from .. import data
from .compiled import COMPILED, text_of
from .knowledge import load_knowledge


def compiled_text(recipes: Path) -> str:
    """Return what the compiled file of a folder of recipes must hold.

    Raises like load_knowledge.
    """
    read = load_knowledge([recipes], shipped=None)
    return text_of(read.value, read.hashes)


def write(recipes: Path) -> Path:
    """Write the compiled file, all at once, and return where it is."""
    path = recipes / "knowledge" / COMPILED
    beside = path.with_suffix(".new")
    beside.write_text(compiled_text(recipes), encoding="utf-8")
    beside.replace(path)
    return path


if __name__ == "__main__":
    write(data.RECIPES)
