"""Making the plan of a virtualenv: pure, from what the resolver decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UsageError
from ..model.plan import Edit, Input, Modules, Pin, Plan, RuntimePlan, Step
from ..model.recipe import Arch, Recipe
from ..model.site import Launcher, Site

# What starts the ranks of each MPI that an environment may hold.
LAUNCHERS: Mapping[str, Launcher] = {
    "mpich": Launcher(kind="hydra", command=("mpiexec",)),
    "openmpi": Launcher(kind="openmpi", command=("mpiexec",)),
}


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is made of, all of it decided before."""

    recipe: Recipe
    site: Site
    arch: Arch
    python: str
    pins: tuple[Pin, ...]
    build_pins: tuple[Pin, ...]
    loads: tuple[str, ...]
    final: tuple[str, ...]
    runtime: RuntimePlan
    inputs: tuple[Input, ...]


def make_plan(request: PlanRequest) -> Plan:
    """Return the plan. Raises UsageError for a backend that cannot be built yet."""
    recipe, site = request.recipe, request.site
    if recipe.backend != "virtualenv":
        raise UsageError(
            f"recipe {recipe.name} asks for backend {recipe.backend}, which is not built yet",
            "backend: virtualenv is",
        )
    return Plan(
        recipe=recipe.name,
        summary=recipe.summary,
        site=site.name,
        arch=request.arch,
        backend=recipe.backend,
        system_site_packages=recipe.system_site_packages,
        python=request.python,
        pins=request.pins,
        build_pins=request.build_pins,
        packages=recipe.packages,
        modules=_modules(request),
        environment=_environment(recipe),
        runtime=request.runtime,
        launcher=site.launcher or _launcher(request.pins),
        smoke=recipe.smoke,
        pip_indexes=recipe.pip_indexes or site.pip_indexes,
        find_links=(*recipe.find_links, *site.find_links),
        steps=_steps(request),
        inputs=request.inputs,
    )


def _modules(request: PlanRequest) -> Modules:
    site = request.site
    if not request.loads:
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
        loads=request.loads,
        final=request.final,
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
        *(load if request.loads else ()),
        Step(id="venv", title="make the virtualenv"),
        Step(id="fetch", title="fetch the locked packages", needs_network=True),
        Step(id="install", title="install them"),
        Step(id="runtime", title="build the collective runtime"),
        Step(id="check", title="import every package and compare"),
    )
