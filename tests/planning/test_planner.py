"""From decided components to a plan."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from envbuilder.build.backends import BACKENDS
from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.knowledge.channels import Channel, Licence
from envbuilder.launching.launchers import own_launcher
from envbuilder.model.plan import Edit, Pin, Plan, RuntimePlan
from envbuilder.model.recipe import Recipe
from envbuilder.model.resolution import Resolution
from envbuilder.model.site import Site, SiteLauncher
from envbuilder.planning import PlanRequest, make_plan
from envbuilder.runtimes import RUNTIMES
from envbuilder.workflow.entries import api_launcher, entries
from tests.shipped import read_shipped

KNOWLEDGE = read_shipped().value

CHANNELS = {
    name: Channel(
        url=f"https://conda.example/{name}",
        recorded="2020-11-10",
        sources=("somebody",),
        licence=licence,
        packages={},
    )
    for name, licence in (
        ("big", Licence(variable="ACCEPT", value="yes", summary="a licence")),
        ("small", None),
    )
}


def plan(
    recipe: dict[str, object] | None = None,
    site: dict[str, object] | None = None,
    mpi: str = "mpich",
    loads: tuple[str, ...] = (),
    further: tuple[str, ...] = (),
) -> Plan:
    base = {"schema": 1, "name": "demo", "summary": "A demo", "arch": ("x86_64",)}
    wanted = {**base, "stack": {"python": "*"}, **(recipe or {})}
    place = {"schema": 1, "name": "here", "summary": "Here", "arch": ("x86_64",), **(site or {})}
    asked = Recipe(**wanted)  # type: ignore[arg-type]
    return make_plan(
        PlanRequest(
            recipe=asked,
            backend=BACKENDS[asked.backend].TRAITS,
            site=Site(**place),  # type: ignore[arg-type]
            arch="x86_64",
            resolution=Resolution(
                python="/usr/bin/python3",
                pins=tuple(
                    Pin(component=each, version="2.0", origin="pip", locator=each, why="w")
                    for each in (mpi, *further)
                ),
                build_pins=(),
                brought=(),
                loads=loads,
                final=loads,
            ),
            runtime=RuntimePlan(
                package="runtime",
                version="0.1.0",
                source_sha256="0" * 64,
                aliases=asked.runtime.aliases,
            ),
            inputs=(),
            own_launcher=own_launcher,
            api_launcher=api_launcher,
            runtimes=RUNTIMES,
            knowledge=KNOWLEDGE.model_copy(update={"channels": CHANNELS}),
        )
    )


def test_horovod_is_built_for_the_frameworks_of_its_stack() -> None:
    words = ["plan", "horovod-nccl", "--site", "taurus-ml", "--arch", "ppc64le", "--json"]
    answer = CliRunner().invoke(app, words)
    builds = json.loads(answer.stdout)["builds"]
    frameworks = {each["component"]: each["frameworks"] for each in builds}
    assert frameworks["horovod"] == ["tensorflow"]


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
    launcher = SiteLauncher(kind="srun", command=("srun", "--mpi=pmix"))
    assert plan(site={"launcher": launcher}).launcher == launcher
    assert plan(site={"launcher": launcher}, mpi="spectrum-mpi").launcher == launcher


def test_an_mpi_without_a_known_launcher_asks_for_one() -> None:
    with pytest.raises(UsageError) as caught:
        plan(mpi="some-mpi")
    assert caught.value.id == "launcher.none-known"


@pytest.mark.parametrize(("mpi", "command"), [("impi", "mpiexec.hydra"), ("mvapich2", "mpiexec")])
def test_what_is_made_from_mpich_brings_its_hydra(mpi: str, command: str) -> None:
    launcher = plan(mpi=mpi).launcher
    assert (launcher.kind, launcher.command) == ("hydra", (command,))


def test_modules_are_a_step_of_their_own_and_need_a_way_to_be_loaded() -> None:
    reachable = {"module_system": "lmod", "module_init": "/apps/lmod/init/bash"}
    made = plan(site=reachable, loads=("OpenMPI/4.1.4",))
    assert made.steps[0].id == "modules"
    assert made.modules.loads == ("OpenMPI/4.1.4",)
    assert plan().steps[0].id == "venv"
    with pytest.raises(UsageError) as caught:
        plan(loads=("OpenMPI/4.1.4",))
    assert caught.value.id == "site.no-module-system"


def test_indexes_of_the_recipe_replace_the_sites_and_links_add_up() -> None:
    site = {"pip_indexes": ("https://site.example/simple",), "find_links": ("file:///apps/w",)}
    recipe = {"pip_indexes": ("https://mine.example/simple",), "find_links": ("file:///me/w",)}
    assert plan(site=site).pip_indexes == ("https://site.example/simple",)
    assert plan(recipe, site).pip_indexes == ("https://mine.example/simple",)
    assert plan(recipe, site).find_links == ("file:///me/w", "file:///apps/w")


def test_a_conda_environment_is_conda_s_own_and_knows_where_its_packages_come_from() -> None:
    recipe = {"backend": "conda", "channels": ("big", "small")}
    made = plan(recipe, {"channels": {"small": "file:///apps/mirror"}})
    assert made.environment[0] == Edit(kind="set", name="CONDA_PREFIX", in_prefix=True)
    assert [step.id for step in made.steps][:2] == ["packages", "conda"]
    assert "venv" not in [step.id for step in made.steps]
    big, small = made.channels
    assert (big.name, big.url, big.accept) == (
        "big",
        "https://conda.example/big",
        {"ACCEPT": "yes"},
    )
    assert (small.name, small.url, small.accept) == ("small", "file:///apps/mirror", {})


ALIAS = {"runtime": {"aliases": ("horovod",)}}


def test_an_alias_is_a_step_after_the_runtime_and_proved_by_its_name() -> None:
    made = plan(ALIAS, further=("pytorch",))
    steps = [step.id for step in made.steps]
    assert steps[steps.index("runtime") + 1] == "alias"
    assert [(each.api, each.transport, each.launcher.kind) for each in made.proofs] == [
        ("numpy", "mpi", "hydra"),
        ("horovod.torch", "mpi", "hydra"),
        ("horovod.torch", "gloo", "horovodrun"),
        ("torch.distributed", "gloo", "torchrun"),
    ]
    without = plan(further=("pytorch",))
    assert "alias" not in [step.id for step in without.steps]
    assert {each.api for each in without.proofs} == {"numpy", "torch.distributed"}


def test_the_alias_of_ddl_needs_no_proof_of_horovod() -> None:
    made = plan({"runtime": {"aliases": ("ddl",)}}, further=("pytorch",))
    assert "alias" in [step.id for step in made.steps]
    assert {each.api for each in made.proofs} == {"numpy", "torch.distributed"}


def test_an_alias_never_stands_before_the_real_thing() -> None:
    with pytest.raises(UsageError, match="horovod") as caught:
        plan(ALIAS, further=("pytorch", "horovod"))
    assert caught.value.id == "recipe.alias-conflict"


@pytest.mark.parametrize(
    ("runtime", "message"),
    [
        ({"package": "horovod", "aliases": ("horovod",)}, "bundled runtime"),
        ({"aliases": ("horovod", "horovod")}, "listed twice"),
        ({"aliases": ("nccl",)}, "Input should be 'ddl' or 'horovod'"),
    ],
)
def test_aliases_that_cannot_be(runtime: dict[str, object], message: str) -> None:
    document = {"schema": 1, "name": "demo", "summary": "A demo", "arch": ("x86_64",)}
    with pytest.raises(ValueError, match=message):
        Recipe.model_validate(
            {**document, "stack": {"python": "*"}, "runtime": runtime}, context=entries()
        )
