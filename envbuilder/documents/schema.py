"""JSON schemas of the documents, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ..model.base import canonical_json
from ..model.entries import ENTRIES_OF, Entries
from ..model.knowledge import (
    Advisories,
    Components,
    Couplings,
    Flags,
    Symptoms,
    Toolchains,
    Versions,
)
from ..model.recipe import Recipe
from ..model.site import Site, Snapshot

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas(entries: Entries) -> dict[str, str]:
    """Return the text of each schema by the name of the document's kind.

    *entries*: what documents may name.
    """
    models: dict[str, type[BaseModel]] = {
        "recipe": Recipe,
        "site": Site,
        "components": Components,
        "versions": Versions,
        "symptoms": Symptoms,
        "advisories": Advisories,
        "couplings": Couplings,
        "toolchains": Toolchains,
        "flags": Flags,
        "snapshot": Snapshot,
    }
    return {kind: _schema(kind, model, entries) for kind, model in models.items()}


def _schema(kind: str, model: type[BaseModel], entries: Entries) -> str:
    body = _named(_closed(model.model_json_schema(by_alias=True)), entries)
    return canonical_json({**body, "$schema": _DIALECT, "title": f"envbuild: {kind}"})


def _closed(part: Any) -> Any:
    """Refuse, wherever names must have a pattern, the names that do not; pydantic leaves them."""
    if isinstance(part, list):
        return [_closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _closed(each) for key, each in part.items()}
    if "patternProperties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _named(part: Any, entries: Entries) -> Any:
    """Write the names of entries where the models leave them open."""
    if isinstance(part, list):
        return [_named(each, entries) for each in part]
    if not isinstance(part, dict):
        return part
    named = {key: _named(each, entries) for key, each in part.items() if key != ENTRIES_OF}
    if ENTRIES_OF in part:
        named["enum"] = list(entries.names(part[ENTRIES_OF]))
    return named
