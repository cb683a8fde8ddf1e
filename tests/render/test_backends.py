"""The contract of BACKENDS, with the real tool where there is one; and a made-up entry.

A new entry is tried by a recipe that is shipped for it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from render_cases import build_files, make_plan
from render_tools import clean_env, need, run
from typer.testing import CliRunner

from envbuilder import data
from envbuilder.build.backends import BACKENDS, Backend
from envbuilder.build.scripts import prepare
from envbuilder.cli import app
from envbuilder.knowledge.artifacts import CondaArchive
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Edit, Lock, Pin, Plan, PlanChannel
from envbuilder.render.forms import FORMS
from tests.conda_channel import locked, movable_python, write_channel
from tests.made_up_backend import add_backend, write_recipe

pytestmark = pytest.mark.thorough

# What fetches and links before there is a Python in the prefix.
PYTHON = "ENVBUILD_PYTHON"

# What every plan has beside the steps of its backend.
COMMON = ("modules", "fetch", "install", "tools", "runtime", "check")


def envbuild(*words: str | Path) -> str:
    done = CliRunner().invoke(app, [str(each) for each in words], env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.output
    return done.stdout


@cache
def shipped(name: str) -> tuple[str, ...]:
    """Return the words that name a shipped recipe of a backend, and a site and architecture."""
    for path in sorted(data.RECIPES.glob("*.yaml")):
        recipe = yaml.safe_load(path.read_text())
        if recipe.get("backend", "virtualenv") == name:
            arch, site = next(iter(recipe.get("documented-for", {}).items()), ("x86_64", "local"))
            return recipe["name"], "--site", site, "--arch", arch
    raise AssertionError(f"no recipe is shipped for backend {name}")


def plan_for(name: str, entry: Backend) -> Plan:
    """Return a small plan for this machine that makes a prefix and nothing else."""
    traits = entry.TRAITS
    origin = sorted(traits.python_origins)[0]
    version = ".".join(map(str, sys.version_info[:3]))
    channel = PlanChannel(name="conda-forge", url="https://conda.anaconda.org/conda-forge")
    return make_plan(
        backend=name,
        python=None if traits.channels else sys.executable,
        pins=(
            Pin(
                component="python",
                version=".".join(version.split(".")[:2]) if traits.channels else version,
                origin=origin,
                locator="conda-forge/python" if traits.channels else sys.executable,
                why="a test",
            ),
        ),
        channels=(channel,) if traits.channels else (),
        environment=(
            Edit(kind="set", name=traits.home_variable, in_prefix=True),
            Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        ),
        steps=traits.steps,
    )


def build_folder(name: str, folder: Path, artifacts: tuple[CondaArchive, ...] = ()) -> Path:
    lock = Lock(plan=plan_for(name, BACKENDS[name]), artifacts=artifacts)
    files = build_files(lock, BuildFolders(folder / "the prefix", folder))
    prepare(folder, files, data.RUNTIME)
    return folder


def bash(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run(
        [need("bash"), *words], env={**clean_env(), PYTHON: sys.executable, **env}, cwd=folder
    )


def check_traits(entry: Backend) -> None:
    traits = entry.TRAITS
    assert traits.steps, "nothing makes its prefix"
    ids = [each.id for each in traits.steps]
    assert len({*ids, *COMMON}) == len(ids) + len(COMMON)
    assert traits.python_origins, "it has no Python"
    # Only what has channels can take packages from one.
    assert traits.channels == ("conda" in {*traits.first_origins, *traits.python_origins})


def check_scripts(name: str, folder: Path) -> None:
    """Its steps are functions of build.sh, and every script is good bash."""
    build_folder(name, folder)
    for step in BACKENDS[name].TRAITS.steps:
        assert f"step_{step.id}() {{" in (folder / "build.sh").read_text()
    scripts = [str(each) for each in sorted(folder.glob("*.sh"))]
    for script in scripts:
        done = bash(folder, "-n", script)
        assert (done.returncode, done.stderr) == (0, "")
    program = shutil.which("shellcheck", path=str(Path(sys.executable).parent)) or need(
        "shellcheck"
    )
    done = run([program, "--severity=style", *scripts], env=clean_env(), cwd=folder)
    assert (done.stdout, done.returncode) == ("", 0)


def check_prefix(name: str, folder: Path, artifacts: tuple[CondaArchive, ...] = ()) -> None:
    """The real tool makes the prefix, which is entered."""
    traits = BACKENDS[name].TRAITS
    build_folder(name, folder, artifacts)
    prefix = folder / "the prefix"
    done = bash(folder, "build.sh", *(each.id for each in traits.steps))
    assert done.returncode == 0, done.stderr
    code = "import sys; print(sys.prefix == sys.argv[1])"
    inside = bash(folder, "shell.sh", "python", "-c", code, str(prefix))
    assert (inside.returncode, inside.stdout) == (0, "True\n"), inside.stderr
    entered = bash(folder, "shell.sh", "printenv", traits.home_variable)
    assert (entered.returncode, entered.stdout) == (0, f"{prefix}\n"), entered.stderr


def check_verbs(name: str, words: tuple[str | Path, ...]) -> None:
    """plan, every form and a job take it, and speak of no other backend's variable."""
    traits = BACKENDS[name].TRAITS
    others = {each.TRAITS.home_variable for each in BACKENDS.values()} - {traits.home_variable}
    assert f", {name}\n" in envbuild("plan", *words)
    texts = {}
    for form in (*FORMS, "slurm", "lsf"):
        asked = ["render", *map(str, words), "--root", "/apps/root", "--as", form]
        done = CliRunner().invoke(app, asked)
        # What a plan cannot have is refused with a reason.
        assert done.exit_code == 0 or (done.exit_code == 2 and "error: " in done.stderr)
        texts[form] = done.stdout
    # It is started without a root: nothing of it is built.
    assert envbuild("launch", *words, "--", "python", "train.py").endswith(" train.py\n")
    # A job of it can be had wherever ranks can be started.
    assert all(texts[form] for form in ("script", "lua", "tcl", "slurm"))
    for form in ("lua", "tcl"):
        assert traits.home_variable in texts[form], form
        assert not any(other in texts[form] for other in others), form


@pytest.mark.parametrize("name", BACKENDS)
def test_traits_are_of_one_piece(name: str) -> None:
    check_traits(BACKENDS[name])


@pytest.mark.integration
@pytest.mark.parametrize("name", BACKENDS)
def test_scripts_are_good_bash(name: str, tmp_path: Path) -> None:
    check_scripts(name, tmp_path / "build")


@pytest.mark.integration
@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.sample(1)
def test_the_prefix_is_made_and_entered(name: str, tmp_path: Path) -> None:
    artifacts: tuple[CondaArchive, ...] = ()
    if BACKENDS[name].TRAITS.channels:
        artifacts = locked(write_channel(tmp_path / "channel", [movable_python()]))
    check_prefix(name, tmp_path / "build folder", artifacts)


@pytest.mark.integration
def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = build_folder("conda", tmp_path / "build folder")
    # A Python without py-rattler: it sees no packages.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    done = bash(folder, "build.sh", "packages", "conda", **{PYTHON: str(bare)})
    assert done.returncode == 1
    assert "py-rattler are missing" in done.stderr
    assert not (folder / "the prefix").exists()
    named = bash(folder, "build.sh", "conda", ENVBUILD_CONDA="/nowhere/conda")
    assert named.returncode == 1
    assert ": /nowhere/conda\n" in named.stderr


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.sample(1)
def test_plan_forms_and_jobs(name: str) -> None:
    check_verbs(name, shipped(name))


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return add_backend(tmp_path, monkeypatch)


@pytest.mark.integration
def test_a_further_backend_is_a_module_and_a_line(copied: str, tmp_path: Path) -> None:
    recipes = write_recipe(tmp_path / "recipes")
    check_traits(BACKENDS[copied])
    check_scripts(copied, tmp_path / "scripts")
    check_prefix(copied, tmp_path / "build folder")
    check_verbs(copied, ("mine", "--recipes", recipes, "--site", "local"))
    assert '"copied"' in envbuild("recipes", "schema")
