"""What the resolver is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import Place
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch
from ..model.backend import BackendTraits
from ..model.recipe import Recipe
from ..model.runtime import CollectiveRuntime
from ..model.site import Site, SiteFacts, Snapshot, glibc_of


class Requirement(NamedTuple):
    """One component that is needed: in which range, and who says so."""

    component: str
    constraint: str
    why: str
    place: Place | None = None


@dataclass(frozen=True)
class Request:
    """Everything the answer depends on.

    ``backend`` and ``runtime``: those of the recipe. ``snapshot``: its modules are what the site
    states over what was found. ``implied``: what the runtime needs beside the stack;
    ``build_only``: what building it needs. ``facts`` and ``preload``: those of the site or its
    partition. ``refused``: (component, version) that the package index did not offer. ``places``:
    where things stand in the recipe, by component of the stack, ``flags.NAME``, ``allow.ID`` or
    key.
    """

    recipe: Recipe
    backend: BackendTraits
    runtime: CollectiveRuntime
    site: Site
    arch: Arch
    snapshot: Snapshot
    knowledge: Knowledge
    implied: tuple[Requirement, ...] = ()
    build_only: tuple[Requirement, ...] = ()
    facts: SiteFacts = field(default_factory=SiteFacts)
    preload: tuple[str, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    refused: frozenset[tuple[str, str]] = frozenset()

    @property
    def glibc(self) -> str | None:
        """The glibc that wheels must run on, None where nobody knows it."""
        return glibc_of(self.site, self.facts, self.snapshot)
