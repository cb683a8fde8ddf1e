"""What is gathered for a recipe, and the names that envbuild knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Place
from ..knowledge.terms import Arch


@dataclass(frozen=True)
class KnownNames:
    """What is known of names: components by what conda and pip call them, channels by their URLs.

    ``pip_variants``: components by other distributions with the same contents. ``others``:
    components by the names that Spack, EasyBuild and people have. ``modules``: by the stems of
    modules. ``toolchains``: the MPI of each kind of toolchain, None without one. ``built``:
    components that are built, never taken as packages. ``tools``: those that every
    environment needs anyway, so that a file says nothing by them. ``bundled``: distributions that
    every environment gets anyway.
    """

    conda: Mapping[str, str]
    pip: Mapping[str, str]
    channels: Mapping[str, str]
    pip_variants: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, str] = field(default_factory=dict)
    toolchains: Mapping[str, str | None] = field(default_factory=dict)
    named_channels: frozenset[str] = frozenset()
    built: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    bundled: frozenset[str] = frozenset()


@dataclass
class ImportDraft:
    """What is gathered for a recipe. ``lost``: place and text of what it cannot say.

    ``built_at``: where a runtime that is built is named. ``specs``: those of conda by component or
    normalized name. ``requirements``: those of pip by themselves, normalized.
    """

    arch: Arch
    is_conda: bool = False
    specs: dict[str, str] = field(default_factory=dict)
    stack: dict[str, str] = field(default_factory=dict)
    conda: list[str] = field(default_factory=list)
    pip: list[str] = field(default_factory=list)
    requirements: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    index: str | None = None
    further_indexes: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    runtime: dict[str, Any] = field(default_factory=dict)
    built_at: Place | None = None
    lost: list[tuple[Place | None, str]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.stack or self.conda or self.pip or self.runtime)


def add_runtime(draft: ImportDraft, component: str, bounds: str, place: Place | None) -> None:
    draft.runtime = {"package": component, "version": bounds}
    draft.built_at = place
