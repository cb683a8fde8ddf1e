"""From decided components to a plan."""

from __future__ import annotations

import pytest

from envbuilder.errors import UsageError
from envbuilder.model.plan import Pin, Plan, RuntimePlan
from envbuilder.model.recipe import Recipe
from envbuilder.model.site import Launcher, Site
from envbuilder.planning import PlanRequest, make_plan
from envbuilder.resolve import Resolution


def plan(
    recipe: dict[str, object] | None = None,
    site: dict[str, object] | None = None,
    mpi: str = "mpich",
    loads: tuple[str, ...] = (),
) -> Plan:
    base = {"schema": 1, "name": "demo", "summary": "A demo", "arch": ("x86_64",)}
    wanted = {**base, "stack": {"python": "*"}, **(recipe or {})}
    place = {"schema": 1, "name": "here", "summary": "Here", "arch": ("x86_64",), **(site or {})}
    return make_plan(
        PlanRequest(
            recipe=Recipe(**wanted),  # type: ignore[arg-type]
            site=Site(**place),  # type: ignore[arg-type]
            arch="x86_64",
            found=Resolution(
                python="/usr/bin/python3",
                pins=(Pin(component=mpi, version="1.0", origin="pip", locator=mpi, why="w"),),
                build_pins=(),
                brought=(),
                loads=loads,
                final=loads,
            ),
            runtime=RuntimePlan(package="runtime", version="0.1.0", source_sha256="0" * 64),
            inputs=(),
        )
    )


def test_the_environment_is_its_own_and_nothing_of_the_user_comes_before_it() -> None:
    edits = [(e.kind, e.name, e.value, e.in_prefix) for e in plan().environment]
    assert edits == [
        ("set", "VIRTUAL_ENV", "", True),
        ("set", "PYTHONNOUSERSITE", "1", False),
        ("prepend", "PATH", "bin", True),
    ]


def test_variables_of_the_recipe_come_last_in_their_order() -> None:
    made = plan({"env": {"OMP_NUM_THREADS": "2", "A_NAME": "with $(blanks)"}})
    assert [(e.name, e.value) for e in made.environment[3:]] == [
        ("OMP_NUM_THREADS", "2"),
        ("A_NAME", "with $(blanks)"),
    ]


@pytest.mark.parametrize(("mpi", "kind"), [("mpich", "hydra"), ("openmpi", "openmpi")])
def test_the_launcher_belongs_to_the_mpi(mpi: str, kind: str) -> None:
    assert plan(mpi=mpi).launcher.kind == kind


def test_the_sites_launcher_comes_first() -> None:
    launcher = Launcher(kind="srun", command=("srun", "--mpi=pmix"))
    assert plan(site={"launcher": launcher}).launcher == launcher
    assert plan(site={"launcher": launcher}, mpi="spectrum-mpi").launcher == launcher


def test_an_mpi_without_a_known_launcher_asks_for_one() -> None:
    with pytest.raises(UsageError, match="not known what starts the ranks"):
        plan(mpi="spectrum-mpi")


def test_modules_are_a_step_of_their_own_and_need_a_way_to_be_loaded() -> None:
    reachable = {"module_system": "lmod", "module_init": "/apps/lmod/init/bash"}
    made = plan(site=reachable, loads=("OpenMPI/4.1.4",))
    assert made.steps[0].id == "modules"
    assert made.modules.loads == ("OpenMPI/4.1.4",)
    assert plan().steps[0].id == "venv"
    with pytest.raises(UsageError, match="states modules but not how to reach them"):
        plan(loads=("OpenMPI/4.1.4",))


def test_indexes_of_the_recipe_replace_the_sites_and_links_add_up() -> None:
    site = {"pip_indexes": ("https://site.example/simple",), "find_links": ("file:///apps/w",)}
    recipe = {"pip_indexes": ("https://mine.example/simple",), "find_links": ("file:///me/w",)}
    assert plan(site=site).pip_indexes == ("https://site.example/simple",)
    assert plan(recipe, site).pip_indexes == ("https://mine.example/simple",)
    assert plan(recipe, site).find_links == ("file:///me/w", "file:///apps/w")


@pytest.mark.parametrize("backend", ["conda", "container"])
def test_backends_that_come_later_are_refused_clearly(backend: str) -> None:
    with pytest.raises(UsageError, match=f"asks for backend {backend}, which is not built yet"):
        plan({"backend": backend})


def test_only_fetching_needs_the_network() -> None:
    assert [step.id for step in plan().steps if step.needs_network] == ["fetch"]
