"""What the resolver is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import Place
from ..model.knowledge import Knowledge
from ..model.plan import Finding, Pin, Replacement, SourceBuild
from ..model.recipe import Arch, Recipe
from ..model.site import Site, SiteFacts, Snapshot, glibc_of


@dataclass(frozen=True)
class Wanted:
    """One component that is needed: in which range, and who says so."""

    component: str
    constraint: str
    why: str
    place: Place | None = None


@dataclass(frozen=True)
class Request:
    """Everything the answer depends on.

    ``snapshot``: its modules are what the site states over what was found. ``implied``: what the
    runtime needs beside the stack; ``build_only``: what building it needs. ``facts`` and
    ``preload``: those of the site or its partition. ``refused``: (component, version) that the
    package index did not offer. ``places``: where things stand in the recipe, by component of the
    stack, ``flags.NAME``, ``allow.ID`` or key.
    """

    recipe: Recipe
    site: Site
    arch: Arch
    snapshot: Snapshot
    knowledge: Knowledge
    implied: tuple[Wanted, ...] = ()
    build_only: tuple[Wanted, ...] = ()
    facts: SiteFacts = field(default_factory=SiteFacts)
    preload: tuple[str, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    refused: frozenset[tuple[str, str]] = frozenset()

    @property
    def glibc(self) -> str | None:
        """The glibc that wheels must run on, None where nobody knows it."""
        return glibc_of(self.site, self.facts, self.snapshot)


@dataclass(frozen=True)
class Resolution:
    """The components decided, the interpreter, the modules to load, and what is known of it all.

    ``brought``: components that come along with modules, asked for by nobody.
    """

    pins: tuple[Pin, ...]
    build_pins: tuple[Pin, ...]
    brought: tuple[Pin, ...]
    python: str | None
    loads: tuple[str, ...]
    final: tuple[str, ...]
    replaced: tuple[Replacement, ...] = ()
    builds: tuple[SourceBuild, ...] = ()
    findings: tuple[Finding, ...] = ()
