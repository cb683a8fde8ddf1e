"""Making the plan of a virtualenv: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import UsageError
from ..model.plan import (
    Edit,
    Finding,
    Input,
    Modules,
    Patch,
    Pin,
    Plan,
    Replacement,
    RuntimePlan,
    SourceBuild,
    Step,
)
from ..model.recipe import Arch, Recipe
from ..model.site import Launcher, Site
from .proofs import frameworks, proofs

# What starts the ranks of each MPI that an environment may hold.
LAUNCHERS: Mapping[str, Launcher] = {
    "mpich": Launcher(kind="hydra", command=("mpiexec",)),
    "openmpi": Launcher(kind="openmpi", command=("mpiexec",)),
}


class Found(Protocol):
    """What the resolver decided, as far as a plan is made of it."""

    @property
    def pins(self) -> tuple[Pin, ...]: ...
    @property
    def build_pins(self) -> tuple[Pin, ...]: ...
    @property
    def brought(self) -> tuple[Pin, ...]: ...
    @property
    def python(self) -> str: ...
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
    """What a plan is made of, all of it decided before."""

    recipe: Recipe
    site: Site
    arch: Arch
    found: Found
    runtime: RuntimePlan
    inputs: tuple[Input, ...]
    patches: tuple[Patch, ...] = ()


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for a backend that cannot be built yet."""
    recipe, site = request.recipe, request.site
    if recipe.backend != "virtualenv":
        raise UsageError(
            f"recipe {recipe.name} asks for backend {recipe.backend}, which is not built yet",
            "backend: virtualenv is",
        )
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
        steps=_steps(request),
        inputs=request.inputs,
    )


def _builds(request: PlanRequest) -> tuple[SourceBuild, ...]:
    """Return the builds, Horovod's with the frameworks that it is built for."""
    components = [pin.component for pin in request.found.pins]
    return tuple(
        build.model_copy(update={"frameworks": frameworks(build.flags, components)})
        if build.component == "horovod"
        else build
        for build in request.found.builds
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


def _environment(recipe: Recipe) -> tuple[Edit, ...]:
    """Return the edits that loading the environment makes, in their order."""
    return (
        Edit(kind="set", name="VIRTUAL_ENV", in_prefix=True),
        # Packages in ~/.local would come before the site's and mix into what was proved.
        Edit(kind="set", name="PYTHONNOUSERSITE", value="1"),
        Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        *(Edit(kind="set", name=name, value=value) for name, value in recipe.env.items()),
    )


def _launcher(pins: tuple[Pin, ...]) -> Launcher:
    for pin in pins:
        if pin.component in LAUNCHERS:
            return LAUNCHERS[pin.component]
    raise UsageError(
        "it is not known what starts the ranks of this stack's MPI",
        "name the command in the site file: launcher: {command: [srun, --mpi=pmix]}",
    )


def _steps(request: PlanRequest) -> tuple[Step, ...]:
    load = (Step(id="modules", title="load the site's modules and compare"),)
    return (
        *(load if request.found.loads else ()),
        Step(id="venv", title="make the virtualenv"),
        Step(id="fetch", title="fetch the locked packages", needs_network=True),
        Step(id="install", title="install them"),
        Step(id="tools", title="unpack the build tools"),
        *_source_steps(request.found.builds),
        Step(id="runtime", title="build the collective runtime"),
        Step(id="check", title="import every package and compare"),
    )


def _source_steps(builds: Sequence[SourceBuild]) -> Iterator[Step]:
    for build in builds:
        yield Step(id=f"build-{build.component}", title=f"build {build.component} {build.version}")
    if builds:
        yield Step(id="verify", title="look at the libraries that were built")
