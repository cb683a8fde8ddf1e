"""``envbuild search``: words in recipes, sites, components and advisories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..knowledge.matching import rows, subjects
from ..knowledge.names import package_names
from ..model.outcome import SearchMatch
from ..target_tools.names import normalize
from ..workflow.context import Context
from .library import list_documents


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
