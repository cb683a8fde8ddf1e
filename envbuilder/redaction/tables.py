"""The tables of this folder: a row on each line, fields separated by tabs, # for a comment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def table(name: str) -> Iterator[list[str]]:
    """Yield the fields of each row of a table."""
    text = Path(__file__).with_name(f"{name}.tsv").read_text(encoding="utf-8")
    yield from (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
