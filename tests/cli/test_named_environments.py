"""NAME[/N] and a recipe's file in render, why, why-not, diff and launch; job scripts that check."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

# A program that says who started it, as python and as launcher.
SCRIPT = '#!/bin/sh\necho "ran $0 $*"\n'
PROGRAMS = {"bin/python": SCRIPT, "bin/mpiexec": SCRIPT}


def run(*words: object, **env: str | None) -> Result:
    names = ("SLURM_JOB_ID", "LSB_JOBID", "ENVBUILD_SITE", "ENVBUILD_ROOT")
    variables = {**dict.fromkeys(names), **env, "COLUMNS": "80"}
    return CliRunner().invoke(app, [str(word) for word in words], env=variables)


def value(answer: Result) -> dict[str, object]:
    assert answer.exit_code == 0, answer.stderr
    found: dict[str, object] = json.loads(answer.stdout)
    return found


class Root:
    """A root with mytorch/1, and the recipe's file beside it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "root"
        self.recipe = folder / "mytorch.yaml"
        text = run("recipes", "show", "allreduce").stdout
        self.recipe.write_text(text.replace("name: allreduce", "name: mytorch"), "utf-8")
        self.plan = planned(str(self.recipe), "--site", "local")
        version = publish_plan(self.path, self.plan, PROGRAMS)
        self.id = version.id
        self.prefix = self.path / "mytorch" / version.id
        for name in PROGRAMS:
            (self.prefix / name).chmod(0o755)

    def __call__(self, verb: str, *words: object) -> Result:
        return run(verb, "--root", self.path, *words)

    def change_recipe(self) -> None:
        text = self.recipe.read_text(encoding="utf-8")
        self.recipe.write_text(text.replace('mpi4py: ">=4"', 'mpi4py: "<4.1"'), "utf-8")

    def job(self, word: object) -> str:
        answer = self("render", word, "--as", "slurm")
        assert answer.exit_code == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Root:
    """Return a root that no test changes."""
    return Root(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


WORDS = ("mytorch", "mytorch/1", "FILE")


def word_of(word: str, root: Root) -> str:
    return str(root.recipe) if word == "FILE" else word


@pytest.mark.parametrize("word", WORDS)
def test_render_takes_the_published_environment(word: str, shared: Root) -> None:
    answer = value(shared("render", word_of(word, shared), "--as", "slurm", "--json"))
    assert answer["environment"] == "mytorch/1"
    lines = str(answer["text"]).splitlines()
    assert lines[1].startswith("#SBATCH ")
    assert f"PREFIX={shared.prefix}" in lines
    assert "not-locked" not in str(answer["text"])


@pytest.mark.parametrize("word", WORDS)
def test_launch_takes_the_published_environment(word: str, shared: Root) -> None:
    answer = value(shared("launch", word_of(word, shared), "--json", "--", "python", "x.py"))
    assert (answer["environment"], answer["number"]) == ("mytorch", 1)
    assert str(shared.prefix) in answer["words"]  # type: ignore[operator]


@pytest.mark.parametrize("word", WORDS)
def test_why_takes_the_published_environment(word: str, shared: Root) -> None:
    answer = value(shared("why", "mpich", word_of(word, shared), "--json"))
    assert answer["environment"] == "mytorch/1"
    pin = next(each for each in shared.plan["pins"] if each["component"] == "mpich")
    assert answer["version"] == pin["version"]


@pytest.mark.parametrize("word", WORDS)
def test_why_not_takes_the_published_environment(word: str, shared: Root) -> None:
    pin = next(each for each in shared.plan["pins"] if each["component"] == "mpich")
    more = ("--recipes", shared.recipe.parent, "--json")
    answer = value(shared("why-not", f"mpich=={pin['version']}", word_of(word, shared), *more))
    assert (answer["environment"], answer["possible"]) == ("mytorch/1", True)


@pytest.mark.parametrize("word", WORDS)
def test_diff_takes_the_published_environment(word: str, shared: Root) -> None:
    live = shared("diff", word_of(word, shared), "live", "--recipe", shared.recipe)
    assert live.exit_code == 0, live.stderr
    assert shared("diff", word_of(word, shared), "mytorch/1").exit_code == 0


@pytest.mark.parametrize("verb", ["render", "launch", "why", "why-not", "diff"])
def test_a_number_that_is_not_there_is_refused(verb: str, shared: Root) -> None:
    words = {
        "render": ["--as", "slurm"],
        "why": ["mpich"],
        "why-not": ["mpich==4.3.2"],
        "diff": ["mytorch/1"],
    }
    answer = shared(verb, *words.get(verb, []), "mytorch/7")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "mytorch/7" in answer.stderr
    assert "mytorch/1" in answer.stderr


def test_what_needs_the_recipe_says_that_the_root_has_none(shared: Root) -> None:
    """why answers from the lock; why-not does not answer about something else."""
    assert value(shared("why", "mpich", "mytorch", "--json"))["environment"] == "mytorch/1"
    answer = shared("why-not", "mpich==4.3.2", "mytorch")
    assert (answer.exit_code, answer.stdout) == (8, "")
    assert str(shared.prefix) in answer.stderr


def test_a_published_environment_is_not_planned(shared: Root) -> None:
    answer = shared("render", "mytorch/1", "--as", "slurm", "--allow", "OMPI-001=for a test")
    assert (answer.exit_code, answer.stdout) == (2, "")
    other = shared("render", "mytorch/1", "--as", "slurm", "--arch", "ppc64le")
    assert (other.exit_code, other.stdout) == (2, "")


def test_a_name_at_another_site_is_a_recipe(tmp_path: Path) -> None:
    """ENVBUILD_ROOT does not keep anybody from planning for another site."""
    publish_plan(tmp_path / "root", planned("horovod-nccl", "--site", "taurus-ml"), PROGRAMS)
    env = {"ENVBUILD_ROOT": str(tmp_path / "root")}
    words = ("render", "horovod-nccl", "--as", "lua", "--json")
    assert value(run(*words, **env, ENVBUILD_SITE="taurus-ml"))["environment"] == "horovod-nccl/1"
    assert value(run(*words, "--site", "taurus-ml", **env))["environment"] == "horovod-nccl/1"
    elsewhere = run("render", "horovod-nccl", "--as", "lua", "--json", "--site", "local", **env)
    assert "horovod-nccl/1" not in elsewhere.stdout


def test_the_modulefile_has_the_number_of_the_environment(root: Root) -> None:
    plan = {**root.plan, "smoke": {**root.plan["smoke"], "ranks": 3}}
    second = publish_plan(root.path, plan, PROGRAMS)
    assert second.number == 2
    assert f"{root.path}/mytorch/{second.id}/bin" in root("render", "mytorch", "--as", "lua").stdout
    # Its recipe is that of both; the default goes first.
    assert value(root("render", root.recipe, "--as", "tcl", "--json"))["environment"] == "mytorch/2"
    assert "Environment mytorch/1," in root.job("mytorch/1")
    assert "Environment mytorch/2," in root.job("mytorch")


def test_a_recipe_with_another_text_and_the_same_decisions_is_still_built(root: Root) -> None:
    root.recipe.write_text(root.recipe.read_text("utf-8") + "# a remark\n", "utf-8")
    answer = value(root("render", root.recipe, "--as", "slurm", "--json"))
    assert answer["environment"] == "mytorch/1"


def test_a_changed_recipe_is_not_built(root: Root) -> None:
    root.change_recipe()
    answer = root("render", root.recipe, "--as", "slurm", "--json")
    assert value(answer)["environment"] is None
    first, second, *_ = str(value(answer)["text"]).splitlines()
    assert first == "#!/usr/bin/env bash"
    assert second.startswith("# ")
    assert all(each in second for each in ("mytorch", "mytorch/1", "envbuild create"))
    assert "warning: " in answer.stderr
    assert value(root("launch", root.recipe, "--json", "--", "x"))["number"] is None
    assert value(root("why", "mpi4py", root.recipe, "--json"))["environment"] is None
    # By its name it is the published one.
    assert value(root("render", "mytorch", "--as", "slurm", "--json"))["environment"] == "mytorch/1"
    assert root("diff", root.recipe, "live").exit_code == 8


def test_every_form_of_what_is_not_built_says_so_first(tmp_path: Path) -> None:
    words = ("render", "allreduce", "--site", "local", "--root", tmp_path / "root")
    done = run(*words, "--as", "all", "--output", tmp_path / "all")
    assert done.exit_code == 0, done.stderr
    files = sorted((tmp_path / "all").iterdir())
    assert len(files) > 6
    for file in files:
        first, second, *_ = file.read_text(encoding="utf-8").splitlines()
        said = second if first.startswith(("#!", "#%Module")) else first
        assert said.lstrip("#- ").startswith("allreduce"), file.name
        words = ("envbuild create allreduce", "--site local", f"--root {tmp_path}/root")
        assert all(each in said for each in words), file.name


def test_a_lock_that_is_published_is_that_environment(root: Root, tmp_path: Path) -> None:
    lock = root.path / "mytorch" / f"{root.id}.build" / "lock.json"
    words = (root.recipe, "--as", "slurm", "--json", "--locked", lock)
    assert value(root("render", *words))["environment"] == "mytorch/1"
    elsewhere = value(run("render", *words, "--root", tmp_path / "other"))
    assert elsewhere["environment"] is None
    assert "envbuild create" in str(elsewhere["text"]).splitlines()[1]


# What stands in for Slurm and the machine's own programs, which no job may run.
OTHERS = ("python", "mpiexec")


def run_job(text: str, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a job script as Slurm does on one node, with other programs of these names on PATH."""
    others = tmp_path / "others"
    others.mkdir(exist_ok=True)
    for name in OTHERS:
        (others / name).write_text(SCRIPT)
        (others / name).chmod(0o755)
    (others / "scontrol").write_text("#!/bin/sh\necho node1\n")
    (others / "scontrol").chmod(0o755)
    variables = {
        "PATH": f"{others}:/usr/bin:/bin",
        "SLURM_JOB_ID": "1",
        "SLURM_JOB_NODELIST": "node1",
        **env,
    }
    return subprocess.run(["bash", "-s"], input=text, env=variables, capture_output=True, text=True)


def test_a_job_starts_the_environment_s_own_launcher(root: Root, tmp_path: Path) -> None:
    done = run_job(root.job("mytorch"), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"ran {root.prefix}/bin/mpiexec -n 2 python my_program.py\n"


def move_prefix(root: Root) -> None:
    root.prefix.rename(root.prefix.with_name("elsewhere"))


def remove_python(root: Root) -> None:
    (root.prefix / "bin" / "python").unlink()


def remove_interpreter(root: Root) -> None:
    """Leave a link that leads nowhere, as where the module of the Python is gone."""
    remove_python(root)
    (root.prefix / "bin" / "python").symlink_to("/nowhere/bin/python3")


def remove_launcher(root: Root) -> None:
    (root.prefix / "bin" / "mpiexec").unlink()


DAMAGES = (move_prefix, remove_python, remove_interpreter, remove_launcher)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_job_of_a_damaged_environment_ends_before_the_first_rank(
    damage: object, root: Root, tmp_path: Path
) -> None:
    text = root.job("mytorch")
    damage(root)  # type: ignore[operator]
    done = run_job(text, tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert "\nhint: " in done.stderr


@pytest.mark.parametrize("damage", [remove_python, remove_launcher])
def test_launch_reports_a_damaged_environment(damage: object, root: Root) -> None:
    damage(root)  # type: ignore[operator]
    answer = root("launch", "mytorch", "--json", "--", "python", "x.py")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (8, ["environment.damaged"])
    assert str(root.prefix) in answer.stderr


def test_render_reports_a_damaged_environment(root: Root) -> None:
    remove_python(root)
    answer = root("render", root.recipe, "--as", "slurm")
    assert (answer.exit_code, answer.stdout) == (8, "")


def test_what_has_lost_its_prefix_is_not_published(root: Root) -> None:
    move_prefix(root)
    assert value(root("render", root.recipe, "--as", "slurm", "--json"))["environment"] is None
    for words in (("render", "--as", "slurm"), ("launch",), ("why", "mpich")):
        answer = root(*words, "mytorch", "--json")
        assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["environment.not-published"])
        assert "'mytorch'" in answer.stderr


def test_a_job_of_what_is_not_built_ends_before_the_first_rank(root: Root, tmp_path: Path) -> None:
    root.change_recipe()
    done = run_job(root.job(root.recipe), tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: mytorch ")


def line_of(root: Root, *program: str) -> str:
    answer = root("launch", "mytorch", "--", *program)
    assert answer.exit_code == 0, answer.stderr
    return answer.stdout


def in_shell(
    line: str, path: Sequence[str | Path], shell: Sequence[str] = ("bash", "-c")
) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.pathsep.join(map(str, path)), "HOME": "/"}
    return subprocess.run([*shell, line], env=env, capture_output=True, text=True)


@pytest.mark.parametrize("shell", ["bash -c", "dash -c", "tcsh -f -c"])
def test_the_launch_line_checks_before_it_starts(shell: str, root: Root, tmp_path: Path) -> None:
    words = shlex.split(shell)
    found = shutil.which(words[0])
    if found is None:
        pytest.skip(f"{words[0]} is not on this machine")
    run_job("true", tmp_path)  # writes the other programs
    others, own = tmp_path / "others", root.prefix / "bin"
    line, system = line_of(root, "python", "it's $HOME"), ("/usr/bin", "/bin")
    command = (found, *words[1:])
    loaded = in_shell(line, (own, others, *system), command)
    assert (loaded.returncode, loaded.stderr) == (0, "")
    assert loaded.stdout == f"ran {own}/mpiexec -n 2 python it's $HOME\n"
    for path in ((others, *system), (others, own, *system), system):
        refused = in_shell(line, path, command)
        assert (refused.returncode, refused.stdout) == (1, ""), path
        assert refused.stderr.startswith("error: python is ")
    # Loaded, and another launcher before it.
    (others / "python").unlink()
    refused = in_shell(line, (others, own, *system), command)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: mpiexec ")
    assert all(f"{each}/mpiexec" in refused.stderr for each in (others, own))


def test_another_path_of_the_same_root_is_the_same_environment(root: Root, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root.path)
    answer = run("launch", "mytorch", "--root", link, "--", "python", "x.py")
    assert answer.exit_code == 0, answer.stderr
    done = in_shell(answer.stdout, (root.prefix / "bin", "/usr/bin", "/bin"))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_launcher_of_the_site_s_modules_is_checked_by_its_module(
    root: Root, tmp_path: Path
) -> None:
    """Its module must be loaded, and the system's own launcher is not that of the module."""
    plan = json.loads(json.dumps(root.plan))
    for pin in plan["pins"]:
        if pin["component"] == "mpich":
            pin.update({"origin": "module", "locator": "MPICH/4.2-GCC"})
    plan["recipe"] = "modular"
    version = publish_plan(root.path, plan, {"bin/python": SCRIPT})
    own = root.path / "modular" / version.id / "bin"
    (own / "python").chmod(0o755)
    answer = run("launch", "modular", "--root", root.path, "--", "python", "x.py")
    assert answer.exit_code == 0, answer.stderr
    run_job("true", tmp_path)
    path = (own, tmp_path / "others", "/usr/bin", "/bin")
    refused = in_shell(answer.stdout, path)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "MPICH/4.2-GCC" in refused.stderr
    line = f"LOADEDMODULES=a/1:MPICH/4.2-GCC; export LOADEDMODULES; {answer.stdout}"
    done = in_shell(line, path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "others" / "mpiexec").unlink()
    assert in_shell(line, path).returncode == 1
