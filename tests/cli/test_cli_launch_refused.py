"""``envbuild launch``: what it refuses, and the advice it gives."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.published import LSF, SLURM, planned, publish_plan
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough

# The site, the words, variables; the id of the problem, and what the message contains.
REFUSED: dict[str, tuple[str, str, dict[str, str], str]] = {
    "more ranks than slots": (
        "local",
        "allreduce -H a:4,b:4 --ranks 9",
        {},
        "hosts.too-few-slots 8 slots",
    ),
    "more ranks than the job has room for": (
        "local",
        "allreduce --ranks 9",
        SLURM,
        "hosts.too-few-slots 8 slots",
    ),
    "cores that the launcher takes no number of": (
        "local",
        "allreduce --cpus-per-rank 2",
        {},
        "launcher.no-cpus-per-rank hydra",
    ),
    "no cores": (
        "taurus-ml",
        "horovod-nccl --nodes 2 --cpus-per-rank 0",
        {},
        "launch.no-cores 0",
    ),
    "no ranks": ("local", "allreduce --ranks 0", {}, "launch.no-ranks 0"),
    "more ranks than GPUs": (
        "taurus-ml",
        "horovod-nccl -H ml1:7",
        SLURM,
        "launch.too-few-gpus 7 GPUs",
    ),
    "GPUs on a partition without any": (
        "taurus-alpha",
        "horovod-pytorch --launcher openmpi",
        {**SLURM, "SLURM_JOB_PARTITION": "romeo"},
        "launch.too-few-gpus 4 GPUs",
    ),
    "hosts twice": (
        "local",
        "allreduce -H a:4 --hostfile hosts",
        {},
        "option.conflict --hostfile",
    ),
    "a bad host": ("local", "allreduce -H a:4,b:x", {}, "hosts.malformed-slots -H:1:5: error: "),
    "a hostfile that is not there": (
        "local",
        "allreduce --hostfile /nowhere/hosts",
        {},
        "hostfile.not-readable /nowhere/hosts: error: ",
    ),
    "a hostfile that is no text": (
        "local",
        "allreduce --hostfile /usr/bin/env",
        {},
        "hostfile.not-text /usr/bin/env: error: ",
    ),
    "half of Slurm's variables": (
        "local",
        "allreduce",
        {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1", "SLURM_TASKS_PER_NODE": ""},
        "job.variable-not-set SLURM_TASKS_PER_NODE",
    ),
    "variables of two jobs": (
        "local",
        "allreduce",
        {**SLURM, "SLURM_TASKS_PER_NODE": "4(x3)"},
        "job.node-count-mismatch SLURM_TASKS_PER_NODE: error: ",
    ),
    "no variables of LSF": (
        "local",
        "allreduce",
        {"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "", "LSB_DJOB_HOSTFILE": ""},
        "job.variable-not-set LSB_MCPU_HOSTS",
    ),
    "a file of LSF that is gone": (
        "summit",
        "ddl",
        {**LSF, "LSB_DJOB_HOSTFILE": "/nowhere/hosts"},
        "hostfile.not-readable LSB_DJOB_HOSTFILE=/nowhere/hosts: error: ",
    ),
    "an unknown environment": (
        "local",
        "allreduse",
        {},
        "environment.unknown-name 'allreduse'",
    ),
    "an unknown number": ("local", "allreduce/3", {}, "environment.unknown-number allreduce/3"),
    "an unknown launcher": (
        "local",
        "allreduce --launcher hidra",
        {},
        "option.unknown-value 'hydra'",
    ),
    "another MPI's launcher": (
        "local",
        "allreduce --launcher jsrun",
        {},
        "launch.other-mpi jsrun",
    ),
    "jsrun outside a job": (
        "summit",
        "horovod-ddl-module",
        {},
        "launch.outside-job jsrun",
    ),
    "Gloo by an MPI's launcher": (
        "local",
        "collective-torch-cpu --gloo --launcher hydra",
        {},
        "launch.gloo-launcher hydra",
    ),
    "Gloo where nothing knows it": (
        "local",
        "allreduce --gloo",
        {},
        "launch.no-gloo allreduce",
    ),
    "RDMA of MPICH": ("local", "allreduce --rdma", {}, "launch.rdma-not-openmpi"),
    "GPU memory by MPICH": (
        "local",
        "allreduce --cuda-aware",
        {},
        "launch.no-cuda-aware-option hydra",
    ),
    "a variable that is none": (
        "local",
        "allreduce --export 'A B=1'",
        {},
        "launch.malformed-variable 'A B=1'",
    ),
    "another site": (
        "local",
        "allreduce --site taurus-ml",
        {},
        "site.mismatch taurus-ml",
    ),
    "an unknown partition": (
        "taurus-ml",
        "horovod-nccl --partition mll",
        {},
        "site.unknown-partition 'ml'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.sample(10)
def test_what_cannot_work_is_refused_with_advice(name: str, launch: Any) -> None:
    site, asked, env, expected = REFUSED[name]
    answer = launch(site, *shlex.split(asked), "--json", **env)
    problem, _, value = expected.partition(" ")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, [problem])
    assert value in answer.stderr
    assert "\nhint: " in answer.stderr


@pytest.mark.parametrize(
    ("program", "problem"),
    [((), "launch.no-program"), (("--", "--epochs"), "launch.program-starts-with-hyphen")],
)
def test_a_program_must_be_named(program: tuple[str, ...], problem: str, launch: Any) -> None:
    answer = launch("local", "allreduce", "--json", program=program)
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, [problem])
    assert launch("local", "allreduce", program=program).stdout == ""


def test_a_horovod_built_without_gloo_is_not_started_by_it(tmp_path: Path, launch: Any) -> None:
    plan = planned("horovod-torch-cpu", "--site", "local")
    for build in plan["builds"]:
        if build["component"] == "horovod":
            build["flags"]["HOROVOD_WITHOUT_GLOO"] = "1"
    publish_plan(tmp_path, plan)
    answer = launch("local", "horovod-torch-cpu", "--gloo", "--root", str(tmp_path), "--json")
    assert (answer.exit_code, problem_ids(answer.stdout)) == (2, ["launch.no-gloo"])
