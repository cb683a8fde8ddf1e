"""Making the plan of an environment: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..errors import UsageError
from ..knowledge.artifacts import Patch
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch, Profile
from ..model.backend import BackendTraits
from ..model.plan import (
    Edit,
    Input,
    Modules,
    Pin,
    Plan,
    PlanChannel,
    Proof,
    RuntimePlan,
    SourceBuild,
)
from ..model.profiles import build_variables
from ..model.recipe import Recipe
from ..model.resolution import Resolution
from ..model.runtime import ApiLauncher, ProofInputs, Runtimes, all_proofs, frameworks
from ..model.site import Site, SiteLauncher
from .steps import steps_of


class PlanRequest(NamedTuple):
    """What a plan is made of, all of it decided before.

    ``backend``: of the recipe's. ``own_launcher`` returns what an MPI (its component) brings to
    start its ranks, ``api_launcher`` what the programs of an API bring. ``runtimes``: all of them.
    ``offered``: what is known, with the conda channels as they were read; None: none was.
    """

    recipe: Recipe
    backend: BackendTraits
    knowledge: Knowledge
    site: Site
    arch: Arch
    resolution: Resolution
    runtime: RuntimePlan
    inputs: tuple[Input, ...]
    own_launcher: Callable[[str], SiteLauncher | None]
    api_launcher: ApiLauncher
    runtimes: Runtimes
    patches: tuple[Patch, ...] = ()
    profile: Profile | None = None
    offered: Knowledge | None = None
    partition: str | None = None


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for what no plan can be made of."""
    recipe, site, decided = request.recipe, request.site, request.resolution
    _check_aliases(request)
    builds = tuple(_build(each, request) for each in decided.builds)
    ready = [*_ready_runtimes(request)]
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
        builds=builds,
        verified=tuple(build for pin, build in ready if pin.origin == "module"),
        findings=decided.findings,
        site_findings=decided.site_findings,
        environment=_environment(request),
        runtime=request.runtime,
        patches=request.patches,
        launcher=launcher,
        launch_options={
            kind: (*site.launch_options.get(kind, ()), *recipe.launch_options.get(kind, ()))
            for kind in (*site.launch_options, *recipe.launch_options)
        },
        proofs=_proofs(request, [*builds, *(build for _, build in ready)], launcher),
        smoke=recipe.smoke,
        pip_indexes=recipe.pip_indexes or site.pip_indexes,
        find_links=(*recipe.find_links, *site.find_links),
        channels=tuple(_channels(request)),
        profile=request.profile,
        partition=request.partition,
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
    beside = request.runtimes.get(request.runtime.beside or "")
    own = beside.TRAITS.apis if beside else ()
    return lambda api: request.api_launcher(api) if api in own else None


def _build(build: SourceBuild, request: PlanRequest) -> SourceBuild:
    """Return a build, a runtime's with the frameworks that it is built for.

    A profile's compilers compile it, and nothing else: what it stands on is the same as ever.
    """
    if build.component not in request.runtimes:
        return build
    environment = {**build.environment, **build_variables(request.profile)}
    return _with_frameworks(build, request).model_copy(update={"environment": environment})


def _with_frameworks(build: SourceBuild, request: PlanRequest) -> SourceBuild:
    components = {pin.component for pin in request.resolution.pins}
    names = frameworks(request.runtimes, build, components, request.knowledge.components)
    return build.model_copy(update={"frameworks": names})


def _ready_runtimes(request: PlanRequest) -> Iterator[tuple[Pin, SourceBuild]]:
    """Yield the runtimes that are not built here, each as what the recipe says of it."""
    built = {each.component for each in request.resolution.builds}
    for pin in request.resolution.pins:
        runtime = request.runtimes.get(pin.component)
        if runtime and runtime.TRAITS.is_component and pin.component not in built:
            flags = request.recipe.runtime.flags
            parts = runtime.meaning(flags, pin.version).parts
            build = SourceBuild(
                component=pin.component,
                version=pin.version,
                flags=flags,
                links=tuple(name for name in ("mpi", "nccl") if parts.get(name)),
            )
            yield pin, _with_frameworks(build, request)


def _proofs(
    request: PlanRequest, builds: Sequence[SourceBuild], launcher: SiteLauncher
) -> tuple[Proof, ...]:
    components = {pin.component: pin.version for pin in request.resolution.pins}
    wanted = request.recipe.runtime
    inputs = ProofInputs(
        components=components,
        known=request.knowledge.components,
        builds=[each for each in builds if each.component in request.runtimes],
        launcher=launcher,
        api_launcher=_api_launcher(request),
        package=wanted.package,
        aliases=wanted.aliases,
        # Over NCCL where the stack names it.
        transports=("nccl",) if "nccl" in components else ("gloo",),
    )
    return tuple(all_proofs(request.runtimes, inputs))


def _modules(request: PlanRequest) -> Modules:
    site, resolution = request.site, request.resolution
    if not resolution.loads:
        return Modules()
    if site.module_system == "none" or site.module_init is None:
        raise UsageError(
            "site.no-module-system",
            f"site {site.name} has modules, but no module system",
            "add module-system (lmod or tcl) and module-init, the file that a script sources",
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
        read, withdrawal = offered.channels[name].url, offered.channels[name].withdrawal
        # Where none was read, the first one is what would be asked first.
        url = read if read in copies or not copies else copies[0]
        yield PlanChannel(
            name=name,
            url=url,
            canonical=channel.url if url != channel.url else None,
            mirrors=tuple(each for each in copies if each != url),
            accept={licence.variable: licence.value} if licence else {},
            licence=licence.summary if licence else None,
            gone_since=withdrawal.since if withdrawal and not copies else None,
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


def _launcher(request: PlanRequest) -> SiteLauncher:
    """Return what the first MPI of the stack brings to start its ranks."""
    brought = (request.own_launcher(pin.component) for pin in request.resolution.pins)
    launcher = next(filter(None, brought), None)
    if launcher is None:
        raise UsageError(
            "launcher.none-known",
            "no launcher is known for this MPI",
            "name the command in the site file: launcher: {command: [srun, --mpi=pmix]}",
        )
    return launcher


def _check_aliases(request: PlanRequest) -> None:
    """Raise UsageError where an alias of the runtime would stand before the real thing."""
    for pin in (*request.resolution.pins, *request.resolution.brought):
        if pin.component in request.runtime.aliases:
            raise UsageError(
                "recipe.alias-conflict",
                f"recipe {request.recipe.name} makes the bundled runtime an alias of "
                f"{pin.component}, but its stack contains the real one: {pin}",
                "remove runtime: aliases, or the component that brings it",
            )
