"""Jobs: what a scheduler is asked for, and what only it knows of the script for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import UsageError

# Names of jobs, accounts, partitions and queues; several partitions are a list.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._+,/:-]{0,127}"
# Flags of IBM's CSM, which LSF takes as one word: "gpumps smt1".
_FLAGS = r"[a-z0-9]{1,32}( [a-z0-9]{1,32})*"
_MEMORY = r"[1-9][0-9]{0,8}[KMGT]"


@dataclass(frozen=True)
class Job:
    """What the scheduler is asked for.

    ``name`` and ``cpus_per_rank``: None leaves it to the scheduler. ``minutes``: the limit of its
    run time. ``memory``: that of each node, such as 64G. ``partition``: Slurm's, or the queue of
    LSF and PBS. ``alloc_flags``: flags of IBM's CSM. ``one_task_per_node``: the launcher is started
    once a node and starts the ranks there itself (torchrun). ``launch_node``: LSF with IBM's CSM,
    as on Summit: whole nodes, and the script runs on a node besides them. ``tf_config``: give every
    rank TF_CONFIG.
    """

    name: str | None
    nodes: int
    ranks_per_node: int
    minutes: int
    gpus_per_node: int = 0
    cpus_per_rank: int | None = None
    account: str | None = None
    partition: str | None = None
    memory: str | None = None
    alloc_flags: str | None = None
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
            if name is not None and not re.fullmatch(_NAME, name):
                raise UsageError(
                    "job.invalid-name",
                    f"{name!r} is not a valid {what} of a job",
                    "use letters, digits and . _ + - only",
                )
        for what, text, form, example in (
            ("memory", self.memory, _MEMORY, "64G"),
            ("alloc-flags", self.alloc_flags, _FLAGS, "gpumps smt1"),
        ):
            if text is not None and not re.fullmatch(form, text):
                raise UsageError(
                    "job.invalid-option",
                    f"{text!r} is not a valid value of {what} of a job",
                    f"example: {example}",
                )
        for what, number, least in (
            ("nodes", self.nodes, 1),
            ("ranks a node", self.ranks_per_node, 1),
            ("minutes", self.minutes, 1),
            ("GPUs a node", self.gpus_per_node, 0),
            ("cores a rank", 1 if self.cpus_per_rank is None else self.cpus_per_rank, 1),
        ):
            if number < least:
                raise UsageError(
                    "job.invalid-size",
                    f"a job cannot have {number} {what}",
                    f"use {least} or more",
                )


class JobScript(NamedTuple):
    """The parts of a job script that only its scheduler knows, as lines of the script.

    ``directives``: whole lines. ``usage``: comment lines, how to submit it. ``absent``: a condition
    of bash that holds outside a job. ``nodes``: bash that sets the array ``nodes`` to the hosts
    with ranks. ``job_id``: the job's number, as an expression of bash's arithmetic.
    """

    directives: tuple[str, ...]
    usage: str
    absent: str
    nodes: str
    job_id: str
