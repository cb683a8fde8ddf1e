"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from ..base import canonical_json
from ..documents.library import catalogue, find
from ..documents.load import LoadedDocument, load_recipe, load_site
from ..errors import EnvbuildError
from ..knowledge.entries import ENTRIES_OF, Entries
from ..knowledge.files import FILES
from ..model.outcome import DocumentEntry
from ..model.recipe import Recipe
from ..model.site import Site, Snapshot
from ..workflow.context import Context
from ..workflow.entries import entries

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas(entries: Entries) -> dict[str, str]:
    """Return the text of each schema by the name of the document's kind.

    *entries*: what documents may name.
    """
    models: dict[str, type[BaseModel]] = {
        "recipe": Recipe,
        "site": Site,
        **FILES,
        "snapshot": Snapshot,
    }
    return {
        kind: canonical_json(
            {
                **_finished(model.model_json_schema(by_alias=True), entries),
                "$schema": _DIALECT,
                "title": f"envbuild: {kind}",
            }
        )
        for kind, model in models.items()
    }


def _finished(part: Any, entries: Entries) -> Any:
    """Write the names of entries where the models leave them open.

    And refuse, wherever names must have a pattern, the names that do not: pydantic leaves them.
    """
    if isinstance(part, list):
        return [_finished(each, entries) for each in part]
    if not isinstance(part, dict):
        return part
    done = {key: _finished(each, entries) for key, each in part.items() if key != ENTRIES_OF}
    if ENTRIES_OF in part:
        done["enum"] = list(entries.names(part[ENTRIES_OF]))
    if "patternProperties" in part:
        done.setdefault("additionalProperties", False)
    return done


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
