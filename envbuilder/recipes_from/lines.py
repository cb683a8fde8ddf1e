"""The lines of a recipe that are read from an environment, and what they are read with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ..base import fits
from ..inspect.facts import DEBIAN, Environment, InstalledDistribution
from ..inspect.stack import InstalledStack
from ..knowledge.components import Component
from ..knowledge.ranges import VersionRange
from ..model.runtime import Runtimes, own_component
from ..target_tools.names import normalize
from ..text import shown


@dataclass(frozen=True)
class RecipeInput:
    """What is described, and what is known beside it.

    ``modules``: the loaded ones, each with the components that it is. ``backend``: what makes such
    environments; None: nothing does. ``runtimes``: all of them; ``bundled``: the one that every
    environment gets; ``implied``: the components that this needs. ``releases``: of a component that
    the index has. ``reads``: whether a release of a runtime has a build variable that a recipe
    states. ``channels``: the names of recorded ones, by their URLs.
    """

    environment: Environment
    stack: InstalledStack
    components: Mapping[str, Component]
    backend: str | None
    runtimes: Runtimes
    bundled: str
    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    releases: Mapping[str, frozenset[str]] = field(default_factory=dict)
    implied: tuple[str, ...] = ()
    reads: Callable[[str, str], bool] = lambda _flag, _release: True
    channels: Mapping[str, str] = field(default_factory=dict)

    def is_runtime(self, component: str | None) -> bool:
        """Return whether a component is a runtime, which is no line of the stack."""
        return own_component(self.runtimes, [component] if component else []) is not None

    @cached_property
    def own(self) -> list[InstalledDistribution]:
        """The distributions that pip put into the environment itself."""
        return [each for each in self._own if each not in self.of_debian]

    @cached_property
    def of_debian(self) -> list[InstalledDistribution]:
        """Those that Debian put there: no index has them."""
        return [each for each in self._own if str(each.path.parent).endswith(DEBIAN)]

    @cached_property
    def _own(self) -> list[InstalledDistribution]:
        own = {id(d) for f in self.environment.folders if f.kind == "own" for d in f.distributions}
        return [
            each
            for each in self.environment.installed
            if isinstance(each, InstalledDistribution) and id(each) in own
        ]

    def component_of(self, key: str) -> str | None:
        """Return the component that a distribution is, by its name on the index."""
        return self._by_pip.get(key)

    @cached_property
    def _by_pip(self) -> dict[str, str]:
        return {
            normalize(pip): name
            for name, each in self.components.items()
            for pip in (*each.pip_variants, each.pip)
            if pip
        }


class RecipeLine(NamedTuple):
    """One line of a recipe: its section, a key in that, and the value.

    The sections ``site``, ``unknown`` and ``differs`` are for people: what a site has to state,
    what is not in the recipe, and what ``create`` makes otherwise.
    """

    section: str
    key: str
    value: str = ""


def exactly(version: str) -> str | None:
    """Return the range that admits just this version; None: it is none of PEP 440."""
    wanted = f"=={version.partition('+')[0]}"
    return wanted if fits(VersionRange, wanted) else None


def line(component: str, version: str) -> RecipeLine:
    """Return the line of the stack that asks for just this version of a component."""
    wanted = exactly(version)
    if wanted is None:
        said = f"{component} {shown(version)}: a version range of a recipe cannot express it"
        return RecipeLine("unknown", said)
    return RecipeLine("stack", component, wanted)
