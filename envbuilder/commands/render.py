"""``envbuild render``: what would be built, without building it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import Field

from ..build import prepare
from ..documents.patches import patch_files
from ..errors import UsageError
from ..files import write_atomically
from ..model.base import Document
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..render.build import render_build
from ..render.container import render_image
from ..render.forms import FORMS, Form, job_form
from ..render.image import make_image
from ..render.subject import Renderable, Subject, UnlockedPlan
from ..root.environment_lock import find_published
from ..root.environments import places_of
from ..schedulers import SCHEDULERS
from ..target_tools.root.store import Home
from ..text import unknown
from .context import Context
from .job import NOTHING_ASKED, JobSize, job_of, job_parts
from .launch_requests import example, facts_of, first_start, image_start, plan_in_image
from .load import PlanInputs, PlanOptions, load, plan
from .lock import LOCKS, check_fits, new_lock
from .places import root_path

# The script for the scheduler that the site states.
JOB = "job"
# More than one file: every form there is, an image's folder, the build folder.
ALL = "all"
IMAGE = "image"
FOLDER = "folder"


def forms() -> Mapping[str, Form]:
    """Return every form of one file; a scheduler's job script is one."""
    return {**FORMS, **{name: job_form(name) for name in SCHEDULERS}}


def known_forms() -> tuple[str, ...]:
    """Return everything that ``--as`` takes."""
    return (*forms(), JOB, ALL, IMAGE, FOLDER)


class RenderResult(Document):
    """What was rendered: the *text* of one form, or the names of the files that were written.

    ``left_out``: forms that the plan cannot have, and why.
    """

    form: str
    text: str | None = None
    written: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)


# What prepare() puts into a build folder beside the rendered files.
_BESIDE = ("runtime/", "target_tools/")


@dataclass(frozen=True)
class RenderOptions:
    """What is rendered and where to: *form* is one of FORMS, or ``all``, ``image``, ``folder``.

    ``locked``: of just this lock. ``output``: a file, or for more than one a new or empty folder;
    None: the text is handed back alone. ``size``: what is asked of a job.
    """

    choice: PlanOptions
    form: str = FOLDER
    root: str | None = None
    output: Path | None = None
    locked: Path | None = None
    size: JobSize = NOTHING_ASKED


def render(options: RenderOptions, context: Context) -> RenderResult:
    """Render one form, all of them, or the folder that an environment or image is built in.

    Without a lock, a form is made from the plan alone and no index is asked; the two folders need
    hashes, so their lock is made then. Raises UsageError for a form that the plan cannot have.
    """
    known, jobs = known_forms(), (*SCHEDULERS, JOB)
    if options.form not in known:
        raise UsageError(
            unknown("form", options.form, known),
            f"there are: {', '.join(known)}",
        )
    if options.size != NOTHING_ASKED and options.form not in jobs:
        raise UsageError(
            f"{_asked(options.size)}: only a job has that, not the form {options.form}",
            f"say which job: {', '.join(f'--as {each}' for each in jobs)}",
        )
    if options.form in (*forms(), JOB):
        return _one(options, context)
    if options.output is None:
        what = "a plan's build folder" if options.form == FOLDER else f"the form {options.form}"
        raise UsageError(
            f"{what} is more than one file", "say where to with --output, or one with --as FORM"
        )
    folder = context.path(options.output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and not an empty folder", "name a new folder")
    return {ALL: _all, IMAGE: _image, FOLDER: _folder}[options.form](options, folder, context)


def _asked(size: JobSize) -> str:
    """Return the options that a size was asked by."""
    names = [name for name, value in asdict(size).items() if value is not None]
    return ", ".join(f"--{name.replace('_', '-')}" for name in names)


def _one(options: RenderOptions, context: Context) -> RenderResult:
    plan_inputs, subject = _subject(options, context)
    form = _scheduler(plan_inputs) if options.form == JOB else options.form
    text = forms()[form].render(subject)
    if options.output is None:
        return RenderResult(form=form, text=text)
    file = context.path(options.output)
    write_atomically(file, text)
    return RenderResult(form=form, written=(str(file),))


def _scheduler(plan_inputs: PlanInputs) -> str:
    """Return the form for the site's scheduler. Raises UsageError where it states none."""
    scheduler = plan_inputs.site.scheduler
    if scheduler not in SCHEDULERS:
        which = " or ".join(f"--as {each}" for each in SCHEDULERS)
        raise UsageError(
            f"site {plan_inputs.site.name} states no scheduler to render a job for",
            f"say which: {which}; or state scheduler: {next(iter(SCHEDULERS))} in the site file",
        )
    return scheduler


def _all(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    """Write every form that the plan can have; say which it cannot, and why."""
    _, subject = _subject(options, context)
    texts, left_out = {}, {}
    for name, form in forms().items():
        try:
            texts[form.file_of(subject.plan)] = form.render(subject)
        except UsageError as error:
            left_out[name] = str(error)
            context.reporter.warn(f"{name} is left out: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        write_atomically(folder / file, text)
    return RenderResult(form=ALL, written=tuple(sorted(texts)), left_out=left_out)


def _image(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    plan_inputs = load(options.choice, context)
    # Before any index is asked: is there an image of this at all?
    given = _given(options, plan_inputs, context)
    planned = given.plan if given else plan(plan_inputs)
    make_image(planned, plan_inputs.knowledge.value, plan_inputs.prefix_of(planned))
    lock = given or new_lock(plan_inputs, context)
    texts = render_image(_about(lock, options, plan_inputs, context))
    inside = "build/"
    build = {name[len(inside) :]: text for name, text in texts.items() if name.startswith(inside)}
    build |= patch_files(lock.plan, plan_inputs.folders)
    prepare(folder / "build", build, plan_inputs.runtime_source)
    beside = [name for name in texts if not name.startswith(inside)]
    for name in beside:
        write_atomically(folder / name, texts[name])
    written = (*beside, *(inside + name for name in (*build, *_BESIDE)))
    return RenderResult(form=IMAGE, written=tuple(sorted(written)))


def _folder(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    plan_inputs = load(options.choice, context)
    lock = _given(options, plan_inputs, context) or new_lock(plan_inputs, context)
    prefix = _home(lock.plan, options, plan_inputs, context).prefix(lock.id())
    files = render_build(
        lock,
        Places(prefix=prefix, build=folder),
        plan_inputs.prefix_of(lock.plan),
        first_start(facts_of(lock.plan, plan_inputs)),
    )
    written = {**files, **patch_files(lock.plan, plan_inputs.folders), "lock.json": lock.text()}
    prepare(folder, written, plan_inputs.runtime_source)
    return RenderResult(form=FOLDER, written=tuple(sorted([*written, *_BESIDE])))


def _subject(options: RenderOptions, context: Context) -> tuple[PlanInputs, Subject]:
    plan_inputs = load(options.choice, context)
    lock = _given(options, plan_inputs, context)
    source = lock or UnlockedPlan(plan(plan_inputs))
    return plan_inputs, _about(source, options, plan_inputs, context)


def _about(
    source: Renderable, options: RenderOptions, plan_inputs: PlanInputs, context: Context
) -> Subject:
    planned = source.plan
    home = _home(planned, options, plan_inputs, context)
    version = find_published(home, source) if isinstance(source, Lock) else None
    identity = version.id if version else source.id()
    job = job_of(planned, plan_inputs, options.size)
    return Subject(
        source=source,
        places=places_of(home, identity),
        knowledge=plan_inputs.knowledge.value,
        prefix_of=plan_inputs.prefix_of,
        tree=home.modulefiles.parent,
        job=lambda scheduler: job_parts(planned, job, scheduler, plan_inputs),
        example=lambda: example(facts_of(planned, plan_inputs)),
        in_image=plan_in_image,
        start=lambda inside: image_start(inside, plan_inputs.knowledge.value.components),
    )


def _home(planned: Plan, options: RenderOptions, plan_inputs: PlanInputs, context: Context) -> Home:
    root = root_path(options.root, plan_inputs.site, plan_inputs.arch, context)
    return Home(root, planned.recipe)


def _given(options: RenderOptions, plan_inputs: PlanInputs, context: Context) -> Lock | None:
    """Return the lock of ``--locked``; UsageError if it is for something else."""
    if options.locked is None:
        return None
    file = context.path(options.locked)
    lock = LOCKS.load(file)
    # The runtime's sources are put beside what is rendered for a build.
    check_fits(lock, file, plan_inputs, with_runtime=options.form in (IMAGE, FOLDER))
    return lock
