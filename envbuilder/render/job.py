"""Job scripts for Slurm and LSF: pure, from a lock and a published environment to texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import UsageError
from ..model.places import Places
from ..model.plan import Lock
from ..model.profiles import asked
from .dialects import bash_edit
from .quoting import Quoted, comment
from .templates import render

HOSTS = Quoted('"$hosts"')
"""Stands in a launch line for ``host:4,host2:4``, which only the job knows."""

ENDPOINT = Quoted('"$endpoint"')
"""Stands in a launch line for ``host:port`` of the job's first node."""

# Names of jobs, accounts, partitions and queues; several partitions are a list.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+,/:-]{0,127}")


@dataclass(frozen=True)
class Published:
    """Where the environment is loaded from.

    ``tree``: the folder for ``module use``. ``number``: that of the modulefile. ``init``: what a
    script sources to get the ``module`` command; None: the plan's, and where that has none either
    the script does itself what the module would do.
    """

    tree: str
    number: int
    init: str | None = None


@dataclass(frozen=True)
class Job:
    """What the scheduler is asked for.

    ``minutes``: the limit of its run time. ``cpus_per_rank``: None leaves it to the scheduler.
    ``partition``: Slurm's, or the queue of LSF. ``one_task_per_node``: the launcher is started
    once a node and starts the ranks there itself (torchrun). ``launch_node``: LSF with IBM's CSM,
    as on Summit: whole nodes, and the script runs on a node besides them. ``tf_config``: give
    every rank TF_CONFIG; see ``program_words``.
    """

    name: str
    nodes: int
    ranks_per_node: int
    minutes: int
    gpus_per_node: int = 0
    cpus_per_rank: int | None = None
    account: str | None = None
    partition: str | None = None
    one_task_per_node: bool = False
    launch_node: bool = True
    tf_config: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for what no scheduler takes."""
        for what, name in (
            ("name", self.name),
            ("account", self.account),
            ("partition", self.partition),
        ):
            if name is not None and not _NAME.fullmatch(name):
                raise UsageError(
                    f"not a job's {what}: {name!r}",
                    "use letters, digits and . _ + - only",
                )
        for what, number, least in (
            ("nodes", self.nodes, 1),
            ("ranks a node", self.ranks_per_node, 1),
            ("minutes", self.minutes, 1),
            ("GPUs a node", self.gpus_per_node, 0),
            ("cores a rank", 1 if self.cpus_per_rank is None else self.cpus_per_rank, 1),
        ):
            if number < least:
                raise UsageError(f"a job cannot have {number} {what}", f"ask for {least} or more")


def program_words(job: Job, program: Sequence[str]) -> tuple[str, ...]:
    """Return what the launcher is to start on each rank, to be handed to the launch line."""
    if not job.tf_config:
        return tuple(program)
    return ("bash", "-c", Quoted('"$task"'), "tf-config", *program)


def render_slurm(
    lock: Lock, places: Places, published: Published, job: Job, words: Sequence[str]
) -> str:
    """Return the text of a script for sbatch; *words* is the launch line, program and all."""
    return render(
        "job/slurm.sh.j2",
        **_values(lock, places, published, job, words),
        directives=_slurm_directives(job),
        parts=[*_slurm_settings(job), *_parts(job, words, Quoted("SLURM_JOB_ID"))],
    )


def render_lsf(
    lock: Lock, places: Places, published: Published, job: Job, words: Sequence[str]
) -> str:
    """Return the text of a script for bsub; *words* is the launch line, program and all."""
    return render(
        "job/lsf.sh.j2",
        **_values(lock, places, published, job, words),
        directives=_lsf_directives(job),
        node_list=_lsf_nodes(job),
        parts=_parts(job, words, Quoted("LSB_JOBID")),
    )


def _values(
    lock: Lock, places: Places, published: Published, job: Job, words: Sequence[str]
) -> dict[str, object]:
    return {
        "module": _module(lock, published),
        "id": lock.id(),
        "lock_sha256": lock.sha256(),
        "nodes": str(job.nodes),
        "asked": asked(lock.plan),
        "environment": _environment(lock, places, published),
        "words": tuple(words),
    }


def _module(lock: Lock, published: Published) -> str:
    return f"{lock.plan.recipe}/{published.number}"


def _environment(lock: Lock, places: Places, published: Published) -> Quoted:
    modules = lock.plan.modules
    init = published.init or modules.init
    if init is None:
        edits = [bash_edit(edit, places.prefix) for edit in lock.plan.environment]
        return _part("edits", edits=edits)
    return _part(
        "module",
        init=init,
        # `module use` puts a tree first, so the last one goes in first.
        trees=(*reversed(modules.trees), published.tree),
        module=_module(lock, published),
    )


def _slurm_directives(job: Job) -> list[Quoted]:
    hours, minutes = divmod(job.minutes, 60)
    tasks = 1 if job.one_task_per_node else job.ranks_per_node
    options: list[tuple[str, str | None]] = [
        ("job-name", job.name),
        ("nodes", str(job.nodes)),
        ("ntasks-per-node", str(tasks)),
        ("cpus-per-task", _cpus_per_task(job, tasks)),
        ("gres", f"gpu:{job.gpus_per_node}" if job.gpus_per_node else None),
        ("time", f"{hours:02}:{minutes:02}:00"),
        ("account", job.account),
        ("partition", job.partition),
    ]
    return [
        *(Quoted(f"--{name}={comment(value)}") for name, value in options if value is not None),
        Quoted(f"--output={comment(job.name)}-%j.out"),
    ]


def _cpus_per_task(job: Job, tasks: int) -> str | None:
    if job.cpus_per_rank is None:
        return None
    return str(job.cpus_per_rank * (job.ranks_per_node // tasks))


def _slurm_settings(job: Job) -> list[Quoted]:
    settings = []
    if job.cpus_per_rank is not None:
        text = "# From Slurm 22.05 on srun does not take it from the job.\n"
        settings.append(text + 'export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"')
    if job.tf_config:
        text = "# Ranks fill one node after another: the workers are listed so.\n"
        settings.append(text + "export SLURM_DISTRIBUTION=block")
    return [Quoted(setting) for setting in settings]


def _lsf_directives(job: Job) -> list[Quoted]:
    hours, minutes = divmod(job.minutes, 60)
    name = comment(job.name)
    return [
        *([Quoted(f"-P {comment(job.account)}")] if job.account else []),
        Quoted(f"-J {name}"),
        Quoted(f"-W {hours}:{minutes:02}"),
        *_lsf_size(job),
        *([Quoted(f"-q {comment(job.partition)}")] if job.partition else []),
        Quoted(f"-o {name}-%J.out"),
    ]


def _lsf_size(job: Job) -> list[Quoted]:
    if job.launch_node:
        # jsrun deals out the GPUs and cores of whole nodes.
        return [Quoted(f"-nnodes {job.nodes}")]
    gpus = [Quoted(f'-gpu "num={job.gpus_per_node}"')] if job.gpus_per_node else []
    cores = "" if job.cpus_per_rank is None else f" affinity[core({job.cpus_per_rank})]"
    return [
        Quoted(f"-n {job.nodes * job.ranks_per_node}"),
        Quoted(f'-R "span[ptile={job.ranks_per_node}]{cores}"'),
        *gpus,
    ]


def _lsf_nodes(job: Job) -> Quoted:
    once = "awk '!seen[$1]++ { print $1 }'"
    if not job.launch_node:
        return Quoted(f'mapfile -t nodes < <({once} "$LSB_DJOB_HOSTFILE")')
    return Quoted(
        "# The first line is the node that this script runs on; no rank may run there.\n"
        f'mapfile -t nodes < <(tail -n +2 "$LSB_DJOB_HOSTFILE" | {once})'
    )


def _parts(job: Job, words: Sequence[str], job_id: Quoted) -> list[Quoted]:
    """Return what the script makes of the allocation, as far as the launch line needs it."""
    ranks = str(job.ranks_per_node)
    parts = []
    if HOSTS in words:
        parts.append(_part("hosts", ranks_per_node=ranks))
    if ENDPOINT in words or job.tf_config:
        parts.append(_part("port", job_id=job_id))
    if ENDPOINT in words:
        parts.append(_part("endpoint"))
    if job.tf_config:
        parts.append(_part("tf-config", ranks_per_node=ranks))
    return parts


def _part(template: str, **values: object) -> Quoted:
    return Quoted(render(f"job/{template}.sh.j2", **values).rstrip("\n"))
