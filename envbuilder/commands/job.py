"""Jobs of an environment: of its smoke test's size or as asked for, with its own launch line."""

from __future__ import annotations

from dataclasses import replace

from ..launchers import LAUNCHERS, launch_line
from ..model.job import Job
from ..model.launch import JobHosts, Words
from ..model.plan import Plan
from ..model.profiles import program
from ..render.job import ENDPOINT, HOSTS, program_words
from ..render.subject import JobParts
from ..schedulers import SCHEDULERS
from .launch_requests import LaunchFacts, base_request, facts_of, programs_launcher
from .load import PlanInputs
from .options import JobSize

# The run time that a rendered job asks for: half an hour, which every queue takes.
JOB_MINUTES = 30


def job_of(planned: Plan, plan_inputs: PlanInputs, asked: JobSize) -> Job:
    """Return the job; where nothing is asked for, of the smoke test's size, on one node.

    Raises UsageError for what no scheduler takes.
    """
    facts = facts_of(planned, plan_inputs)
    ranks = planned.smoke.ranks if asked.ranks_per_node is None else asked.ranks_per_node
    traits = LAUNCHERS[planned.launcher.kind].TRAITS
    return Job(
        name=planned.recipe,
        nodes=1 if asked.nodes is None else asked.nodes,
        ranks_per_node=ranks,
        minutes=JOB_MINUTES if asked.minutes is None else asked.minutes,
        gpus_per_node=ranks if facts.gpus else 0,
        cpus_per_rank=asked.cpus_per_rank,
        account=asked.account,
        partition=plan_inputs.chosen.partition_name or _only_partition(planned, plan_inputs),
        one_task_per_node=traits.one_per_node,
        launch_node=traits.launch_node,
        tf_config=planned.runtime.beside == "tf-distribute",
    )


def _only_partition(planned: Plan, plan_inputs: PlanInputs) -> str | None:
    """Return the partition that a job of this architecture must go to; None: there are several."""
    fitting = [n for n, each in plan_inputs.site.partitions.items() if each.arch == planned.arch]
    return fitting[0] if len(fitting) == 1 else None


def job_parts(planned: Plan, job: Job, scheduler: str, plan_inputs: PlanInputs) -> JobParts:
    """Return what the scheduler says of the script, with the launch line inside a job of it."""
    facts = facts_of(planned, plan_inputs)
    script = SCHEDULERS[scheduler].job_script(job)
    return JobParts(job, script, job_words(facts, job, scheduler))


def job_words(facts: LaunchFacts, job: Job, scheduler: str) -> Words:
    """Return the launch line inside a job; the program and its words are the script's own.

    Raises UsageError where nothing of the stack starts ranks in a job of that scheduler, and for
    more ranks, GPUs or cores than the site's nodes have.
    """
    ranks = job.nodes * job.ranks_per_node
    launcher = programs_launcher(facts.plan, scheduler)
    return launch_line(
        replace(
            base_request(facts, launcher, ranks, scheduler),
            program=program_words(job, program(facts.plan.profile)),
            hosts=JobHosts(job.nodes, job.ranks_per_node, HOSTS, ENDPOINT),
            gpus=job.gpus_per_node > 0,
            cores_per_rank=job.cpus_per_rank,
        )
    )
