"""The candidates of a request: the site's modules, what its system has, the index, our builds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from packaging.specifiers import InvalidSpecifier
from packaging.version import Version

from ..model.knowledge import Component, Knowledge, Release
from ..model.ranges import matches, version
from ..model.site import Origin, SystemComponent
from .names import key, natural
from .pool import Pool
from .problem import Candidate
from .reach import Shelf
from .request import Request

_NOTHING = Version("0")

# Facts of a system's component that say where it lies, and what machine it is for.
_HOME = "home"
_ARCH = "arch"

# What the package index may turn out not to have.
_INDEXED = ("pip", "build")


@dataclass(frozen=True)
class _Python:
    """A Python that packages may be installed for."""

    id: str
    version: str


def pool(
    request: Request,
    shelf: Shelf,
    modules: Iterable[str],
    components: Iterable[str],
    strict: bool,
) -> Pool:
    """Return all candidates of the modules, and of *components* also those outside modules.

    ``strict``: without the releases that are for none of the Pythons that are there.
    """
    inside = [each for name in sorted(modules) for each in _of_module(request, shelf, name)]
    pythons = [*(c for c in inside if c.component == "python"), *_interpreters(request)]
    known = [_Python(each.id, each.version) for each in pythons]
    outside = [
        each for name in sorted(set(components)) for each in _of_index(request, name, known, strict)
    ]
    system = dict(_of_system(request, set(components)))
    own = [*(p for p in pythons if p.module is None), *system]
    offered = [
        each
        for each in (*inside, *own, *outside)
        if each.origin not in _INDEXED or (each.component, each.version) not in request.refused
    ]
    facts = {each.id: shelf.modules[each.module].facts for each in offered if each.module}
    homes = {each.id: shelf.modules[each.module].home for each in offered if each.module}
    for each, stated in system.items():
        facts[each.id] = stated.facts
        homes[each.id] = str(stated.facts[_HOME]) if _HOME in stated.facts else None
    return Pool(
        tuple(_ranked(offered, request)),
        facts,
        {name: home for name, home in homes.items() if home},
    )


def _of_module(request: Request, shelf: Shelf, name: str) -> Iterator[Candidate]:
    if "module" not in request.site.origins and name not in request.preload:
        return
    module = shelf.modules[name]
    defaults = {each for each in shelf.by_key[key(name)] if shelf.modules[each].default}
    for component, found in shelf.provides(name).items():
        yield Candidate(
            id=f"{component}@{found} <- module:{name}",
            component=component,
            version=found,
            origin="module",
            locator=name,
            rank=0,
            origin_cost=int(bool(defaults) and name not in defaults),
            module=name,
            roles=_roles(request.knowledge, component),
            shadowable=component in module.shadowable,
        )


def _roles(knowledge: Knowledge, component: str) -> frozenset[str]:
    known = knowledge.components.get(component)
    return frozenset({component, *(known.fulfils if known else ())})


def _interpreters(request: Request) -> Iterator[Candidate]:
    if "system" not in request.site.origins:
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
            yield (
                _outside(request, each.component, each.version, "system", each.locator, None),
                each,
            )


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
        roles=_roles(request.knowledge, component),
        pythons=pythons,
    )


def _of_index(
    request: Request, component: str, pythons: list[_Python], strict: bool
) -> Iterator[Candidate]:
    known = request.knowledge.components.get(component)
    if known is None or known.pip is None:
        return
    for release in request.knowledge.releases.get(component, ()):
        for origin in _index_origins(request, known, component):
            if not _is_for(release, origin, request):
                continue
            fitting = frozenset(
                each.id for each in pythons if _admits(release, origin, each.version)
            )
            if fitting or not strict:
                limited = fitting if len(fitting) < len(pythons) else None
                name = request.recipe.pip_names.get(component, known.pip)
                yield _outside(request, component, release.version, origin, name, limited)


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


def _is_for(release: Release, origin: Origin, request: Request) -> bool:
    """Whether the release runs on this architecture and system, whatever the Python."""
    if origin == "build":
        return True
    glibc = request.snapshot.glibc or request.site.facts.glibc
    right_arch = not release.arch or request.arch in release.arch
    return release.wheels and right_arch and _new_enough(glibc, release.glibc)


def _admits(release: Release, origin: Origin, python: str) -> bool:
    series = ".".join(python.split(".")[:2])
    if origin != "build" and release.pythons and series not in release.pythons:
        return False
    return _requires(release.requires_python, python)


def _new_enough(there: str | None, needed: str | None) -> bool:
    """Whether the glibc that is there suffices; an unknown one is left to pip to judge."""
    if there is None or needed is None:
        return True
    return (version(there) or _NOTHING) >= (version(needed) or _NOTHING)


def _requires(requires_python: str | None, python: str) -> bool:
    if requires_python is None:
        return True
    try:
        return matches(python, requires_python)
    except InvalidSpecifier:
        return False


def _ranked(candidates: list[Candidate], request: Request) -> Iterator[Candidate]:
    """Give each its rank in its component, and its origin's place in the site's order.

    Components that fulfil the same virtual are ranked one after the other, so that no two
    providers of a role have the same rank.
    """
    order = {origin: n for n, origin in enumerate(request.site.origins)}
    by_component: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_component.setdefault(each.component, []).append(each)
    used_up: dict[str, int] = {}
    for component in sorted(by_component):
        those = sorted(by_component[component], key=lambda c: natural(c.locator), reverse=True)
        those.sort(key=lambda c: order.get(c.origin, len(order)))
        those.sort(key=lambda c: version(c.version) or _NOTHING, reverse=True)
        virtuals = _roles(request.knowledge, component) - {component}
        start = max((used_up.get(each, 0) for each in virtuals), default=0)
        for n, each in enumerate(those):
            own = (
                0
                if component == request.recipe.runtime.package
                else order.get(each.origin, len(order))
            )
            yield replace(each, rank=start + n, origin_cost=each.origin_cost + own)
        used_up |= dict.fromkeys(virtuals, start + len(those))
