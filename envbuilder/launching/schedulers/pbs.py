"""PBS Professional and OpenPBS. Sources: their User's Guide and the man pages of qsub, qstat and
pbs_resources, 19 to 23.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ...errors import Place, UsageError
from ...model.job import Job, JobScript
from ...model.launch import Hosts, LaunchNode, Words
from ...model.site import SiteLauncher
from ...text import LONG, shown
from ..hosts import HostEntry, host_name, join_hosts, visible_gpus
from .protocol import Ask, Which, no_job_step, no_job_task, no_pmi

TITLE = "PBS"
SUBMIT = "qsub"
SUBMIT_LINE = "qsub"
# TORQUE and Grid Engine have a qsub too, which does not take these scripts.
VERSION = "pbs_version"
JOB_ID = "PBS_JOBID"
PARTITION = "PBS_QUEUE"
OPTIONS = frozenset({"memory"})
SETTINGS: Words = ()

job_step = no_job_step
job_task = no_job_task
draft_pmi = no_pmi

# A vnode of a host, such as n1[0].
_VNODE = r"\[[0-9]+\]$"
# Of `qstat -f`, whose long lines are folded: a host for each chunk, and the vnodes of each chunk.
_FOLD = "\n\t"
_CHUNKS = r"(?m)^ +(exec_host|exec_vnode) = (\S+)$"
_AMOUNT = r":(ngpus|ncpus)=([0-9]{1,6})(?![0-9])"

_USAGE = """\
#   qsub FILE   run the program below
#
# Options of qsub go before the file and override the lines above. The launch line contains the
# numbers of nodes and ranks, too. To change them, render this script again:
"""


def job_script(job: Job) -> JobScript:
    """Return what is PBS's of a script for qsub."""
    return JobScript(
        # It takes no notice of a script's first line.
        directives=tuple(f"#PBS {option}" for option in ("-S /bin/bash", *_options(job), "-j oe")),
        usage=_USAGE,
        absent="-z ${PBS_JOBID:-} || ! -r ${PBS_NODEFILE:-}",
        nodes=(
            "# PBS starts a script in the home folder.\n"
            'cd -- "${PBS_O_WORKDIR:-.}"\n'
            "mapfile -t nodes < <(awk '"
            '{ sub(/\\[[0-9]+\\]$/, "", $1) } !seen[$1]++ { print $1 }'
            '\' "$PBS_NODEFILE")'
        ),
        # 17.server, 17[3].server
        job_id="${PBS_JOBID%%[!0-9]*}",
    )


def shell_line(job: Job, _program: Words) -> Words:
    """Raise UsageError: qsub -I starts the login shell of the user, and no program."""
    line = shlex.join([SUBMIT, "-I", *shlex.split(" ".join(_options(job)))])
    raise UsageError(
        "shell.no-program",
        "an interactive job of PBS starts the login shell, which does not load the environment",
        f"run {line}, and load the module of the environment there",
    )


def _options(job: Job) -> Iterator[str]:
    hours, minutes = divmod(job.minutes, 60)
    threads = job.cpus_per_rank or 1
    chunk = {
        "ncpus": job.ranks_per_node * threads,
        "ngpus": job.gpus_per_node,
        "mpiprocs": 1 if job.one_task_per_node else job.ranks_per_node,
        # PBS sets OMP_NUM_THREADS to it, or to all CPUs of the chunk.
        "ompthreads": threads,
        "mem": job.memory and f"{job.memory.lower()}b",
    }
    if job.name:
        yield f"-N {job.name}"
    yield "".join((f"-l select={job.nodes}", *(f":{key}={n}" for key, n in chunk.items() if n)))
    yield "-l place=scatter"
    yield f"-l walltime={hours:02}:{minutes:02}:00"
    if job.account:
        yield f"-A {job.account}"
    if job.partition:
        yield f"-q {job.partition}"


def job_hosts(
    environ: Mapping[str, str],
    read: Callable[[str, str], str],
    ask: Ask,
    _launch_node: LaunchNode | None,
) -> Hosts:
    """Return the hosts of the file that PBS_NODEFILE names: a line for each MPI process."""
    file = environ.get("PBS_NODEFILE")
    if not file:
        raise UsageError(
            "job.variable-not-set",
            "PBS_NODEFILE is not set in this job of PBS",
            "PBS sets it in a script for qsub and in the shell of qsub -I",
            "or give hosts: -H host:4,host2:4",
        )
    place = Place("PBS_NODEFILE")
    lines = read(file, f"PBS_NODEFILE={shown(file, LONG)}").splitlines()
    entries = [
        HostEntry(host_name(re.sub(_VNODE, "", name), Place(place.file, number, 1)), None, place)
        for number, line in enumerate(lines, start=1)
        if (name := line.strip())
    ]
    if not entries:
        raise UsageError(
            "job.no-hosts",
            "the file does not contain a host",
            "give hosts: -H host:4,host2:4",
            place=place,
        )
    hosts = join_hosts(entries)
    amounts = _amounts(ask("qstat", "-f", environ[JOB_ID]))
    here = visible_gpus(environ) if len(hosts) == 1 else None
    return tuple(
        replace(
            host,
            gpus=amounts.get((_label(host.name), "ngpus"), here),
            cpus=amounts.get((_label(host.name), "ncpus")),
        )
        for host in hosts
    )


def _amounts(job: str) -> Counter[tuple[str, str]]:
    """Return how many CPUs and GPUs a job has on each host, from what ``qstat -f`` prints of it."""
    values = dict(re.findall(_CHUNKS, job.replace(_FOLD, "")))
    hosts = values.get("exec_host", "").split("+")
    # (n1[0]:ncpus=16:ngpus=4+n1[1]:ncpus=16:ngpus=4)+(n2:ncpus=32:ngpus=8)
    chunks = values.get("exec_vnode", "").split(")+(")
    amounts: Counter[tuple[str, str]] = Counter()
    for host, chunk in zip(hosts, chunks, strict=False) if len(hosts) == len(chunks) else ():
        for resource, number in re.findall(_AMOUNT, chunk):
            amounts[_label(host.partition("/")[0]), resource] += int(number)
    return amounts


def _label(host: str) -> str:
    """Return a host's name without its domain, which the file of nodes has and qstat leaves out."""
    return host if host.replace(".", "").isdecimal() else host.partition(".")[0]


def draft_launcher(_which: Which, _ask: Ask) -> SiteLauncher | None:
    """Return None: ranks are started by the launcher of their MPI."""
    return None
