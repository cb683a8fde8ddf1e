"""The facts that conditions ask for, as far as recipe, site and flags state them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..model.condition import Lookup, Value
from ..model.recipe import Recipe
from ..model.site import SiteFacts
from .request import Request

# Horovod's build variables for its operations on GPUs; all of them at once from 0.20 on.
_GPU_FLAG = "HOROVOD_GPU_"
_ALL_OPERATIONS = "HOROVOD_GPU_OPERATIONS"


class Facts(NamedTuple):
    """Facts that are the same for every stack that a request may end in, or that a user states.

    ``flags``: those that are set; None: nobody knows which.
    """

    stated: Mapping[str, Value]
    flags: Mapping[str, str] | None = None

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
        one = self.flags.get(_GPU_FLAG + rest.upper())
        return (one or self.flags.get(_ALL_OPERATIONS) or "CPU").upper()

    def flags_behind(self, names: frozenset[str]) -> frozenset[str]:
        """Return the flags that are set and that these facts depend on."""
        behind: set[str] = set()
        for name in names:
            owner, _, rest = name.partition(".")
            if owner == "flags":
                behind.add(rest)
            elif owner == "ops":
                behind |= {_GPU_FLAG + rest.upper(), _ALL_OPERATIONS}
        return frozenset(behind & set(self.flags or ()))


def recipe_facts(recipe: Recipe) -> dict[str, Value]:
    """Return what the recipe alone states, whatever the site."""
    return {
        "backend": recipe.backend,
        "container": False,  # no target is one yet
        "system_site_packages": recipe.system_site_packages,
        "uses": frozenset(recipe.uses),
        "channels": frozenset(recipe.channels),
    }


def request_facts(request: Request) -> Facts:
    """Return what recipe, site and snapshot state; the partition's facts win."""
    recipe, site = request.recipe, request.site
    found: dict[str, Value | None] = {
        **recipe_facts(recipe),
        "arch": request.arch,
        "scheduler": site.scheduler,
        "glibc": request.snapshot.glibc,
    }
    found |= site_facts(site.facts, request.facts)
    stated = {name: value for name, value in found.items() if value is not None}
    return Facts(stated, recipe.runtime.flags)


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
