"""The candidates of a request: the site's modules, what its system has, the index, our builds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..knowledge.channels import CHANNEL_ORIGINS, CondaPackage
from ..knowledge.components import Component
from ..knowledge.conda_order import conda_key
from ..knowledge.conditions import Value
from ..knowledge.ranges import sort_key
from ..knowledge.releases import admits, has_wheels_for, runs_on
from ..knowledge.terms import Origin
from ..knowledge.wheels import WheelFacts, index_tag, wheel_facts
from ..machine.modules.names import key
from ..machine.modules.variants import loaded_as
from ..model.site import SystemComponent
from .names import natural
from .pool import Pool, roles
from .problem import Candidate
from .reach import ModuleIndex
from .request import Request

# Facts of a system's component that say where it lies, and what machine it is for.
_HOME = "home"
_ARCH = "arch"

# Where a conda package lies: in the prefix itself, as all of them.
_PREFIX = "."

# Stands for the folder of packages, which is named after the Python.
SITE_PACKAGES = "<site-packages>"

# What the package index or the channels may turn out not to have.
_INDEXED = ("pip", "build", *CHANNEL_ORIGINS)


def pool(
    request: Request,
    index: ModuleIndex,
    modules: Iterable[str],
    components: Iterable[str],
    strict: bool,
) -> Pool:
    """Return all candidates of the modules, and of *components* also those outside modules.

    ``strict``: without the releases that are for none of the Pythons that are there.
    """
    inside = [each for name in sorted(modules) for each in _of_module(request, index, name)]
    pythons = [
        *(c for c in inside if c.component == "python"),
        *_interpreters(request),
        *_of_channels(request, "python", None),
    ]
    outside = [p for p in pythons if p.module is None]
    system = dict(_of_system(request, set(components)))
    outside += system
    for name in sorted(set(components)):
        outside += _of_index(request, name, pythons, strict)
        # Of python the channels' packages are there already.
        outside += _of_channels(request, name, pythons) if name != "python" else ()
    offered = [
        each
        for each in (*inside, *outside)
        if each.origin not in _INDEXED or (each.component, each.version) not in request.refused
    ]
    facts: dict[str, Mapping[str, Value]] = {
        each.id: index.modules[each.module].facts for each in offered if each.module
    }
    wheels = dict(_wheels(request, offered))
    facts |= {name: built.values() for name, built in wheels.items() if built.values()}
    facts |= dict(_package_facts(request, {each.component for each in offered}))
    homes = {each.id: index.modules[each.module].home for each in offered if each.module}
    for each, stated in system.items():
        facts[each.id] = stated.facts
        homes[each.id] = str(stated.facts[_HOME]) if _HOME in stated.facts else None
    return Pool(
        tuple(_ranked(offered, request, index)),
        facts,
        {name: home for name, home in homes.items() if home},
        dict(_inside(request, offered)),
        wheels,
    )


def _inside(request: Request, offered: Iterable[Candidate]) -> Iterator[tuple[str, str]]:
    """Yield where in the prefix candidates lie, as far as anything is built against them."""
    for each in offered:
        known = request.knowledge.components.get(each.component)
        if each.origin in CHANNEL_ORIGINS:
            yield each.id, _PREFIX
        elif each.origin == "pip" and known and known.pip_home:
            yield each.id, f"{SITE_PACKAGES}/{known.pip_home}"


def _wheels(request: Request, offered: Iterable[Candidate]) -> Iterator[tuple[str, WheelFacts]]:
    """Yield what the wheels of the index contain, as far as it is recorded."""
    knowledge = request.knowledge
    recipe, site = request.recipe, request.site
    tag = index_tag((*recipe.find_links, *site.find_links))
    tag = tag or index_tag(recipe.pip_indexes or site.pip_indexes)
    for each in offered:
        if each.origin == "pip" and each.component in knowledge.builds:
            component, version, name = each.component, each.version, each.locator
            yield each.id, wheel_facts(knowledge, component, version, name, tag, request.arch)


def _of_module(request: Request, index: ModuleIndex, name: str) -> Iterator[Candidate]:
    if "module" not in request.site.origins and loaded_as(name) not in request.preload:
        return
    module = index.modules[name]
    defaults = index.defaults.get(key(name), frozenset())
    for component, found in index.provides(name).items():
        yield Candidate(
            id=f"{component}@{found} <- module:{name}",
            component=component,
            version=found,
            origin="module",
            locator=loaded_as(name),
            rank=0,
            origin_cost=int(bool(defaults) and name not in defaults),
            module=name,
            roles=roles(request.knowledge, component),
            shadowable=component in module.shadowable,
        )


def _interpreters(request: Request) -> Iterator[Candidate]:
    if "system" not in request.backend.python_origins.intersection(request.site.origins):
        return
    claimed = {module.python for module in request.snapshot.modules if module.python}
    for each in request.snapshot.interpreters:
        if each.can_make_venv and each.arch == request.arch and each.path not in claimed:
            yield _outside(request, "python", each.version, "system", each.path, None)


def _of_system(
    request: Request, components: set[str]
) -> Iterator[tuple[Candidate, SystemComponent]]:
    """Yield what the system has beside interpreters, with what was found of it."""
    if "system" not in request.site.origins:
        return
    for each in request.snapshot.system:
        right_arch = each.facts.get(_ARCH, request.arch) == request.arch
        if each.component in components and right_arch:
            name, version = each.component, each.version
            yield _outside(request, name, version, "system", each.locator, None), each


def _outside(
    request: Request,
    component: str,
    found: str,
    origin: Origin,
    locator: str,
    pythons: frozenset[str] | None,
) -> Candidate:
    return Candidate(
        id=f"{component}@{found} <- {origin}:{locator}",
        component=component,
        version=found,
        origin=origin,
        locator=locator,
        rank=0,
        roles=roles(request.knowledge, component),
        pythons=pythons,
    )


_LOCAL_VERSION = re.compile(r"==\s*(\d[\w.]*\+[a-z0-9.]+)\s*(?:,|$)")


def _stated_build(constraint: str) -> str | None:
    """Return the build of a release that a constraint names: 2.5.1+cu121 of ==2.5.1+cu121."""
    found = _LOCAL_VERSION.search(constraint)
    return found[1] if found else None


def _of_index(
    request: Request, component: str, pythons: list[Candidate], strict: bool
) -> Iterator[Candidate]:
    known = request.knowledge.components.get(component)
    if component in request.recipe.from_source:
        yield from _of_trees(request, component)
    if known is None or known.pip is None:
        return
    stated = _stated_build(request.recipe.stack.get(component, ""))
    variant = request.recipe.pip_names.get(component)
    origins = tuple(_index_origins(request, known, component))
    for release in request.knowledge.releases.get(component, ()):
        if variant and release.pip and release.pip != variant:
            continue
        for origin in origins:
            # Sources run wherever they are built.
            built = origin == "build"
            if not built and not runs_on(release, request.arch, request.glibc):
                continue
            fits = admits if built else has_wheels_for
            fitting = frozenset(each.id for each in pythons if fits(release, each.version))
            if fitting or not strict:
                limited = fitting if len(fitting) < len(pythons) else None
                name = variant or release.pip or known.pip
                yield _outside(request, component, release.version, origin, name, limited)
                if stated and stated.partition("+")[0] == release.version and not built:
                    yield _outside(request, component, stated, origin, name, limited)


def _of_channels(
    request: Request, component: str, pythons: list[Candidate] | None
) -> Iterator[Candidate]:
    """Yield what the recipe's channels hold of a component; of several the first that has it."""
    for found in channel_packages(request, component):
        if found.hidden_by:
            continue
        fitting = None
        if pythons is not None and found.package.pythons:
            fitting = frozenset(
                p.id for p in pythons if ".".join(p.version.split(".")[:2]) in found.package.pythons
            )
        version = found.package.version
        yield _outside(request, component, version, "conda", found.locator, fitting)


def _package_facts(
    request: Request, components: Iterable[str]
) -> Iterator[tuple[str, Mapping[str, Value]]]:
    """Yield the candidates of channels with what is known of their builds."""
    for component in components:
        for found in channel_packages(request, component):
            if found.package.facts and not found.hidden_by:
                version, facts = found.package.version, found.package.facts
                yield _outside(request, component, version, "conda", found.locator, None).id, facts


class ChannelPackage(NamedTuple):
    """A package of a channel of the recipe. ``locator``: CHANNEL/NAME."""

    package: CondaPackage
    locator: str
    hidden_by: str | None


def channel_packages(request: Request, component: str) -> Iterator[ChannelPackage]:
    """Yield what the recipe's channels hold of a component for its architecture.

    conda's strict priority: a channel hides what those behind it have of the same name.
    """
    if not request.backend.channels or component == request.recipe.runtime.package:
        return
    known = request.knowledge.components.get(component)
    first: dict[str, str] = {}
    for channel in request.recipe.channels:
        held = request.knowledge.channels[channel].packages.get(component, ())
        names = [each.name or (known.conda if known else None) for each in held]
        for each, name in zip(held, names, strict=True):
            if name is not None and (not each.arch or request.arch in each.arch):
                yield ChannelPackage(each, f"{channel}/{name}", first.get(name))
        first |= {name: channel for name in names if name and name not in first}


def _of_trees(request: Request, component: str) -> Iterator[Candidate]:
    """Yield what is built from a git tree. It is for any Python: nobody recorded which."""
    known = request.knowledge.source_trees.get(component)
    for tree in known.trees if known else ():
        locator = f"{known.url}#{tree.tag}" if known else ""
        yield _outside(request, component, tree.version, "build", locator, None)


def _index_origins(request: Request, known: Component, component: str) -> Iterator[Origin]:
    runtime = request.recipe.runtime
    if component == runtime.package:
        # It is built, whatever a site prefers; or it is the site's own.
        if runtime.origin == "build":
            yield "build"
        return
    if "pip" in request.site.origins:
        yield "pip"
    if known.from_source and "build" in request.site.origins:
        yield "build"


def _newest_first(those: list[Candidate]) -> list[Candidate]:
    """Sort by version; where conda's are among them in conda's order, which knows all others."""
    if any(each.origin in CHANNEL_ORIGINS for each in those):
        return sorted(those, key=lambda c: conda_key(c.version), reverse=True)
    return sorted(those, key=lambda c: sort_key(c.version), reverse=True)


def _ranked(
    candidates: list[Candidate], request: Request, index: ModuleIndex
) -> Iterator[Candidate]:
    """Give each its rank in its component, and its origin's place in the site's order.

    Of one version in several modules that of the newer generation comes first, however a site
    names its modules. Components that fulfil the same virtual are ranked one after the other, so
    that no two providers of a role have the same rank.
    """
    origins = dict.fromkeys((*request.backend.first_origins, *request.site.origins))
    order = {origin: n for n, origin in enumerate(origins)}
    by_component: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_component.setdefault(each.component, []).append(each)
    generation = {each.id: index.generation(each.module) for each in candidates if each.module}
    by_age = sorted({name for name in generation.values() if name}, key=natural)
    age = {name: n for n, name in enumerate(by_age)}
    used_up: dict[str, int] = {}
    for component in sorted(by_component):
        those = sorted(
            by_component[component], key=lambda c: natural(c.module or c.locator), reverse=True
        )
        known = request.knowledge.components.get(component)
        # Of two distributions that of the component's own name comes first.
        those.sort(key=lambda c: known is not None and c.origin == "pip" and c.locator != known.pip)
        those.sort(key=lambda c: age.get(generation.get(c.id) or "", -1), reverse=True)
        those.sort(key=lambda c: order.get(c.origin, len(order)))
        those = _newest_first(those)
        virtuals = roles(request.knowledge, component) - {component}
        start = max((used_up.get(each, 0) for each in virtuals), default=0)
        for n, each in enumerate(those):
            own = (
                0
                if component == request.recipe.runtime.package
                else order.get(each.origin, len(order))
            )
            yield each._replace(rank=start + n, origin_cost=each.origin_cost + own)
        used_up |= dict.fromkeys(virtuals, start + len(those))
