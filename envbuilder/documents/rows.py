"""Knowledge as its authors write it: read as YAML, and checked against the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import Place, Problem
from ..knowledge.files import FILES
from ..knowledge.rows import Knowledge
from ..text import shown
from .load import LoadedDocument, read_document
from .row_checks import RowChecks, faults
from .tree import KEY, key_place, value_place

Sheet = LoadedDocument[Any]
"""One file of knowledge; its value is one of the models of FILES."""

# Where rows have ids: the sections by what messages call them, and their keys.
_ROWS = {
    "symptoms": "symptoms",
    "log sources": "sources",
    "library names": "libraries",
    "advisories": "advisories",
    "couplings": "couplings",
    "flag rules": "rules",
}


def read_sheets(folder: Path) -> tuple[Sheet, ...]:
    """Read those files of knowledge that the folder has, each checked by itself."""
    files = {folder / f"{stem}.yaml": model for stem, model in FILES.items()}
    return tuple(read_document(path, model) for path, model in files.items() if path.exists())


def as_knowledge(sheets: Sequence[Sheet]) -> Knowledge:
    """Return what the files of one folder say together."""
    values = [each.value for each in sheets]
    sections = Knowledge.model_fields
    return Knowledge(
        **{n: getattr(v, n) for v in values for n in type(v).model_fields.keys() & sections}
    )


def problems(
    sheets: Sequence[Sheet], others: Sequence[Knowledge], merged: Knowledge
) -> list[Problem]:
    """Return what in the files does not agree with *merged*, the whole of the knowledge.

    *others*: knowledge that is part of the whole and was checked before.
    """
    problems = [*_duplicates(sheets, others)]
    checks = RowChecks(merged)
    for sheet in sheets:
        for problem_id, keys, message, *hints in faults(checks, sheet.value):
            in_key = keys[-1:] == (KEY,)
            place = key_place(sheet.root, keys[:-1]) if in_key else value_place(sheet.root, keys)
            problems.append(Problem(problem_id, message, place, tuple(hints)))
    return problems


def _duplicates(sheets: Sequence[Sheet], others: Sequence[Knowledge]) -> Iterator[Problem]:
    """Yield a problem for every id that two rows have.

    A row of another folder and of the same kind is replaced, which is what its id is for.
    """
    elsewhere = {row.id: kind for each in others for kind, row in _rows(each)}
    first: dict[str, tuple[str, Place]] = {}
    for sheet in sheets:
        count = dict.fromkeys(_ROWS, 0)
        for kind, row in _rows(sheet.value):
            place = value_place(sheet.root, (_ROWS[kind], count[kind], "id"))
            count[kind] += 1
            before, at = first.setdefault(row.id, (kind, place))
            taken = ""
            if at is not place and (before != kind or at.file == place.file):
                taken = f"it is used at {at}"
            elif elsewhere.get(row.id, kind) != kind:
                taken = f"it is used in the {elsewhere[row.id]}"
            if taken:
                message = f"duplicate id '{shown(row.id)}': {taken}"
                yield Problem("knowledge.duplicate-id", message, place, ("use another id",))


def _rows(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of all the knowledge, or of one file, each with its kind."""
    for kind in _ROWS:
        for row in getattr(value, kind.replace(" ", "_"), ()):
            yield kind, row
