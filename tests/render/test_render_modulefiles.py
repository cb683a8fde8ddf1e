"""Loading and unloading the modulefiles with real Lmod and Environment Modules, in each shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from render_cases import (
    CASES,
    HOSTILE,
    make_evidence,
    make_plan,
    standard_edits,
)
from render_tools import clean_env, lmod_folder, modulecmd, need, read_environment, run

from envbuilder.model.places import BuildFolders, Dialect
from envbuilder.model.plan import Edit, Lock, Modules
from envbuilder.render.modulefile import render_modulefile
from envbuilder.target_tools.modulefile import default_text
from envbuilder.target_tools.root.layout import DEFAULT_FILES
from envbuilder.workflow.launch_requests import LaunchFacts, example

pytestmark = pytest.mark.integration

SHELLS = ("bash", "zsh", "tcsh")

# What the module systems themselves keep in the environment, and the shell's last command.
LMOD_KEEPS = ("_ModuleTable", "__LMOD_", "LMOD_", "_LMFILES_", "LOADEDMODULES", "_")
MODULES_KEEPS = ("__MODULES_", "_LMFILES_", "LOADEDMODULES", "_")

# What the module systems cannot give csh is left out; the rest of the hostile text they can.
FOR_CSH = HOSTILE.translate(str.maketrans("", "", "{}[]!~"))
PREFIX = "/software/a b 'single' \"double\" $HOME `touch CANARY` é/abc"


def make_lock(value: str, *more: Edit, name: str = "allreduce") -> Lock:
    edits = (*standard_edits(VALUE=value, ANOTHER="1"), *more)
    plan = make_plan(recipe=name, summary=HOSTILE, environment=edits)
    return Lock(plan=plan, artifacts=())


def publish(tree: Path, lock: Lock, numbers: tuple[int, ...], dialect: Dialect) -> None:
    """Write modulefiles as publishing does, the first number as default."""
    folder = tree / lock.plan.recipe
    folder.mkdir(parents=True)
    places = BuildFolders(Path(PREFIX), Path("/build"))
    for number in numbers:
        shown = example(LaunchFacts(lock.plan, {}))
        text = render_modulefile(lock, places, number, make_evidence(lock), dialect, shown)
        suffix = ".lua" if dialect == "lua" else ""
        (folder / f"{number}{suffix}").write_text(text, encoding="utf-8")
    text = default_text(lock.plan.recipe, numbers[0], dialect)
    (folder / DEFAULT_FILES[dialect]).write_text(text, encoding="utf-8")


def in_shell(shell: str, lines: list[str], folder: Path, **caller: str) -> tuple[str, str]:
    """Run lines after Lmod's start-up; return stdout and stderr. They must not run anything."""
    script = folder / f"script.{shell}"
    begin = [f"source {lmod_folder()}/init/{shell}", "module use tree"]
    script.write_text("\n".join([*begin, *lines, ""]), encoding="utf-8")
    options = {"bash": ("--norc",), "zsh": ("-f",), "tcsh": ("-f",)}[shell]
    done = run([need(shell), *options, str(script)], env=clean_env(**caller), cwd=folder)
    assert not (folder / "CANARY").exists()
    return done.stdout, done.stderr


def snapshot(path: Path, keeps: tuple[str, ...]) -> dict[str, str]:
    """Return the environment in a file without what the module system keeps for itself."""
    return {
        name: value
        for name, value in read_environment(path).items()
        if not (name.startswith(keeps[:-1]) or name == keeps[-1])
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_lmod_unload_gives_everything_back(shell: str, tmp_path: Path) -> None:
    unset = Edit(kind="unset", name="PYTHONHOME")
    append = Edit(kind="append", name="MANPATH", value="share/man", in_prefix=True)
    publish(tmp_path / "tree", make_lock(FOR_CSH, unset, append), (3,), "lua")
    caller = {"VALUE": "the user's own $x", "VIRTUAL_ENV": "/mine", "PYTHONHOME": "/home of mine"}
    lines = ["env -0 >before", "module load allreduce", "env -0 >loaded", "module unload allreduce"]
    in_shell(shell, [*lines, "env -0 >after"], tmp_path, **caller)
    before, loaded, after = (
        snapshot(tmp_path / name, LMOD_KEEPS) for name in ("before", "loaded", "after")
    )
    assert before.items() >= caller.items()
    assert after == before
    changed = {name: value for name, value in loaded.items() if before.get(name) != value}
    assert changed == {
        "VALUE": FOR_CSH,
        "ANOTHER": "1",
        "VIRTUAL_ENV": PREFIX,
        "PYTHONNOUSERSITE": "1",
        "PATH": f"{PREFIX}/bin:{before['PATH']}",
        "MANPATH": f"{PREFIX}/share/man",
    }
    assert "PYTHONHOME" not in loaded


def test_lmod_cannot_tell_an_empty_variable_from_an_unset_one(tmp_path: Path) -> None:
    """The one gap of pushenv: should this fail, Lmod learnt it and dialects.py can say so."""
    publish(tmp_path / "tree", make_lock("x"), (3,), "lua")
    lines = ["module load allreduce", "module unload allreduce", "env -0 >after"]
    in_shell("bash", lines, tmp_path, VALUE="")
    assert "VALUE" not in snapshot(tmp_path / "after", LMOD_KEEPS)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_lmod_hands_hostile_values_to_the_shell(shell: str, tmp_path: Path) -> None:
    publish(tmp_path / "tree", make_lock(HOSTILE), (3,), "lua")
    in_shell(shell, ["module load allreduce/3", "env -0 >loaded"], tmp_path)
    assert read_environment(tmp_path / "loaded")["VALUE"] == HOSTILE


@pytest.mark.parametrize("character", "!{}")
def test_csh_is_refused_what_it_would_get_wrong(character: str, tmp_path: Path) -> None:
    publish(tmp_path / "tree", make_lock(f"a{character}b"), (3,), "lua")
    lines = ["env -0 >before", "module load allreduce", "env -0 >after"]
    _, said = in_shell("tcsh", lines, tmp_path)
    assert "bash or zsh" in " ".join(said.split())
    before, after = (snapshot(tmp_path / name, LMOD_KEEPS) for name in ("before", "after"))
    assert after == before


@pytest.mark.parametrize("shell", SHELLS)
def test_lmod_loads_one_environment_at_a_time(shell: str, tmp_path: Path) -> None:
    publish(tmp_path / "tree", make_lock("one"), (1, 2), "lua")
    publish(tmp_path / "tree", make_lock("other", name="other"), (1,), "lua")
    lines = ["env -0 >before", "module load allreduce/2", "module load allreduce/1"]
    lines += ["module load other", "env -0 >loaded", "module unload other", "env -0 >after"]
    in_shell(shell, lines, tmp_path, VALUE="mine")
    loaded = read_environment(tmp_path / "loaded")
    assert (loaded["LOADEDMODULES"], loaded["VALUE"]) == ("other/1", "other")
    before, after = (snapshot(tmp_path / name, LMOD_KEEPS) for name in ("before", "after"))
    assert after == before


def test_lmod_default_help_and_whatis(tmp_path: Path) -> None:
    lock = make_lock("x")
    publish(tmp_path / "tree", lock, (2, 1, 10), "lua")
    lines = ["module load allreduce", 'echo "$LOADEDMODULES"', "module help allreduce 2>&1"]
    said, _ = in_shell("bash", [*lines, "module whatis allreduce 2>&1"], tmp_path)
    assert said.startswith("allreduce/2\n")
    for text in (
        f"allreduce/2: {HOSTILE}\n",
        f"Environment {lock.id()}.",
        "numpy@1.26.4 <- pip:numpy",
        "Proved: several ranks, native, 2025-01-31T12:00:00Z",
        "site local, x86_64, nodes: node1",
        "libmpi: /software/mpich/lib/libmpi.so.12 (from prefix)",
        "mpiexec -n 2 python PROGRAM.py",
        f": Description: {HOSTILE}\n",
        ": Name: allreduce\n",
        ": Version: 2\n",
    ):
        assert text in said


def test_lmod_says_that_pythonpath_comes_first(tmp_path: Path) -> None:
    publish(tmp_path / "tree", make_lock("x"), (1,), "lua")
    _, said = in_shell("bash", ["module load allreduce"], tmp_path, PYTHONPATH="/old")
    assert "unset PYTHONPATH" in " ".join(said.split())
    _, said = in_shell("bash", ["module load allreduce"], tmp_path, PYTHONPATH="")
    assert said == ""


@pytest.fixture
def site_tree(tmp_path: Path) -> Path:
    """Return a tree that holds what case "modules" was built with."""
    tree = tmp_path / "tree"
    modules = {"GCCcore/12.3.0": "", "GCC/12.3.0": 'load("GCCcore/12.3.0")'}
    modules["Python/3.11.3-GCCcore-12.3.0"] = 'depends_on("GCCcore/12.3.0")'
    modules["OpenMPI/4.1.5-GCC-12.3.0"] = 'depends_on("GCC/12.3.0")\nsetenv("MPI", "4.1.5")'
    for name, text in modules.items():
        path = tree / f"{name}.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return tree


@pytest.mark.parametrize("shell", SHELLS)
def test_lmod_loads_and_unloads_what_it_depends_on(
    shell: str, tmp_path: Path, site_tree: Path
) -> None:
    loads = ("OpenMPI/4.1.5-GCC-12.3.0",)
    plan = make_plan(modules=Modules(system="lmod", init="/init", loads=loads))
    publish(site_tree, Lock(plan=plan, artifacts=()), (1,), "lua")
    lines = ["env -0 >before", "module load allreduce", "env -0 >loaded", "module unload allreduce"]
    in_shell(shell, [*lines, "env -0 >after"], tmp_path)
    loaded = read_environment(tmp_path / "loaded")
    assert loaded["MPI"] == "4.1.5"
    assert "allreduce/1" in loaded["LOADEDMODULES"]
    before, after = (snapshot(tmp_path / name, LMOD_KEEPS) for name in ("before", "after"))
    assert after == before


def test_lmod_names_a_dependency_that_is_not_in_any_tree(tmp_path: Path) -> None:
    publish(tmp_path / "tree", CASES[1].lock, (1,), "lua")
    lines = ["module load allreduce-modules", 'echo "$LOADEDMODULES"']
    said, errors = in_shell("bash", lines, tmp_path)
    assert said == "\n"
    assert "Python/3.11.3-GCCcore-12.3.0" in errors
    helped, _ = in_shell("bash", ["module help allreduce-modules 2>&1"], tmp_path)
    assert "first run: module use\n  /apps/modules/all\n" in helped


def tcl_command(shell: str, words: str) -> str:
    command = f"{need('tclsh')} {modulecmd()} {shell} {words}"
    return f"eval `{command}`" if shell == "tcsh" else f'eval "$({command})"'


@pytest.mark.parametrize("shell", SHELLS)
def test_environment_modules_give_everything_back(shell: str, tmp_path: Path) -> None:
    value = FOR_CSH if shell == "tcsh" else HOSTILE
    publish(tmp_path / "tree", make_lock(value), (2, 10), "tcl")
    caller = {"VALUE": "the user's own", "VIRTUAL_ENV": "", "MODULEPATH": str(tmp_path / "tree")}
    lines = ["env -0 >before", tcl_command(shell, "load allreduce"), "env -0 >loaded"]
    lines += [tcl_command(shell, "unload allreduce"), "env -0 >after"]
    script = tmp_path / "script"
    script.write_text("\n".join([*lines, ""]), encoding="utf-8")
    options = {"bash": ("--norc",), "zsh": ("-f",), "tcsh": ("-f",)}[shell]
    run([need(shell), *options, str(script)], env=clean_env(**caller), cwd=tmp_path)
    before, loaded, after = (
        snapshot(tmp_path / name, MODULES_KEEPS) for name in ("before", "loaded", "after")
    )
    assert not (tmp_path / "CANARY").exists()
    assert read_environment(tmp_path / "loaded")["LOADEDMODULES"] == "allreduce/2"
    assert loaded["VALUE"] == value
    assert loaded["VIRTUAL_ENV"] == PREFIX
    assert loaded["PATH"] == f"{PREFIX}/bin:{before['PATH']}"
    assert after == before


@pytest.mark.parametrize("character", "[]{}~")
def test_environment_modules_refuse_csh_what_it_would_get_wrong(
    character: str, tmp_path: Path
) -> None:
    publish(tmp_path / "tree", make_lock(f"a {character}b"), (1,), "tcl")
    env = clean_env(MODULEPATH=str(tmp_path / "tree"))
    command = [need("tclsh"), str(modulecmd()), "tcsh", "load", "allreduce"]
    done = run(command, env=env, cwd=tmp_path)
    assert "bash or zsh" in done.stderr
    assert "setenv VALUE" not in done.stdout


def test_environment_modules_help_whatis_and_families(tmp_path: Path) -> None:
    publish(tmp_path / "tree", make_lock("one"), (2, 10), "tcl")
    publish(tmp_path / "tree", make_lock("two", name="other"), (1,), "tcl")
    command = [need("tclsh"), str(modulecmd())]
    env = clean_env(MODULEPATH=str(tmp_path / "tree"), PYTHONPATH="/old")
    helped = run([*command, "bash", "help", "allreduce"], env=env, cwd=tmp_path).stderr
    assert f"allreduce/2: {HOSTILE}\n" in helped
    assert "Proved: several ranks, native, 2025-01-31T12:00:00Z\n" in helped
    whatis = run([*command, "bash", "whatis", "allreduce/2"], env=env, cwd=tmp_path).stderr
    assert f"Description: {HOSTILE}\n" in whatis
    both = run([*command, "python", "load", "allreduce", "other"], env=env, cwd=tmp_path)
    # It answers with Python code and exit code 0 whatever happens.
    assert "_mlstatus = False" in both.stdout
    assert "unset PYTHONPATH" in both.stderr


def test_environment_modules_loads_what_it_depends_on(tmp_path: Path) -> None:
    loads = ("OpenMPI/4.1.4",)
    plan = make_plan(modules=Modules(system="tcl", init="/init", loads=loads))
    publish(tmp_path / "tree", Lock(plan=plan, artifacts=()), (1,), "tcl")
    (tmp_path / "tree" / "OpenMPI").mkdir()
    text = "#%Module1.0\nsetenv MPI 4.1.4\n"
    (tmp_path / "tree" / "OpenMPI" / "4.1.4").write_text(text, encoding="utf-8")
    env = clean_env(MODULEPATH=str(tmp_path / "tree"))
    command = [need("tclsh"), str(modulecmd()), "python", "load", "allreduce"]
    done = run(command, env=env, cwd=tmp_path)
    assert "_mlstatus = True" in done.stdout
    assert f"os.environ['MPI'] = {json.dumps('4.1.4')}".replace('"', "'") in done.stdout
