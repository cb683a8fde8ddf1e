"""Making the plan of an environment: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..model.artifact import Patch
from ..model.backend import BackendTraits
from ..model.knowledge import Knowledge
from ..model.plan import (
    Api,
    Edit,
    Input,
    Modules,
    Plan,
    PlanChannel,
    RuntimePlan,
    SourceBuild,
    Step,
)
from ..model.profiles import build_variables
from ..model.recipe import Arch, Profile, Recipe
from ..model.resolution import Resolution
from ..model.site import Launcher, Site
from .proofs import ProofRequest, horovod_parts, proofs


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is made of, all of it decided before.

    ``backend``: of the recipe's. ``own_launcher`` returns what an MPI (its component) brings to
    start its ranks, ``api_launcher`` what the programs of an API bring.
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
    api_launcher: Callable[[Api], Launcher | None]
    patches: tuple[Patch, ...] = ()
    profile: Profile | None = None


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for what no plan can be made of."""
    recipe, site = request.recipe, request.site
    _check_aliases(request)
    launcher = site.launcher or _launcher(request)
    return Plan(
        recipe=recipe.name,
        summary=recipe.summary,
        site=site.name,
        arch=request.arch,
        backend=recipe.backend,
        system_site_packages=recipe.system_site_packages,
        python=request.resolution.python,
        pins=request.resolution.pins,
        build_pins=request.resolution.build_pins,
        brought=request.resolution.brought,
        packages=recipe.packages,
        modules=_modules(request),
        builds=_builds(request),
        verified=_verified(request),
        findings=request.resolution.findings,
        environment=_environment(request),
        runtime=request.runtime,
        patches=request.patches,
        launcher=launcher,
        proofs=proofs(
            ProofRequest(
                recipe,
                request.knowledge,
                request.resolution.pins,
                request.resolution.builds,
                launcher,
                request.api_launcher if site.launcher is None else _no_launcher,
            )
        ),
        smoke=recipe.smoke,
        pip_indexes=recipe.pip_indexes or site.pip_indexes,
        find_links=(*recipe.find_links, *site.find_links),
        channels=tuple(_channels(request)),
        profile=request.profile,
        steps=_steps(request),
        inputs=request.inputs,
    )


def _no_launcher(_api: Api) -> None:
    """Stand for the launchers that programs bring, where the site's own starts everything."""


def _builds(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the builds, Horovod's with the frameworks that it is built for.

    A profile's compilers compile it, and nothing else: what it stands on is the same as ever.
    """
    variables = build_variables(request.profile)
    return tuple(
        build.model_copy(
            update={
                "frameworks": _parts(build.flags, request),
                "environment": {**build.environment, **variables},
            }
        )
        if build.component == "horovod"
        else build
        for build in request.resolution.builds
    )


def _parts(flags: Mapping[str, str], request: PlanRequest) -> tuple[str, ...]:
    parts = horovod_parts(flags, request.resolution.pins, request.knowledge)
    return tuple(each.name for each in parts)


def _verified(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the Horovod that a module brings, as what the recipe says of it."""
    pin = next((pin for pin in request.resolution.pins if pin.component == "horovod"), None)
    if pin is None or pin.origin != "module":
        return ()
    flags = request.recipe.runtime.flags
    without_mpi = flags.get("HOROVOD_WITHOUT_MPI") == "1"
    nccl = "NCCL" in flags.values()
    links = (*(() if without_mpi else ("mpi",)), *(("nccl",) if nccl else ()))
    return (
        SourceBuild(
            component=pin.component,
            version=pin.version,
            flags=flags,
            frameworks=_parts(flags, request),
            links=links,
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
    )


def _channels(request: PlanRequest) -> Iterator[PlanChannel]:
    """Yield the recipe's channels, each where the site keeps its copy of it."""
    for name in request.recipe.channels:
        channel = request.knowledge.channels[name]
        licence = channel.licence
        yield PlanChannel(
            name=name,
            url=request.site.channels.get(name, channel.url),
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


def _steps(request: PlanRequest) -> tuple[Step, ...]:
    load = (Step(id="modules", title="load the site's modules and compare"),)
    return (
        *(load if request.resolution.loads else ()),
        *request.backend.steps,
        Step(id="fetch", title="fetch the locked packages"),
        Step(id="install", title="install them"),
        Step(id="tools", title="unpack the build tools"),
        *_source_steps(request.resolution.builds, _verified(request)),
        Step(id="runtime", title="build the collective runtime"),
        *_alias_steps(request.runtime),
        Step(id="check", title="import every package and compare"),
    )


def _alias_steps(runtime: RuntimePlan) -> Iterator[Step]:
    if runtime.aliases:
        yield Step(id="alias", title=f"let it answer to {', '.join(runtime.aliases)}")


def _check_aliases(request: PlanRequest) -> None:
    """Raise UsageError where an alias of the runtime would stand before the real thing."""
    for pin in (*request.resolution.pins, *request.resolution.brought):
        if pin.component in request.runtime.aliases:
            raise UsageError(
                f"recipe {request.recipe.name} lets the bundled runtime answer to {pin.component}, "
                f"but its stack brings a real one: {pin}",
                "leave out runtime: aliases, or what brings it",
            )


def _source_steps(builds: Sequence[SourceBuild], brought: Sequence[SourceBuild]) -> Iterator[Step]:
    for build in builds:
        yield Step(
            id=f"build-{build.component}",
            title=f"build {build.component} {build.version}",
        )
    if builds or brought:
        whose = "were built" if builds else "the module brings"
        yield Step(id="verify", title=f"look at the libraries that {whose}")
