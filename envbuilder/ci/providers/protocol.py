"""What a provider's module has. It writes nothing: a pipeline comes in, a text goes out.

A new provider of continuous integration is a module with these names, and its line in PROVIDERS.
"""

from __future__ import annotations

from typing import Protocol

from ..values import Pipeline


class Provider(Protocol):
    """One provider. ``FILE``: where a repository keeps its pipeline."""

    FILE: str

    def render(self, pipeline: Pipeline) -> str:
        """Return the pipeline's file."""
