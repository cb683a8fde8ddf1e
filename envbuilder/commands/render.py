"""``envbuild lock`` and ``envbuild render``: everything up to the build, without it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from ..build import BuildPlaces, prepare
from ..errors import UsageError
from ..launching import JobHosts, LaunchRequest, Mpi, launch_line, site_shape
from ..model.base import Document
from ..model.outcome import LockCheck
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..model.site import Launcher
from ..planning.planner import LAUNCHERS
from ..render import render_build
from ..render.forms import FORMS, Draft, Subject, draft, render_form, render_image
from ..render.image import make_image
from ..render.job import ENDPOINT, HOSTS, Job
from ..root.files import write_atomically
from ..root.store import Home
from ..text import unknown
from .context import Context
from .load import Choice, Material, load, plan
from .locked import LOCKS, changed_inputs, check_is_for, check_runtime, obtain_lock
from .patches import patch_files
from .places import root_path

# More than one file: every form there is, an image's folder, the build folder.
ALL = "all"
IMAGE = "image"
FOLDER = "folder"

# The run time that a rendered job asks for: half an hour, which every queue takes.
JOB_MINUTES = 30

PROGRAM = ("python", "my_program.py")

# The launcher that works with the other scheduler only.
_OTHERS: Mapping[str, str] = {"slurm": "jsrun", "lsf": "srun"}


def make(choice: Choice, context: Context) -> Lock:
    """Return the lock of a recipe; may use the network."""
    return _lock(load(choice, context), context)


def check(choice: Choice, file: Path, context: Context) -> LockCheck:
    """Say which inputs of a lock have changed; what the choice leaves open is as it was locked.

    Raises UsageError for a lock of another recipe, site or architecture. No network.
    """
    path = context.path(file)
    lock = LOCKS.load(path)
    plan = lock.plan
    choice = replace(
        choice,
        recipe=choice.recipe or plan.recipe,
        site=choice.site or plan.site,
        arch=choice.arch or plan.arch,
    )
    material = load(choice, context)
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
    None: the text is handed back alone.
    """

    choice: Choice
    form: str = FOLDER
    root: str | None = None
    output: Path | None = None
    locked: Path | None = None


def render(options: RenderOptions, context: Context) -> Rendered:
    """Render one form, all of them, or the folder that an environment or image is built in.

    Without a lock, a form is made from the plan alone and no index is asked; the two folders need
    hashes, so their lock is made then. Raises UsageError for a form that the plan cannot have.
    """
    known = (*FORMS, ALL, IMAGE, FOLDER)
    if options.form not in known:
        raise UsageError(
            unknown("form", options.form, known), f"there are: {', '.join((*FORMS, ALL, IMAGE))}"
        )
    if options.form in FORMS:
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


def _one(options: RenderOptions, context: Context) -> Rendered:
    _, subject = _subject(options, context)
    text = render_form(options.form, subject)
    if options.output is None:
        return Rendered(form=options.form, text=text)
    file = context.path(options.output)
    write_atomically(file, text)
    return Rendered(form=options.form, written=(str(file),))


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
    prepare(BuildPlaces(folder, folder / "build"), build, material.runtime_source)
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
    prepare(BuildPlaces(prefix, folder), written, material.runtime_source)
    return Rendered(form=FOLDER, written=tuple(sorted([*written, "runtime/", "smoke.py"])))


def _subject(options: RenderOptions, context: Context) -> tuple[Material, Subject]:
    material = load(options.choice, context)
    lock = _given(options, material, context) or draft(plan(material))
    return material, _about(lock, options, material, context)


def _about(lock: Lock, options: RenderOptions, material: Material, context: Context) -> Subject:
    home = _home(lock, options, material, context)
    job = _job(lock.plan, material)
    return Subject(
        lock=lock,
        places=Places(prefix=home.prefix(lock.id()), build=home.build(lock.id())),
        knowledge=material.knowledge.value,
        tree=home.modulefiles.parent,
        job=job,
        words=lambda scheduler: _words(lock.plan, job, scheduler, material),
    )


def _job(planned: Plan, material: Material) -> Job:
    """Return a job of the smoke test's size, on one node; to be edited, or given to sbatch."""
    ranks = planned.smoke.ranks
    return Job(
        name=planned.recipe,
        nodes=1,
        ranks_per_node=ranks,
        minutes=JOB_MINUTES,
        gpus_per_node=ranks if _has_gpus(planned) else 0,
        partition=material.chosen.partition_name,
        one_task_per_node=planned.launcher.kind == "torchrun",
        launch_node=planned.launcher.kind == "jsrun",
    )


def _words(
    planned: Plan, job: Job, scheduler: Literal["slurm", "lsf"], material: Material
) -> tuple[str, ...]:
    """Return the launch line inside a job; the program and its words are the script's own."""
    known = material.knowledge.value.components
    mpis = (pin for pin in planned.pins if "mpi" in known[pin.component].fulfils)
    mpi = next((Mpi(pin.component, pin.version) for pin in mpis), None)
    launcher = _launcher(planned, scheduler, mpi)
    return launch_line(
        LaunchRequest(
            kind=launcher.kind,
            program=PROGRAM,
            ranks=job.nodes * job.ranks_per_node,
            hosts=JobHosts(job.nodes, job.ranks_per_node, HOSTS, ENDPOINT),
            scheduler=scheduler,
            command=launcher.command,
            mpi=mpi,
            gpus=_has_gpus(planned),
            shape=site_shape(material.site, material.chosen.partition),
        )
    )


def _launcher(planned: Plan, scheduler: Literal["slurm", "lsf"], mpi: Mpi | None) -> Launcher:
    """Return the plan's launcher; where it is of the other scheduler, the one of the plan's MPI."""
    if planned.launcher.kind != _OTHERS[scheduler]:
        return planned.launcher
    own = LAUNCHERS.get(mpi.component) if mpi else None
    if own is None:
        raise UsageError(
            f"{planned.launcher.kind} starts no ranks in a job of {scheduler}, and no other "
            "launcher of this stack's MPI is known",
            f"render it for the scheduler of {planned.site}",
        )
    return own


def _has_gpus(planned: Plan) -> bool:
    return any(pin.component in ("cuda", "nccl") for pin in (*planned.pins, *planned.brought))


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
