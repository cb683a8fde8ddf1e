"""``envbuild lock`` and ``envbuild render``: everything up to the build, without it."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import Field

from ..build import prepare
from ..errors import UsageError
from ..model.base import Document
from ..model.outcome import LockCheck
from ..model.places import Places
from ..model.plan import Lock
from ..render import render_build
from ..render.forms import FORMS, Draft, Subject, draft, render_form, render_image
from ..render.image import make_image
from ..root.files import write_atomically
from ..root.store import Home
from ..text import unknown
from .context import Context
from .job import NOTHING_ASKED, JobSize, job_of, job_words
from .load import Choice, Material, load, plan
from .locked import LOCKS, changed_inputs, check_is_for, check_runtime, obtain_lock
from .patches import patch_files
from .places import root_path

# The script for the scheduler that the site states.
JOB = "job"
# More than one file: every form there is, an image's folder, the build folder.
ALL = "all"
IMAGE = "image"
FOLDER = "folder"
KNOWN = (*FORMS, JOB, ALL, IMAGE, FOLDER)
# Those that a scheduler is asked by.
JOBS = ("slurm", "lsf", JOB)


def make(choice: Choice, context: Context) -> Lock:
    """Return the lock of a recipe; may use the network."""
    return _lock(load(choice, context), context)


def check(choice: Choice, file: Path, context: Context) -> LockCheck:
    """Say which inputs of a lock have changed; what the choice leaves open is as it was locked.

    Raises UsageError for a lock of another recipe, site or architecture. No network.
    """
    path = context.path(file)
    lock = LOCKS.load(path)
    material = load(choice.as_locked(lock.plan), context)
    check_is_for(lock, path, material)
    return LockCheck(file=str(path), id=lock.id(), changed=changed_inputs(lock, material))


def _lock(material: Material, context: Context) -> Lock:
    with tempfile.TemporaryDirectory(prefix="envbuild-lock-") as folder:
        return obtain_lock(material, plan(material), context, Path(folder) / "work")


class Rendered(Document):
    """What was rendered: the *text* of one form, or the names of the files that were written.

    ``left_out``: forms that the plan cannot have, and why.
    """

    form: str
    text: str | None = None
    written: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True)
class RenderOptions:
    """What is rendered and where to: *form* is one of FORMS, or ``all``, ``image``, ``folder``.

    ``locked``: of just this lock. ``output``: a file, or for more than one a new or empty folder;
    None: the text is handed back alone. ``size``: what is asked of a job.
    """

    choice: Choice
    form: str = FOLDER
    root: str | None = None
    output: Path | None = None
    locked: Path | None = None
    size: JobSize = NOTHING_ASKED


def render(options: RenderOptions, context: Context) -> Rendered:
    """Render one form, all of them, or the folder that an environment or image is built in.

    Without a lock, a form is made from the plan alone and no index is asked; the two folders need
    hashes, so their lock is made then. Raises UsageError for a form that the plan cannot have.
    """
    if options.form not in KNOWN:
        raise UsageError(
            unknown("form", options.form, KNOWN),
            f"there are: {', '.join(KNOWN)}",
        )
    if options.size != NOTHING_ASKED and options.form not in JOBS:
        raise UsageError(
            f"{_asked(options.size)}: only a job has that, not the form {options.form}",
            f"say which job: {', '.join(f'--as {each}' for each in JOBS)}",
        )
    if options.form in (*FORMS, JOB):
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


def _one(options: RenderOptions, context: Context) -> Rendered:
    material, subject = _subject(options, context)
    form = _scheduler(material) if options.form == JOB else options.form
    text = render_form(form, subject)
    if options.output is None:
        return Rendered(form=form, text=text)
    file = context.path(options.output)
    write_atomically(file, text)
    return Rendered(form=form, written=(str(file),))


def _scheduler(material: Material) -> str:
    """Return the form for the site's scheduler. Raises UsageError where it states none."""
    scheduler = material.site.scheduler
    if scheduler not in FORMS:
        raise UsageError(
            f"site {material.site.name} states no scheduler to render a job for",
            "say which: --as slurm or --as lsf; or state scheduler: slurm in the site file",
        )
    return str(scheduler)


def _all(options: RenderOptions, folder: Path, context: Context) -> Rendered:
    """Write every form that the plan can have; say which it cannot, and why."""
    _, subject = _subject(options, context)
    texts, left_out = {}, {}
    for name, form in FORMS.items():
        try:
            texts[form.file_of(subject.plan)] = render_form(name, subject)
        except UsageError as error:
            left_out[name] = str(error)
            context.tell.warn(f"{name} is left out: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        write_atomically(folder / file, text)
    return Rendered(form=ALL, written=tuple(sorted(texts)), left_out=left_out)


def _image(options: RenderOptions, folder: Path, context: Context) -> Rendered:
    material = load(options.choice, context)
    # Before any index is asked: is there an image of this at all?
    planned = _given(options, material, context) or draft(plan(material))
    make_image(planned.plan, material.knowledge.value)
    lock = _lock(material, context) if isinstance(planned, Draft) else planned
    texts = render_image(_about(lock, options, material, context))
    inside = "build/"
    build = {name[len(inside) :]: text for name, text in texts.items() if name.startswith(inside)}
    build |= patch_files(lock.plan, material.folders)
    prepare(folder / "build", build, material.runtime_source)
    beside = [name for name in texts if not name.startswith(inside)]
    for name in beside:
        write_atomically(folder / name, texts[name])
    written = (*beside, *(inside + name for name in (*build, "runtime/", "smoke.py")))
    return Rendered(form=IMAGE, written=tuple(sorted(written)))


def _folder(options: RenderOptions, folder: Path, context: Context) -> Rendered:
    material = load(options.choice, context)
    lock = _given(options, material, context) or _lock(material, context)
    prefix = _home(lock, options, material, context).prefix(lock.id())
    files = render_build(lock, Places(prefix=prefix, build=folder))
    written = {**files, **patch_files(lock.plan, material.folders), "lock.json": lock.text()}
    prepare(folder, written, material.runtime_source)
    return Rendered(form=FOLDER, written=tuple(sorted([*written, "runtime/", "smoke.py"])))


def _subject(options: RenderOptions, context: Context) -> tuple[Material, Subject]:
    material = load(options.choice, context)
    lock = _given(options, material, context) or draft(plan(material))
    return material, _about(lock, options, material, context)


def _about(lock: Lock, options: RenderOptions, material: Material, context: Context) -> Subject:
    home = _home(lock, options, material, context)
    job = job_of(lock.plan, material, options.size)
    return Subject(
        lock=lock,
        places=Places(prefix=home.prefix(lock.id()), build=home.build(lock.id())),
        knowledge=material.knowledge.value,
        tree=home.modulefiles.parent,
        job=job,
        words=lambda scheduler: job_words(lock.plan, job, scheduler, material),
    )


def _home(lock: Lock, options: RenderOptions, material: Material, context: Context) -> Home:
    root = root_path(options.root, material.site, material.arch, context)
    return Home(root, lock.plan.recipe)


def _given(options: RenderOptions, material: Material, context: Context) -> Lock | None:
    """Return the lock of ``--locked``; UsageError if it is for something else."""
    if options.locked is None:
        return None
    file = context.path(options.locked)
    lock = LOCKS.load(file)
    check_is_for(lock, file, material)
    if options.form in (IMAGE, FOLDER):
        # Its sources are put beside what was rendered.
        check_runtime(lock, file, material)
    return lock
