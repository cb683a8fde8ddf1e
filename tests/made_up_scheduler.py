"""A scheduler made up after Fujitsu's: one module, which is this, and the line in the dict."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from envbuilder.errors import UsageError
from envbuilder.launching.schedulers import SCHEDULERS
from envbuilder.launching.schedulers.protocol import Ask, Which, no_job_step, no_job_task, no_pmi
from envbuilder.model.job import Job, JobScript
from envbuilder.model.launch import Host, Hosts, LaunchNode, Words
from envbuilder.model.site import SiteLauncher

TITLE = "PJM"
SUBMIT = "pjsub"
SUBMIT_LINE = "pjsub"
VERSION = ""
JOB_ID = "PJM_JOBID"
PARTITION = "PJM_RSCGRP"
OPTIONS: frozenset[str] = frozenset()
SETTINGS: Words = ()
job_step = no_job_step
job_task = no_job_task
draft_pmi = no_pmi


def job_script(job: Job) -> JobScript:
    gpus = f",gpu={job.gpus_per_node}" if job.gpus_per_node else ""
    return JobScript(
        directives=(
            f"#PJM -N {job.name}",
            f"#PJM -L node={job.nodes}{gpus}",
            f'#PJM --mpi "max-proc-per-node={job.ranks_per_node}"',
            f"#PJM -L elapse={job.minutes // 60:02}:{job.minutes % 60:02}:00",
        ),
        usage="#   pjsub FILE   run the program below\n#\n# To change it, render it again:\n",
        absent="-z ${PJM_JOBID:-} || ! -r ${PJM_O_NODEINF:-}",
        nodes="mapfile -t nodes < <(awk '!seen[$1]++' \"$PJM_O_NODEINF\")",
        job_id="PJM_JOBID",
    )


def shell_line(job: Job, program: Words) -> Words:
    return ("pjsub", "--interact", f"-L node={job.nodes}", *program)


def job_hosts(
    environ: Mapping[str, str],
    read: Callable[[str, str], str],
    _ask: Ask,
    _launch_node: LaunchNode | None,
) -> Hosts:
    file = environ.get("PJM_O_NODEINF")
    if not file:
        raise UsageError(
            "job.variable-not-set",
            "PJM_O_NODEINF is not set in this job of PJM",
            "give hosts: -H",
        )
    slots = Counter(read(file, "PJM_O_NODEINF").split())
    return tuple(Host(name, number) for name, number in slots.items())


def draft_launcher(which: Which, _ask: Ask) -> SiteLauncher | None:
    return SiteLauncher(kind="hydra", command=("mpiexec",)) if which("pjshowrsc") else None


def add_scheduler(monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the scheduler; return its name."""
    monkeypatch.setitem(SCHEDULERS, "pjm", sys.modules[__name__])  # type: ignore[arg-type]
    return "pjm"
