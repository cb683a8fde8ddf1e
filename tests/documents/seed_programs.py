"""The programs of the seed documents, as they are there, with the lines that they leave out."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

_MARK = re.compile(r"^[|>]", re.MULTILINE)
# What stands before a line where others have a mark.
_MARGIN = re.compile(r"^(?:[|>] ?|  (?=\S))", re.MULTILINE)


def program(folder: Path, document: str, first: int, last: int, edits: Mapping[int, str]) -> str:
    """Return the lines from *first* to *last* of a document as a program.

    *edits*: what stands in place of a line, by its number. The marks of changed lines (``>`` and
    ``|``) are left out. Raises ValueError for an edit of a line outside of the program.
    """
    if not all(first <= number <= last for number in edits):
        raise ValueError(f"an edit lies outside of {document}:{first}-{last}")
    [file] = folder.glob(f"{document}_*.txt")
    lines = file.read_text(encoding="utf-8").splitlines()[first - 1 : last]
    text = "\n".join(lines)
    text = textwrap.dedent(_MARGIN.sub("", text) if _MARK.search(text) else text)
    own = text.splitlines()
    for number, line in edits.items():
        own[number - first] = line
    return "\n".join([*own, ""])
