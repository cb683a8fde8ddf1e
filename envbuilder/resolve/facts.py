"""The facts that conditions ask for, as far as recipe, site and flags state them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model.condition import Lookup, Value
from ..model.recipe import Recipe
from ..model.site import Site, SiteFacts, Snapshot

OPERATIONS = ("allreduce", "allgather", "broadcast", "alltoall", "reducescatter")

# Horovod's build variables for its operations on GPUs; all of them at once from 0.20 on.
_GPU_FLAG = "HOROVOD_GPU_"
_ALL_OPERATIONS = "HOROVOD_GPU_OPERATIONS"


@dataclass(frozen=True)
class Facts:
    """Facts of a request that are the same for every stack it may end in."""

    stated: Mapping[str, Value]
    flags: Mapping[str, str] = field(default_factory=dict)

    def with_flags(self, kept: frozenset[str]) -> Facts:
        """Return the facts as they are where only these flags are set."""
        return Facts(self.stated, {name: self.flags[name] for name in sorted(kept)})

    def lookup(self, name: str) -> Value | None:
        """Return a fact by its full name, None where nobody stated it."""
        owner, dot, rest = name.partition(".")
        if not dot:
            return self.stated.get(name)
        if owner == "flags":
            return self.flags.get(rest, "")
        if owner == "ops":
            return self._operation(rest)
        return None

    def _operation(self, operation: str) -> str:
        one = self.flags.get(_GPU_FLAG + operation.upper())
        return (one or self.flags.get(_ALL_OPERATIONS) or "CPU").upper()

    def flags_behind(self, names: frozenset[str]) -> frozenset[str]:
        """Return the flags that are set and that these facts hang on."""
        behind: set[str] = set()
        for name in names:
            owner, _, rest = name.partition(".")
            if owner == "flags":
                behind.add(rest)
            elif owner == "ops":
                behind |= {_GPU_FLAG + rest.upper(), _ALL_OPERATIONS}
        return frozenset(behind & set(self.flags))


def stated_facts(
    recipe: Recipe, site: Site, snapshot: Snapshot, arch: str, more: SiteFacts
) -> dict[str, Value]:
    """Return what recipe, site and snapshot state. ``more``: the partition's facts, which win."""
    found: dict[str, Value | None] = {
        "arch": arch,
        "backend": recipe.backend,
        "container": False,  # no target is one yet
        "system_site_packages": recipe.system_site_packages,
        "scheduler": site.scheduler,
        "uses": frozenset(recipe.uses),
        "channels": frozenset(recipe.channels),
        "glibc": snapshot.glibc,
    }
    for facts in (site.facts, more):
        plain = facts.model_dump(exclude_none=True)
        found |= {
            name: frozenset(value) if isinstance(value, list | tuple) else value
            for name, value in plain.items()
        }
    return {name: value for name, value in found.items() if value is not None}


def with_owner(lookup: Lookup, owner: str, facts: Mapping[str, Value]) -> Lookup:
    """Return a lookup that also knows the facts of one provider, by its component or virtual."""

    def find(name: str) -> Value | None:
        first, dot, rest = name.partition(".")
        if dot and first == owner and rest in facts:
            return facts[rest]
        return lookup(name)

    return find
