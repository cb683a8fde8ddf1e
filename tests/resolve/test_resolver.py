"""The resolver's first cut: who provides what, and why nobody does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from envbuilder.build.backends import BACKENDS
from envbuilder.errors import NoSolutionError, Place
from envbuilder.knowledge.components import Component, Release
from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.plan import SourceBuild
from envbuilder.model.recipe import Recipe
from envbuilder.model.site import Interpreter, Site, SiteFacts, Snapshot, StatedModule
from envbuilder.resolve.request import Request, Requirement
from envbuilder.resolve.resolver import resolve
from envbuilder.resolve.tools import build_tools
from envbuilder.runtimes import RUNTIMES
from tests.golden_texts import Golden


def component(pip: str | None = None, fulfils: tuple[str, ...] = ()) -> Component:
    return Component(summary="a component", pip=pip, fulfils=fulfils)


KNOWLEDGE = Knowledge(
    components={
        "python": component(),
        "numpy": component("numpy"),
        "mpi4py": component("mpi4py"),
        "mpich": component("mpich", ("mpi",)),
        "openmpi": component("openmpi", ("mpi",)),
        "flit-core": component("flit-core"),
    },
    releases={
        "numpy": (
            Release(version="2.5.5", requires_python=">=3.12", arch=("x86_64", "ppc64le")),
            Release(version="2.4.6", requires_python=">=3.11", arch=("x86_64", "ppc64le")),
            Release(version="1.26.4", requires_python=">=3.9", arch=("x86_64",)),
        ),
        "mpi4py": (
            Release(version="4.1.2", requires_python=">=3.8", arch=("x86_64", "aarch64")),
            Release(version="4.0.3", requires_python=">=3.6", wheels=False),
        ),
        "mpich": (
            Release(version="5.0.2", arch=("x86_64", "aarch64")),
            Release(version="4.3.2", arch=("x86_64", "aarch64")),
        ),
        "flit-core": (Release(version="4.2.0", requires_python=">=3.8"),),
    },
)


def interpreter(version: str, **changes: object) -> Interpreter:
    path = f"/usr/bin/python{version.rpartition('.')[0]}"
    known = {"path": path, "version": version, "arch": "x86_64", "can_make_venv": True}
    return Interpreter(**{**known, **changes})


def request(
    stack: dict[str, str], *interpreters: Interpreter, modules: tuple[StatedModule, ...] = ()
) -> Request:
    recipe = Recipe(schema=1, name="demo", summary="A demo", arch=("x86_64",), stack=stack)
    site = Site(schema=1, name="here", summary="Here", arch=("x86_64",))
    return Request(
        recipe=recipe,
        backend=BACKENDS[recipe.backend].TRAITS,
        runtime=RUNTIMES[recipe.runtime.package],
        site=site,
        arch="x86_64",
        snapshot=Snapshot(interpreters=interpreters, modules=modules),
        knowledge=KNOWLEDGE,
        implied=tuple(Requirement(each, "*", "the runtime") for each in ("numpy", "mpi4py", "mpi")),
        build_only=(Requirement("flit-core", ">=3.8", "building the runtime"),),
        places={name: Place("demo.yaml", 7 + n, 3) for n, name in enumerate(stack)},
    )


BASIC = {"python": ">=3.8", "mpich": "*"}


def pins(found: object) -> list[str]:
    return [str(pin) for pin in found.pins]  # type: ignore[attr-defined]


def test_the_newest_of_everything_that_fits_the_interpreter() -> None:
    found = resolve(request(BASIC, interpreter("3.11.7"), interpreter("3.10.2")))
    assert pins(found) == [
        "python@3.11.7 <- system:/usr/bin/python3.11",
        "mpich@5.0.2 <- pip:mpich",
        "numpy@2.4.6 <- pip:numpy",
        "mpi4py@4.1.2 <- pip:mpi4py",
    ]
    assert [str(pin) for pin in found.build_pins] == ["flit-core@4.2.0 <- pip:flit-core"]
    assert (found.loads, found.final) == ((), ())


def test_the_order_in_which_things_were_found_does_not_matter() -> None:
    one, other = interpreter("3.11.7"), interpreter("3.10.2")
    assert resolve(request(BASIC, one, other)) == resolve(request(BASIC, other, one))


def test_an_interpreter_under_which_nothing_fits_is_passed_over() -> None:
    newest_lacks_numpy = request({**BASIC, "numpy": "<2"}, interpreter("3.13.0"))
    found = resolve(newest_lacks_numpy)
    assert "numpy@1.26.4 <- pip:numpy" in pins(found)
    only_old = request({**BASIC, "numpy": ">=2.5"}, interpreter("3.11.7"), interpreter("3.12.1"))
    assert pins(resolve(only_old))[0] == "python@3.12.1 <- system:/usr/bin/python3.12"


def test_an_interpreter_without_venv_or_of_another_architecture_is_no_candidate() -> None:
    bad = (
        interpreter("3.13.0", can_make_venv=False),
        interpreter("3.12.0", arch="ppc64le"),
        interpreter("3.10.2"),
    )
    assert pins(resolve(request(BASIC, *bad)))[0] == "python@3.10.2 <- system:/usr/bin/python3.10"


PYTHON_MODULE = StatedModule(
    name="Python/3.10.4-GCCcore-11.3.0",
    provides={"python": "3.10.4", "numpy": "1.22.3"},
    python="/apps/Python/3.10.4/bin/python3",
    loads=("GCCcore/11.3.0",),
)
MPI_MODULE = StatedModule(
    name="OpenMPI/4.1.4-GCC-11.3.0",
    provides={"openmpi": "4.1.4"},
    loads=("GCCcore/11.3.0", "GCC/11.3.0"),
)


def test_modules_come_before_the_system_and_bring_what_they_provide() -> None:
    stack = {"python": ">=3.8", "openmpi": "*"}
    modules = (PYTHON_MODULE, MPI_MODULE)
    found = resolve(request(stack, interpreter("3.13.0"), modules=modules))
    assert pins(found) == [
        "python@3.10.4 <- module:Python/3.10.4-GCCcore-11.3.0",
        "openmpi@4.1.4 <- module:OpenMPI/4.1.4-GCC-11.3.0",
        "numpy@1.22.3 <- module:Python/3.10.4-GCCcore-11.3.0",
        "mpi4py@4.1.2 <- pip:mpi4py",
    ]
    assert found.loads == ("OpenMPI/4.1.4-GCC-11.3.0", "Python/3.10.4-GCCcore-11.3.0")
    assert found.final == (
        "GCC/11.3.0",
        "GCCcore/11.3.0",
        "OpenMPI/4.1.4-GCC-11.3.0",
        "Python/3.10.4-GCCcore-11.3.0",
    )
    assert found.python == "/apps/Python/3.10.4/bin/python3"
    assert found.stand_ins == ()


def test_a_module_that_loads_the_mark_stands_in() -> None:
    loads = (*MPI_MODULE.loads, "envbuild-stand-in/1")
    modules = (PYTHON_MODULE, MPI_MODULE.model_copy(update={"loads": loads}))
    found = resolve(request({"python": "*", "openmpi": "*"}, modules=modules))
    assert found.stand_ins == (MPI_MODULE.name,)
    assert "envbuild-stand-in/1" in found.final


def test_a_module_that_hides_what_was_asked_for_is_passed_over() -> None:
    stack = {"python": ">=3.8", "openmpi": "*", "numpy": ">=2"}
    modules = (PYTHON_MODULE, MPI_MODULE)
    found = resolve(request(stack, interpreter("3.12.0"), modules=modules))
    assert pins(found)[0] == "python@3.12.0 <- system:/usr/bin/python3.12"


def test_if_only_that_module_is_there_all_that_cannot_hold_together_is_named(
    golden: Golden,
) -> None:
    stack = {"python": ">=3.8", "openmpi": "*", "numpy": ">=2"}
    with pytest.raises(NoSolutionError) as caught:
        resolve(request(stack, modules=(PYTHON_MODULE, MPI_MODULE)))
    (problem,) = caught.value.problems
    golden(*problem.message.splitlines())
    assert (problem.id, problem.place) == ("plan.no-solution", Place("demo.yaml", 7, 3))


def test_a_version_that_does_not_exist_is_said_with_those_that_do(golden: Golden) -> None:
    with pytest.raises(NoSolutionError) as caught:
        resolve(request({**BASIC, "mpich": ">=6"}, interpreter("3.11.7")))
    (problem,) = caught.value.problems
    golden(*problem.message.splitlines())
    assert (problem.id, problem.place) == ("plan.no-solution", Place("demo.yaml", 8, 3))


def test_what_the_index_refused_is_not_chosen_again_and_is_said_in_the_end() -> None:
    asked = request(BASIC, interpreter("3.11.7"))
    once = replace(asked, refused=frozenset({("mpich", "5.0.2")}))
    assert "mpich@4.3.2 <- pip:mpich" in pins(resolve(once))
    never = replace(asked, refused=frozenset({("mpich", "5.0.2"), ("mpich", "4.3.2")}))
    with pytest.raises(NoSolutionError) as caught:
        resolve(never)
    assert caught.value.id == "plan.no-solution"
    lines = caught.value.problems[0].message.splitlines()
    for version in ("4.3.2", "5.0.2"):
        assert any("index" in line and f"mpich {version}" in line for line in lines)


def test_sources_without_wheels_are_no_candidate() -> None:
    with pytest.raises(NoSolutionError, match="mpi4py ==4.0.3") as caught:
        resolve(request({**BASIC, "mpi4py": "==4.0.3"}, interpreter("3.11.7")))
    assert caught.value.id == "plan.no-solution"


def test_a_wheel_for_a_newer_glibc_or_another_python_series_is_no_candidate() -> None:
    releases = {
        **KNOWLEDGE.releases,
        "numpy": (
            Release(version="2.4.6", glibc="2.28"),
            Release(version="2.3.0", pythons=("3.12",)),
            Release(version="1.26.4", glibc="2.17", pythons=("3.11",)),
        ),
    }
    knowledge = KNOWLEDGE.model_copy(update={"releases": releases})
    asked = replace(request(BASIC, interpreter("3.11.7")), knowledge=knowledge)
    old = replace(asked, snapshot=asked.snapshot.model_copy(update={"glibc": "2.17"}))
    new = replace(asked, snapshot=asked.snapshot.model_copy(update={"glibc": "2.36"}))
    assert "numpy@1.26.4 <- pip:numpy" in pins(resolve(old))
    assert "numpy@2.4.6 <- pip:numpy" in pins(resolve(new))
    assert "numpy@2.4.6 <- pip:numpy" in pins(resolve(asked))


def test_a_tool_of_the_build_must_run_on_the_glibc_too() -> None:
    releases = {
        **KNOWLEDGE.releases,
        "ninja": (Release(version="1.13.0", glibc="2.28"), Release(version="1.11.1")),
    }
    components = {
        **KNOWLEDGE.components,
        "horovod": component("horovod"),
        "ninja": component("ninja"),
    }
    knowledge = KNOWLEDGE.model_copy(update={"releases": releases, "components": components})
    asked = replace(request(BASIC, interpreter("3.11.7")), knowledge=knowledge)
    build = SourceBuild(component="horovod", version="0.28.1", build_requires=("ninja>=1.10",))
    there = resolve(asked).pins
    old = replace(asked, facts=SiteFacts(glibc="2.17"))
    assert [pin.version for pin in build_tools(asked, [build], there)] == ["1.13.0"]
    assert [pin.version for pin in build_tools(old, [build], there)] == ["1.11.1"]


def test_a_stack_that_names_no_mpi_gets_the_one_that_is_there() -> None:
    found = resolve(request({"python": "*"}, interpreter("3.11.7")))
    assert "mpich@5.0.2 <- pip:mpich" in pins(found)


def test_no_python_at_all_lists_what_there_is() -> None:
    with pytest.raises(NoSolutionError, match="python >=3.8") as caught:
        resolve(request(BASIC, interpreter("3.6.15")))
    assert caught.value.id == "plan.no-solution"
    assert "3.6.15 (system)" in caught.value.problems[0].message


@pytest.mark.parametrize(
    ("version", "constraint", "fits"),
    [
        ("2.3.7-fosscuda-2018b", ">=2.3.7", True),
        ("1.14.0-PythonAnaconda-3.6", "==1.14.*", True),
        ("7.3.0-2.30", "==7.3.0", True),
        ("2.0rc1", ">=1", False),
        ("2018b", ">=2018", False),
        ("anything", "*", True),
        ("system", ">=1", False),
    ],
)
def test_module_suffixes_are_no_part_of_a_version(
    version: str, constraint: str, fits: bool
) -> None:
    assert matches(version, constraint) is fits
