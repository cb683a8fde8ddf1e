"""Documents: recipes, sites and knowledge, found by name, read with positions and checked."""

from typing import TYPE_CHECKING, Any

from .library import catalogue, find, search_path

if TYPE_CHECKING:
    from .knowledge import LoadedKnowledge, load_knowledge
    from .knowledge_cache import knowledge_folder
    from .load import LoadedDocument, load_recipe, load_site
    from .schema import schemas

__all__ = [
    "LoadedDocument",
    "LoadedKnowledge",
    "catalogue",
    "find",
    "knowledge_folder",
    "load_knowledge",
    "load_recipe",
    "load_site",
    "schemas",
    "search_path",
]


_MODULES = {
    "LoadedDocument": "load",
    "LoadedKnowledge": "knowledge",
    "knowledge_folder": "knowledge_cache",
    "load_knowledge": "knowledge",
    "load_recipe": "load",
    "load_site": "load",
    "schemas": "schema",
}


def __getattr__(name: str) -> Any:
    # Reading documents needs pydantic and PyYAML. Finding them does not, and a shell that completes
    # a recipe's name waits for it.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
