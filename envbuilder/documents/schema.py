"""JSON schemas of the documents, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ..base import canonical_json
from ..knowledge.entries import ENTRIES_OF, Entries
from ..knowledge.files import FILES
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
