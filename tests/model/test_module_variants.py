"""Modules of one name behind different ones: told apart, and by which name they are loaded."""

from __future__ import annotations

from envbuilder.model.module_variants import loaded_as, told_apart, variant
from envbuilder.model.site import StatedModule

Parents = tuple[tuple[str, ...], ...]


def module(name: str, *parents: tuple[str, ...], loads: tuple[str, ...] = ()) -> StatedModule:
    return StatedModule(name=name, parents=parents, loads=loads)


def behind(name: str, number: int) -> str:
    return variant(name, ((f"GCC/{number}",),))


COMPILERS = (module("GCC/12", loads=("GCCcore/12",)), module("GCC/13", loads=("GCCcore/13",)))


def test_modules_of_names_of_their_own_stay_as_they_are() -> None:
    modules = (*COMPILERS, module("OpenMPI/4", ("GCC/12",), ("GCC/13",)))
    assert told_apart(modules) == {each.name: each for each in modules}


def test_a_name_says_what_it_is_loaded_by() -> None:
    own = variant("mpi/OpenMPI/4.1.5-CUDA", (("GCC/12", "CUDA/12"), ("GCC/13",)))
    assert own == "mpi/OpenMPI/4.1.5-CUDA behind GCC 12 CUDA 12 or GCC 13"
    assert loaded_as(own) == "mpi/OpenMPI/4.1.5-CUDA"
    assert loaded_as("OpenMPI/4.1.5") == "OpenMPI/4.1.5"


def test_what_stands_behind_a_namesake_finds_its_own() -> None:
    mpis = [module("OpenMPI/4", (f"GCC/{n}",)) for n in (12, 13)]
    above = [module("FFTW/3", (f"GCC/{n}", "OpenMPI/4")) for n in (12, 13)]
    found = told_apart([*COMPILERS, *mpis, *above])
    for n in (12, 13):
        own = variant("FFTW/3", ((f"GCC/{n}", "OpenMPI/4"),))
        assert found[own].parents == ((f"GCC/{n}", behind("OpenMPI/4", n)),)


def test_a_load_finds_the_namesake_that_is_open_by_then() -> None:
    zlibs = [module("zlib/1", (f"GCCcore/{n}",)) for n in (12, 13)]
    # Opened by what its parent loads; by what it loads itself before.
    inner = module("OpenMPI/5", ("GCC/12",), loads=("zlib/1",))
    outer = module("toolchain/13", loads=("GCC/13", "zlib/1"))
    found = told_apart([*COMPILERS, *zlibs, inner, outer])
    assert found["OpenMPI/5"].loads == (variant("zlib/1", (("GCCcore/12",),)),)
    assert found["toolchain/13"].loads == ("GCC/13", variant("zlib/1", (("GCCcore/13",),)))


def test_a_conflict_is_with_all_of_a_name() -> None:
    mpis = [module("OpenMPI/4", (f"GCC/{n}",)) for n in (12, 13)]
    other = StatedModule(name="MPICH/4", conflicts=("OpenMPI/4", "GCC"))
    found = told_apart([*COMPILERS, *mpis, other])
    assert found["MPICH/4"].conflicts == (*(behind("OpenMPI/4", n) for n in (12, 13)), "GCC")
