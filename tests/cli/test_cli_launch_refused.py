"""``envbuild launch``: what it refuses, and the advice it gives."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.published import LSF, SLURM, planned, publish_plan

pytestmark = pytest.mark.thorough

REFUSED: dict[str, tuple[str, str, dict[str, str], str]] = {
    "more ranks than slots": (
        "local",
        "allreduce -H a:4,b:4 --ranks 9",
        {},
        "error: 9 ranks are more than the 8 slots of 2 hosts",
    ),
    "more ranks than the job has room for": (
        "local",
        "allreduce --ranks 9",
        SLURM,
        "error: 9 ranks are more than the 8 slots of 2 hosts",
    ),
    "cores that the launcher takes no number of": (
        "local",
        "allreduce --cpus-per-rank 2",
        {},
        "error: hydra has no option for the cores of a rank",
    ),
    "no cores": (
        "taurus-ml",
        "horovod-nccl --nodes 2 --cpus-per-rank 0",
        {},
        "error: a rank cannot have 0 cores",
    ),
    "no ranks": ("local", "allreduce --ranks 0", {}, "error: 0 ranks cannot be started"),
    "more ranks than GPUs": (
        "taurus-ml",
        "horovod-nccl -H ml1:7",
        SLURM,
        "error: 7 GPUs a node are asked for, the site's nodes have 6",
    ),
    "GPUs on a partition without any": (
        "taurus-alpha",
        "horovod-pytorch --launcher openmpi",
        {**SLURM, "SLURM_JOB_PARTITION": "romeo"},
        "error: 4 GPUs a node are asked for, the site's nodes have none",
    ),
    "hosts twice": (
        "local",
        "allreduce -H a:4 --hostfile hosts",
        {},
        "error: -H and --hostfile both name the hosts",
    ),
    "a bad host": ("local", "allreduce -H a:4,b:x", {}, "-H:1:5: error: not a number of slots"),
    "a hostfile that is not there": (
        "local",
        "allreduce --hostfile /nowhere/hosts",
        {},
        "/nowhere/hosts: error: it cannot be read: No such file or directory",
    ),
    "a hostfile that is no text": (
        "local",
        "allreduce --hostfile /usr/bin/env",
        {},
        "/usr/bin/env: error: it is no text",
    ),
    "half of Slurm's variables": (
        "local",
        "allreduce",
        {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1", "SLURM_TASKS_PER_NODE": ""},
        "error: this is a job of Slurm, and SLURM_TASKS_PER_NODE is not set",
    ),
    "variables of two jobs": (
        "local",
        "allreduce",
        {**SLURM, "SLURM_TASKS_PER_NODE": "4(x3)"},
        "SLURM_TASKS_PER_NODE: error: it counts 3 nodes, SLURM_JOB_NODELIST names 2",
    ),
    "no variables of LSF": (
        "local",
        "allreduce",
        {"LSB_JOBID": "1", "LSB_MCPU_HOSTS": "", "LSB_DJOB_HOSTFILE": ""},
        "error: this is a job of LSF, and neither LSB_DJOB_HOSTFILE nor LSB_MCPU_HOSTS is set",
    ),
    "a file of LSF that is gone": (
        "summit",
        "ddl",
        {**LSF, "LSB_DJOB_HOSTFILE": "/nowhere/hosts"},
        "LSB_DJOB_HOSTFILE=/nowhere/hosts: error: it cannot be read: No such file or directory",
    ),
    "an unknown environment": (
        "local",
        "allreduse",
        {},
        "error: there is no environment 'allreduse' in ",
    ),
    "an unknown number": ("local", "allreduce/3", {}, "error: there is no allreduce/3"),
    "an unknown launcher": (
        "local",
        "allreduce --launcher hidra",
        {},
        "error: unknown launcher 'hidra': did you mean 'hydra'?",
    ),
    "another MPI's launcher": (
        "local",
        "allreduce --launcher jsrun",
        {},
        "error: the ranks are linked to mpich, which jsrun does not start",
    ),
    "jsrun outside a job": (
        "summit",
        "horovod-ddl-wmlce",
        {},
        "error: jsrun starts ranks inside a job of LSF only, and here is none",
    ),
    "Gloo by an MPI's launcher": (
        "local",
        "collective-torch-cpu --gloo --launcher hydra",
        {},
        "error: hydra starts MPI programs; Gloo has launchers of its own",
    ),
    "Gloo where nothing knows it": (
        "local",
        "allreduce --gloo",
        {},
        "error: nothing in allreduce talks by Gloo: it has neither Horovod nor PyTorch",
    ),
    "RDMA of MPICH": ("local", "allreduce --rdma", {}, "error: this form of RDMA is Open MPI's"),
    "GPU memory by MPICH": (
        "local",
        "allreduce --cuda-aware",
        {},
        "error: hydra has no option for an MPI that is handed GPU memory",
    ),
    "a variable that is none": (
        "local",
        "allreduce --export 'A B=1'",
        {},
        "error: not a variable to export: 'A B=1'",
    ),
    "another site": (
        "local",
        "allreduce --site taurus-ml",
        {},
        "error: allreduce was made for site local, not for taurus-ml",
    ),
    "an unknown partition": (
        "taurus-ml",
        "horovod-nccl --partition mll",
        {},
        "error: unknown partition of taurus-ml 'mll': did you mean 'ml'?",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_work_is_refused_with_advice(name: str, launch: Any) -> None:
    site, asked, env, message = REFUSED[name]
    answer = launch(site, *shlex.split(asked), **env)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert message in answer.stderr
    assert "\nhint: " in answer.stderr


@pytest.mark.parametrize(
    ("program", "message"),
    [((), "there is no program to start"), (("--", "--epochs"), "begins with a hyphen")],
)
def test_a_program_must_be_named(program: tuple[str, ...], message: str, launch: Any) -> None:
    answer = launch("local", "allreduce", program=program)
    assert answer.exit_code == 2
    assert message in answer.stderr


def test_a_horovod_built_without_gloo_is_not_started_by_it(tmp_path: Path, launch: Any) -> None:
    plan = planned("horovod-torch-cpu", "--site", "local")
    for build in plan["builds"]:
        if build["component"] == "horovod":
            build["flags"]["HOROVOD_WITHOUT_GLOO"] = "1"
    publish_plan(tmp_path, plan)
    answer = launch("local", "horovod-torch-cpu", "--gloo", "--root", str(tmp_path))
    assert answer.exit_code == 2
    assert "built without Gloo" in answer.stderr
