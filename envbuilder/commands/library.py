"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..documents.library import catalogue, find
from ..documents.load import LoadedDocument, load_recipe, load_site
from ..documents.schema import schemas
from ..errors import EnvbuildError
from ..model.outcome import DocumentEntry
from ..model.recipe import Recipe
from ..model.site import Site
from ..workflow.context import Context
from ..workflow.entries import entries

Kind = Literal["recipe", "site"]


def list_documents(kind: Kind, context: Context) -> tuple[DocumentEntry, ...]:
    """Return the name, summary and file of every recipe or site; a broken one says so."""
    return tuple(
        DocumentEntry(name=name, file=str(path), summary=_summary(kind, path, context))
        for name, path in catalogue(kind, context.folders)
    )


def _summary(kind: Kind, path: Path, context: Context) -> str:
    try:
        return _load(kind, path, context).value.summary
    except EnvbuildError as error:
        return f"broken: {error.problems[0].message}"


def _load(
    kind: Kind, path: Path, context: Context
) -> LoadedDocument[Recipe] | LoadedDocument[Site]:
    if kind == "recipe":
        return load_recipe(path, context.knowledge, entries())
    return load_site(path, context.knowledge, entries())


def show(kind: Kind, name: str, context: Context) -> tuple[Recipe | Site, str]:
    """Return a document as it is read and as it is written."""
    path = find(kind, name, context.folders)
    return _load(kind, path, context).value, path.read_text(encoding="utf-8")


def schema(kind: Kind) -> str:
    """Return the JSON schema of a kind of document."""
    return schemas(entries())[kind]
