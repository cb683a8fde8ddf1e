"""What knowledge and recipe say of the index's distributions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..model.knowledge import Component
from ..model.recipe import Recipe

# A constraint that leaves one release: ==1.2.3, not ==1.2.*
_EXACT = re.compile(r"={2,3}[^,*]+")


@dataclass(frozen=True)
class Distributions:
    """What knowledge and recipe say of distributions.

    ``imports``: distribution -> what Python imports it as. ``names``: component -> its name on the
    index. ``exact``: components of which the user wants one very version.
    """

    imports: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()


def distributions_of(recipe: Recipe, components: Mapping[str, Component]) -> Distributions:
    """Return what is said of the distributions that *recipe* may need."""
    constraints = {**recipe.stack, recipe.runtime.package: recipe.runtime.version}
    return Distributions(
        imports={
            each.pip: each.python_import
            for each in components.values()
            if each.pip and each.python_import
        },
        names={name: each.pip for name, each in components.items() if each.pip},
        exact=frozenset(name for name, each in constraints.items() if _EXACT.fullmatch(each)),
    )
