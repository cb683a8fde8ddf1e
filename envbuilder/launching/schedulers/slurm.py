"""Slurm. Sources: the man pages of sbatch, srun and scontrol, 17.11 to 24.05."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ...errors import Place, UsageError
from ...model.job import Job, JobScript
from ...model.launch import Host, Hosts, JobStep, LaunchNode, TaskRequest, Words
from ...model.site import SiteLauncher
from ...text import shown
from ..hosts import host_name, visible_gpus
from .protocol import Ask, Which

TITLE = "Slurm"
SUBMIT = "sbatch"
SUBMIT_LINE = "sbatch"
VERSION = ""
JOB_ID = "SLURM_JOB_ID"
PARTITION = "SLURM_JOB_PARTITION"
OPTIONS = frozenset({"memory"})
# The variable is the option --overlap; a release that does not know it needs none.
SETTINGS: Words = (
    "# The shell of `srun --pty bash` holds its CPUs: further steps wait for them, or share them.",
    "[[ -z ${SLURM_STEP_ID:-} ]] || export SLURM_OVERLAP=1",
)
_LAUNCHER = "srun"

_NODELIST, _TASKS_PER_NODE = "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"
_CPUS_PER_NODE = "SLURM_JOB_CPUS_PER_NODE"

# `4(x2),3`: four tasks on each of two nodes, then three (srun(1), SLURM_TASKS_PER_NODE).
_TASKS = r"(?P<tasks>[1-9][0-9]{0,5})(?:\(x(?P<nodes>[1-9][0-9]{0,5})\))?"
# One name or folded group of a node list: up to a comma that is not in brackets.
_GROUP = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]+\])+")
_BRACKETS = r"\[([^\]]*)\]"
_RANGE = r"([0-9]+)-([0-9]+)"
# Python and ClusterShell refuse to convert numbers of thousands of digits.
_NOT_A_NUMBER = r"[0-9]{100}"
# `8`, `a100:8` or `a100:4,v100:4` (sbatch(1), --gpus), and the GPUs in `GRES=gpu:a100:8(IDX:0-7)`
# behind `Nodes=n[1-2]` (scontrol(1), --details).
_GPUS = r"(?:[^:,\s]+:)?([0-9]{1,6})"
_DETAIL = r"(?m)^\s*Nodes=(\S+) .*\bGRES=(\S*)"
_GRES = r"\bgpu(?::[^:,()\s]+)?:([0-9]{1,6})(?![0-9])"
_CPUS = r"[0-9]{1,6}"
# More than any machine has; a slip such as n[1-99999999] would fill the memory.
_MOST_HOSTS = 100_000

# By which protocol srun starts MPI programs, the best one first.
_PROTOCOLS = ("pmix", "pmi2")

_PMI = r"\bpmi(?:2|x(?:_v[0-9]+)?)\b"

# Steps have CPUs of their own, and --overlap shares them, from this release on (its RELEASE_NOTES).
_OVERLAP_SINCE = (20, 11)
_RELEASE = r"slurm\S* ([0-9]{1,6})\.([0-9]{1,6})"
# The step of a shell that salloc starts by itself, and others that share CPUs (slurm.h).
_SHARING_STEPS = frozenset(str(0xFFFFFFFF - number) for number in range(16))


_USAGE = """\
#   sbatch FILE [ARGUMENT...]   run the program below, with these further arguments
#
# Options of sbatch go before the file and override the lines above. The launch line contains the
# numbers of nodes, tasks and CPUs, too. To change them, render this script again:
"""


def job_script(job: Job) -> JobScript:
    """Return what is Slurm's of a script for sbatch."""
    return JobScript(
        directives=tuple(
            f"#SBATCH {option}" for option in (*_options(job), f"--output={job.name}-%j.out")
        ),
        usage=_USAGE,
        absent="-z ${SLURM_JOB_ID:-}",
        nodes='mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        job_id=JOB_ID,
    )


def shell_line(job: Job, program: Words) -> Words:
    """Return srun with a terminal for its first task; the shells of other tasks end at once."""
    return (_LAUNCHER, *_options(job), "--pty", *program)


def _options(job: Job) -> Iterator[str]:
    hours, minutes = divmod(job.minutes, 60)
    tasks = 1 if job.one_task_per_node else job.ranks_per_node
    cores = job.cpus_per_rank
    if cores is None and job.one_task_per_node and not job.gpus_per_node:
        # Slurm gives one to a task. To one with GPUs a site may give some for each.
        cores = 1
    options: tuple[tuple[str, object], ...] = (
        ("job-name", job.name),
        ("nodes", job.nodes),
        ("ntasks-per-node", tasks),
        ("cpus-per-task", cores and cores * (job.ranks_per_node // tasks)),
        ("gres", f"gpu:{job.gpus_per_node}" if job.gpus_per_node else None),
        ("time", f"{hours:02}:{minutes:02}:00"),
        ("account", job.account),
        ("partition", job.partition),
        ("mem", job.memory),
    )
    for name, value in options:
        if value is not None:
            yield f"--{name}={value}"


def job_hosts(
    environ: Mapping[str, str],
    _read: Callable[[str, str], str],
    ask: Ask,
    _launch_node: LaunchNode | None,
) -> Hosts:
    """Return the hosts of an allocation, in Slurm's order, which its counts go by.

    Raises UsageError for what is no node list, and where the variables do not fit together.
    """
    missing = [name for name in (_NODELIST, _TASKS_PER_NODE) if not environ.get(name)]
    if missing:
        raise UsageError(
            "job.variable-not-set",
            f"{' and '.join(missing)} is not set in this job of Slurm",
            "Slurm sets it in a script for sbatch and in the shell of salloc",
            "or give hosts: -H host:4,host2:4",
        )
    hosts = slurm_hosts(environ[_NODELIST], environ[_TASKS_PER_NODE])
    gpus = _gpus(environ, hosts, ask)
    text = environ.get(_CPUS_PER_NODE)
    cpus = dict(zip(hosts, _counts(text, _CPUS_PER_NODE), strict=False)) if text else {}
    if task_cpus := job_task(environ).cpus:
        cpus = {host: task_cpus * host.slots for host in hosts}
    return tuple(replace(host, gpus=gpus.get(host.name), cpus=cpus.get(host)) for host in hosts)


def _gpus(environ: Mapping[str, str], hosts: Hosts, ask: Ask) -> dict[str, int]:
    """Return the GPUs of the job on each host, as far as Slurm says so."""
    if per_node := _gpu_count(environ.get("SLURM_GPUS_PER_NODE")):
        return {host.name: per_node for host in hosts}
    if per_task := _gpu_count(environ.get("SLURM_GPUS_PER_TASK")):
        return {host.name: per_task * host.slots for host in hosts}
    here = _gpu_count(environ.get("SLURM_GPUS_ON_NODE"))
    here = visible_gpus(environ) if here is None else here
    if here is None:
        return {}
    if len(hosts) == 1:
        return {hosts[0].name: here}
    # --gpus may give nodes different numbers, and so may --exclusive.
    details = ask("scontrol", "--details", "show", "job", environ[JOB_ID])
    gpus = {
        name: sum(map(int, re.findall(_GRES, gres)))
        for nodes, gres in re.findall(_DETAIL, details)
        for name in node_names(nodes)
    }
    total = _gpu_count(environ.get("SLURM_GPUS"))
    if gpus or total not in (None, here * len(hosts)):
        return gpus
    return {host.name: here for host in hosts}


def _gpu_count(text: str | None) -> int | None:
    """Return the sum of ``8``, ``a100:8`` or ``a100:4,v100:4``; None for any other text."""
    numbers = [re.fullmatch(_GPUS, part) for part in (text or "").split(",")]
    return sum(int(number[1]) for number in numbers if number) if all(numbers) else None


def job_task(environ: Mapping[str, str]) -> TaskRequest:
    """Return the CPUs and GPUs of each task.

    From 22.05 on srun takes the CPUs from SRUN_CPUS_PER_TASK alone (its RELEASE_NOTES).
    """
    names = ("SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK")
    texts = (environ.get(name, "") for name in names)
    cpus = next((int(text) for text in texts if re.fullmatch(_CPUS, text)), None)
    return TaskRequest(cpus, _gpu_count(environ.get("SLURM_GPUS_PER_TASK")))


def job_step(environ: Mapping[str, str], ask: Ask) -> JobStep | None:
    """Return the step of ``srun --pty bash``: it holds all CPUs of its tasks.

    Steps of it that may not share them wait until it ends. A batch script and the shell of salloc
    are no such step.
    """
    step = environ.get("SLURM_STEP_ID") or environ.get("SLURM_STEPID")
    if not step or step in _SHARING_STEPS:
        return None
    release = re.search(_RELEASE, ask(_LAUNCHER, "--version"))
    known = release is None or (int(release[1]), int(release[2])) >= _OVERLAP_SINCE
    return JobStep("--overlap" if known else None, "SLURM_OVERLAP=1")


def draft_launcher(which: Which, ask: Ask) -> SiteLauncher | None:
    """Return ``srun`` with the best protocol that it offers."""
    if which(_LAUNCHER) is None:
        return None
    offered = draft_pmi(ask)
    mpi = [f"--mpi={each}" for each in _PROTOCOLS if each in offered][:1]
    return SiteLauncher(kind=_LAUNCHER, command=(_LAUNCHER, *mpi))


def draft_pmi(ask: Ask) -> Words:
    """Return what ``srun --mpi=list`` names: pmi2, pmix, and the releases of PMIx (pmix_v4)."""
    return tuple(sorted(set(re.findall(_PMI, ask(_LAUNCHER, "--mpi=list")))))


def slurm_hosts(nodelist: str, tasks_per_node: str) -> Hosts:
    """Return the hosts of SLURM_JOB_NODELIST with the slots of SLURM_TASKS_PER_NODE."""
    names = node_names(nodelist)
    tasks = tuple(_counts(tasks_per_node, _TASKS_PER_NODE))
    if len(names) != len(tasks):
        raise UsageError(
            "job.node-count-mismatch",
            f"it has {len(tasks)} nodes, but {_NODELIST} has {len(names)}",
            "use both variables of the same job",
            place=Place(_TASKS_PER_NODE),
        )
    return tuple(Host(name, slots) for name, slots in zip(names, tasks, strict=True))


def node_names(nodelist: str) -> tuple[str, ...]:
    """Return the names of a folded node list such as ``taurusml[1-4,7],login1``, in its order."""
    place = Place(_NODELIST)
    names: list[str] = []
    for group in _groups(nodelist.strip(), place):
        names += _unfolded(group, place)
    for name in names:
        host_name(name, place)
    if twice := next((name for name, count in Counter(names).items() if count > 1), None):
        raise UsageError("job.duplicate-node", f"duplicate node {twice}", place=place)
    return tuple(names)


def _counts(text: str, variable: str) -> Iterator[int]:
    """Yield the number of each node: ``4(x2),3`` is 4, 4 and 3."""
    place = Place(variable)
    for part in text.strip().split(","):
        found = re.fullmatch(_TASKS, part)
        if not found or int(found["nodes"] or 1) > _MOST_HOSTS:
            raise UsageError(
                "job.malformed-task-counts",
                f"malformed task count: '{shown(part)}'",
                "example: 4(x2),3",
                place=place,
            )
        yield from [int(found["tasks"])] * int(found["nodes"] or 1)


def _groups(nodelist: str, place: Place) -> Iterator[str]:
    position = 0
    while True:
        found = _GROUP.match(nodelist, position)
        ended = found and (found.end() == len(nodelist) or nodelist[found.end()] == ",")
        if not found or not ended or re.search(_NOT_A_NUMBER, found[0]):
            at = found.end() if found and not ended else position
            raise UsageError(
                "job.malformed-node-list",
                f"not a node list, from character {at + 1} on: '{shown(nodelist)}'",
                "example: node[1-4,7],other1",
                place=place,
            )
        yield found[0]
        position = found.end() + 1
        if position > len(nodelist):
            return


def _unfolded(group: str, place: Place) -> Iterable[str]:
    # NodeSet sorts; Slurm does not. With one pair of brackets, the usual case, its parts are
    # given to NodeSet one by one. With more, both go through the first ones outermost.
    from ClusterShell.NodeSet import (  # type: ignore[import-untyped]
        RESOLVER_NOGROUP,
        NodeSet,
        NodeSetException,
    )

    brackets = re.findall(_BRACKETS, group)
    if math.prod(_size(each) for each in brackets) > _MOST_HOSTS:
        raise UsageError(
            "job.too-many-nodes",
            f"too many nodes: '{shown(group)}'",
            place=place,
        )
    parts = (
        [re.sub(_BRACKETS, f"[{each}]", group) for each in brackets[0].split(",")]
        if len(brackets) == 1
        else [group]
    )
    try:
        return [str(name) for part in parts for name in NodeSet(part, resolver=RESOLVER_NOGROUP)]
    except NodeSetException as error:
        raise UsageError(
            "job.malformed-node-list", f"not a node list: {error}", place=place
        ) from error


def _size(ranges: str) -> int:
    bounds = re.findall(_RANGE, ranges)
    return ranges.count(",") + 1 + sum(max(0, int(last) - int(first)) for first, last in bounds)
