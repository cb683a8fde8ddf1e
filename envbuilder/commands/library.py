"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..documents.library import catalogue, find
from ..documents.load import load_recipe, load_site
from ..documents.schema import schemas
from ..errors import DocumentError, EnvbuildError, Problem
from ..model.knowledge import Knowledge
from ..model.outcome import DocumentEntry
from ..model.recipe import Recipe
from ..model.site import Site
from .context import Context
from .entries import entries
from .load import folders_and_knowledge

Kind = Literal["recipe", "site"]


def list_documents(kind: Kind, context: Context) -> tuple[DocumentEntry, ...]:
    """Return the name, summary and file of every recipe or site; a broken one says so."""
    folders, knowledge = folders_and_knowledge(context)
    return tuple(
        DocumentEntry(name=name, file=str(path), summary=_summary(kind, path, knowledge.value))
        for name, path in catalogue(kind, folders)
    )


def _summary(kind: Kind, path: Path, knowledge: Knowledge) -> str:
    try:
        return _load(kind, path, knowledge).summary
    except EnvbuildError as error:
        return f"broken: {error.problems[0].message}"


def _load(kind: Kind, path: Path, knowledge: Knowledge) -> Recipe | Site:
    if kind == "recipe":
        return load_recipe(path, knowledge, entries()).value
    return load_site(path, knowledge, entries()).value


def show(kind: Kind, name: str, context: Context) -> tuple[Recipe | Site, str]:
    """Return a document as it is read and as it is written."""
    folders, knowledge = folders_and_knowledge(context)
    path = find(kind, name, folders)
    return _load(kind, path, knowledge.value), path.read_text(encoding="utf-8")


def check(kind: Kind, files: Sequence[Path], context: Context) -> tuple[str, ...]:
    """Check files; raises one DocumentError with the problems of all of them.

    Of a site its snapshot is checked too; what should be known of that is told.
    """
    _, knowledge = folders_and_knowledge(context)
    problems: list[Problem] = []
    for file in files:
        try:
            _load(kind, file, knowledge.value)
        except EnvbuildError as error:
            problems.extend(error.problems)
    if problems:
        raise DocumentError(tuple(problems))
    if kind == "site":
        from .sites import site_notes

        for note in site_notes(files, context):
            context.reporter.warn(note)
    return tuple(str(file) for file in files)


def schema(kind: Kind) -> str:
    """Return the JSON schema of a kind of document."""
    return schemas(entries())[kind]
