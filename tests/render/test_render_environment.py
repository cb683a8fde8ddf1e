"""environment.sh: what it drops of the caller's shell, and the site's modules by real Lmod."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from render_cases import build_files, make_plan, make_steps, standard_edits
from render_tools import clean_env, lmod_folder, need, read_environment, run

from envbuilder.model.launch import StartCommand
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Modules

pytestmark = pytest.mark.integration

TREE = {
    "GCC/12.2.0": 'setenv("EBROOTGCC", "/apps/gcc")',
    "Old/1.0": 'setenv("OLD", "1")\nprepend_path("PYTHONPATH", "/apps/old")',
    "OpenMPI/4.1.4-GCC-12.2.0": 'load("GCC/12.2.0")\nsetenv("MPI", "4.1.4")',
    "OpenMPI/3.1.1-GCC-12.2.0": 'load("GCC/12.2.0")\nsetenv("MPI", "3.1.1")',
    "NCCL/2.3.7": 'load("OpenMPI/3.1.1-GCC-12.2.0")',
    "Python/3.11.3": 'prepend_path("PYTHONPATH", "/apps/python/extra")',
    "Broken/1.0": 'LmodError("this one is out of order")',
}
MPI = "OpenMPI/4.1.4-GCC-12.2.0"
PYTHON = "Python/3.11.3"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a module tree of a small site."""
    tree = tmp_path / "module tree"
    for name, text in TREE.items():
        path = tree / f"{name}.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return tree


START = StartCommand(ranks=2, words=("env", "-n", "2"), root_variables=("ALLOWED_AS_ROOT",))


def build_folder(tmp_path: Path, modules: Modules) -> Path:
    """Return a rendered build folder for a plan with these modules."""
    folder = tmp_path / "build folder"
    steps = make_steps("modules") if modules.loads else make_steps("venv")
    plan = make_plan(modules=modules, steps=steps, environment=standard_edits(OMP_NUM_THREADS="3"))
    folder.mkdir()
    lock = Lock(plan=plan, artifacts=())
    for name, text in build_files(lock, BuildFolders(tmp_path / "pre fix", folder), START).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def lmod(tree: Path, loads: tuple[str, ...], final: tuple[str, ...]) -> Modules:
    init = str(lmod_folder() / "init" / "bash")
    return Modules(system="lmod", init=init, trees=(str(tree),), loads=loads, final=final)


def entered(folder: Path, **caller: str) -> dict[str, str]:
    """Return the environment of a command in shell.sh, started from a shell with *caller* set."""
    result = folder.parent / "result"
    done = run(
        [need("bash"), str(folder / "shell.sh"), "bash", "-c", 'env -0 >"$0"', str(result)],
        env=clean_env(**caller),
        cwd=Path("/"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    return read_environment(result)


def test_what_the_caller_carries_in_is_dropped(tmp_path: Path) -> None:
    start_up = tmp_path / "start-up.sh"
    start_up.write_text("STARTED=yes\nexport STARTED\n", encoding="utf-8")
    hostile = {
        "PYTHONPATH": "/old",
        "PYTHONHOME": "/wrong",
        "PYTHONSTARTUP": "/x",
        "PYTHONUSERBASE": "/x",
        "PYTHON": "/wrong/python",
        "VIRTUAL_ENV": "/other",
        "VIRTUAL_ENV_PROMPT": "other",
        "PIP_TARGET": "/elsewhere",
        "PIP_PREFIX": "/elsewhere",
        "PIP_USER": "1",
        "PIP_QUIET": "2",
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_NO_BINARY": ":all:",
        "PIP_CONSTRAINT": "/constraints",
        "HOROVOD_WITH_MPI": "0",
        "CXXFLAGS": "-march=native",
    }
    kept = {
        "PIP_FIND_LINKS": "/wheels",
        "PIP_INDEX_URL": "https://index.example/simple",
        "PIP_CERT": "/ca.pem",
        "PIP_PROXY": "http://proxy.example:3128",
        "PIP_CACHE_DIR": "/cache",
        "https_proxy": "http://proxy.example:3128",
    }
    folder = build_folder(tmp_path, Modules())
    env = entered(folder, **hostile, **kept, BASH_ENV=str(start_up), CDPATH="/", ENV=str(start_up))
    ours = {
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_USER": "0",
        "PIP_QUIET": "0",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "VIRTUAL_ENV": str(tmp_path / "pre fix"),
        "OMP_NUM_THREADS": "3",
        "PWD": str(folder),
    }
    assert env.items() >= {**ours, **kept}.items()
    assert not {"HOROVOD_WITH_MPI", "CXXFLAGS"} & set(env)
    left = {name for name in env if name.startswith(("PYTHON", "PIP_", "VIRTUAL_ENV"))}
    assert left == {name for name in {**ours, **kept} if name.startswith(("PY", "PIP_", "VIRT"))}
    assert not {"BASH_ENV", "ENV", "CDPATH"} & set(env)
    assert env["PATH"].split(":")[0] == str(tmp_path / "pre fix" / "bin")


def test_modules_are_those_of_the_plan_and_no_others(tmp_path: Path, tree: Path) -> None:
    folder = build_folder(tmp_path, lmod(tree, (PYTHON, MPI), ("GCC/12.2.0", MPI, PYTHON)))
    script = (
        f"source {lmod_folder()}/init/bash; module use '{tree}'; module load Old; "
        f"cd /; bash '{folder}/shell.sh' bash -c 'env -0 >\"$0\"' '{tmp_path}/result'"
    )
    done = run([need("bash"), "-c", script], env=clean_env(PYTHONPATH="/mine"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    env = read_environment(tmp_path / "result")
    assert sorted(env["LOADEDMODULES"].split(":")) == ["GCC/12.2.0", MPI, PYTHON]
    assert env["PYTHONPATH"] == "/apps/python/extra"
    assert "OLD" not in env
    assert env["MPI"] == "4.1.4"
    assert env["PYTHONNOUSERSITE"] == "1"


def step_modules(folder: Path) -> subprocess.CompletedProcess[str]:
    return run([need("bash"), str(folder / "build.sh"), "modules"], env=clean_env(), cwd=Path("/"))


def test_the_step_says_what_is_loaded(tmp_path: Path, tree: Path) -> None:
    folder = build_folder(tmp_path, lmod(tree, (PYTHON, MPI), ("GCC/12.2.0", MPI, PYTHON)))
    done = step_modules(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["GCC/12.2.0", MPI, PYTHON]
    assert (folder / "state" / "modules.done").is_file()
    listed = run(
        [need("bash"), str(folder / "shell.sh"), "bash", "-c", "$LMOD_CMD bash -t list"],
        env=clean_env(),
        cwd=Path("/"),
    )
    assert sorted(listed.stderr.split()) == done.stdout.split()


def test_a_silent_swap_is_an_error_that_names_both(tmp_path: Path, tree: Path) -> None:
    nccl = "NCCL/2.3.7"
    folder = build_folder(tmp_path, lmod(tree, (MPI, nccl), ("GCC/12.2.0", MPI, nccl)))
    done = step_modules(folder)
    assert done.returncode == 1
    assert "differ from the plan" in done.stderr
    assert f": {MPI}\n" in done.stderr
    assert ": OpenMPI/3.1.1-GCC-12.2.0\n" in done.stderr
    assert "step modules failed" in done.stderr
    assert not (folder / "state" / "modules.done").exists()


@pytest.mark.parametrize(
    ("load", "says"), [("Broken/1.0", "this one is out of order"), ("Absent/1.0", "unknown")]
)
def test_a_module_that_does_not_load_is_named(
    tmp_path: Path, tree: Path, load: str, says: str
) -> None:
    folder = build_folder(tmp_path, lmod(tree, (PYTHON, load), (PYTHON, load)))
    done = step_modules(folder)
    assert done.returncode == 1
    assert f"load the module {load} " in done.stderr
    assert says in done.stderr


def test_a_tree_or_module_system_that_is_gone_is_named(tmp_path: Path, tree: Path) -> None:
    good = lmod(tree, (PYTHON,), (PYTHON,))
    folder = build_folder(tmp_path, good.model_copy(update={"trees": ("/no/tree",)}))
    assert "module tree /no/tree " in step_modules(folder).stderr
    (tmp_path / "other").mkdir()
    gone = build_folder(tmp_path / "other", good.model_copy(update={"init": "/no/init"}))
    assert " /no/init" in step_modules(gone).stderr


def test_a_shell_opens_even_where_modules_fail_but_runs_no_command(
    tmp_path: Path, tree: Path
) -> None:
    folder = build_folder(tmp_path, lmod(tree, (PYTHON, "Broken/1.0"), (PYTHON, "Broken/1.0")))
    command = [need("bash"), str(folder / "shell.sh")]
    refused = run([*command, "echo", "ran"], env=clean_env(), cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (1, "")
    opened = subprocess.run(
        command,
        input="echo $LOADEDMODULES; declare -F module; exit\n",
        env=clean_env(),
        capture_output=True,
        text=True,
        start_new_session=True,  # without a terminal to take over
        check=False,
    )
    assert opened.stdout.split() == [PYTHON, "module"]
    assert "before the error" in opened.stderr


@pytest.mark.parametrize("ranks", [None, "2"])
def test_smoke_starts_the_launcher_with_the_ranks(tmp_path: Path, ranks: str | None) -> None:
    folder = build_folder(tmp_path, Modules())
    launcher = tmp_path / "bin" / "env"
    launcher.parent.mkdir()
    launcher.write_text('#!/bin/sh\necho "$ALLOWED_AS_ROOT:$*"\n', encoding="utf-8")
    launcher.chmod(0o755)
    env = clean_env(**({"ENVBUILD_RANKS": ranks} if ranks else {}))
    env["PATH"] = f"{launcher.parent}:{env['PATH']}"
    done = run([need("bash"), str(folder / "smoke.sh"), "--max", "a b"], env=env, cwd=Path("/"))
    python = tmp_path / "pre fix" / "bin" / "python"
    asked = "--api numpy --transport mpi"
    program = f"{python} {folder}/target_tools smoke {asked}"
    root = "1" if os.geteuid() == 0 else ""
    assert done.stdout == f"{root}:-n 2 {program} --max a b\n"


@pytest.mark.parametrize("ranks", ["3", "two", "2; touch CANARY", "-1"])
def test_smoke_refuses_another_number_of_ranks(tmp_path: Path, ranks: str) -> None:
    folder = build_folder(tmp_path, Modules())
    done = run([need("bash"), "smoke.sh"], env=clean_env(ENVBUILD_RANKS=ranks), cwd=folder)
    assert done.returncode == 2
    assert f"ENVBUILD_RANKS is '{ranks}'" in done.stderr
    assert not (folder / "CANARY").exists()
