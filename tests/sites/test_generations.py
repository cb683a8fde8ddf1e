"""The same software as a flat and as a hierarchical tree: both sites get the same plans."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app

from .generations import (
    SCHEMES,
    TOOLCHAINS,
    Scheme,
    Software,
    Stock,
    home,
    module_name,
    random_stock,
    root_variable,
    short_name,
    snapshot,
    write_trees,
)
from .site_tools import environ, lmod_init

pytestmark = pytest.mark.thorough

SITE = """\
schema: 1
name: {scheme}
summary: Four generations in one tree
arch: [x86_64]
module-system: lmod
module-init: {init}
module-trees: [{tree}]
snapshot: {scheme}.snapshot.json
facts: {{os: rocky 8, glibc: "2.28", driver: "535.54", gpu: [sm_80], network: [infiniband]}}
origins: [module, pip, build]
"""

# So many trees run always; the others when they are asked for.
ALWAYS, ALWAYS_IN_LMOD = 4, 1


def seeds(count: int, always: int) -> list[Any]:
    later = (pytest.param(seed, marks=pytest.mark.long) for seed in range(always, count))
    return [*range(always), *later]


class Asked(NamedTuple):
    """What a recipe asks for. ``toolchain``: the generation that it prefers."""

    stack: dict[str, str]
    toolchain: str | None = None


class Answer(NamedTuple):
    """What a plan takes. ``components``: with version and origin. ``software``: what is loaded of
    it, but for the modules of whole toolchains, which only the flat tree loads.
    """

    components: dict[str, tuple[str, str]]
    python: str | None
    software: frozenset[str]


def run(*words: str | Path) -> Result:
    env = {"COLUMNS": "80", "PATH": "/usr/bin:/bin"}
    return CliRunner().invoke(app, [str(word) for word in words], env=env)


def write_site(folder: Path, scheme: Scheme, init: str, tree: Path) -> Path:
    path = folder / f"{scheme}.yaml"
    path.write_text(SITE.format(scheme=scheme, init=init, tree=tree))
    return path


def plan(folder: Path, scheme: Scheme, asked: Asked) -> dict[str, Any]:
    recipe = {
        "schema": 1,
        "name": "stack",
        "summary": "A stack",
        "arch": ["x86_64"],
        "stack": asked.stack,
        **({"toolchain": asked.toolchain} if asked.toolchain else {}),
    }
    (folder / "stack.yaml").write_text(json.dumps(recipe))
    done = run("plan", folder / "stack.yaml", "--site", folder / f"{scheme}.yaml", "--json")
    assert done.exit_code == 0, (scheme, asked, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def software(found: dict[str, Any], stock: Stock, scheme: Scheme) -> list[Software]:
    """Return what is loaded; of a hierarchy some software of each name."""
    by_name = {module_name(one, scheme): one for one in stock.software}
    final = (by_name[name] for name in found["modules"]["final"])
    return [one for one in final if one.name not in TOOLCHAINS]


def answer(found: dict[str, Any], stock: Stock, scheme: Scheme) -> Answer:
    return Answer(
        {pin["component"]: (pin["version"], pin["origin"]) for pin in found["pins"]},
        found["python"],
        frozenset(short_name(one) for one in software(found, stock, scheme)),
    )


def assert_same_plans(folder: Path, stock: Stock, asked: Asked) -> Answer:
    """Return what both trees are planned to give."""
    flat, hierarchical = (answer(plan(folder, each, asked), stock, each) for each in SCHEMES)
    assert hierarchical == flat, asked
    return flat


def of_generations(stock: Stock) -> Iterator[Asked]:
    """Yield what each generation is asked for in turn, by its toolchain and by its Python."""
    for made in stock.generations:
        yield Asked({"python": "*", "openmpi": "*", "nccl": "*", "pytorch": "*"}, made.name)
        yield Asked({"python": f"=={made.of('Python', 'GCCcore').version}"}, made.name)


PYTHON = Asked({"python": "*"})
OPENMPI = Asked({"python": "*", "openmpi": "*"})
PYTORCH = Asked({"python": "*", "pytorch": "==2.1.*"})


@pytest.fixture
def stock(seed: int, tmp_path: Path) -> Stock:
    """Return the software of a site; both sites are in the folder of the test."""
    made = random_stock(Random(seed))
    for scheme in SCHEMES:
        write_site(tmp_path, scheme, "/usr/share/lmod/lmod/init/bash", Path("/modules"))
        (tmp_path / f"{scheme}.snapshot.json").write_text(json.dumps(snapshot(made, scheme)))
    return made


@pytest.mark.parametrize("seed", seeds(200, ALWAYS))
def test_both_trees_get_the_same_plan(stock: Stock, seed: int, tmp_path: Path) -> None:
    of_each = list(of_generations(stock))
    more = [PYTHON, OPENMPI, *of_each] if seed >= ALWAYS else [of_each[seed % len(of_each)]]
    for asked in more:
        assert_same_plans(tmp_path, stock, asked)
    # What the site has is not taken from an index.
    has_it = any(one.name == "PyTorch" and one.version[:4] == "2.1." for one in stock.software)
    found = assert_same_plans(tmp_path, stock, PYTORCH)
    assert found.components["pytorch"][1] == ("module" if has_it else "pip")


PROVIDERS = {
    "Python": "python",
    "OpenMPI": "openmpi",
    "CMake": "cmake",
    "NCCL": "nccl",
    "PyTorch": "pytorch",
    "CUDA": "cuda",
    "UCX": "ucx",
}


@pytest.mark.parametrize("seed", seeds(200, 1))
def test_every_module_is_taken_by_who_names_its_version(
    stock: Stock, seed: int, tmp_path: Path
) -> None:
    made = stock.generations[seed % 4]
    for one in made.modules.values():
        if one.name in PROVIDERS:
            component = PROVIDERS[one.name]
            asked = Asked({"python": "*", component: f"=={one.version}"}, made.name)
            found = plan(tmp_path, "hierarchical", asked)
            pins = {pin["component"]: pin for pin in (*found["pins"], *found["build-pins"])}
            assert (pins[component]["version"], pins[component]["origin"]) == (
                one.version,
                "module",
            ), asked
            gcc = [name for name in found["modules"]["final"] if name.startswith("GCCcore/")]
            assert gcc == [f"GCCcore/{made.gcc}"], asked


# --- By Lmod -------------------------------------------------------------------------------------


def loaded(init: str, tree: Path, found: dict[str, Any]) -> dict[str, str]:
    """Load the modules of a plan in their order; return the environment."""
    modules = found["modules"]
    lines = [f". '{init}'", "module --force purge >/dev/null 2>&1", f"export MODULEPATH='{tree}'"]
    replaced = {each["by"]: each["module"] for each in modules["replaced"]}
    for name in modules["loads"]:
        lines += [f"module unload {replaced[name]}"] if name in replaced else []
        lines.append(f"module load {name} || exit 1")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", "\n".join([*lines, "env -0"])],
        env=environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Nothing was taken away or loaded once more because a tree came or went.
    assert "MODULEPATH changes" not in done.stderr
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)


@pytest.mark.integration
@pytest.mark.parametrize("seed", seeds(20, ALWAYS_IN_LMOD))
def test_lmod_loads_what_was_planned_from_its_own_snapshot(seed: int, tmp_path: Path) -> None:
    init, stock = lmod_init(), random_stock(Random(seed))
    trees = {scheme: write_trees(tmp_path / scheme, stock, scheme) for scheme in SCHEMES}
    for scheme, tree in trees.items():
        site = write_site(tmp_path, scheme, init, tree)
        target = tmp_path / f"{scheme}.snapshot.json"
        done = run("sites", "snapshot", site, "--output", target)
        assert done.exit_code == 0, done.stderr
        keys = ("name", "home", "loads", "parents")
        modules = [
            tuple(str(module.get(key, [])) for key in keys)
            for content in (json.loads(target.read_text()), snapshot(stock, scheme))
            for module in content["modules"]
        ]
        half = len(modules) // 2
        assert sorted(modules[:half]) == sorted(modules[half:])
    requests = [PYTORCH, *of_generations(stock)]
    for asked in requests if seed >= ALWAYS_IN_LMOD else requests[:2]:
        assert_same_plans(tmp_path, stock, asked)
        found = plan(tmp_path, "hierarchical", asked)
        after = loaded(init, trees["hierarchical"], found)
        assert set(after["LOADEDMODULES"].split(":")) == set(found["modules"]["final"])
        # A name of the flat tree is that of one installation: the same ones are loaded.
        flat = software(plan(tmp_path, "flat", asked), stock, "flat")
        homes = {root_variable(one): home(one) for one in flat}
        assert {name: after[name] for name in homes} == homes
