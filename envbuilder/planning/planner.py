"""Making the plan of an environment: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..errors import UsageError
from ..model.artifact import Patch
from ..model.backend import BackendTraits
from ..model.horovod import HOROVOD, has_part
from ..model.knowledge import Knowledge
from ..model.plan import (
    Edit,
    Input,
    Modules,
    Plan,
    PlanChannel,
    RuntimePlan,
    SourceBuild,
)
from ..model.profiles import build_variables
from ..model.recipe import Arch, Profile, Recipe
from ..model.resolution import Resolution
from ..model.site import Launcher, Site
from ..model.steps import steps_of
from .proofs import ApiLauncher, horovod_parts, proofs


class PlanRequest(NamedTuple):
    """What a plan is made of, all of it decided before.

    ``backend``: of the recipe's. ``own_launcher`` returns what an MPI (its component) brings to
    start its ranks, ``api_launcher`` what the programs of an API bring. ``offered``: what is
    known, with the conda channels as they were read; None: none was.
    """

    recipe: Recipe
    backend: BackendTraits
    knowledge: Knowledge
    site: Site
    arch: Arch
    resolution: Resolution
    runtime: RuntimePlan
    inputs: tuple[Input, ...]
    own_launcher: Callable[[str], Launcher | None]
    api_launcher: ApiLauncher
    patches: tuple[Patch, ...] = ()
    profile: Profile | None = None
    offered: Knowledge | None = None


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for what no plan can be made of."""
    recipe, site, decided = request.recipe, request.site, request.resolution
    _check_aliases(request)
    verified = _verified(request)
    launcher = site.launcher or _launcher(request)
    plan = Plan(
        recipe=recipe.name,
        summary=recipe.summary,
        site=site.name,
        arch=request.arch,
        backend=recipe.backend,
        system_site_packages=recipe.system_site_packages,
        python=decided.python,
        pins=decided.pins,
        build_pins=decided.build_pins,
        brought=decided.brought,
        packages=recipe.packages,
        conda_specs=recipe.conda_packages,
        modules=_modules(request),
        builds=tuple(_build(each, request) for each in decided.builds),
        verified=verified,
        findings=decided.findings,
        site_findings=decided.site_findings,
        environment=_environment(request),
        runtime=request.runtime,
        patches=request.patches,
        launcher=launcher,
        proofs=tuple(
            proofs(
                recipe,
                request.knowledge,
                decided.pins,
                decided.builds,
                launcher,
                _api_launcher(request),
            )
        ),
        smoke=recipe.smoke,
        pip_indexes=recipe.pip_indexes or site.pip_indexes,
        find_links=(*recipe.find_links, *site.find_links),
        channels=tuple(_channels(request)),
        profile=request.profile,
        steps=(),
        inputs=request.inputs,
    )
    return plan.model_copy(update={"steps": steps_of(plan, request.backend.steps)})


def _api_launcher(request: PlanRequest) -> ApiLauncher:
    """Return what says which launcher the programs of an API bring.

    A site's own launcher starts everything but the programs of a runtime that need their own.
    """
    if request.site.launcher is None:
        return request.api_launcher
    components = request.knowledge.components.values()
    frameworks = (each.collectives for each in components if each.collectives)
    own = {each.proof for each in frameworks if each.package == request.runtime.beside}
    return lambda api: request.api_launcher(api) if api in own else None


def _build(build: SourceBuild, request: PlanRequest) -> SourceBuild:
    """Return a build, Horovod's with the frameworks that it is built for.

    A profile's compilers compile it, and nothing else: what it stands on is the same as ever.
    """
    if build.component != HOROVOD:
        return build
    environment = {**build.environment, **build_variables(request.profile)}
    update = {"frameworks": _parts(build.flags, request), "environment": environment}
    return build.model_copy(update=update)


def _parts(flags: Mapping[str, str], request: PlanRequest) -> tuple[str, ...]:
    parts = horovod_parts(flags, request.resolution.pins, request.knowledge)
    return tuple(each.name for each in parts)


def _verified(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the Horovod that a module brings, as what the recipe says of it."""
    pin = next((pin for pin in request.resolution.pins if pin.component == HOROVOD), None)
    if pin is None or pin.origin != "module":
        return ()
    flags = request.recipe.runtime.flags
    links = {"mpi": has_part(flags, "MPI"), "nccl": "NCCL" in flags.values()}
    return (
        SourceBuild(
            component=pin.component,
            version=pin.version,
            flags=flags,
            frameworks=_parts(flags, request),
            links=tuple(name for name, linked in links.items() if linked),
        ),
    )


def _modules(request: PlanRequest) -> Modules:
    site, resolution = request.site, request.resolution
    if not resolution.loads:
        return Modules()
    if site.module_system == "none" or site.module_init is None:
        raise UsageError(
            f"site {site.name} states modules but not how to reach them",
            "give it module-system (lmod or tcl) and module-init, the file a script sources",
        )
    return Modules(
        system=site.module_system,
        init=site.module_init,
        trees=site.module_trees,
        loads=resolution.loads,
        final=resolution.final,
        replaced=resolution.replaced,
        stand_ins=resolution.stand_ins,
    )


def _channels(request: PlanRequest) -> Iterator[PlanChannel]:
    """Yield the recipe's channels, each where it was read: the site may keep copies of it."""
    offered = request.offered or request.knowledge
    for name in request.recipe.channels:
        channel = request.knowledge.channels[name]
        licence, copies = channel.licence, request.site.channels.get(name, ())
        read = offered.channels[name].url
        # Where none was read, the first one is what would be asked first.
        url = read if read in copies or not copies else copies[0]
        yield PlanChannel(
            name=name,
            url=url,
            canonical=channel.url if url != channel.url else None,
            mirrors=tuple(each for each in copies if each != url),
            accept={licence.variable: licence.value} if licence else {},
            licence=licence.summary if licence else None,
        )


def _environment(request: PlanRequest) -> tuple[Edit, ...]:
    """Return the edits that loading the environment makes, in their order."""
    return (
        Edit(kind="set", name=request.backend.home_variable, in_prefix=True),
        # Packages in ~/.local would come before the site's and mix into what was proved.
        Edit(kind="set", name="PYTHONNOUSERSITE", value="1"),
        Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        *(Edit(kind="set", name=name, value=value) for name, value in request.recipe.env.items()),
    )


def _launcher(request: PlanRequest) -> Launcher:
    """Return what the first MPI of the stack brings to start its ranks."""
    brought = (request.own_launcher(pin.component) for pin in request.resolution.pins)
    launcher = next(filter(None, brought), None)
    if launcher is None:
        raise UsageError(
            "no launcher is known for this stack's MPI",
            "name the command in the site file: launcher: {command: [srun, --mpi=pmix]}",
        )
    return launcher


def _check_aliases(request: PlanRequest) -> None:
    """Raise UsageError where an alias of the runtime would stand before the real thing."""
    for pin in (*request.resolution.pins, *request.resolution.brought):
        if pin.component in request.runtime.aliases:
            raise UsageError(
                f"recipe {request.recipe.name} lets the bundled runtime answer to {pin.component}, "
                f"but its stack brings a real one: {pin}",
                "leave out runtime: aliases, or what brings it",
            )
