"""``envbuild render``: what would be built, without building it."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from ..build import prepare
from ..documents.patches import patch_files
from ..errors import UsageError
from ..files import write_atomically
from ..model.base import Document
from ..model.base_image import BUNDLE_FOLDER
from ..model.entries import check_choice
from ..model.places import Places
from ..model.plan import Lock, Plan
from ..render.bundle_image import BASE, render_bundle_definition
from ..render.container import render_image
from ..render.image import make_image
from ..render.subject import Renderable, Subject, UnlockedPlan
from ..root.environment_lock import published_id
from ..root.environments import places_of
from ..schedulers import SCHEDULERS
from ..target_tools.root.layout import Home
from .channels import Reading
from .context import Context
from .image import write_definition
from .image_base import base_name
from .image_inputs import ImageInputs, image_inputs
from .launch_requests import facts_of, script_start
from .load import PlanInputs, load
from .lock import named_lock, new_lock
from .options import CreateOptions, ImageOptions, RenderOptions
from .output import output_folder, output_path
from .places import root_path
from .texts import build_texts, forms, subject_of

# The script for the scheduler that the site states.
JOB = "job"
# More than one file: every form there is, an image's folder, the build folder.
ALL = "all"
IMAGE = "image"
FOLDER = "folder"


def known_forms() -> tuple[str, ...]:
    """Return everything that ``--as`` takes."""
    return (*forms(), JOB, *_FOLDERS)


class RenderResult(Document):
    """What was rendered: the *text* of one form, or the names of the files that were written.

    ``left_out``: forms that the plan cannot have, and why.
    """

    form: str
    text: str | None = None
    written: tuple[str, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict)


# Those that can begin with a folder: what ``envbuild image`` builds from.
DEFINITION = "def"
_ON_BASE = (IMAGE, DEFINITION)

# What prepare() puts into a build folder beside the rendered files.
_BESIDE = ("runtime/", "target_tools/")


def render(options: RenderOptions, context: Context) -> RenderResult:
    """Render one form, all of them, or the folder that an environment or image is built in.

    Without a lock, a form is made from the plan alone and no index is asked; the two folders need
    hashes, so their lock is made then. Raises UsageError for a form that the plan cannot have.
    """
    form, known, jobs = options.form or FOLDER, known_forms(), (*SCHEDULERS, JOB)
    check_choice("form", form, known)
    asked = [name for name, value in asdict(options.size).items() if value is not None]
    if asked and form not in jobs:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise UsageError(
            f"{named}: only a job has that, not the form {form}",
            f"say which job: {', '.join(f'--as {each}' for each in jobs)}",
        )
    if (options.base or options.binds or options.candidate) and form not in _ON_BASE:
        raise UsageError(
            "--base, --bind and --candidate are of an image that begins with a folder, not of the "
            f"form {form}",
            f"the forms for it: {', '.join(_ON_BASE)}",
        )
    if form not in _FOLDERS:
        return _one(form, options, context)
    if options.output is None:
        what = "a plan's build folder" if form == FOLDER else f"the form {form}"
        raise UsageError(
            f"{what} is more than one file", "say where to with --output, or one with --as FORM"
        )
    folder = context.path(options.output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there and not an empty folder", "name a new folder")
    output_folder(folder, context)
    return _FOLDERS[form](options, folder, context)


def _one(name: str, options: RenderOptions, context: Context) -> RenderResult:
    file = output_path(options.output, context)
    of_image = _inputs(options, context) if name == DEFINITION else None
    plan_inputs, subject = _subject(options, context, of_image)
    form = _scheduler(plan_inputs) if name == JOB else name
    if of_image and _begins_with_folder(of_image):
        lock = subject.source
        if not isinstance(lock, Lock):
            raise UsageError(
                "the definition file of an image on a base names the hashes of its lock",
                f"--locked FILE has them; --as {IMAGE} makes a lock",
            )
        on = base_name(of_image.base, plan_inputs)
        candidate = options.candidate
        text = render_bundle_definition(lock, on, of_image.binds, candidate=candidate)
    else:
        text = forms()[form].render(subject)
    if file is None:
        return RenderResult(form=form, text=text)
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


def _inputs(options: RenderOptions, context: Context, reading: Reading = "to plan") -> ImageInputs:
    asked = ImageOptions(options.base, tuple(options.binds or ()))
    return image_inputs(asked, options.choice, context, reading)


def _begins_with_folder(asked: ImageInputs) -> bool:
    """Whether ``envbuild image`` builds it: else an image begins with one of a registry."""
    return asked.base is not None or asked.plan_inputs.site.debian is not None


def _image_on_base(
    asked: ImageInputs, options: RenderOptions, folder: Path, context: Context
) -> RenderResult:
    """Write what ``envbuild image`` starts Apptainer on: definition, bundle, a link to the base."""
    plan_inputs, base, binds = asked
    # lazy imports: what no other form needs
    from ..targets import bundle
    from .stages import CreateStages

    given = _given(options, plan_inputs, context, with_runtime=True)
    of = CreateOptions(choice=options.choice, output=folder)
    stages = CreateStages(of, plan_inputs, context, given, base, binds)
    stages.check_binds()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".envbuild-", dir=folder) as downloads:
        lock = stages.lock(Path(downloads))
        bundle.write(lock, folder / BUNDLE_FOLDER, stages, Path(downloads))
    candidate = options.candidate
    write_definition(lock, base_name(base, plan_inputs), folder, binds, candidate=candidate)
    if base:
        (folder / BASE).symlink_to(base.folder.resolve())
    else:
        context.reporter.say(f"{folder / BASE} is still to be: a folder with the site's Debian")
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return RenderResult(form=IMAGE, written=tuple(sorted(map(str, paths))))


def _image(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    asked = _inputs(options, context, "to lock")
    if _begins_with_folder(asked):
        return _image_on_base(asked, options, folder, context)
    plan_inputs = asked.plan_inputs
    # Before any index is asked: is there an image of this at all?
    given = _given(options, plan_inputs, context, with_runtime=True)
    planned = given.plan if given else plan_inputs.planned
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
    plan_inputs = load(options.choice, context, "to lock")
    given = _given(options, plan_inputs, context, with_runtime=True)
    lock = given or new_lock(plan_inputs, context)
    places = Places(_home(lock.plan, options, plan_inputs, context).prefix(lock.id()), folder)
    facts = facts_of(lock.plan, plan_inputs)
    texts = build_texts(lock, places, plan_inputs, script_start(facts))
    prepare(folder, texts, plan_inputs.runtime_source)
    return RenderResult(form=FOLDER, written=tuple(sorted([*texts, *_BESIDE])))


# The forms of more than one file.
_FOLDERS = {ALL: _all, IMAGE: _image, FOLDER: _folder}


def _subject(
    options: RenderOptions, context: Context, of_image: ImageInputs | None = None
) -> tuple[PlanInputs, Subject]:
    plan_inputs = of_image.plan_inputs if of_image else load(options.choice, context)
    lock = _given(options, plan_inputs, context, with_runtime=False)
    source = lock or UnlockedPlan(plan_inputs.planned)
    return plan_inputs, _about(source, options, plan_inputs, context)


def _about(
    source: Renderable, options: RenderOptions, plan_inputs: PlanInputs, context: Context
) -> Subject:
    home = _home(source.plan, options, plan_inputs, context)
    identity = published_id(home, source) if isinstance(source, Lock) else source.id()
    places = places_of(home, identity)
    return subject_of(source, places, home.modulefiles.parent, plan_inputs, options.size)


def _home(planned: Plan, options: RenderOptions, plan_inputs: PlanInputs, context: Context) -> Home:
    root = root_path(options.root, plan_inputs.site, plan_inputs.arch, context)
    return Home(root, planned.recipe)


def _given(
    options: RenderOptions, plan_inputs: PlanInputs, context: Context, *, with_runtime: bool
) -> Lock | None:
    file = options.locked and context.path(options.locked)
    return named_lock(file, options.signed, plan_inputs, context, with_runtime=with_runtime)
