"""Knowledge as its authors write it: read as YAML, and checked against the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ..errors import Problem
from ..model.knowledge import (
    Advisories,
    Components,
    Couplings,
    Flags,
    Knowledge,
    Symptoms,
    Toolchains,
    Versions,
)
from .knowledge_cache import NAMES
from .load import Document, read_document
from .row_checks import Catalogue, KnowledgeFile, duplicates, faults

_MODELS: Mapping[str, type[BaseModel]] = dict(
    zip(
        NAMES,
        (Components, Versions, Symptoms, Advisories, Couplings, Toolchains, Flags),
        strict=True,
    )
)

# Of each section of the knowledge: the file that says it, and under which key.
_SECTIONS = {
    "components": ("components.yaml", "components"),
    "releases": ("versions.yaml", "releases"),
    "existing": ("versions.yaml", "existing"),
    "source_trees": ("versions.yaml", "source_trees"),
    "channels": ("versions.yaml", "channels"),
    "symptoms": ("symptoms.yaml", "symptoms"),
    "advisories": ("advisories.yaml", "advisories"),
    "couplings": ("couplings.yaml", "couplings"),
    "kinds": ("toolchains.yaml", "kinds"),
    "generations": ("toolchains.yaml", "generations"),
    "flags": ("flags.yaml", "flags"),
    "flag_rules": ("flags.yaml", "rules"),
}


def read_sheets(folder: Path) -> tuple[Document[Any], ...]:
    """Read those files of knowledge that the folder has, each checked by itself."""
    paths = [folder / name for name in NAMES]
    return tuple(read_document(path, _MODELS[path.name]) for path in paths if path.exists())


def as_knowledge(sheets: Sequence[Document[Any]]) -> Knowledge:
    """Return what the files of one folder say together."""
    values = {each.loaded.path.name: each.loaded.value for each in sheets}
    fields = {
        section: getattr(values[name], key)
        for section, (name, key) in _SECTIONS.items()
        if name in values
    }
    return Knowledge(**{"components": {}, "releases": {}, **fields})


def problems(
    sheets: Sequence[Document[Any]], others: Sequence[Knowledge], merged: Knowledge
) -> list[Problem]:
    """Return what in the files does not agree with *merged*, the whole of the knowledge.

    *others*: knowledge that is part of the whole and was checked before.
    """
    read = [KnowledgeFile(each.loaded.path.stem, each.loaded.value, each.root) for each in sheets]
    catalogue = Catalogue(merged)
    problems = [*duplicates(read, others)]
    for sheet in read:
        problems += faults(sheet, merged, catalogue)
    return problems
