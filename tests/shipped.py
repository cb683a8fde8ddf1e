"""The shipped knowledge, read once by each process of the tests: its YAML takes 0.2 s and more."""

from __future__ import annotations

from functools import cache

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.knowledge_cache import LoadedKnowledge


@cache
def read_shipped() -> LoadedKnowledge:
    return load_knowledge([data.RECIPES])
