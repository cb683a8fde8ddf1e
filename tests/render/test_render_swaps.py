"""Plans with a swap, loaded by real Lmod and Environment Modules: what is loaded, what stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from render_cases import CASES, TAURUS, build_files, make_evidence, make_plan
from render_tools import clean_env, lmod_folder, modulecmd, need, run
from swap_trees import MPI, NCCL, OLD_MPI, make_tree

from envbuilder.model.places import BuildFolders, Dialect
from envbuilder.model.plan import Lock, Modules, Plan
from envbuilder.render.modulefile import render_modulefile

pytestmark = pytest.mark.integration

SWAP = next(case for case in CASES if case.name == "swap").lock.plan
OURS = f"{SWAP.recipe}/1"
STYLES = ("plain", "recursive", "depends")

# Sites switch off that Lmod swaps modules of one name by itself.
AUTOSWAP = ({}, {"LMOD_DISABLE_SAME_NAME_AUTOSWAP": "yes"})
both = pytest.mark.parametrize("site", AUTOSWAP, ids=["autoswap", "no-autoswap"])
each_style = pytest.mark.parametrize("style", STYLES)


@dataclass(frozen=True)
class Answer:
    """What a script printed: the lines by their label, and all that was said."""

    lists: dict[str, list[str]]
    said: str


def publish(folder: Path, plan: Plan, dialect: Dialect, name: str | None = None) -> None:
    """Write the modulefile of a plan as number 1 and 2 into tree "mine"."""
    plan = plan.model_copy(update={"recipe": name or plan.recipe})
    lock = Lock(plan=plan, artifacts=())
    places = BuildFolders(folder / "prefix", folder / "build")
    home = folder / "mine" / plan.recipe
    home.mkdir(parents=True)
    for number in (1, 2):
        text = render_modulefile(lock, places, number, make_evidence(lock), dialect)
        (home / f"{number}{'.lua' if dialect == 'lua' else ''}").write_text(text, encoding="utf-8")


def answer(script: list[str], folder: Path, env: dict[str, str]) -> Answer:
    (folder / "script").write_text("\n".join([*script, ""]), encoding="utf-8")
    done = run([need("bash"), "--norc", str(folder / "script")], env=clean_env(**env), cwd=folder)
    rows = [line.split(" ") for line in done.stdout.splitlines() if line.startswith("list:")]
    return Answer({row[0][5:]: sorted(filter(None, row[1:])) for row in rows}, done.stderr)


def in_lmod(folder: Path, style: str, lines: list[str], **site: str) -> Answer:
    """Run lines in a shell with Lmod, the site's tree and ours; a word in [] lists the modules."""
    tree = make_tree(folder, "lua", style)
    listing = 'echo "list:{}" $(module -t list 2>&1 | grep / | grep -v "^/")'
    script = [f"source {lmod_folder()}/init/bash", f"module use {tree} {folder}/mine"]
    script += [listing.format(line.strip("[]")) if line[0] == "[" else line for line in lines]
    return answer(script, folder, site)


def environment(folder: Path, name: str) -> dict[str, str]:
    entries = (folder / name).read_text(encoding="utf-8").split("\0")
    every = dict(entry.split("=", 1) for entry in entries if entry)
    keeps = ("_ModuleTable", "__LMOD_", "LMOD_", "_LMFILES_", "LOADEDMODULES", "__MODULES_")
    return {n: v for n, v in every.items() if not n.startswith(keeps) and n != "_"}


def final(*more: str) -> list[str]:
    return sorted([*TAURUS.final, *more])


@both
@each_style
@pytest.mark.sample(2)
def test_lmod_loads_exactly_the_plan_again_and_again(
    style: str, site: dict[str, str], tmp_path: Path
) -> None:
    publish(tmp_path, SWAP, "lua")
    lines = ["env -0 >before", f"module load {OURS}", "[first]", f"module load {OURS}", "[again]"]
    lines += [f"module swap {OURS} {SWAP.recipe}/2", "[other]", f"module unload {SWAP.recipe}"]
    lines += ["env -0 >unloaded", "[unloaded]", f"module load {OURS}", "[third]", "module purge"]
    got = in_lmod(tmp_path, style, [*lines, "env -0 >purged", "[purged]"], **site)
    assert got.lists["first"] == final(OURS), got.said
    assert got.lists["again"] == final(OURS)
    assert got.lists["other"] == final(f"{SWAP.recipe}/2")
    assert got.lists["third"] == final(OURS)
    # What the help says of unloading: the MPI that was unloaded is not there, ours neither.
    assert not {MPI, OLD_MPI, NCCL, OURS} & set(got.lists["unloaded"])
    assert got.lists["purged"] == []
    assert environment(tmp_path, "purged") == environment(tmp_path, "before")
    if style != "plain":
        assert environment(tmp_path, "unloaded") == environment(tmp_path, "before")
    assert "not proved with" not in got.said
    # Only modules that Lmod counts dependencies of have it say that one is gone; the help says so.
    assert ("not currently loaded: " + OLD_MPI in " ".join(got.said.split())) == (
        style == "depends"
    )


@both
@each_style
@pytest.mark.sample(2)
def test_lmod_where_the_user_has_the_toolchain_loaded(
    style: str, site: dict[str, str], tmp_path: Path
) -> None:
    publish(tmp_path, SWAP, "lua")
    lines = [f"module load modenv/ml {NCCL}", "[mine]", f"module load {OURS}", "[loaded]"]
    lines += [f"module unload {SWAP.recipe}", "[unloaded]"]
    got = in_lmod(tmp_path, style, lines, **site)
    assert OLD_MPI in got.lists["mine"]
    assert got.lists["loaded"] == final(OURS), got.said
    # As the help says: the user's own MPI does not come back.
    assert NCCL in got.lists["unloaded"]
    assert not {MPI, OLD_MPI, OURS} & set(got.lists["unloaded"])


@both
@each_style
@pytest.mark.sample(2)
def test_lmod_where_the_user_has_the_chosen_mpi_loaded(
    style: str, site: dict[str, str], tmp_path: Path
) -> None:
    publish(tmp_path, SWAP, "lua")
    lines = [f"module load modenv/ml {MPI}", "[mine]", f"module load {OURS}", "[loaded]"]
    got = in_lmod(tmp_path, style, lines, **site)
    if site:
        # Lmod refuses to let the toolchain's MPI take its place; all stays as it was.
        assert "Your site prevents the automatic" in got.said
        assert got.lists["loaded"] == got.lists["mine"]
    else:
        assert got.lists["loaded"] == final(OURS)


def test_lmod_swaps_the_sites_environment_module(tmp_path: Path) -> None:
    publish(tmp_path, SWAP, "lua")
    lines = ["module load modenv/scs5", f"module load {OURS}", "[loaded]"]
    assert in_lmod(tmp_path, "plain", lines).lists["loaded"] == final(OURS)


@both
@each_style
@pytest.mark.sample(2)
def test_another_environment_takes_the_place_of_one_with_a_swap(
    style: str, site: dict[str, str], tmp_path: Path
) -> None:
    plain = Modules(
        system="lmod",
        init="/init",
        loads=("modenv/ml", MPI),
        final=("modenv/ml", MPI, "gcccuda/2018b"),
    )
    publish(tmp_path, SWAP, "lua")
    publish(tmp_path, make_plan(modules=plain), "lua", name="other")
    lines = [f"module load {OURS}", "module load other/1", "[other]", "module load " + OURS]
    got = in_lmod(tmp_path, style, [*lines, "[back]"], **site)
    assert {*plain.final, "other/1"} <= set(got.lists["other"]), got.said
    assert OURS not in got.lists["other"]
    refused = "Your site prevents the automatic" in got.said
    # A toolchain that is there brings its MPI no more; where it does, see the test above.
    assert refused == (bool(site) and style != "plain"), got.said
    assert got.lists["back"] == (got.lists["other"] if refused else final(OURS))


def test_lmod_tells_what_is_missing_where_the_user_has_changed_modules(tmp_path: Path) -> None:
    brought = (NCCL, OLD_MPI, "fosscuda/2018b", "modenv/ml")
    plan = Modules(system="lmod", init="/init", loads=("modenv/ml", NCCL), final=brought)
    publish(tmp_path, make_plan(modules=plan), "lua", name="brought")
    lines = [f"module load modenv/ml {NCCL}", f"module swap {OLD_MPI} {MPI}"]
    got = in_lmod(tmp_path, "plain", [*lines, "module load brought/1", "[loaded]"])
    said = " ".join(got.said.split())
    assert f"; not loaded: {OLD_MPI}" in said
    lines = ["module purge", "module load brought/1", "[loaded]"]
    got = in_lmod(tmp_path, "plain", lines)
    assert set(brought) <= set(got.lists["loaded"])
    assert got.said == ""


def scripts(folder: Path, modules: Modules) -> Path:
    """Write the build folder of the swap's plan."""
    plan = SWAP.model_copy(update={"modules": modules})
    build = folder / "build"
    build.mkdir(exist_ok=True)
    places = BuildFolders(folder / "prefix", build)
    for name, text in build_files(Lock(plan=plan, artifacts=()), places).items():
        (build / name).write_text(text, encoding="utf-8")
    return build


@both
@each_style
@pytest.mark.sample(2)
def test_the_build_unloads_loads_and_compares(
    style: str, site: dict[str, str], tmp_path: Path
) -> None:
    tree = make_tree(tmp_path, "lua", style)
    init = str(lmod_folder() / "init" / "bash")
    modules = TAURUS.model_copy(update={"init": init, "trees": (str(tree),)})
    build = scripts(tmp_path, modules)
    listed = run(
        [need("bash"), str(build / "build.sh"), "modules"], env=clean_env(**site), cwd=build
    )
    assert listed.returncode == 0, listed.stderr
    assert sorted(listed.stdout.split()) == final()
    shell = [need("bash"), str(build / "shell.sh"), "printenv", "LOADEDMODULES"]
    done = run(shell, env=clean_env(**site), cwd=build)
    assert sorted(done.stdout.strip().split(":")) == final()
    # Without the swap's last load nothing takes the place; the comparison says so.
    short = modules.model_copy(update={"loads": modules.loads[:-1]})
    done = run(
        [need("bash"), str(scripts(tmp_path, short) / "build.sh"), "modules"],
        env=clean_env(**site),
        cwd=build,
    )
    assert done.returncode == 1
    assert f": {MPI}\n" in done.stderr
    assert f": {OLD_MPI}\n" in done.stderr


def tcl_function() -> str:
    return f'module() {{ eval "$({need("tclsh")} {modulecmd()} bash "$@")"; }}'


def in_tcl(folder: Path, style: str, lines: list[str], **site: str) -> Answer:
    tree = make_tree(folder, "tcl", style)
    listing = 'echo "list:{}" ${{LOADEDMODULES//:/ }}'
    script = [tcl_function(), f"module use {tree} {folder}/mine"]
    script += [listing.format(line.strip("[]")) if line[0] == "[" else line for line in lines]
    return answer(script, folder, site)


# Environment Modules 5 lets go of nothing that a loaded module requires, and takes what a
# modulefile loads for required, unless a site says otherwise.
LAX = {"MODULES_IMPLICIT_REQUIREMENT": "0"}


@pytest.mark.parametrize("style", ["plain", "recursive"])
def test_environment_modules_load_exactly_the_plan_where_they_may(
    style: str, tmp_path: Path
) -> None:
    publish(tmp_path, SWAP, "tcl")
    lines = ["env -0 >before", f"module load {OURS}", "[first]", f"module load {OURS}", "[again]"]
    lines += [f"module switch {OURS} {SWAP.recipe}/2", "[other]", f"module unload {SWAP.recipe}"]
    lines += ["[unloaded]", "module purge", "[purged]", "env -0 >purged"]
    got = in_tcl(tmp_path, style, lines, **LAX)
    assert got.lists["first"] == final(OURS), got.said
    assert got.lists["again"] == final(OURS)
    assert got.lists["other"] == final(f"{SWAP.recipe}/2")
    assert not {MPI, OLD_MPI, NCCL, OURS} & set(got.lists["unloaded"])
    assert got.lists["purged"] == []
    assert environment(tmp_path, "purged") == environment(tmp_path, "before")
    assert "not proved with" not in got.said


@each_style
def test_environment_modules_refuse_a_swap_of_what_is_required(style: str, tmp_path: Path) -> None:
    publish(tmp_path, SWAP, "tcl")
    lines = ["env -0 >before", f"module load {OURS}", "[loaded]", "env -0 >after"]
    got = in_tcl(tmp_path, style, lines)
    assert "Dependent fosscuda/2018b is loaded" in got.said
    assert got.lists["loaded"] == []
    assert environment(tmp_path, "after") == environment(tmp_path, "before")


@each_style
def test_the_build_says_that_environment_modules_do_not_swap(style: str, tmp_path: Path) -> None:
    tree = make_tree(tmp_path, "tcl", style)
    (tmp_path / "init.sh").write_text(f"{tcl_function()}\n", encoding="utf-8")
    changes = {"system": "tcl", "init": str(tmp_path / "init.sh"), "trees": (str(tree),)}
    build = scripts(tmp_path, TAURUS.model_copy(update=changes))
    command = [need("bash"), str(build / "build.sh"), "modules"]
    done = run(command, env=clean_env(), cwd=build)
    assert done.returncode == 1
    assert f": {NCCL}\n" in done.stderr
    assert "cannot swap modules" in done.stderr
    lax = run(command, env=clean_env(**LAX), cwd=build)
    if style == "depends":
        assert lax.returncode == 1
    else:
        assert lax.returncode == 0, lax.stderr
        assert sorted(lax.stdout.split()) == final()
