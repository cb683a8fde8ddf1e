"""Documents: recipes, sites and knowledge, found by name, read with positions and checked."""

from typing import TYPE_CHECKING, Any

from .library import catalogue, find, search_path

if TYPE_CHECKING:
    from .load import Loaded, LoadedKnowledge, load_knowledge, load_recipe, load_site
    from .schema import schemas

__all__ = [
    "Loaded",
    "LoadedKnowledge",
    "catalogue",
    "find",
    "load_knowledge",
    "load_recipe",
    "load_site",
    "schemas",
    "search_path",
]


def __getattr__(name: str) -> Any:
    # Reading documents needs pydantic and PyYAML. Finding them does not, and a shell that completes
    # a recipe's name waits for it.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import load, schema

    return getattr(schema if name == "schemas" else load, name)
