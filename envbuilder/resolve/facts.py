"""The facts that conditions ask for, as far as recipe, site and flags state them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..knowledge.components import Component
from ..knowledge.conditions import NO_LIBRARY, Lookup, Value
from ..model.recipe import Recipe
from ..model.runtime import CollectiveRuntime
from ..model.site import SiteFacts
from .request import Request

# How packages, their builds, local versions and indexes that are for GPUs are named: cupy-cuda12x,
# tensorflow-gpu, 2.1.0+cu118, whl/cu126. A toolchain such as fosscuda is not meant.
_FOR_GPUS = re.compile(r"(?<![a-z0-9])(cuda|gpu|nvidia|cu1\d)", re.IGNORECASE)


class Facts(NamedTuple):
    """Facts that are the same for every stack that a request may end in, or that a user states.

    ``flags``: those that are set; None: nobody knows which. ``runtime``: the one whose flags they
    are, in its ``release``; None: in one that reads all of them.
    """

    stated: Mapping[str, Value]
    flags: Mapping[str, str] | None = None
    runtime: CollectiveRuntime | None = None
    release: str | None = None

    def without(self, gone: frozenset[str]) -> Facts:
        """Return the facts as they are where these flags are not set."""
        kept = {name: value for name, value in (self.flags or {}).items() if name not in gone}
        return self._replace(flags=kept) if gone else self

    def lookup(self, name: str) -> Value | None:
        """Return a fact by its full name, None where it is not stated."""
        owner, _, rest = name.partition(".")
        if name in self.stated or self.flags is None or owner not in ("flags", "ops"):
            return self.stated.get(name)
        if owner == "flags":
            return self.flags.get(rest, "")
        return self._operations(self.flags).get(rest, NO_LIBRARY)

    def _operations(self, flags: Mapping[str, str]) -> Mapping[str, str]:
        return self.runtime.meaning(flags, self.release).operations if self.runtime else {}

    def are_for_cpus(self) -> bool:
        """Whether it is stated that no GPU is used."""
        return self.stated.get("uses_gpu") is False

    def flags_behind(self, names: frozenset[str]) -> frozenset[str]:
        """Return the flags that are set and that these facts depend on."""
        operations = {name.removeprefix("ops.") for name in names if name.startswith("ops.")}
        return frozenset(
            flag
            for flag, value in (self.flags or {}).items()
            if f"flags.{flag}" in names
            or (operations and operations & self._operations({flag: value}).keys())
        )


def recipe_facts(recipe: Recipe) -> dict[str, Value]:
    """Return what the recipe alone states, whatever the site."""
    return {
        "backend": recipe.backend,
        "container": False,  # no target is one yet
        "system_site_packages": recipe.system_site_packages,
        "uses": frozenset(recipe.uses),
        "channels": frozenset(recipe.channels),
    }


def has_gpu_component(names: Iterable[str], components: Mapping[str, Component]) -> bool:
    """Whether one of some components is for GPUs alone, such as cuda and nccl."""
    return any(known.gpu for name in names if (known := components.get(name)))


def uses_gpu(recipe: Recipe, components: Mapping[str, Component], entry: CollectiveRuntime) -> bool:
    """Whether a recipe asks for GPUs.

    It does by a component of its stack, an operation of its runtime, a package that is named for
    them, or a runtime whose programs use the GPUs that they find.
    """
    runtime = recipe.runtime
    texts = (
        *recipe.stack.values(),
        *recipe.pip_names.values(),
        *recipe.packages,
        *recipe.conda_packages,
        *recipe.pip_indexes,
    )
    return (
        has_gpu_component((*recipe.stack, runtime.package), components)
        or entry.TRAITS.holder is not None
        or bool(entry.meaning(runtime.flags, None).operations)
        or any(_FOR_GPUS.search(text) for text in texts)
    )


def request_facts(request: Request) -> Facts:
    """Return what recipe, site and snapshot state; the partition's facts win."""
    recipe, site = request.recipe, request.site
    found: dict[str, Value | None] = {
        **recipe_facts(recipe),
        "arch": request.arch,
        "scheduler": site.scheduler,
        "glibc": request.snapshot.glibc,
        "uses_gpu": uses_gpu(recipe, request.knowledge.components, request.runtime),
    }
    found |= site_facts(site.facts, request.facts)
    stated = {name: value for name, value in found.items() if value is not None}
    return Facts(stated, recipe.runtime.flags, request.runtime)


def site_facts(*those: SiteFacts) -> dict[str, Value]:
    """Return what is stated of a site; of later ones, a partition's, more counts."""
    return {
        name: frozenset(value) if isinstance(value, list | tuple) else value
        for facts in those
        for name, value in facts.model_dump(exclude_none=True).items()
    }


def with_owner(lookup: Lookup, owner: str, facts: Mapping[str, Value]) -> Lookup:
    """Return a lookup that also knows the facts of one provider, by its component or virtual."""

    def find(name: str) -> Value | None:
        first, dot, rest = name.partition(".")
        if dot and first == owner and rest in facts:
            return facts[rest]
        return lookup(name)

    return find
