"""Job scripts: their exact text, what the tools of their language say, and LSF played strictly."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from render_cases import CASES, HOSTILE, make_plan
from render_tools import need

from envbuilder.errors import UsageError
from envbuilder.launching.launchers import launch_line
from envbuilder.model.job import Job
from envbuilder.model.launch import (
    EnvironmentProgram,
    JobHosts,
    LaunchRequest,
    Mpi,
    Shape,
    TransportOptions,
)
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock
from envbuilder.render.job import (
    ENDPOINT,
    HOSTS,
    program_words,
    render_job,
)
from envbuilder.workflow.texts import job_parts
from tests import goldens

GOLDENS = Path(__file__).parent / "goldens" / "job"
CASE = {case.name: case for case in CASES}
TREE = "/software/local/modulefiles"
PROGRAM = ("python", "train.py")
SUMMIT = Shape(gpus_per_node=6, cores_per_node=42)

ML = Job("train", 2, 6, 480, gpus_per_node=6, cpus_per_rank=7, account="p_dl", partition="ml")
BATCH = Job("ddl_test", 18, 6, 20, gpus_per_node=6, account="PROJECT", partition="batch")
SMALL = replace(BATCH, name="small", nodes=2)
PLAIN_LSF = Job("plain", 2, 4, 90, gpus_per_node=4, launch_node=False)


def line(
    kind: str, job: Job, program: tuple[str, ...] = PROGRAM, **more: object
) -> tuple[str, ...]:
    base = LaunchRequest(
        "srun",
        program_words(job, program),
        job.nodes * job.ranks_per_node,
        JobHosts(job.nodes, job.ranks_per_node, HOSTS, ENDPOINT),
        "slurm",
        gpus=True,
        cores_per_rank=job.cpus_per_rank,
        in_order=job.tf_config,
    )
    return launch_line(replace(base, kind=kind, **more))  # type: ignore[arg-type]


def on_summit(kind: str, job: Job, **more: object) -> tuple[str, ...]:
    return line(kind, job, scheduler="lsf", shape=SUMMIT, **more)


def slurm(
    name: str, job: Job, words: tuple[str, ...], launcher: EnvironmentProgram | None = None
) -> str:
    case = CASE[name]
    parts = job_parts("slurm", job, words, launcher)
    return render_job(case.lock, case.places, TREE, parts, 3)


def pbs(name: str, job: Job, kind: str, mpi: Mpi) -> str:
    case = CASE[name]
    words = line(kind, job, scheduler="pbs", mpi=mpi)
    return render_job(case.lock, case.places, TREE, job_parts("pbs", job, words), 3)


def lsf(
    name: str, job: Job, words: tuple[str, ...], launcher: EnvironmentProgram | None = None
) -> str:
    case = CASE[name]
    return render_job(case.lock, case.places, TREE, job_parts("lsf", job, words, launcher), 3)


TORCH = replace(ML, name="torch", one_task_per_node=True)
STRATEGY = replace(ML, name="strategy", ranks_per_node=1, cpus_per_rank=None, tf_config=True)
SCRIPTS: Mapping[str, str] = {
    "slurm-srun.sh": slurm("modules", ML, line("srun", ML, mpi=Mpi("openmpi", "3.1.4"))),
    "slurm-horovodrun.sh": slurm(
        "modules",
        ML,
        line("horovodrun", ML, transport=TransportOptions(gloo=True)),
        EnvironmentProgram("horovodrun", "Horovod/0.28.1-foss"),
    ),
    "slurm-torchrun.sh": slurm(
        "plain", TORCH, line("torchrun", TORCH), EnvironmentProgram("torchrun")
    ),
    "slurm-tf-config.sh": slurm("modules", STRATEGY, line("srun", STRATEGY)),
    "slurm-hostile.sh": slurm("hostile", ML, line("srun", ML, ("python", HOSTILE))),
    "pbs-hydra.sh": pbs("modules", ML, "hydra", Mpi("mpich", "4.2.0")),
    "pbs-torchrun.sh": pbs("plain", TORCH, "torchrun", Mpi("openmpi", "5.0.11")),
    "lsf-ddlrun.sh": lsf("modules", BATCH, on_summit("ddlrun", BATCH)),
    "lsf-jsrun.sh": lsf("modules", SMALL, on_summit("jsrun", SMALL)),
    "lsf-plain.sh": lsf(
        "plain", PLAIN_LSF, line("openmpi", PLAIN_LSF, mpi=Mpi("openmpi", "4.1.4"))
    ),
}


def test_the_exact_texts() -> None:
    goldens.compare_folder(GOLDENS, SCRIPTS)


def directives(text: str, mark: str) -> list[str]:
    return [row.removeprefix(mark).strip() for row in text.splitlines() if row.startswith(mark)]


def test_the_scheduler_reads_all_its_lines() -> None:
    """Both stop looking at the first line that is a command."""
    for name, text in SCRIPTS.items():
        mark = {"slurm": "#SBATCH", "lsf": "#BSUB", "pbs": "#PBS"}[name.partition("-")[0]]
        rows = text.splitlines()
        last = max(number for number, row in enumerate(rows) if row.startswith(mark))
        assert rows[0] == "#!/usr/bin/env bash"
        assert all(row.startswith("#") for row in rows[: last + 1])


# Document 003's script for 18 nodes of Summit, and 002's options of srun.
DOCUMENT_LSF = ["-W 0:20", "-P PROJECT", "-q batch", "-J ddl_test", "-nnodes 18"]
DOCUMENT_SLURM = ["--ntasks-per-node=6", "--partition=ml", "--time=08:00:00", "--gres=gpu:6"]


def test_the_documents_directives() -> None:
    ours = directives(SCRIPTS["lsf-ddlrun.sh"], "#BSUB")
    # Added: where the output goes, which LSF would send by mail.
    assert sorted(ours) == sorted([*DOCUMENT_LSF, "-o ddl_test-%J.out"])
    assert SCRIPTS["lsf-ddlrun.sh"].splitlines()[-1] == 'ddlrun python train.py "$@"'
    assert set(DOCUMENT_SLURM) <= set(directives(SCRIPTS["slurm-srun.sh"], "#SBATCH"))


def test_torchrun_gets_the_cores_of_all_its_ranks() -> None:
    rows = directives(SCRIPTS["slurm-torchrun.sh"], "#SBATCH")
    assert {"--ntasks-per-node=1", "--cpus-per-task=42"} <= set(rows)


def test_the_sites_trees_are_used_before_the_environments_own() -> None:
    rows = SCRIPTS["slurm-srun.sh"].splitlines()
    used = [row.removeprefix("module use ") for row in rows if row.startswith("module use")]
    assert used == [*reversed(CASE["modules"].lock.plan.modules.trees), TREE]
    assert rows.index("module --force purge") < rows.index(f"module use {TREE}")


@pytest.mark.parametrize(
    ("changes", "problem", "value"),
    [
        ({"name": "a b"}, "job.invalid-name", "'a b'"),
        ({"name": ""}, "job.invalid-name", "''"),
        ({"name": "x\n#SBATCH --uid=root"}, "job.invalid-name", "name"),
        ({"account": "--wrap"}, "job.invalid-name", "account"),
        ({"partition": "$(id)"}, "job.invalid-name", "partition"),
        ({"nodes": 0}, "job.invalid-size", "0 nodes"),
        ({"ranks_per_node": 0}, "job.invalid-size", "0 ranks"),
        ({"minutes": 0}, "job.invalid-size", "0 minutes"),
        ({"gpus_per_node": -1}, "job.invalid-size", "-1 GPUs"),
        ({"cpus_per_rank": 0}, "job.invalid-size", "0 cores"),
    ],
)
def test_what_no_scheduler_takes(changes: dict[str, object], problem: str, value: str) -> None:
    with pytest.raises(UsageError) as caught:
        replace(ML, **changes)  # type: ignore[arg-type]
    assert caught.value.id == problem
    assert value in caught.value.problems[0].message
    assert caught.value.problems[0].hints


@pytest.fixture
def scripts(tmp_path: Path) -> list[Path]:
    paths = []
    for name, text in SCRIPTS.items():
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


@pytest.mark.integration
def test_bash_parses_every_script(scripts: list[Path]) -> None:
    for script in scripts:
        done = subprocess.run([need("bash"), "-n", script], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.integration
def test_shellcheck_finds_nothing(scripts: list[Path]) -> None:
    beside = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    for script in scripts:
        # Hostile text in quotes draws notes ("expressions do not expand in single quotes").
        severity = "warning" if "hostile" in script.name else "style"
        done = subprocess.run(
            [beside or need("shellcheck"), f"--severity={severity}", script],
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.returncode) == ("", 0)


# What the documented forms of jsrun and ddlrun allow; anything else is an error, as with the real
# ones. Each prints what it was started with.
FAKE_LAUNCHER = """\
#!{python}
import json, os, re, sys
words = sys.argv[1:]
if os.path.basename(sys.argv[0]) == "jsrun":
    forms = [r"-n\\d+", r"-r1", r"-g[0-6]", r"-a\\d+", r"-c\\d+", r"-b(none|packed:\\d+)"]
    for form in forms:
        if not re.fullmatch(form, words[0]):
            sys.exit("jsrun: unexpected " + words[0])
        words = words[1:]
if words[0].startswith("-"):
    sys.exit("unknown option " + words[0])
print(json.dumps({{"started": sys.argv[1:], "environment": dict(os.environ)}}))
"""


@pytest.fixture
def job_on_summit(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a job of two nodes, with launchers that are strict."""
    launchers = tmp_path / "bin"
    launchers.mkdir()
    for name in ("jsrun", "ddlrun"):
        (launchers / name).write_text(FAKE_LAUNCHER.format(python=sys.executable))
        (launchers / name).chmod(0o755)
    hosts = tmp_path / "hosts"
    hosts.write_text("batch2\n" + "a01n02\n" * 42 + "a01n03\n" * 42)
    return {
        "PATH": f"{launchers}:{os.environ['PATH']}",
        "LSB_JOBID": "701106",
        "LSB_DJOB_HOSTFILE": str(hosts),
        "PYTHONPATH": "/somewhere/else",
    }


def run_script(text: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as ``bsub < FILE`` does: from standard input."""
    return subprocess.run(
        [need("bash"), "-s"], input=text, env=dict(environment), capture_output=True, text=True
    )


def plain_lsf(folder: Path, job: Job, words: tuple[str, ...]) -> str:
    """Return a script whose environment needs no module system; its prefix is in *folder*."""
    python = folder / "prefix" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch(0o755)
    lock = Lock(plan=make_plan(), artifacts=())
    places = BuildFolders(folder / "prefix", folder / "build")
    return render_job(lock, places, TREE, job_parts("lsf", job, words), 3)


@pytest.mark.integration
def test_an_lsf_job_starts_one_set_a_node(job_on_summit: dict[str, str], tmp_path: Path) -> None:
    done = run_script(plain_lsf(tmp_path, SMALL, on_summit("jsrun", SMALL)), job_on_summit)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert " ".join(said["started"]) == "-n2 -r1 -g6 -a6 -c42 -bpacked:7 python train.py"
    prefix = str(tmp_path / "prefix")
    assert said["environment"]["VIRTUAL_ENV"] == prefix
    assert said["environment"]["PATH"].startswith(f"{prefix}/bin:")
    assert "PYTHONPATH" not in said["environment"]


@pytest.mark.integration
def test_a_programs_words_reach_it_as_they_are(
    job_on_summit: dict[str, str], tmp_path: Path
) -> None:
    program = ("python", HOSTILE, "--note=", "")
    words = on_summit("jsrun", SMALL, program=program)
    done = run_script(plain_lsf(tmp_path, SMALL, words), job_on_summit)
    assert json.loads(done.stdout)["started"][-4:] == list(program)
    assert not list(tmp_path.rglob("CANARY"))
    assert not Path("CANARY").exists()


@pytest.mark.integration
def test_an_lsf_job_leaves_the_launch_node_out(
    job_on_summit: dict[str, str], tmp_path: Path
) -> None:
    job = replace(SMALL, tf_config=True)
    words = on_summit("horovodrun", job, command=("ddlrun", "horovodrun"))
    done = run_script(plain_lsf(tmp_path, job, words), job_on_summit)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["started"][:5] == ["horovodrun", "--mpi", "-np", "12", "-H"]
    assert said["started"][5] == "a01n02:6,a01n03:6"
    workers = json.loads(f"[{said['environment']['ENVBUILD_TF_WORKERS']}]")
    # 701106: 20000 and the last four digits.
    assert workers[0] == "a01n02:21106"
    assert workers[-1] == "a01n03:21117"
    assert len(set(workers)) == 12


@pytest.mark.integration
def test_an_lsf_job_of_another_size_is_refused(
    job_on_summit: dict[str, str], tmp_path: Path
) -> None:
    done = run_script(plain_lsf(tmp_path, BATCH, on_summit("ddlrun", BATCH)), job_on_summit)
    assert done.returncode == 2
    assert " 18 nodes, but the job has 2: " in done.stderr


@pytest.mark.integration
@pytest.mark.parametrize("name", ["slurm-srun.sh", "lsf-jsrun.sh"])
def test_a_script_outside_a_job_says_how_to_submit_it(name: str) -> None:
    done = run_script(SCRIPTS[name], {"PATH": os.environ["PATH"]})
    assert done.returncode == 2
    assert ("with sbatch" if name.startswith("slurm") else "with bsub") in done.stderr


@pytest.mark.integration
def test_tf_config_without_a_rank_is_an_error(
    job_on_summit: dict[str, str], tmp_path: Path
) -> None:
    """A launcher that tells no rank must not make every worker the first one."""
    job = replace(SMALL, tf_config=True)
    words = ("env", *program_words(job, PROGRAM))
    text = plain_lsf(tmp_path, job, words)
    done = run_script(text, {**job_on_summit, "SLURM_PROCID": "0", "PMI_RANK": "0"})
    assert done.returncode == 1
    assert "make TF_CONFIG" in done.stderr
