"""The engine against a brute-force solver, on random small problems; and that solver itself.

``instances`` makes the problems: fixed seeds, which meet everything that a stack may hold, and as
many more as hypothesis draws, which makes a failing one small.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random
from time import monotonic

import oracle
import pytest
from hypothesis import HealthCheck, given, settings
from instances import (
    problems,
    random_conflicts_problem,
    random_dense_problem,
    random_hidden_problem,
    random_problem,
)

from envbuilder.resolve import engine
from envbuilder.resolve.dominance import keep
from envbuilder.resolve.engine import LimitError, Limits
from envbuilder.resolve.problem import (
    LEVELS,
    Assumption,
    Candidate,
    Change,
    FlagCase,
    RemedyOption,
    Rule,
    SolverModule,
    Stack,
    StackProblem,
    Want,
)

# Together they meet all that a stack may hold (see ``met``); further ones run when asked for.
RARE = (209, 221, 259, 273, 303, 412, 454)
SEEDS = (*range(200), *RARE)
LOTS = [
    *(pytest.param(range(start, start + 100), id=f"{start}-{start + 99}") for start in (0, 100)),
    pytest.param(RARE, id="rare"),
    *(
        pytest.param(range(start, start + 100), id=f"{start}-{start + 99}", marks=pytest.mark.long)
        for start in range(200, 1000, 100)
    ),
]

pytestmark = pytest.mark.thorough

# Of the dense and of the unsatisfiable problems.
FEWER = range(40)
FEWER_LOTS = [
    pytest.param(FEWER, id="0-39"),
    pytest.param(range(40, 120), id="40-119", marks=pytest.mark.long),
]

drawn = settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


# --- The engine ----------------------------------------------------------------------------------

# Several tests ask it of the same problems.
known_best = cache(oracle.best)


def check_best(problem: StackProblem) -> None:
    """The engine finds a stack if there is one, and it is one of the best."""
    known, found = known_best(problem), engine.solve(problem)
    assert (known is None) == (found is None), (known, found)
    if known is None or found is None:
        return
    assert oracle.mistakes(problem, found) == []
    assert found.costs == known[0]
    assert found in {replace(each, loads=found.loads) for each in known[1]}


def check_conflict(problem: StackProblem) -> None:
    """What cannot hold together cannot, and without any part of it there is a stack."""
    found = list(engine.conflicts(problem))
    assert bool(found) == (known_best(problem) is None)
    assert engine.conflict(problem) == (found[0] if found else ())
    every = oracle.assumptions(problem)
    for named in map(frozenset, found):
        assert named <= every
        assert not oracle.solvable(problem, every - named), named
        for each in sorted(named, key=str):
            assert oracle.solvable(problem, (every - named) | {each}), (each, named)
    for one, other in combinations(found, 2):
        assert all(each.is_law for each in set(one) & set(other)), found
    # Where only what is known to be bad stands in the way, each says so: the exit code is 4.
    rows = frozenset(each for each in every if each.kind == "row")
    if found and oracle.solvable(problem, rows):
        assert all(rows.intersection(one) for one in found)
    # Once all that is named is given up (a law that is no conflict by itself holds), there is one.
    named = {
        each for one in found for each in one if not each.is_law or all(law.is_law for law in one)
    }
    assert oracle.solvable(problem, frozenset(named))


def check_closest(problem: StackProblem) -> None:
    """The closest stacks are stacks once what they say is changed, the cheapest first."""
    known, found = oracle.closest(problem, 3), engine.closest(problem, 3, Limits(seconds=600))[0]
    assert len(found) >= len(known)
    for stack in found:
        assert oracle.mistakes(problem, stack) == []
    costs = [oracle.cost(stack.costs) for stack in found]
    assert costs == sorted(costs)
    for stack, (least, best) in zip(found, known, strict=False):
        assert stack.costs == least
        assert stack in {replace(each, loads=stack.loads) for each in best}
    for n, stack in enumerate(found):
        assert not any(set(each.changes) <= set(stack.changes) for each in found[:n])


CHECKS = [check_best, check_conflict, check_closest]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("lot", LOTS)
@pytest.mark.sample(3)
def test_the_engine_agrees_on_known_problems(
    check: Callable[[StackProblem], None], lot: Sequence[int]
) -> None:
    wrong = {}
    for seed in lot:
        try:
            check(random_problem(Random(seed)))
        except AssertionError as error:
            wrong[seed] = str(error)
    assert wrong == {}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("lot", FEWER_LOTS)
@pytest.mark.parametrize(
    "draw",
    [random_dense_problem, random_conflicts_problem, random_hidden_problem],
    ids=["dense", "conflicts", "hidden"],
)
@pytest.mark.sample(3)
def test_the_engine_agrees_on_problems_of_one_kind(
    check: Callable[[StackProblem], None],
    draw: Callable[[Random], StackProblem],
    lot: Sequence[int],
) -> None:
    wrong = {}
    for seed in lot:
        try:
            check(draw(Random(seed)))
        except AssertionError as error:
            wrong[seed] = str(error)
    assert wrong == {}


def test_the_dense_problems_are_folded_and_the_others_have_several_conflicts() -> None:
    dense = [random_dense_problem(Random(seed)) for seed in FEWER]
    assert sum(len(keep(each).modules) < len(each.modules) for each in dense) > 8
    assert sum(len(keep(each, relaxing=True).modules) < len(each.modules) for each in dense) > 6
    assert sum(known_best(each) is None for each in dense) > 3
    counts = Counter(
        len(list(engine.conflicts(random_conflicts_problem(Random(seed))))) for seed in FEWER
    )
    assert sum(counts[n] for n in counts if n > 1) > 16, counts


def test_what_is_hidden_changes_the_best_stack_of_some_problems() -> None:
    hidden = [random_hidden_problem(Random(seed)) for seed in FEWER]
    plain = [
        replace(each, modules=tuple(replace(module, hidden=()) for module in each.modules))
        for each in hidden
    ]
    changed = [
        known_best(one) != known_best(other) for one, other in zip(hidden, plain, strict=True)
    ]
    assert sum(changed) > 5


@drawn
@given(problems)
def test_the_engine_finds_the_best_stack(problem: StackProblem) -> None:
    check_best(problem)


@drawn
@given(problems)
def test_every_conflict_is_one_and_is_minimal(problem: StackProblem) -> None:
    check_conflict(problem)


@drawn
@given(problems)
def test_the_closest_stacks_are_the_closest(problem: StackProblem) -> None:
    check_closest(problem)


def test_what_cannot_hold_by_itself_is_named_once_and_hides_nothing() -> None:
    """A preload drags in another one of its own name; and there is a row that always holds."""
    modules = (
        SolverModule("GCC/1", "GCC"),
        SolverModule("GCC/2", "GCC", loads=("OpenMPI/1",), replaces=frozenset({"GCC/1"})),
        SolverModule("OpenMPI/1", "OpenMPI", loads=("GCC/1",)),
    )
    candidates = candidate("gcc@1", "GCC/1", rank=1), candidate("gcc@2", "GCC/2")
    wants = (want("gcc", "gcc@1", "gcc@2"),)
    always = Rule("ROW-1/0", "ROW-1", hard=True, slots=())
    problem = StackProblem(modules, candidates, wants, rules=(always,), preload=("GCC/2",))
    check_conflict(problem)
    assert list(engine.conflicts(problem)) == [
        (Assumption("law", "loading"),),
        (Assumption("row", "ROW-1"),),
    ]


# --- What the known problems meet ----------------------------------------------------------------


def features(problem: StackProblem, stack: Stack) -> Iterator[str]:
    """Yield what a stack makes use of."""
    yield from module_features(problem, stack)
    yield from candidate_features(problem, stack)
    rules = {rule.key: rule for rule in problem.rules}
    for key, remedy in stack.violated:
        kind = "hard" if rules[key].hard else "soft"
        yield f"a {kind} rule {'violated' if remedy is None else 'lifted'}"
        if rules[key].cases != (FlagCase(),):
            yield "a rule violated in a case of flags"
    yield from (f"change: {change.kind}" for change in stack.changes)


def module_features(problem: StackProblem, stack: Stack) -> Iterator[str]:
    modules = {module.name: module for module in problem.modules}
    active = [modules[name] for name in stack.final]
    seen = {
        "a module takes another one's place": stack.replaced,
        "a module has parents": any(module.parents for module in active),
        "a module of a family": any(module.families for module in active),
        "generations beside each other": len({m.generation for m in active} - {None}) > 1,
        "a module for building only": any(module.build_only for module in active),
        "a preload": problem.preload,
        "an addition": dict(stack.costs)["additions"] != (0,),
        "several loads": len(stack.loads) > len(problem.preload) + 1,
    }
    yield from (feature for feature, there in seen.items() if there)


def candidate_features(problem: StackProblem, stack: Stack) -> Iterator[str]:
    candidates = {each.id: each for each in problem.candidates}
    used = [candidates[k] for _, k in stack.used]
    there = {each.id for each in candidates.values() if each.module in stack.final}
    python = any(each.component == "python" for each in used)
    seen = {
        "a fitting Python": python and any(each.pythons is not None for each in used),
        "a shadowed candidate": there - set(stack.effective),
        "a virtual": any(want.component == "mpi" for want in problem.wants),
        "an optional component": set(stack.effective) - there - {each.id for each in used},
        "a candidate that a better one stands for": (
            len(keep(problem).candidates) < len(candidates)
        ),
    }
    yield from (feature for feature, there in seen.items() if there)


@cache
def met() -> tuple[Counter[str], Counter[str]]:
    """Count what the best stacks of the known problems meet, and what their conflicts name."""
    stacks: Counter[str] = Counter()
    conflicts: Counter[str] = Counter()
    for seed in SEEDS:
        problem = random_problem(Random(seed))
        best = known_best(problem)
        for _, found in [best] if best else oracle.closest(problem, 1):
            stacks.update(set(features(problem, min(found, key=repr))))
        if best is None:
            for each in oracle.assumptions(problem):
                if oracle.solvable(problem, frozenset({each})):
                    conflicts[str(each).partition(":")[0]] += 1
                    conflicts["law:provider"] += each.kind == "provider"
                    conflicts[str(each)] += each.kind == "law"
    return stacks, conflicts


@pytest.mark.parametrize(
    "feature",
    [
        "a module takes another one's place",
        "a module has parents",
        "a module of a family",
        "generations beside each other",
        "a module for building only",
        "a preload",
        "an addition",
        "a fitting Python",
        "a shadowed candidate",
        "a virtual",
        "a soft rule violated",
        "a soft rule lifted",
        "a hard rule lifted",
        "a rule violated in a case of flags",
        "an optional component",
        "a candidate that a better one stands for",
        "several loads",
        "change: widen",
        "change: flag",
        "change: drop",
        "change: waive",
        "change: add",
    ],
)
@pytest.mark.sample(8)
def test_the_best_of_the_known_problems_has(feature: str) -> None:
    # An addition is the best change only where a rule lacks just that.
    assert met()[0][feature] >= (1 if feature == "change: add" else 3)


@pytest.mark.parametrize(
    "what",
    ["line", "implied", "row", "flag", "fit"]
    + [f"law:{law}" for law in ("generations", "provider", "replaces", "loading")],
)
def test_leaving_this_out_alone_helps_some_of_the_known_problems(what: str) -> None:
    assert met()[1][what] >= 1


def test_grounding_ends_at_the_limit() -> None:
    problem = random_problem(Random(0))
    program = engine._Program(problem, Limits(seconds=0.5), objective=False)
    start = monotonic()
    with pytest.raises(LimitError, match="no answer after 0.5 s"):
        # Without an end it would take some seconds.
        program.add("p(1..500). q :- p(X), p(Y), p(Z), X * Y * Z < 0.")
    assert monotonic() - start < 2


# Holds some memory and starts another Python, which would begin with its ru_maxrss.
FAT = """
import subprocess, sys
held = b"x" * (400 * 2**20)
words = [sys.executable, "-c", sys.argv[1]]
sys.exit(subprocess.run(words).returncode)
"""


@pytest.mark.parametrize(("megabytes", "code"), [(200, 0), (2, 1)])
def test_memory_of_the_process_that_started_this_one_does_not_count(
    megabytes: int, code: int
) -> None:
    check = f"from envbuilder.resolve.engine import Limits; Limits(megabytes={megabytes}).check()"
    done = subprocess.run([sys.executable, "-c", FAT, check], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert ("no answer within 2 MB" in done.stderr) == (code == 1)


# --- The oracle itself ---------------------------------------------------------------------------

OLD_MPI, MPI = "OpenMPI/3.1.1-gcccuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b"
NCCL, TOOLCHAIN = "NCCL/2.3.7-fosscuda-2018b", "fosscuda/2018b"


def candidate(name: str, module: str | None = None, **more: object) -> Candidate:
    """Return the candidate of openmpi@3.1.1 or the like; its rank is 0."""
    component, _, version = name.partition("@")
    origin = "module" if module else "pip"
    values = {"origin": origin, "locator": module or component, "rank": 0, "module": module}
    return Candidate(id=name, component=component, version=version, **{**values, **more})  # type: ignore[arg-type]


def want(component: str, *allowed: str, **more: object) -> Want:
    return Want(Assumption("line", component), component, frozenset(allowed), **more)  # type: ignore[arg-type]


def dragged(*wants: Want, **more: object) -> StackProblem:
    """NCCL's toolchain brings an Open MPI; there is a newer one of the same generation."""
    modules = (
        SolverModule(OLD_MPI, "OpenMPI", generation="2018b"),
        SolverModule(MPI, "OpenMPI", replaces=frozenset({OLD_MPI}), generation="2018b"),
        SolverModule(TOOLCHAIN, "fosscuda", loads=(OLD_MPI,), generation="2018b"),
        SolverModule(NCCL, "NCCL", loads=(TOOLCHAIN,), generation="2018b"),
    )
    mpi = frozenset({"mpi"})
    candidates = (
        candidate("openmpi@3.1.1", OLD_MPI, rank=1, roles=mpi),
        candidate("openmpi@3.1.4", MPI, roles=mpi),
        candidate("nccl@2.3.7", NCCL),
    )
    values = {"modules": modules, "candidates": candidates, "wants": wants, "preferred": "2018b"}
    return StackProblem(**{**values, **more})  # type: ignore[arg-type]


def the_best(problem: StackProblem) -> Stack:
    found = oracle.best(problem)
    assert found is not None
    assert len(found[1]) == 1
    return next(iter(found[1]))


def by_level(**numbers: int) -> dict[str, tuple[int, ...]]:
    return {level: (numbers.get(level, 0),) for level in LEVELS if level != "newest"}


def test_what_a_toolchain_drags_in_is_used_if_nothing_speaks_against_it() -> None:
    stack = the_best(dragged(want("nccl", "nccl@2.3.7")))
    assert stack.loads == (NCCL,)
    assert stack.final == tuple(sorted([NCCL, TOOLCHAIN, OLD_MPI]))
    assert stack.used == ((Assumption("line", "nccl"), "nccl@2.3.7"),)
    assert stack.effective == ("nccl@2.3.7", "openmpi@3.1.1")
    # NCCL's is the first of four names in text order.
    costs = dict(stack.costs)
    assert costs.pop("newest") == (0,)
    assert costs == by_level(generations=1, loads=1)


def test_a_wanted_mpi_takes_the_place_of_the_one_that_is_dragged_in() -> None:
    wants = want("nccl", "nccl@2.3.7"), want("openmpi", "openmpi@3.1.4")
    stack = the_best(dragged(*wants))
    assert stack.loads == (NCCL, MPI)
    assert stack.replaced == ((OLD_MPI, MPI),)
    assert stack.final == tuple(sorted([NCCL, TOOLCHAIN, MPI]))
    costs = dict(stack.costs)
    assert costs.pop("newest") == (0, 0)
    assert costs == by_level(warnings=1, generations=1, loads=2, names=2)


def test_a_swap_that_costs_a_warning_is_worse_than_an_older_release() -> None:
    wants = want("nccl", "nccl@2.3.7"), want("mpi", "openmpi@3.1.1", "openmpi@3.1.4")
    stack = the_best(dragged(*wants))
    assert dict(stack.used)[Assumption("line", "mpi")] == "openmpi@3.1.1"
    assert dict(stack.costs)["newest"] == (0, 1)


def test_a_known_bad_release_is_avoided_by_an_addition() -> None:
    bad = Rule("OMPI-004", "OMPI-004", hard=True, slots=(frozenset({"openmpi@3.1.1"}),))
    stack = the_best(dragged(want("nccl", "nccl@2.3.7"), rules=(bad,)))
    assert stack.loads == (NCCL, MPI)
    assert stack.violated == ()
    assert dict(stack.costs)["additions"] == (1,)


def test_a_remedy_lifts_a_hard_rule_where_it_helps() -> None:
    bad = Rule(
        "OMPI-004",
        "OMPI-004",
        hard=True,
        slots=(frozenset({"openmpi@3.1.1"}),),
        remedies=(
            RemedyOption("only for 3.1.4", helps=frozenset({"openmpi@3.1.4"})),
            RemedyOption("a patch", helps=frozenset({"openmpi@3.1.1"})),
        ),
    )
    stack = the_best(dragged(want("nccl", "nccl@2.3.7"), rules=(bad,)))
    assert stack.loads == (NCCL,)
    assert stack.violated == (("OMPI-004", "a patch"),)
    assert dict(stack.costs)["remedies"] == (1,)


def test_what_is_in_the_way_can_be_left_out() -> None:
    wants = want("nccl", "nccl@2.3.7"), want("openmpi", "openmpi@3.1.4")
    problem = dragged(*wants)
    stays = replace(problem.modules[1], replaces=frozenset())
    problem = replace(problem, modules=(problem.modules[0], stays, *problem.modules[2:]))
    assert oracle.best(problem) is None
    assert not oracle.solvable(problem)
    for each in (wants[0].ref, wants[1].ref, Assumption("law", "replaces")):
        assert oracle.solvable(problem, frozenset({each})), each
    for each in (
        Assumption("law", "generations"),
        Assumption("provider", "mpi"),
        Assumption("law", "loading"),
    ):
        assert not oracle.solvable(problem, frozenset({each})), each


def test_the_closest_stack_is_the_cheapest_change() -> None:
    wants = (
        want("nccl", "nccl@2.3.7", can_drop=True),
        want("openmpi", distance=(("openmpi@3.1.1", 2), ("openmpi@3.1.4", 1))),
    )
    ((costs, found), *_) = oracle.closest(dragged(*wants), 1)
    assert [each.changes for each in found] == [(Change("widen", Assumption("line", "openmpi")),)]
    assert [dict(each.used)[Assumption("line", "openmpi")] for each in found] == ["openmpi@3.1.4"]
    assert dict(costs)["changes"] == (10,)
    assert dict(costs)["distance"] == (1,)


def test_a_second_provider_of_a_role_is_refused_unless_it_is_shadowed() -> None:
    spectrum = SolverModule("SpectrumMPI/10", "SpectrumMPI")
    other = candidate("spectrum-mpi@10", spectrum.name, roles=frozenset({"mpi"}))
    wants = want("nccl", "nccl@2.3.7"), want("spectrum-mpi", "spectrum-mpi@10")
    problem = dragged(*wants)
    problem = replace(problem, modules=(*problem.modules, spectrum))
    both = replace(problem, candidates=(*problem.candidates, other))
    assert oracle.best(both) is None
    assert oracle.solvable(both, frozenset({Assumption("provider", "mpi")}))
    shadowable = [each._replace(shadowable=True) for each in problem.candidates[:1]]
    hidden = replace(problem, candidates=(*shadowable, *problem.candidates[1:], other))
    assert the_best(hidden).effective == ("nccl@2.3.7", "spectrum-mpi@10")


def test_a_wheel_fits_the_python_that_is_used() -> None:
    wheel = candidate("torch@1", pythons=frozenset({"python@3.6"}))
    pythons = [candidate("python@3.6", rank=1), candidate("python@3.7")]
    wants = want("torch", "torch@1"), want("python", "python@3.6", "python@3.7")
    problem = StackProblem(candidates=(wheel, *pythons), wants=wants)
    assert dict(the_best(problem).used)[Assumption("line", "python")] == "python@3.6"
    newest = replace(
        problem, wants=(wants[0], replace(wants[1], allowed=frozenset({"python@3.7"})))
    )
    assert oracle.best(newest) is None
    assert oracle.solvable(newest, frozenset({Assumption("fit", "torch")}))


def test_mistakes_of_a_stack_are_found() -> None:
    wants = want("nccl", "nccl@2.3.7"), want("openmpi", "openmpi@3.1.4")
    problem = dragged(*wants)
    stack = the_best(problem)
    assert oracle.mistakes(problem, stack) == []
    for wrong in (
        replace(stack, loads=(MPI, NCCL)),
        replace(stack, loads=(NCCL,)),
        replace(stack, final=(NCCL, TOOLCHAIN)),
        replace(stack, replaced=()),
        replace(
            stack,
            used=(
                (Assumption("line", "nccl"), "nccl@2.3.7"),
                (Assumption("line", "openmpi"), "openmpi@3.1.1"),
            ),
        ),
        replace(stack, effective=("nccl@2.3.7",)),
        replace(stack, violated=(("OMPI-004", None),)),
        replace(stack, costs=()),
        replace(stack, changes=(Change("drop", Assumption("line", "nccl")),)),
    ):
        assert oracle.mistakes(problem, wrong) != []
