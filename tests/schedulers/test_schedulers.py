"""What every scheduler's module does, and one that is made up like those that are shipped."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.launching.launchers import LAUNCHERS
from envbuilder.launching.schedulers import SCHEDULERS, current_scheduler
from envbuilder.launching.schedulers.protocol import Scheduler
from envbuilder.model.job import Job
from tests.cli.published import planned, publish_plan
from tests.made_up_launcher import add_launcher
from tests.made_up_scheduler import add_scheduler
from tests.strict_tools import write_tool

pytestmark = pytest.mark.thorough

SITE = """\
schema: 1
name: cluster
summary: A cluster
arch: [x86_64]
scheduler: {scheduler}
facts: {{gpus-per-node: 4, cores-per-node: 8}}
"""
JOBS = (
    Job("plain", 1, 2, 30, launch_node=False),
    Job("large", 18, 6, 700, 6, 7, "project", "batch", one_task_per_node=True, tf_config=True),
)


def envbuild(*words: str | Path, **env: str | None) -> str:
    """Return what a command prints."""
    none = dict.fromkeys(each.JOB_ID for each in SCHEDULERS.values())
    done = CliRunner().invoke(app, [str(word) for word in words], env={**none, **env})
    assert done.exit_code == 0, done.output
    return done.stdout


def site_of(name: str, folder: Path, more: str = "") -> Path:
    file = folder / "cluster.yaml"
    file.write_text(SITE.format(scheduler=name) + more, encoding="utf-8")
    return file


def publish(recipe: str, site: Path, root: Path, launcher: str = "") -> Path:
    """Publish an environment whose programs do nothing; return the folder of them.

    *launcher*: one that shows its words.
    """
    files = {"bin/python": "#!/bin/sh\n"}
    if launcher:
        files[f"bin/{launcher}"] = '#!/bin/sh\necho "$0" "$@"\n'
    version = publish_plan(root, planned(recipe, "--site", str(site)), files)
    folder = root / recipe / version.id / "bin"
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


def check_values(name: str) -> None:
    entry = SCHEDULERS[name]
    assert entry.TITLE.isprintable()
    assert entry.SUBMIT_LINE.split()[0] == entry.SUBMIT
    for variable in (entry.JOB_ID, entry.PARTITION):
        assert re.fullmatch(r"[A-Z][A-Z0-9_]+", variable)
    assert current_scheduler({entry.JOB_ID: "17"}) == name
    for job in JOBS:
        script = entry.job_script(job)
        comments = (*script.directives, *script.usage.splitlines())
        assert all(line.startswith("#") and "\n" not in line for line in comments)
        assert any(job.name in line for line in script.directives)
    assert len({tuple(entry.job_script(job).directives) for job in JOBS}) == len(JOBS)
    check_shell(entry)


def check_shell(entry: Scheduler) -> None:
    """An interactive job gets the program, as words or as one; or the scheduler has no such job."""
    program = ("bash", "-c", "echo 'a  b'; exit 1")
    try:
        lines = [entry.shell_line(job, program) for job in JOBS]
    except UsageError as error:
        assert entry.SUBMIT in error.problems[0].hints[0]  # noqa: PT017
        return
    assert len(set(lines)) == len(JOBS)
    for words in lines:
        assert program in (words[-3:], tuple(shlex.split(words[-1])))


def check_environment(name: str) -> None:
    """What a job's environment says, and what is refused."""
    entry = SCHEDULERS[name]

    def unread(path: str, called: str) -> str:
        raise AssertionError(f"nothing names the file {path} ({called})")

    with pytest.raises(UsageError) as caught:
        entry.job_hosts({entry.JOB_ID: "17"}, unread, lambda *_: "", None)
    assert entry.TITLE in caught.value.problems[0].message
    assert caught.value.problems[0].hints
    assert entry.job_step({entry.JOB_ID: "17"}, lambda *_: "") is None
    assert entry.draft_launcher(lambda _: None, lambda *_: "") is None
    drafted = entry.draft_launcher(lambda program: f"/bin/{program}", lambda *_: "")
    assert drafted is None or drafted.kind in LAUNCHERS


def check_script(name: str, folder: Path) -> None:
    """The script of a job by the verb: good bash, which refuses to run outside a job."""
    site = site_of(name, folder)
    words = ["render", "allreduce", "--site", site, "--root", "/apps", "--as"]
    text = envbuild(*words, "job")
    assert text == envbuild(*words, name)
    assert f"--on {name} --nodes N" in text
    file = folder / "job.sh"
    file.write_text(text, encoding="utf-8")
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    assert subprocess.run(["bash", "-n", file], capture_output=True, check=False).stderr == b""
    done = outside(["bash", str(file)])
    assert done.returncode == 2
    entry = SCHEDULERS[name]
    # What ports are made from.
    number = f"echo $((20000 + {entry.job_script(JOBS[0]).job_id} % 10000))"
    assert outside(["bash", "-c", number], {entry.JOB_ID: "17"}).stdout == "20017\n"
    assert f" of {entry.TITLE}: submit it with {entry.SUBMIT}" in done.stderr


def outside(
    command: list[str], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess:  # type: ignore[type-arg]
    variables = {"PATH": os.environ["PATH"], **(env or {})}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


def check_documents(name: str, folder: Path) -> None:
    """A site may name it, and the schema says so."""
    assert ": good" in envbuild("sites", "check", site_of(name, folder))
    assert f'"{name}"' in envbuild("sites", "schema")


@pytest.mark.parametrize("name", SCHEDULERS)
def test_values_are_of_one_piece(name: str) -> None:
    check_values(name)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_what_the_environment_says(name: str) -> None:
    check_environment(name)


@pytest.mark.integration
@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_script_of_a_job(name: str, tmp_path: Path) -> None:
    check_script(name, tmp_path)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_site_may_name_it(name: str, tmp_path: Path) -> None:
    check_documents(name, tmp_path)


def test_no_two_take_the_same_environment() -> None:
    assert len({each.JOB_ID for each in SCHEDULERS.values()}) == len(SCHEDULERS)


def test_an_unknown_scheduler_is_told_those_that_are_known(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["sites", "check", str(site_of("oar", tmp_path))])
    assert done.exit_code == 2
    for name in (*SCHEDULERS, "none"):
        assert name in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("launcher", ["jsrun", "openmpi"])
def test_bsub_takes_every_line_of_the_script(launcher: str, tmp_path: Path) -> None:
    """A bsub as strict as its documentation runs the job; jsrun's jobs have launch nodes."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    site = site_of("lsf", tmp_path, f"launcher: {{kind: {launcher}, command: [show]}}\n")
    root = tmp_path / "root"
    publish("horovod-torch-cpu", site, root)
    words = ["render", "horovod-torch-cpu", "--site", site, "--root", root, "--as", "job"]
    size = ["--nodes", "2", "--ranks-per-node", "2", "--cpus-per-rank", "3", "--account", "ABC"]
    text = envbuild(*words, *size)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "show").write_text('#!/bin/sh\nprintf "%s " "$@"\n')
    (tools / "show").chmod(0o755)
    first = "batch1\n" if launcher == "jsrun" else ""
    (tmp_path / "hosts").write_text(first + "n1\nn1\nn2\nn2\n")
    env = {"LSB_JOBID": "17", "LSB_DJOB_HOSTFILE": str(tmp_path / "hosts")}
    env["PATH"] = f"{tools}:{os.environ['PATH']}"
    bsub = str(write_tool(tools, "bsub"))
    done = subprocess.run([bsub], input=text, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    line = "-n2 -r1 -g0 -a2 -c8 -bpacked:3"
    assert (
        line if launcher == "jsrun" else "-n 4 --bind-to core --map-by slot:PE=3"
    ) in done.stdout


@pytest.fixture
def pjm(monkeypatch: pytest.MonkeyPatch) -> str:
    return add_scheduler(monkeypatch)


@pytest.mark.integration
def test_a_further_scheduler_is_a_module_and_a_line(pjm: str, tmp_path: Path) -> None:
    check_values(pjm)
    check_environment(pjm)
    check_script(pjm, tmp_path)
    check_documents(pjm, tmp_path)


JOB = {"PJM_JOBID": "17", "PJM_RSCGRP": "gpu"}


def test_a_further_scheduler_is_planned_and_launched(pjm: str, tmp_path: Path) -> None:
    site = site_of(pjm, tmp_path)
    nodes = tmp_path / "nodes"
    nodes.write_text("n1\nn1\nn2\nn2\n")
    assert '"launcher"' in envbuild("plan", "allreduce", "--site", site, "--json")
    words = ["launch", "allreduce", "--site", site, "--root", tmp_path / "none"]
    line = ("--", "python", "train.py")
    job = {**JOB, "PJM_O_NODEINF": str(nodes), "XDG_DATA_HOME": str(tmp_path)}
    assert envbuild(*words[:-2], *line, **job) == "mpiexec -n 4 python train.py\n"
    without = envbuild(*words[:-2], "--launcher", "distributed-dl-trainingrun", *line, **job)
    assert without.split()[:5] == ["distributed-dl-trainingrun", "-np", "4", "-H", "n1:2,n2:2"]
    asked = envbuild(*words[:-2], "--nodes", "3", *line, XDG_DATA_HOME=str(tmp_path))
    assert asked == "mpiexec -n 6 python train.py\n"


@pytest.mark.integration
def test_the_job_of_a_further_scheduler_runs(pjm: str, tmp_path: Path) -> None:
    """As ``pjsub`` would run it, with the words of the launch line shown."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    site = site_of(pjm, tmp_path)
    root = tmp_path / "root"
    show = publish("allreduce", site, root, "mpiexec") / "mpiexec"
    words = ["render", "allreduce", "--site", site, "--root", root, "--as", "job"]
    file = tmp_path / "job.sh"
    file.write_text(envbuild(*words, "--nodes", "2", "--ranks-per-node", "2"), encoding="utf-8")
    assert '#PJM --mpi "max-proc-per-node=2"\n' in file.read_text()
    (tmp_path / "nodes").write_text("n1\nn1\nn2\nn2\n")
    env = {**JOB, "PJM_O_NODEINF": str(tmp_path / "nodes")}
    done = outside(["bash", str(file), "more"], env)
    assert done.stdout == f"{show} -n 4 python my_program.py more\n", done.stderr


def test_a_further_launcher_is_a_module_and_a_line(
    pjm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher of the further scheduler, which starts torchrun on every node, too."""
    pals = add_launcher(monkeypatch)
    more = f"launcher: {{kind: {pals}, command: [palsrun, --cpu-bind=depth]}}\n"
    site = site_of(pjm, tmp_path, more)
    assert ": good" in envbuild("sites", "check", site)
    plan = envbuild("plan", "allreduce", "--site", site, "--json")
    assert '"kind": "pals"' in plan
    words = ["allreduce", "--site", site]
    data = {"XDG_DATA_HOME": str(tmp_path)}
    line = ("--nodes", "2", "--ranks", "4", "--", "python", "x.py")
    assert envbuild("launch", *words, *line, **data) == (
        "palsrun --cpu-bind=depth -n 4 --ppn 2 python x.py\n"
    )
    script = envbuild("render", *words, "--root", "/apps", "--as", "job", "--nodes", "2")
    assert script.splitlines()[-1] == (
        'palsrun --cpu-bind=depth -n 4 --ppn 2 python my_program.py "$@"'
    )
    module = envbuild("render", *words, "--root", "/apps", "--as", "lua")
    assert "palsrun --cpu-bind=depth -n 2 --ppn 2 python PROGRAM.py" in module
    # In a job of another scheduler its MPI's own launcher starts the ranks.
    slurm = envbuild("render", *words, "--root", "/apps", "--as", "slurm")
    assert slurm.splitlines()[-1] == 'mpiexec -n 2 python my_program.py "$@"'
    several = ("--launcher", "torchrun", "-H", "n1:2,n2:2", "--", "python", "x.py")
    torch = envbuild("launch", *words, *several, **data, PJM_JOBID="17")
    assert torch.startswith("palsrun -n 2 --ppn 1 torchrun --nnodes=2 --nproc_per_node=2 ")
