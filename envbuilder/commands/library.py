"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from ..base import canonical_json
from ..documents.library import catalogue, find
from ..documents.load import LoadedDocument, load_recipe, load_site
from ..errors import EnvbuildError
from ..knowledge.entries import ENTRIES_OF, Entries
from ..knowledge.files import FILES
from ..knowledge.matching import rows, subjects
from ..knowledge.names import package_names
from ..model.outcome import DocumentEntry, SearchMatch
from ..model.recipe import Recipe
from ..model.site import Site, Snapshot
from ..target_tools.names import normalize
from ..workflow.context import Context
from ..workflow.entries import entries


def search(words: Sequence[str], context: Context) -> tuple[SearchMatch, ...]:
    """Return what contains every word, in any case; the alias of a component is that component."""
    aliases = package_names(context.knowledge.components)
    alternatives = [{word.lower(), aliases.get(normalize(word), word).lower()} for word in words]
    return tuple(
        match
        for match, text in _texts(context)
        if all(any(each in text.lower() for each in spellings) for spellings in alternatives)
    )


def _texts(context: Context) -> Iterator[tuple[SearchMatch, str]]:
    """Yield each document, component and row with the text in which words are searched."""
    for document in list_documents("recipe", context):
        text = Path(document.file).read_text(encoding="utf-8", errors="replace")
        yield SearchMatch("recipe", document.name, document.summary), f"{document.name} {text}"
    for document in list_documents("site", context):
        text = f"{document.name} {document.summary}"
        yield SearchMatch("site", document.name, document.summary), text
    for name, component in context.knowledge.components.items():
        others = (component.conda, component.debian, component.pip, *component.pip_variants)
        names = (name, *filter(None, others), *component.modules, *component.aliases)
        match = SearchMatch("component", name, component.summary)
        yield match, " ".join((*names, component.summary))
    for row in rows(context.knowledge):
        text = " ".join((row.id, *subjects(row), row.summary, row.fix or ""))
        yield SearchMatch("advisory", row.id, row.summary), text


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
