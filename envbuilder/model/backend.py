"""What the stages know of a backend: values that an entry of ``backends/`` states or makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..knowledge.terms import Origin, Profile
from .plan import Step


class BackendTraits(NamedTuple):
    """What recipes, the resolver and the planner must know of a backend.

    ``environment``: what its prefix is called in messages. ``home_variable``: by which programs
    find the prefix. ``steps``: those that make the prefix; pip installs into it afterwards.
    ``python_origins``: what its Python may come from. ``first_origins``: preferred to the origins
    of the site. ``channels``: packages come from the conda channels that the recipe must name.
    ``enter``: what a user's shell does to enter a prefix where there is no module system.
    ``profiles``: those that its environments can be measured by.
    """

    environment: str
    home_variable: str
    steps: tuple[Step, ...]
    python_origins: frozenset[Origin]
    first_origins: tuple[Origin, ...] = ()
    channels: bool = False
    enter: str = "source '{prefix}/bin/activate'"
    profiles: frozenset[Profile] = frozenset()


class Script(NamedTuple):
    """A template of bash, as a path below templates/, and the values that it takes."""

    template: str
    values: Mapping[str, object]


class ImageParts(NamedTuple):
    """What an image of the environment stands on.

    ``base``: a name below ``own-bases`` in templates/container/bases.yaml, where the backend brings
    all packages itself; None: a base that has the plan's Python, and as packages of its system what
    the site's modules bring. ``build_packages`` and ``run_packages``: of the base's system, to
    build the environment with and to run it.
    """

    base: str | None = None
    build_packages: tuple[str, ...] = ()
    run_packages: tuple[str, ...] = ()


class PrefixParts(NamedTuple):
    """How the prefix of one plan is made and entered: what is rendered.

    ``environment``: what the prefix is called in messages. ``scripts``: by the id of each of the
    backend's steps, in their order; a script defines the function ``step_ID``. ``activation``: what
    a shell does beside the plan's edits, whenever it enters the prefix.
    """

    environment: str
    scripts: Mapping[str, Script]
    activation: Script | None = None
    image: ImageParts = ImageParts()
