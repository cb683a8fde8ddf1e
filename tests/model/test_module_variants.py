"""Modules of one name behind different ones: told apart, and by which name they are loaded."""

from __future__ import annotations

from envbuilder.machine.modules.variants import loaded_as, told_apart, variant
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


def test_a_load_follows_the_module_that_is_loaded_and_not_others_of_its_name() -> None:
    """Each loads the compiler that it is behind, as modules of some sites do."""
    cores = [module(f"GCCcore/{n}") for n in (12, 13)]
    libraries = [
        module(f"{name}/1", (core.name,), loads=(core.name,))
        for core in cores
        for name in ("zlib", "bzip2")
    ]
    pythons = [
        module(f"Python/3.{n}", (f"GCCcore/{n}",), loads=("zlib/1", "bzip2/1")) for n in (12, 13)
    ]
    found = told_apart([*cores, *libraries, *pythons])
    for n in (12, 13):
        expected = (variant(f"{name}/1", ((f"GCCcore/{n}",),)) for name in ("zlib", "bzip2"))
        assert found[f"Python/3.{n}"].loads == tuple(expected)


def test_parents_follow_the_module_that_is_loaded_too() -> None:
    bundles = [module(f"bundle/{n}", loads=(f"GCC/{n}",)) for n in (12, 13)]
    # What a bundle opens is behind its compiler as well, by what the bundle loads.
    tools = [module("tools/1", (f"GCC/{n}",), loads=(f"bundle/{n}",)) for n in (12, 13)]
    mpis = [module("OpenMPI/4", (f"GCC/{n}",)) for n in (12, 13)]
    above = [module("FFTW/3", (f"GCC/{n}", "tools/1", "OpenMPI/4")) for n in (12, 13)]
    found = told_apart([*COMPILERS, *bundles, *tools, *mpis, *above])
    for n in (12, 13):
        own = variant("FFTW/3", ((f"GCC/{n}", "tools/1", "OpenMPI/4"),))
        assert found[own].parents == ((f"GCC/{n}", behind("tools/1", n), behind("OpenMPI/4", n)),)


def test_of_two_open_trees_the_one_behind_more_is_searched_first() -> None:
    inner, outer = (("GCC/12", "CUDA/12"),), (("GCC/12",),)
    modules = (
        *(*COMPILERS, module("CUDA/12", ("GCC/12",)), module("OpenMPI/4")),
        *(module("OpenMPI/4", *outer), module("OpenMPI/4", *inner)),
        module("outer/1", loads=("GCC/12", "OpenMPI/4")),
        module("inner/1", loads=("GCC/12", "CUDA/12", "OpenMPI/4")),
    )
    found = told_apart(modules)
    assert found["outer/1"].loads[-1] == variant("OpenMPI/4", outer)
    assert found["inner/1"].loads[-1] == variant("OpenMPI/4", inner)
    assert variant("OpenMPI/4", ()) in found


def test_what_a_compiler_loads_lies_in_its_own_tree_in_the_end() -> None:
    """Lmod loads the library once more, from the tree that the compiler opened."""
    libraries = (module("zlib/1"), module("zlib/1", ("gcc/12",)))
    modules = (module("gcc/12", loads=("zlib/1",)), *libraries, module("app/1", loads=("zlib/1",)))
    for those in (modules, modules[::-1]):
        found = told_apart(those)
        assert found["gcc/12"].loads == (variant("zlib/1", (("gcc/12",),)),)
        assert found["app/1"].loads == (variant("zlib/1", ()),)


def test_a_module_that_loads_other_modules_behind_others_is_several() -> None:
    zlibs = [module("zlib/1", (f"GCC/{n}",)) for n in (12, 13)]
    ways = ("GCC/12",), ("GCC/13",)
    found = told_apart([*COMPILERS, *zlibs, module("app/1", *ways, loads=("zlib/1",))])
    for n in (12, 13):
        app = found[behind("app/1", n)]
        assert (app.parents, app.loads) == (((f"GCC/{n}",),), (behind("zlib/1", n),))
    # It is one where it loads the same.
    found = told_apart([*COMPILERS, *zlibs, module("app/1", *ways, loads=("GCC/12",))])
    assert found["app/1"].parents == ways


def test_a_load_that_is_found_nowhere_yet_needs_what_opens_its_tree() -> None:
    zlibs = [module("zlib/1", (f"GCC/{n}",)) for n in (12, 13)]
    found = told_apart([*COMPILERS, *zlibs, module("app/1", loads=("zlib/1",))])
    for n in (12, 13):
        app = found[behind("app/1", n)]
        assert (app.parents, app.loads) == (((f"GCC/{n}",),), (behind("zlib/1", n),))


def test_a_circle_of_names_ends() -> None:
    modules = [
        each
        for n in (12, 13)
        for each in (
            module("a/1", (f"GCC/{n}",), loads=("b/1",) if n == 12 else ()),
            module("b/1", (f"GCC/{n}",), loads=("a/1",) if n == 13 else ()),
        )
    ]
    found = told_apart([*COMPILERS, *modules])
    assert found[behind("a/1", 12)].loads == (behind("b/1", 12),)
    assert found[behind("b/1", 13)].loads == (behind("a/1", 13),)


def test_a_chain_of_loads_is_no_matter_of_recursion() -> None:
    chain = [module(f"lib{n}/1", loads=(f"lib{n + 1}/1",)) for n in range(4000)]
    zlibs = [module("zlib/1", (f"GCC/{n}",)) for n in (12, 13)]
    found = told_apart([*COMPILERS, *zlibs, *chain])
    assert found["lib0/1"].loads == ("lib1/1",)


def test_a_conflict_is_with_all_of_a_name() -> None:
    mpis = [module("OpenMPI/4", (f"GCC/{n}",)) for n in (12, 13)]
    other = StatedModule(name="MPICH/4", conflicts=("OpenMPI/4", "GCC"))
    found = told_apart([*COMPILERS, *mpis, other])
    assert found["MPICH/4"].conflicts == (*(behind("OpenMPI/4", n) for n in (12, 13)), "GCC")
