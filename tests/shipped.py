"""What ships: knowledge, read once by each process as its YAML takes 0.2 s and more; plain YAML."""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.knowledge_cache import LoadedKnowledge

# libyaml, where PyYAML has it, is ten times as fast.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def plain_yaml(text: str) -> Any:
    """Return what a document holds, whatever it is."""
    return yaml.load(text, Loader=_LOADER)


@cache
def read_shipped() -> LoadedKnowledge:
    return load_knowledge([data.RECIPES])
