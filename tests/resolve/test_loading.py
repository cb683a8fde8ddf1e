"""Loading as ``resolve.loading`` has it; that Lmod does the same is for the integration tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import problems

from envbuilder.machine.modules.variants import variant
from envbuilder.resolve.loading import Action, LoadError, order
from envbuilder.resolve.problem import SolverModule, StackProblem
from tests.module_simulator import simulate

pytestmark = pytest.mark.thorough

OLD_MPI, MPI = "OpenMPI/3.1.1-gcccuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b"
NCCL, TOOLCHAIN, COMPILER = "NCCL/2.3.7-fosscuda-2018b", "fosscuda/2018b", "gcccuda/2018b"


def tree(*modules: SolverModule) -> dict[str, SolverModule]:
    return {module.name: module for module in modules}


def module(name: str, *loads: str, **more: object) -> SolverModule:
    return SolverModule(name, name.partition("/")[0], loads=loads, **more)  # type: ignore[arg-type]


def actions(*words: str) -> list[Action]:
    """Return loads, and an unload where a word starts with a minus."""
    return [("unload", word[1:]) if word[0] == "-" else ("load", word) for word in words]


# As EasyBuild writes them: a module conflicts with its own name.
TAURUS = tree(
    module(COMPILER),
    module(OLD_MPI, COMPILER, conflicts=("OpenMPI",)),
    module(MPI, COMPILER, conflicts=("OpenMPI",)),
    module(TOOLCHAIN, COMPILER, OLD_MPI),
    module(NCCL, TOOLCHAIN),
    module("SpectrumMPI/10", families=("mpi",)),
    module("MVAPICH2/2", COMPILER, families=("mpi",)),
    module("cuDNN/7", conflicts=("OpenMPI/3.1.4-gcccuda-2018b", "SpectrumMPI")),
)

HIERARCHY = tree(
    module("GCC/10", "zlib/1"),
    module("GCC/11"),
    module("zlib/1"),
    module("OpenMPI/4", parents=(("GCC/10",), ("GCC/11",))),
    module("Horovod/1", parents=(("GCC/10", "OpenMPI/4"),)),
    module("both/1", "GCC/10", "OpenMPI/4"),
)


@pytest.mark.parametrize("autoswap", [True, False])
@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ([], []),
        ([NCCL], [COMPILER, OLD_MPI, TOOLCHAIN, NCCL]),
        # What was loaded before is not loaded again, and keeps its place.
        ([OLD_MPI, NCCL], [COMPILER, OLD_MPI, TOOLCHAIN, NCCL]),
        # Unless it is asked for: then it comes last.
        ([NCCL, OLD_MPI], [COMPILER, TOOLCHAIN, NCCL, OLD_MPI]),
        # Unloading leaves what the module loaded, and what loaded it.
        ([NCCL, f"-{TOOLCHAIN}"], [COMPILER, OLD_MPI, NCCL]),
        ([NCCL, f"-{MPI}", "-cuDNN/7"], [COMPILER, OLD_MPI, TOOLCHAIN, NCCL]),
        ([NCCL, f"-{OLD_MPI}", MPI], [COMPILER, TOOLCHAIN, NCCL, MPI]),
        # A family swaps in either mode; what the other one loaded stays.
        (["MVAPICH2/2", "SpectrumMPI/10"], [COMPILER, "SpectrumMPI/10"]),
        (["SpectrumMPI/10", "MVAPICH2/2"], [COMPILER, "MVAPICH2/2"]),
        # Only the module that is being loaded says what it conflicts with.
        (["cuDNN/7", "SpectrumMPI/10"], ["cuDNN/7", "SpectrumMPI/10"]),
        (["cuDNN/7", MPI], ["cuDNN/7", COMPILER, MPI]),
        ([OLD_MPI, "cuDNN/7"], [COMPILER, OLD_MPI, "cuDNN/7"]),
    ],
)
def test_what_is_loaded_in_the_end(words: list[str], loaded: list[str], autoswap: bool) -> None:
    assert simulate(TAURUS, actions(*words), autoswap) == tuple(loaded)


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ([NCCL, MPI], (COMPILER, TOOLCHAIN, NCCL, MPI)),
        # The order of the documents: the toolchain puts its own MPI in the place of the chosen one.
        ([MPI, NCCL], (COMPILER, OLD_MPI, TOOLCHAIN, NCCL)),
        # So does a module that is loaded once more.
        ([NCCL, f"-{OLD_MPI}", MPI, TOOLCHAIN], (COMPILER, NCCL, OLD_MPI, TOOLCHAIN)),
    ],
)
def test_a_module_of_the_name_is_swapped_where_that_is_on(
    words: list[str], loaded: tuple[str, ...]
) -> None:
    assert simulate(TAURUS, actions(*words)) == loaded
    with pytest.raises(LoadError, match=OLD_MPI):
        simulate(TAURUS, actions(*words), autoswap=False)


@pytest.mark.parametrize("autoswap", [True, False])
@pytest.mark.parametrize(
    ("modules", "words", "says"),
    [
        (TAURUS, ["SpectrumMPI/10", "cuDNN/7"], "cuDNN/7 .* SpectrumMPI/10"),
        (TAURUS, [MPI, "cuDNN/7"], f"cuDNN/7 .* {MPI}"),
        (TAURUS, ["cuDNN/8"], "no module cuDNN/8"),
        (tree(module("a/1", "b/1")), ["a/1"], "no module b/1"),
        (HIERARCHY, ["OpenMPI/4"], "OpenMPI/4 .* before GCC/10"),
        (HIERARCHY, ["GCC/11", "OpenMPI/4", "Horovod/1"], "Horovod/1 .* before GCC/10"),
        (HIERARCHY, ["both/1", "-GCC/10"], "OpenMPI/4 .* without GCC/10"),
        (HIERARCHY, ["GCC/10", "OpenMPI/4", "GCC/10"], "OpenMPI/4 .* without GCC/10"),
        (
            tree(module("a/1", "b/1", families=("f",)), module("b/1", families=("f",))),
            ["a/1"],
            "a/1 .* own family",
        ),
        # Lmod 8.6 loads them without end, until its stack is full.
        (
            tree(
                *(module("a/1", families=("f",)), module("a/2", "b/1", families=("f",))),
                *(module("b/1", "c/1", families=("f",)), module("c/1", "a/1")),
            ),
            ["a/2"],
            "a/2 loads unloads",
        ),
    ],
)
def test_what_fails_in_either_mode(
    modules: Mapping[str, SolverModule], words: list[str], says: str, autoswap: bool
) -> None:
    with pytest.raises(LoadError, match=says):
        simulate(modules, actions(*words), autoswap)


def test_parents_open_what_is_below_them() -> None:
    wanted = actions("both/1", "Horovod/1")
    loaded = ("zlib/1", "GCC/10", "OpenMPI/4", "both/1", "Horovod/1")
    assert simulate(HIERARCHY, wanted) == loaded
    swapped = actions("GCC/10", "OpenMPI/4", "-OpenMPI/4", "GCC/11", "OpenMPI/4")
    assert simulate(HIERARCHY, swapped) == ("zlib/1", "GCC/11", "OpenMPI/4")


def test_a_circle_of_loads_ends() -> None:
    modules = tree(module("a/1", "b/1"), module("b/1", "a/1"))
    assert simulate(modules, actions("a/1")) == ("b/1", "a/1")


# --- Order ---------------------------------------------------------------------------------------


def brought(modules: Mapping[str, SolverModule], names: Iterable[str]) -> frozenset[str]:
    found = frozenset(names)
    while more := found.union(*(modules[name].loads for name in found)) - found:
        found |= more
    return found


def planned(
    modules: Mapping[str, SolverModule], loads: Iterable[str]
) -> tuple[frozenset[str], dict[str, str]]:
    """Return what is to be loaded at the end, and what takes whose place: the explicit ones."""
    touched = brought(modules, loads)
    chosen = {modules[name].key: name for name in (*sorted(touched), *loads)}
    replaced = {
        name: chosen[modules[name].key] for name in touched if chosen[modules[name].key] != name
    }
    return touched - frozenset(replaced), replaced


def ordered(
    modules: Mapping[str, SolverModule], loads: Sequence[str], preload: tuple[str, ...] = ()
) -> tuple[Action, ...] | None:
    final, replaced = planned(modules, (*preload, *loads))
    return order(modules, frozenset(loads) | frozenset(preload), preload, final, replaced)


def test_what_brings_the_other_mpi_comes_first_and_a_swap_is_written_out() -> None:
    assert ordered(TAURUS, [MPI, NCCL]) == tuple(actions(NCCL, f"-{OLD_MPI}", MPI))


def test_an_order_that_fails_later_is_given_up() -> None:
    # After NCCL the MPI is next in text order, and then cuDNN would not be loaded beside it.
    words = ordered(TAURUS, [MPI, NCCL, "cuDNN/7"])
    assert words == tuple(actions(NCCL, "cuDNN/7", f"-{OLD_MPI}", MPI))


def test_text_order_where_nothing_speaks_against_it() -> None:
    modules = tree(*(module(f"{name}/1") for name in "dbca"))
    assert ordered(modules, sorted(modules)) == tuple(actions("a/1", "b/1", "c/1", "d/1"))
    assert ordered(modules, sorted(modules), ("c/1", "b/1")) == tuple(
        actions("c/1", "b/1", "a/1", "d/1")
    )


def test_nothing_is_loaded_twice_if_that_can_be_avoided() -> None:
    modules = tree(module("a/1", "b/1"), module("b/1"))
    assert ordered(modules, ["a/1", "b/1"]) == tuple(actions("b/1", "a/1"))
    # The preload brings it: it is loaded once more then.
    assert ordered(modules, ["b/1"], ("a/1",)) == tuple(actions("a/1", "b/1"))


def test_parents_come_before_what_they_open() -> None:
    words = ordered(HIERARCHY, ["Horovod/1", "OpenMPI/4", "GCC/10"])
    assert words == tuple(actions("GCC/10", "OpenMPI/4", "Horovod/1"))


def test_a_preload_that_takes_a_place_has_no_order() -> None:
    assert ordered(TAURUS, [NCCL], (MPI,)) is None


def test_two_that_bring_different_ones_of_a_name_have_no_order() -> None:
    modules = tree(
        *(module(f"MPI/{number}") for number in (1, 2, 3)),
        module("a/1", "MPI/1"),
        module("b/1", "MPI/2"),
    )
    assert ordered(modules, ["a/1", "b/1", "MPI/3"]) is None
    # With one of them it works.
    assert ordered(modules, ["a/1", "MPI/3"]) == tuple(actions("a/1", "-MPI/1", "MPI/3"))


def test_what_conflicts_with_a_module_that_goes_comes_after_that() -> None:
    modules = tree(
        module("MPI/1"),
        module("MPI/2"),
        module("a/1", conflicts=("MPI/1",)),
        module("b/1", "MPI/1"),
    )
    words = ordered(modules, ["a/1", "b/1", "MPI/2"])
    # In text order a/1 comes first: only its own loading asks for its conflicts.
    assert words == tuple(actions("a/1", "b/1", "-MPI/1", "MPI/2"))
    last = tree(*modules.values(), module("b/1", "MPI/1", conflicts=("a",)))
    assert ordered(last, ["a/1", "b/1", "MPI/2"]) == tuple(actions("b/1", "-MPI/1", "MPI/2", "a/1"))


def test_twenty_loads_of_a_deep_tree() -> None:
    generations = ("1", "2")
    chains = [
        module(f"lib{n}/{g}", *([f"lib{n - 1}/{g}"] if n else [f"tool/{g}"]))
        for g in generations
        for n in range(40)
    ]
    tools = [module(f"tool/{g}", f"MPI/{g}") for g in generations]
    modules = tree(*chains, *tools, module("MPI/1"), module("MPI/2"), module("MPI/3"))
    loads = [*(f"lib{n}/1" for n in range(2, 40, 2)), "MPI/3"]
    assert len(loads) == 20
    words = ordered(modules, loads)
    assert words is not None
    final, _ = planned(modules, loads)
    assert frozenset(simulate(modules, words, autoswap=False)) == final
    # Each brings the ones before it, so none is loaded twice: two actions for the swap.
    assert len(words) == 21
    # And none where it cannot be: one of the other generation is wanted beside them.
    assert ordered(modules, [*loads, "lib30/2"]) is None


def every_order(
    problem: StackProblem, loads: frozenset[str], final: frozenset[str], replaced: Mapping[str, str]
) -> list[tuple[Action, ...]]:
    """Return all orders that end as planned, found by trying each."""
    modules = {each.name: each for each in problem.modules}
    found = []
    for names in permutations(sorted(loads - frozenset(problem.preload))):
        words: list[Action] = []
        try:
            for name in (*problem.preload, *names):
                there = simulate(modules, words)
                gone = sorted(old for old, new in replaced.items() if new == name and old in there)
                words += [*(("unload", old) for old in gone), ("load", name)]
            ends = [frozenset(simulate(modules, words, autoswap)) for autoswap in (True, False)]
        except LoadError:
            continue
        if ends == [final, final]:
            found.append(tuple(words))
    return found


@settings(max_examples=300)
@given(problems, st.data())
@pytest.mark.long
def test_there_is_an_order_if_some_order_ends_as_planned(
    problem: StackProblem, data: st.DataObject
) -> None:
    modules = {each.name: each for each in problem.modules}
    names = data.draw(st.sets(st.sampled_from(sorted(modules)), max_size=4))
    loads = {modules[name].key: name for name in sorted(names)}
    loads |= {modules[name].key: name for name in problem.preload}
    explicit = frozenset(loads.values())
    final, replaced = planned(modules, sorted(explicit))
    words = order(modules, explicit, problem.preload, final, replaced)
    known = every_order(problem, explicit, final, replaced)
    assert (words is None) == (known == [])
    assert words is None or words in known


@pytest.mark.long
def test_a_chain_of_loads_is_no_matter_of_recursion() -> None:
    chain = {
        f"lib{n}/1": SolverModule(
            f"lib{n}/1", f"lib{n}", loads=(f"lib{n + 1}/1",) if n < 4999 else ()
        )
        for n in range(5000)
    }
    found = order(chain, frozenset({"lib0/1"}), (), frozenset(chain), {})
    assert found == (("load", "lib0/1"),)


def test_a_module_is_not_loaded_where_its_name_means_another_one() -> None:
    plain, cuda = (variant("OpenMPI/4", (each,)) for each in (("GCC/12",), ("GCC/12", "CUDA/12")))
    modules = tree(
        module("GCC/12"),
        module("CUDA/12", parents=(("GCC/12",),)),
        module(plain, parents=(("GCC/12",),), hidden=(("GCC/12", "CUDA/12"),)),
        module(cuda, parents=(("GCC/12", "CUDA/12"),)),
    )
    assert simulate(modules, actions("GCC/12", plain)) == ("GCC/12", plain)
    assert simulate(modules, actions("GCC/12", "CUDA/12", cuda)) == ("GCC/12", "CUDA/12", cuda)
    # Lmod would load the other one; the second time it would put it in the place of the first.
    for words in (("GCC/12", "CUDA/12", plain), ("GCC/12", plain, "CUDA/12")):
        with pytest.raises(LoadError, match=plain):
            simulate(modules, actions(*words))
    assert ordered(modules, ["GCC/12", "CUDA/12", plain]) is None


def test_a_module_may_load_from_the_tree_that_it_opens() -> None:
    modules = tree(module("GCC/12", "settings/1"), module("settings/1", parents=(("GCC/12",),)))
    assert simulate(modules, actions("GCC/12")) == ("settings/1", "GCC/12")
