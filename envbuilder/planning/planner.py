"""Making the plan of an environment: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..errors import UsageError
from ..model.channels import Channel
from ..model.plan import (
    Edit,
    Finding,
    Input,
    Modules,
    Patch,
    Pin,
    Plan,
    PlanChannel,
    Replacement,
    RuntimePlan,
    SourceBuild,
    Step,
)
from ..model.profiles import build_variables
from ..model.proofs import own_launcher
from ..model.recipe import Arch, Profile, Recipe
from ..model.site import Launcher, Site
from .proofs import frameworks, proofs


class Found(Protocol):
    """What the resolver decided, as far as a plan is made of it."""

    @property
    def pins(self) -> tuple[Pin, ...]: ...
    @property
    def build_pins(self) -> tuple[Pin, ...]: ...
    @property
    def brought(self) -> tuple[Pin, ...]: ...
    @property
    def python(self) -> str | None: ...
    @property
    def loads(self) -> tuple[str, ...]: ...
    @property
    def final(self) -> tuple[str, ...]: ...
    @property
    def replaced(self) -> tuple[Replacement, ...]: ...
    @property
    def builds(self) -> tuple[SourceBuild, ...]: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is made of, all of it decided before. ``channels``: those that are recorded."""

    recipe: Recipe
    site: Site
    arch: Arch
    found: Found
    runtime: RuntimePlan
    inputs: tuple[Input, ...]
    patches: tuple[Patch, ...] = ()
    channels: Mapping[str, Channel] = field(default_factory=dict)
    profile: Profile | None = None


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for a backend that cannot be built yet."""
    recipe, site = request.recipe, request.site
    if recipe.backend == "container":
        raise UsageError(
            f"recipe {recipe.name} asks for backend container, which is not built yet",
            "backend: virtualenv is; envbuild render --as def makes an image's definition of it",
        )
    _check_aliases(request)
    launcher = site.launcher or _launcher(request.found.pins)
    return Plan(
        recipe=recipe.name,
        summary=recipe.summary,
        site=site.name,
        arch=request.arch,
        backend=recipe.backend,
        system_site_packages=recipe.system_site_packages,
        python=request.found.python,
        pins=request.found.pins,
        build_pins=request.found.build_pins,
        brought=request.found.brought,
        packages=recipe.packages,
        modules=_modules(request),
        builds=_builds(request),
        verified=_verified(request),
        findings=request.found.findings,
        environment=_environment(recipe),
        runtime=request.runtime,
        patches=request.patches,
        launcher=launcher,
        proofs=proofs(
            recipe,
            request.found.pins,
            request.found.builds,
            launcher,
            alone=site.launcher is None,
        ),
        smoke=recipe.smoke,
        pip_indexes=recipe.pip_indexes or site.pip_indexes,
        find_links=(*recipe.find_links, *site.find_links),
        channels=tuple(_channels(request)),
        profile=request.profile,
        steps=_steps(request),
        inputs=request.inputs,
    )


def _builds(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the builds, Horovod's with the frameworks that it is built for.

    A profile's compilers compile it, and nothing else: what it stands on is the same as ever.
    """
    components = [pin.component for pin in request.found.pins]
    told = build_variables(request.profile)
    return tuple(
        build.model_copy(
            update={
                "frameworks": frameworks(build.flags, components),
                "environment": {**build.environment, **told},
            }
        )
        if build.component == "horovod"
        else build
        for build in request.found.builds
    )


def _verified(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the Horovod that a module brings, as what the recipe says of it."""
    pin = next((pin for pin in request.found.pins if pin.component == "horovod"), None)
    if pin is None or pin.origin != "module":
        return ()
    flags = request.recipe.runtime.flags
    components = [each.component for each in request.found.pins]
    without_mpi = flags.get("HOROVOD_WITHOUT_MPI") == "1"
    nccl = "NCCL" in flags.values()
    links = (*(() if without_mpi else ("mpi",)), *(("nccl",) if nccl else ()))
    return (
        SourceBuild(
            component=pin.component,
            version=pin.version,
            flags=flags,
            frameworks=frameworks(flags, components),
            links=links,
        ),
    )


def _modules(request: PlanRequest) -> Modules:
    site, found = request.site, request.found
    if not found.loads:
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
        loads=found.loads,
        final=found.final,
        replaced=found.replaced,
    )


def _channels(request: PlanRequest) -> Iterator[PlanChannel]:
    """Yield the recipe's channels, each where the site keeps its copy of it."""
    for name in request.recipe.channels:
        known = request.channels[name]
        licence = known.licence
        yield PlanChannel(
            name=name,
            url=request.site.channels.get(name, known.url),
            accept={licence.variable: licence.value} if licence else {},
            licence=licence.summary if licence else None,
        )


# What tells programs where the environment is.
_HOME_OF: Mapping[str, str] = {"virtualenv": "VIRTUAL_ENV", "conda": "CONDA_PREFIX"}


def _environment(recipe: Recipe) -> tuple[Edit, ...]:
    """Return the edits that loading the environment makes, in their order."""
    return (
        Edit(kind="set", name=_HOME_OF[recipe.backend], in_prefix=True),
        # Packages in ~/.local would come before the site's and mix into what was proved.
        Edit(kind="set", name="PYTHONNOUSERSITE", value="1"),
        Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        *(Edit(kind="set", name=name, value=value) for name, value in recipe.env.items()),
    )


def _launcher(pins: tuple[Pin, ...]) -> Launcher:
    launcher = own_launcher(pins)
    if launcher is None:
        raise UsageError(
            "it is not known what starts the ranks of this stack's MPI",
            "name the command in the site file: launcher: {command: [srun, --mpi=pmix]}",
        )
    return launcher


def _steps(request: PlanRequest) -> tuple[Step, ...]:
    load = (Step(id="modules", title="load the site's modules and compare"),)
    made = Step(id="venv", title="make the virtualenv")
    if request.recipe.backend == "conda":
        made = Step(id="conda", title="make the conda environment", needs_network=True)
    return (
        *(load if request.found.loads else ()),
        made,
        Step(id="fetch", title="fetch the locked packages", needs_network=True),
        Step(id="install", title="install them"),
        Step(id="tools", title="unpack the build tools"),
        *_source_steps(request.found.builds, _verified(request)),
        Step(id="runtime", title="build the collective runtime"),
        *_alias_steps(request.runtime),
        Step(id="check", title="import every package and compare"),
    )


def _alias_steps(runtime: RuntimePlan) -> Iterator[Step]:
    if runtime.aliases:
        yield Step(id="alias", title=f"let it answer to {', '.join(runtime.aliases)}")


def _check_aliases(request: PlanRequest) -> None:
    """Raise UsageError where an alias of the runtime would stand before the real thing."""
    for pin in (*request.found.pins, *request.found.brought):
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
            needs_network=build.tree is not None,
        )
    if builds or brought:
        whose = "were built" if builds else "the module brings"
        yield Step(id="verify", title=f"look at the libraries that {whose}")
