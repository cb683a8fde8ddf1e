"""A scheduler that is made up after PBS: one module, which is this, and the line in the dict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from envbuilder.errors import UsageError
from envbuilder.model.job import Job, JobScript
from envbuilder.model.launch import Host, Hosts, LaunchNode, Words
from envbuilder.model.site import Launcher
from envbuilder.schedulers import SCHEDULERS
from envbuilder.schedulers.protocol import Ask, Which, no_job_step, no_pmi

TITLE = "PBS"
SUBMIT = "qsub"
SUBMIT_LINE = "qsub"
JOB_ID = "PBS_JOBID"
PARTITION = "PBS_QUEUE"
SETTINGS: Words = ()
job_step = no_job_step
draft_pmi = no_pmi


def job_script(job: Job) -> JobScript:
    chunk = f"{job.nodes}:ncpus={job.ranks_per_node * (job.cpus_per_rank or 1)}"
    gpus = f":ngpus={job.gpus_per_node}" if job.gpus_per_node else ""
    return JobScript(
        directives=(
            f"#PBS -N {job.name}",
            f"#PBS -l select={chunk}{gpus}:mpiprocs={job.ranks_per_node}",
            f"#PBS -l walltime={job.minutes // 60:02}:{job.minutes % 60:02}:00",
        ),
        usage="#   qsub FILE   run the program below\n#\n# For others make this script anew:\n",
        absent="-z ${PBS_JOBID:-} || ! -r ${PBS_NODEFILE:-}",
        nodes="mapfile -t nodes < <(awk '!seen[$1]++' \"$PBS_NODEFILE\")",
        # 17.server
        job_id="${PBS_JOBID%%.*}",
    )


def job_hosts(
    environ: Mapping[str, str],
    read: Callable[[str, str], str],
    _launch_node: LaunchNode | None,
) -> Hosts:
    file = environ.get("PBS_NODEFILE")
    if not file:
        raise UsageError("this is a job of PBS, and PBS_NODEFILE is not set", "name the hosts: -H")
    slots = Counter(read(file, "PBS_NODEFILE").split())
    return tuple(Host(name, number) for name, number in slots.items())


def draft_launcher(which: Which, _ask: Ask) -> Launcher | None:
    return Launcher(kind="hydra", command=("mpiexec",)) if which("pbsdsh") else None


def add_scheduler(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the scheduler; return its name."""
    monkeypatch.setitem(SCHEDULERS, "pbs", sys.modules[__name__])  # type: ignore[arg-type]
    return "pbs"
