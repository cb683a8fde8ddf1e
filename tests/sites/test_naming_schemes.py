"""Trees of every naming scheme: snapshotted, planned, loaded and compared.

With Lmod on Lua and on Tcl modulefiles, and with Environment Modules on Tcl ones.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.build.backends import prefix_parts
from envbuilder.cli import app
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.machine.detection import snapshot, snapshot_text
from envbuilder.machine.modules.modulefile_effects import Effects
from envbuilder.machine.modules.site_modules import read_modules
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Plan
from envbuilder.model.site import Site, Snapshot, StatedModule
from envbuilder.render.build import render_shell
from tests.shipped import read_shipped

from .naming_schemes import SCHEMES, Forest
from .site_tools import TODAY, environ, lmod_init, make_site, tcl_init

pytestmark = pytest.mark.integration

SITE = """\
schema: 1
name: here
summary: A site whose modules were written in one naming scheme
arch: [x86_64]
module-system: {system}
module-init: {init}
module-trees: [{trees}]
snapshot: here.snapshot.json
facts: {{os: rocky 8, glibc: "2.28", driver: "535.54", gpu: [sm_80], network: [infiniband]}}
"""

RECIPE = """\
schema: 1
name: stack
summary: What most stacks are built from
arch: [x86_64]
stack: {python: "*", openmpi: ">=4", nccl: "*", cuda: "*", cmake: "*", gcc: "*"}
"""

SYSTEMS = {"lmod-lua": ("lmod", "lua"), "lmod-tcl": ("lmod", "tcl"), "tcl": ("tcl", "tcl")}
# Each scheme with one module system, both with flat and hierarchical trees. The others run when
# they are asked for.
ALWAYS = {
    ("easybuild-flat", "lmod-lua"),
    ("easybuild-categorised", "tcl"),
    ("easybuild-hierarchical", "lmod-lua"),
    ("easybuild-categorised-hierarchical", "tcl"),
    ("spack-hashes", "tcl"),
    ("spack-projections", "lmod-lua"),
    ("by-hand", "tcl"),
}
PAIRS = [
    pytest.param(
        (scheme, system),
        id=f"{scheme}-{system}",
        marks=() if (scheme, system) in ALWAYS else pytest.mark.long,
    )
    for scheme in SCHEMES
    for system in SYSTEMS
    # Lmod 8 stops at what Spack's Tcl files hide modules by (module-hide).
    if (scheme.partition("-")[0], system) != ("spack", "lmod-tcl")
]


@dataclass(frozen=True)
class Planned:
    """A site in one scheme, its snapshot and the plan made from it."""

    forest: Forest
    site: Site
    folder: Path
    effects: tuple[tuple[StatedModule, Effects], ...]
    notes: tuple[str, ...]
    plan: Plan


def run(*words: str | Path) -> tuple[int, str, str]:
    env = {"COLUMNS": "80", "PATH": "/usr/bin:/bin"}
    done = CliRunner().invoke(app, [str(word) for word in words], env=env)
    return done.exit_code, done.stdout, done.stderr


def prepare(scheme: str, system: str, folder: Path) -> tuple[Forest, Site]:
    kind, language = SYSTEMS[system]
    init = lmod_init() if kind == "lmod" else tcl_init(folder)
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        pytest.skip("needs python3 in /usr/bin")
    forest = SCHEMES[scheme](folder, language, python)
    trees = ", ".join(str(tree) for tree in forest.trees)
    (folder / "here.yaml").write_text(SITE.format(system=kind, init=init, trees=trees))
    return forest, make_site(init, *forest.trees, system=kind)


@cache
def machine() -> Snapshot:
    """Return what is on this machine beside modules, detected once."""
    nothing = Site(schema_=1, name="here", summary="x", arch=("x86_64",))
    return snapshot(nothing, environ(), components=()).snapshot


def plan(folder: Path, recipe: str, **changes: str) -> Plan:
    """Return the plan of a recipe at the site of this folder."""
    text = RECIPE.replace("name: stack", f"name: {recipe}")
    for old, new in changes.items():
        text = text.replace(f"{old}: ", f"{new}\n{old}: ")
    (folder / f"{recipe}.yaml").write_text(text)
    words = ("plan", folder / f"{recipe}.yaml", "--site", folder / "here.yaml", "--json")
    code, out, err = run(*words)
    assert code == 0, err
    return Plan(**json.loads(out))


@pytest.fixture(scope="module", params=PAIRS)
def planned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    folder = tmp_path_factory.mktemp("-".join(request.param))
    forest, site = prepare(*request.param, folder)
    return look(forest, site, folder)


def look(forest: Forest, site: Site, folder: Path, **changes: str) -> Planned:
    """Take the snapshot of a site, write it where its document says, and plan."""
    found = read_modules(site, environ())
    held = machine().model_copy(
        update={"kind": "live", "taken": TODAY.isoformat(), "source": "envbuild sites snapshot"}
    )
    modules = {"modules": found.modules, "trees": found.trees, "preload": site.preload}
    text = snapshot_text(held.model_copy(update=modules))
    (folder / "here.snapshot.json").write_text(text)
    recipe = "changed" if changes else "stack"
    return Planned(
        forest,
        site,
        folder,
        tuple(zip(found.modules, found.effects, strict=True)),
        found.notes,
        plan(folder, recipe, **changes),
    )


def effects_of_final(planned: Planned) -> list[Effects]:
    """Return what the modules do that are loaded: of namesakes those whose parents are there."""
    final = set(planned.plan.modules.final)
    return [
        effects
        for module, effects in planned.effects
        if module.name in final
        and (not module.parents or any(final.issuperset(each) for each in module.parents))
    ]


def loaded(planned: Planned) -> tuple[dict[str, str], dict[str, str]]:
    """Load the modules by the lines that the plan renders to; return what it changed, and to what.

    First the environment before the loads, then the one behind them.
    """
    knowledge = read_shipped().value
    prefix = prefix_parts(planned.plan, knowledge.components)
    lock, places = (
        Lock(plan=planned.plan, artifacts=()),
        BuildFolders(Path("/prefix"), Path("/build")),
    )
    (planned.folder / "environment.sh").write_text(
        render_shell(lock, places, prefix)["environment.sh"]
    )
    script = (
        "set -euo pipefail; source ./environment.sh; clean_environment; env -0 >before; "
        "load_modules; env -0 >after"
    )
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        cwd=planned.folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(planned.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = (_environment(planned.folder / name) for name in ("before", "after"))
    return before, after


def _environment(path: Path) -> dict[str, str]:
    entries = (entry.partition("=") for entry in path.read_text().split("\0") if entry)
    # Functions of the shell, and what the module systems keep for themselves.
    own = ("BASH_FUNC", "_", "LMOD_", "__", "MODULE", "LOADEDMODULES", "FPATH", "BASH_ENV", "SHLVL")
    kept = ("MODULEPATH",)
    return {
        name: value
        for name, _, value in entries
        if name in kept or not name.startswith((*own, "MANPATH"))
    }


def folders(value: str) -> set[str]:
    """Return the folders of a variable; Environment Modules keeps Spack's PREFIX/. as it is."""
    return {each.removesuffix("/.") for each in value.split(":") if each}


def predicted(effects: list[Effects]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the folders that each variable gets, and the values that others may have then."""
    paths: dict[str, set[str]] = {}
    values: dict[str, set[str]] = {}
    for each in effects:
        for name, folder in each.paths:
            paths.setdefault(name, set()).add(folder)
        for name, value in each.variables.items():
            values.setdefault(name, set()).add(value)
    return paths, values


@pytest.mark.sample(2)
def test_the_plan_takes_what_is_expected(planned: Planned) -> None:
    assert set(planned.plan.modules.final) == planned.forest.newest
    modules = load_snapshot(planned.folder / "here.snapshot.json").modules
    assert len(modules) == planned.forest.modules
    homes = {(each.name, each.home) for each in modules}
    assert {(name, str(home)) for name, home in planned.forest.homes.items()} <= homes
    python = next(each for each in planned.plan.pins if each.component == "python")
    assert planned.plan.python == str(planned.forest.homes[python.locator] / "bin" / "python3")


@pytest.mark.sample(2)
def test_loading_does_what_the_snapshot_says(planned: Planned) -> None:
    before, after = loaded(planned)
    paths, values = predicted(effects_of_final(planned))
    for name, added in paths.items():
        if name != "MODULEPATH":
            assert folders(after[name]) == folders(before.get(name, "")) | added, name
    assert paths.get("MODULEPATH", set()) <= folders(after["MODULEPATH"])
    for name, possible in values.items():
        assert after[name] in possible, name
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed <= {*paths, *values, "MODULEPATH", "PATH"}


@pytest.mark.parametrize(
    ("scheme", "system"),
    [
        # Open MPI 4.1.4 and zlib 1.2.12 are behind both compilers: each is a module of its own.
        ("easybuild-hierarchical", "lmod-lua"),
        pytest.param("easybuild-categorised-hierarchical", "tcl", marks=pytest.mark.long),
        pytest.param("easybuild-flat", "lmod-lua", marks=pytest.mark.long),
        pytest.param("easybuild-categorised", "lmod-tcl", marks=pytest.mark.long),
    ],
)
def test_the_older_generation_by_the_recipe(scheme: str, system: str, tmp_path: Path) -> None:
    forest, site = prepare(scheme, system, tmp_path)
    older = look(forest, site, tmp_path, stack="toolchain: 2022a")
    assert set(older.plan.modules.final) == forest.older
    test_loading_does_what_the_snapshot_says(older)


@pytest.mark.parametrize(
    ("scheme", "system"),
    [
        ("easybuild-hierarchical", "tcl"),
        pytest.param("easybuild-hierarchical", "lmod-lua", marks=pytest.mark.long),
        pytest.param("easybuild-categorised-hierarchical", "lmod-lua", marks=pytest.mark.long),
    ],
)
def test_the_older_generation_of_a_hierarchy(scheme: str, system: str, tmp_path: Path) -> None:
    """A preload leaves only what is behind it: of Open MPI 4.1.4 and zlib 1.2.12 one of two."""
    forest, site = prepare(scheme, system, tmp_path)
    document = tmp_path / "here.yaml"
    document.write_text(f"{document.read_text()}preload: [GCC/11.3.0]\n")
    older = look(forest, site.model_copy(update={"preload": ("GCC/11.3.0",)}), tmp_path)
    names = [module.name for module, _ in older.effects]
    assert len(names) == len(set(names))
    assert set(older.plan.modules.final) == forest.older
    test_loading_does_what_the_snapshot_says(older)
