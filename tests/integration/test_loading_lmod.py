"""What ``resolve.loading`` says of loading modules, against Lmod itself.

Random small trees of modulefiles that load each other as EasyBuild's do, in each of them random
actions and orders that were worked out, with Lmod's swapping of modules of a name on and off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest
from module_tools import in_lmod

from envbuilder.resolve.loading import Action, LoadError, order
from envbuilder.resolve.problem import SolverModule
from tests.module_simulator import simulate

Modules = Mapping[str, SolverModule]

# Those of a run meet all that they are meant to; further ones when asked for.
SEEDS = (1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 16, 18)
FURTHER = sorted({*range(40)} - {*SEEDS})
LOTS = [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in FURTHER)]
TREES = Path(__file__).with_name("trees")

# What Lmod says where it took modules away, or loaded them once more, because trees came or went.
MOVED = ("Inactive Modules", "MODULEPATH changes", "Activating Modules")


# --- Random trees --------------------------------------------------------------------------------


def random_modules(random: Random) -> dict[str, SolverModule]:
    """Return some modules of a few names; each loads only such as come before it."""
    modules: dict[str, SolverModule] = {}
    keys = random.sample(["Cc", "Cuda", "Mpi", "Smpi", "Tool", "Nccl", "Py", "Make"], 5)
    for _ in range(random.randint(5, 11)):
        key = random.choice(keys)
        name = f"{key}/{sum(each.key == key for each in modules.values()) + 1}"
        before = [each for each in modules if modules[each].key != key]
        modules[name] = SolverModule(
            name=name,
            key=key,
            loads=tuple(random.sample(before, min(len(before), random.choice([0, 1, 1, 2, 3])))),
            parents=random_parents(random, modules, before),
            conflicts=random_conflicts(random, [*modules, *keys], key),
            families=("mpi",) if key in ("Mpi", "Smpi") else (),
        )
    return modules


def random_parents(
    random: Random, modules: Modules, before: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Return alternatives, each a way down a hierarchy to the module that opens the last tree.

    They differ in the version of something, so that one of them is loaded at a time: a module that
    two open trees offer is loaded from the one that Lmod found first, which names do not tell.
    """
    if not before or random.random() < 0.75:
        return ()
    opener = modules[random.choice(before)]
    ways = [
        (*above, name)
        for name in before
        if modules[name].key == opener.key
        for above in modules[name].parents or ((),)
    ]
    return tuple(random.sample(ways, min(len(ways), 2)))


def random_conflicts(random: Random, names: Sequence[str], key: str) -> tuple[str, ...]:
    # EasyBuild's modules conflict with their own name, which swapping comes before.
    own = (key,) if random.random() < 0.5 else ()
    return (*own, random.choice(names)) if random.random() < 0.15 else own


def loads_own_name(modules: Modules, name: str) -> bool:
    """Whether what a module loads is of its own name, or of its family: no tree has that."""
    module = modules[name]
    below = [modules[each] for each in closure(modules, name) if each != name]
    return any(
        each.key == module.key or set(each.families) & set(module.families) for each in below
    )


def closure(modules: Modules, name: str) -> frozenset[str]:
    found = frozenset({name})
    for each in modules[name].loads:
        found |= closure(modules, each)
    return found


def sensible(random: Random) -> dict[str, SolverModule]:
    """Return modules none of which loads one of its own name or family."""
    modules = random_modules(random)
    for name in list(modules):
        if loads_own_name(modules, name):
            modules[name] = replace(modules[name], loads=())
    return modules


def random_actions(random: Random, modules: Modules) -> list[Action]:
    """Return some loads and a few unloads."""
    names = sorted(modules)
    return [
        ("unload" if random.random() < 0.2 else "load", random.choice(names))
        for _ in range(random.randint(2, 5))
    ]


@dataclass(frozen=True)
class Planned:
    """Loads with what is to be there at the end, as the solver would ask for it."""

    loads: frozenset[str]
    preload: tuple[str, ...]
    final: frozenset[str]
    replaced: Mapping[str, str]

    def actions(self, modules: Modules) -> tuple[Action, ...] | None:
        return order(modules, self.loads, self.preload, self.final, self.replaced)


def planned(modules: Modules, loads: Sequence[str], preload: tuple[str, ...] = ()) -> Planned:
    """Of each name the module stays that is loaded explicitly, where there are several."""
    touched = frozenset().union(*(closure(modules, name) for name in (*preload, *loads)))
    chosen = {modules[name].key: name for name in (*sorted(touched), *preload, *loads)}
    replaced = {
        name: chosen[modules[name].key] for name in touched if chosen[modules[name].key] != name
    }
    final = touched - frozenset(replaced)
    return Planned(frozenset(loads) | frozenset(preload), preload, final, replaced)


def random_planned(random: Random, modules: Modules) -> Planned:
    names = sorted(modules)
    one_of_each = {modules[name].key: name for name in random.sample(names, min(len(names), 4))}
    loads = sorted(one_of_each.values())
    preload = (loads.pop(),) if random.random() < 0.3 and len(loads) > 1 else ()
    return planned(modules, loads, preload)


# --- Modulefiles ---------------------------------------------------------------------------------


def write_tree(folder: Path, modules: Modules) -> Path:
    """Write the modulefiles; return the folder in which nothing needs to be loaded first."""
    for module in modules.values():
        for way in module.parents or ((),):
            # What a module opens is another folder in each of its own.
            opens = folder / tree_of((*way, module.name))
            opens.mkdir(parents=True, exist_ok=True)
            path = folder / tree_of(way) / f"{module.name}.lua"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(modulefile(module, opens), encoding="utf-8")
    return folder / tree_of(())


def tree_of(way: Sequence[str]) -> str:
    return "-".join(["tree", *(name.replace("/", "_") for name in way)])


def modulefile(module: SolverModule, opens: Path) -> str:
    lines = [
        *(f'conflict("{each}")' for each in module.conflicts),
        *(f'if not ( isloaded("{e}") ) then\n    load("{e}")\nend' for e in module.loads),
        *(f'family("{each}")' for each in module.families),
        f'prepend_path("MODULEPATH", "{opens}")',
        f'setenv("EBROOT{module.key.upper()}", "/apps/{module.name}")',
    ]
    return "".join(f"{line}\n" for line in lines)


# --- Lmod ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """Actions carried out by Lmod: did each work, what it said, what is loaded at the end."""

    worked: tuple[bool, ...]
    said: str
    loaded: tuple[str, ...]


def lmod_runs(
    folder: Path, core: Path, sequences: Sequence[tuple[Sequence[Action], bool]]
) -> list[Run]:
    """Carry out each sequence of actions, each in a process of its own of one shell."""
    lines = []
    for actions, autoswap in sequences:
        lines += ["echo '=== sequence'", "(", f"export MODULEPATH={core}"]
        lines += [f"export LMOD_DISABLE_SAME_NAME_AUTOSWAP={'no' if autoswap else 'yes'}"]
        for kind, name in actions:
            lines += [f"module {kind} {name} 2>&1; echo === $?"]
        lines += ["echo '=== list'", "module -t list 2>&1", ")"]
    done = in_lmod("bash", lines, folder)
    assert done.code == 0, done.text
    return [read_run(part) for part in done.out.split("=== sequence\n")[1:]]


def read_run(text: str) -> Run:
    before, _, listed = text.partition("=== list\n")
    worked = tuple(code == "0" for code in re.findall(r"^=== (\d+)$", before, re.MULTILINE))
    # An empty list is "No modules loaded", or nothing where there are inactive modules.
    loaded = tuple(line for line in listed.split("\n") if "/" in line)
    return Run(worked, before, loaded)


@dataclass(frozen=True)
class Expected:
    """What ``simulate`` says: all actions work, or the last one of these does not."""

    actions: tuple[Action, ...]
    loaded: tuple[str, ...] | None
    error: str = ""


def expected(modules: Modules, actions: Sequence[Action], autoswap: bool) -> Expected:
    for count in range(1, len(actions) + 1):
        try:
            loaded = simulate(modules, actions[:count], autoswap)
        except LoadError as error:
            return Expected(tuple(actions[:count]), None, str(error))
    return Expected(tuple(actions), loaded)


def passed_over(error: str, run: Run) -> bool:
    """Whether this is an error that Lmod may not speak of.

    What opens a tree went and came back in one load; or what is not found is of the name of
    another module that the same load brings.
    """
    gone = re.search(r"is no longer found without (\S+)$", error)
    hidden = re.match(r"(\S+)/\S+ is not found", error)
    return bool(
        (gone and gone[1] in run.loaded)
        or (hidden and any(name.startswith(f"{hidden[1]}/") for name in run.loaded))
    )


def assert_same(expected: Expected, run: Run, about: object) -> None:
    moved = any(words in run.said for words in MOVED)
    if expected.loaded is None:
        assert all(run.worked[:-1]), about
        assert moved or passed_over(expected.error, run) or not run.worked[-1], (about, expected)
        return
    assert all(run.worked), about
    assert not moved, about
    assert run.loaded == expected.loaded, about


@pytest.mark.parametrize("seed", LOTS)
@pytest.mark.sample(3)
def test_lmod_loads_what_was_said(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    modules = sensible(random)
    wanted = [random_actions(random, modules) for _ in range(2)]
    asked = [(actions, autoswap) for actions in wanted for autoswap in (True, False)]
    said = [expected(modules, actions, autoswap) for actions, autoswap in asked]
    tried = [(each.actions, swap) for each, (_, swap) in zip(said, asked, strict=True)]
    runs = lmod_runs(tmp_path, write_tree(tmp_path, modules), tried)
    for one, run, (_, autoswap) in zip(said, runs, asked, strict=True):
        assert_same(one, run, (modules, one.actions, autoswap, run))


@pytest.mark.parametrize("seed", LOTS)
@pytest.mark.sample(3)
def test_lmod_ends_as_planned_in_the_order_that_was_worked_out(seed: int, tmp_path: Path) -> None:
    random = Random(1000 + seed)
    modules = sensible(random)
    plans: dict[tuple[Action, ...], Planned] = {}
    for _ in range(200):
        plan = random_planned(random, modules)
        actions = plan.actions(modules)
        # Those that replace something are rare, and what this is about.
        if actions and (plan.replaced or not plans) and len(plans) < 3:
            plans[actions] = plan
    sequences = [(actions, autoswap) for actions in plans for autoswap in (True, False)]
    runs = lmod_runs(tmp_path, write_tree(tmp_path, modules), sequences)
    for run, (actions, autoswap) in zip(runs, sequences, strict=True):
        about = (modules, plans[actions], actions, autoswap, run)
        assert all(run.worked), about
        assert frozenset(run.loaded) == plans[actions].final, about


def test_the_seeds_meet_what_they_are_meant_to() -> None:
    errors: list[str] = []
    replaced = 0
    for seed in SEEDS:
        random = Random(seed)
        modules = sensible(random)
        for actions in [random_actions(random, modules) for _ in range(2)]:
            errors += [expected(modules, actions, swap).error for swap in (True, False)]
        random = Random(1000 + seed)
        modules = sensible(random)
        plans = [random_planned(random, modules) for _ in range(200)]
        replaced += any(plan.replaced and plan.actions(modules) for plan in plans)
    assert "" in errors
    for words in (
        ", which is loaded",
        "is not found before",
        "is no longer found",
        "conflicts with",
    ):
        assert any(words in error for error in errors), words
    assert replaced >= len(SEEDS) // 3


# --- The trees of the tests' sites ---------------------------------------------------------------

LOAD = re.compile(r'^ +load\("([^"]+)"\)', re.MULTILINE)
CONFLICT = re.compile(r'^conflict\("([^"]+)"\)', re.MULTILINE)
OPENED = re.compile(r'prepend_path\("MODULEPATH", pathJoin\(trees, "([^"]+)"\)\)')


def read_tree(root: Path, environment: str) -> dict[str, SolverModule]:
    """Return the modules of a site that can be reached by way of one modenv module."""
    opener = f"modenv/{environment}"
    start = root / "taurus" / "environment"
    found: dict[str, SolverModule] = {}
    ahead: list[tuple[Path, str, tuple[str, ...]]] = [(start / f"{opener}.lua", opener, ())]
    while ahead:
        path, name, way = ahead.pop()
        text = path.read_text(encoding="utf-8")
        found[name] = SolverModule(
            name=name,
            key=name.rpartition("/")[0],
            loads=tuple(LOAD.findall(text)),
            parents=(way,) if way else (),
            conflicts=tuple(CONFLICT.findall(text)),
        )
        for opened in OPENED.findall(text):
            # modenv/hiera names its tree from the site's folder, the modules of that one from it.
            tree = root / opened if way == () else root / environment / "all" / opened
            ahead += [
                (each, str(each.relative_to(tree)).removesuffix(".lua"), (*way, name))
                for each in tree.rglob("*.lua")
            ]
    return found


def in_order(*names: str) -> tuple[Action, ...]:
    return tuple(("load", name) for name in names)


@pytest.mark.parametrize("examples", [3, pytest.param(12, marks=pytest.mark.long)])
@pytest.mark.parametrize(("site", "environment"), [("taurus-ml", "ml"), ("taurus-alpha", "hiera")])
@pytest.mark.long
def test_the_trees_of_the_sites(site: str, environment: str, examples: int, tmp_path: Path) -> None:
    """So many lists of modules as a user might load them, and as many in the order worked out."""
    root = TREES / site / "modules"
    modules = read_tree(root, environment)
    assert len(modules) > 10
    random = Random(site)
    opener = f"modenv/{environment}"
    names = sorted(frozenset(modules) - {opener})
    sequences: list[tuple[tuple[Action, ...], bool]] = []
    said: list[Expected | Planned] = []
    for _ in range(examples):
        loads = in_order(opener, *random.sample(names, 3))
        for autoswap in (True, False):
            one = expected(modules, loads, autoswap)
            said.append(one)
            sequences.append((one.actions, autoswap))
    while len(said) < 4 * examples:
        plan = planned(modules, random.sample(names, 3), (opener,))
        ordered = plan.actions(modules)
        if ordered is not None:
            said += [plan, plan]
            sequences += [(ordered, True), (ordered, False)]
    runs = lmod_runs(tmp_path, root / "taurus" / "environment", sequences)
    for each, run, (actions, autoswap) in zip(said, runs, sequences, strict=True):
        about = (actions, autoswap, run)
        if isinstance(each, Expected):
            assert_same(each, run, about)
        else:
            assert all(run.worked), about
            assert frozenset(run.loaded) == each.final, about


def test_open_mpi_is_the_one_that_was_chosen(tmp_path: Path) -> None:
    root = TREES / "taurus-ml" / "modules"
    modules = read_tree(root, "ml")
    old, new = "OpenMPI/3.1.1-gcccuda-2018b", "OpenMPI/3.1.4-gcccuda-2018b"
    nccl, tensorflow = "NCCL/2.3.7-fosscuda-2018b", "TensorFlow/1.14.0-PythonAnaconda-3.6"
    plan = planned(modules, [new, nccl, tensorflow], ("modenv/ml",))
    assert plan.replaced == {old: new}
    actions = plan.actions(modules)
    assert actions is not None
    assert [name for _, name in actions] == ["modenv/ml", nccl, old, new, tensorflow]
    # The order of the documents ends on the other one, without a word of failure.
    documents = in_order("modenv/ml", tensorflow, new, nccl)
    runs = lmod_runs(
        tmp_path,
        root / "taurus" / "environment",
        [(actions, True), (actions, False), (documents, True), (documents, False)],
    )
    assert [new in run.loaded for run in runs] == [True, True, False, True]
    assert [old in run.loaded for run in runs] == [False, False, True, False]
    assert [all(run.worked) for run in runs] == [True, True, True, False]
    assert runs[2].loaded == simulate(modules, documents)
