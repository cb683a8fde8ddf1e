"""What a lock or plan is rendered of: its build folder's texts, and the subject of its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..build.backends import BACKENDS, prefix_parts
from ..documents.patches import patch_files
from ..documents.site_choice import ChosenSite
from ..errors import UsageError
from ..knowledge.rows import Knowledge
from ..launching.launchers import LAUNCHERS, launch_line
from ..launching.schedulers import SCHEDULERS
from ..model.backend import PrefixParts
from ..model.job import Job
from ..model.launch import EnvironmentProgram, JobHosts, StartCommand, Words
from ..model.places import BuildFolders, Dialect
from ..model.plan import Lock, Plan
from ..model.profiles import program
from ..model.site import SiteJob
from ..render.build import render_build
from ..render.forms import FORMS, Form, job_form
from ..render.image import make_image
from ..render.job import ENDPOINT, ENDPOINT_PARTS, HOSTS, expand_variables, program_words
from ..render.subject import JobParts, PlannedImage, Renderable, RenderInput
from ..runtimes import RUNTIMES
from ..target_tools.root.attestations import PREDICATE, SBOM
from .launch_requests import (
    LaunchFacts,
    base_request,
    environment_program,
    example,
    plan_in_image,
    programs_launcher,
    reads_tf_config,
)
from .load import PlanInputs
from .options import JobSize
from .places import site_dialect

# The run time that a rendered job asks for: half an hour, which every queue takes.
JOB_MINUTES = 30


def forms() -> Mapping[str, Form]:
    """Return every form of one file; a scheduler's job script is one."""
    return {**FORMS, **{name: job_form(name) for name in SCHEDULERS}}


def dialect_of(plan_inputs: PlanInputs) -> Dialect:
    """Return the language of the site's modulefiles."""
    return site_dialect(plan_inputs.site)


def build_texts(
    lock: Lock,
    places: BuildFolders,
    prefix: PrefixParts,
    folders: Sequence[Path],
    start: StartCommand | None = None,
) -> dict[str, str]:
    """Return the texts of the build folder; *start*: what starts its smoke test, if it has one.

    *folders*: those that have ``patches/``.
    """
    rendered = render_build(lock, places, prefix, RUNTIMES, start)
    patches = patch_files(lock.plan, folders)
    return {**rendered, **patches, "lock.json": lock.text()}


def attestations(lock: Lock) -> dict[str, str]:
    """Return what says of a build what it is made of, and how; ``publish`` completes both."""
    # lazy import: what it stands on takes 0.2 s, for what is built alone
    from ..render.provenance import render_predicate

    return {SBOM: bill_of(lock), PREDICATE: render_predicate(lock)}


def bill_of(lock: Lock) -> str:
    """Return the bill of materials of a lock: CycloneDX, as JSON."""
    from ..render.sbom import render_sbom

    return render_sbom(lock)


@dataclass(frozen=True)
class FormSource:
    """What every form is rendered of.

    ``facts``: those of the plan at its site, ``chosen``. ``size``: that of a job. ``program``: the
    words that a job starts on each rank; empty: a placeholder.
    """

    subject: RenderInput
    facts: LaunchFacts
    chosen: ChosenSite
    size: JobSize = field(default_factory=JobSize)
    program: Words = ()

    def text(self, name: str) -> str:
        """Return the text of a form. Raises UsageError for one that the plan cannot have."""
        form, subject = forms()[name], self.subject
        if form.needs == "job":
            subject = replace(subject, job=self._job_parts(name))
        elif form.needs == "example":
            subject = replace(subject, example=example(self.facts))
        elif form.needs == "planned-image":
            subject = replace(subject, image=image_parts(subject.plan, subject.knowledge))
        return form.render(subject)

    def job(self, scheduler: str) -> Job:
        """Return what *scheduler* is asked for. Raises UsageError for what it cannot give."""
        return _job(self.facts, self.chosen, self.size, scheduler)

    def _job_parts(self, scheduler: str) -> JobParts:
        facts, job = self.facts, self.job(scheduler)
        launcher = environment_program(facts.plan, programs_launcher(facts.plan, scheduler))
        words = job_words(facts, job, scheduler, self.program)
        return job_parts(scheduler, job, words, launcher)


def render_input(
    source: Renderable, places: BuildFolders, tree: Path, knowledge: Knowledge
) -> RenderInput:
    """Return what a form is rendered of; *tree*: the folder for ``module use``."""
    prefix = prefix_parts(source.plan, knowledge.components)
    return RenderInput(source, places, knowledge, prefix, RUNTIMES, tree)


def image_parts(plan: Plan, knowledge: Knowledge) -> PlannedImage:
    """Return the image of a plan, with the launchers that are inside it.

    Raises UsageError that lists every component that no image can contain as planned.
    """
    image = make_image(plan, knowledge, prefix_parts(plan, knowledge.components))
    inside = plan_in_image(image.plan)
    return PlannedImage(replace(image, plan=inside), prefix_parts(inside, knowledge.components))


def job_parts(
    scheduler: str, job: Job, words: Sequence[str], launcher: EnvironmentProgram | None = None
) -> JobParts:
    """Return what a job script is made of; *words*: the launch line in the job.

    *launcher*: the program of the environment that starts the ranks.
    """
    entry = SCHEDULERS[scheduler]
    script = entry.job_script(job)
    return JobParts(job, script, words, scheduler, entry.TITLE, entry.SUBMIT, launcher)


def _job(facts: LaunchFacts, chosen: ChosenSite, asked: JobSize, scheduler: str) -> Job:
    """Return the job; where nothing is asked for, of the smoke test's size, on one node.

    Raises UsageError for a job that no scheduler takes.
    """
    plan = facts.plan
    ranks = plan.smoke.ranks if asked.ranks_per_node is None else asked.ranks_per_node
    traits = LAUNCHERS[programs_launcher(plan, scheduler).kind].TRAITS
    # Where only one partition is of this architecture a job must go to it.
    fitting = [name for name, each in chosen.site.partitions.items() if each.arch == plan.arch]
    # What the site states is for its own scheduler.
    default = chosen.site.job if scheduler == chosen.site.scheduler else SiteJob()
    only = fitting[0] if len(fitting) == 1 else None
    job = Job(
        name=asked.job_name or plan.recipe,
        nodes=1 if asked.nodes is None else asked.nodes,
        ranks_per_node=ranks,
        minutes=JOB_MINUTES if asked.minutes is None else asked.minutes,
        gpus_per_node=ranks if facts.gpus else 0,
        cpus_per_rank=asked.cpus_per_rank,
        account=asked.account or default.account,
        partition=asked.queue or chosen.partition_name or default.queue or only,
        memory=asked.memory,
        alloc_flags=asked.alloc_flags or default.alloc_flags,
        one_task_per_node=traits.job.one_per_node,
        launch_node=LAUNCHERS[plan.launcher.kind].TRAITS.job.launch_node,
        tf_config=reads_tf_config(plan),
    )
    _check_options(job, scheduler)
    return job


def _check_options(job: Job, scheduler: str) -> None:
    """Raise UsageError for an option that the scheduler does not have."""
    entry = SCHEDULERS[scheduler]
    for name, option in (("memory", "--mem"), ("alloc_flags", "--alloc-flags")):
        if getattr(job, name) and (name not in entry.OPTIONS):
            raise UsageError(
                "job.unknown-option",
                f"a job of {entry.TITLE} has no option for {option}",
                f"leave {option} out",
            )
    if job.alloc_flags and not job.launch_node:
        raise UsageError(
            "job.no-csm",
            "--alloc-flags is an option of LSF with IBM's CSM, which starts ranks by jsrun",
            "leave --alloc-flags out, or state the launcher jsrun in the site file",
        )


def job_words(facts: LaunchFacts, job: Job, scheduler: str, words: Sequence[str] = ()) -> Words:
    """Return the launch line inside a job of *words*; without any, of a placeholder.

    Raises UsageError where nothing of the stack starts ranks in a job of that scheduler, and for
    more ranks, GPUs or cores than the site's nodes have.
    """
    ranks = job.nodes * job.ranks_per_node
    launcher = programs_launcher(facts.plan, scheduler)
    return launch_line(
        replace(
            base_request(facts, launcher, ranks, scheduler),
            program=program_words(job, _expand_words(words) or program(facts.plan.profile)),
            hosts=JobHosts(job.nodes, job.ranks_per_node, HOSTS, ENDPOINT, ENDPOINT_PARTS),
            gpus=job.gpus_per_node > 0,
            cores_per_rank=job.cpus_per_rank,
        )
    )


def _expand_words(words: Sequence[str]) -> Words:
    """Return the words of a program, with the variable of the prefix expanded in the job."""
    names = [each.TRAITS.home_variable for each in BACKENDS.values()]
    return tuple(expand_variables(word, names) for word in words)
