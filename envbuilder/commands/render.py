"""``envbuild render``: what would be built, without building it."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from pydantic import Field

from ..base import Document
from ..build.backends import prefix_parts
from ..build.scripts import prepare
from ..build.sources import tree_sha256
from ..documents.patches import patch_files
from ..errors import UsageError
from ..files import clean_on_failure, write_atomically
from ..knowledge.entries import check_choice
from ..launching.schedulers import SCHEDULERS
from ..locking.lock_check import check_runtime
from ..model.base_image import BUNDLE_FOLDER
from ..model.places import BuildFolders
from ..model.plan import Lock
from ..model.site import Site
from ..render.bundle_image import BASE, render_bundle_definition
from ..render.container import render_image
from ..render.image import make_image
from ..workflow.context import Context
from ..workflow.image import write_definition
from ..workflow.image_base import base_name
from ..workflow.image_inputs import ImageInputs, image_inputs
from ..workflow.launch_requests import facts_at, facts_of, image_start, script_start
from ..workflow.load import load, plan_recipe
from ..workflow.lock import lock_planned
from ..workflow.options import CreateOptions, ImageOptions, RenderOptions
from ..workflow.output import output_folder, output_path
from ..workflow.published import Published, environments_of
from ..workflow.render_source import given_lock, home_of, named, of_lock, render_source, selected
from ..workflow.texts import build_texts, forms, image_parts

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

    ``environment``: the published one that was rendered, NAME/N; None: a plan, or a lock that is
    not built. ``left_out``: forms that the plan cannot have, and why.
    """

    form: str
    environment: str | None = None
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
            "option.only-for-job",
            f"{named} applies only to a job, not to the form {form}",
            f"use one of {', '.join(f'--as {each}' for each in jobs)}",
        )
    build = options.build.build_args or options.build.context
    if (options.base or options.binds or options.candidate or build) and form not in _ON_BASE:
        raise UsageError(
            "option.only-for-image",
            "--base, --build-arg, --context, --bind and --candidate apply only to an image, not to "
            f"the form {form}",
            f"use one of the forms {', '.join(_ON_BASE)}",
        )
    if form not in _FOLDERS:
        return _one(form, options, context)
    if options.output is None:
        what = "a plan's build folder" if form == FOLDER else f"the form {form}"
        raise UsageError(
            "output.missing",
            f"{what} has several files and needs --output",
            "add --output DIR, or choose one form with --as FORM",
        )
    folder = context.path(options.output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            "output.exists",
            f"{folder} exists and is not an empty folder",
            "use a new folder",
        )
    output_folder(folder, context)
    with clean_on_failure(folder):
        return _FOLDERS[form](options, folder, context)


def _one(name: str, options: RenderOptions, context: Context) -> RenderResult:
    file = output_path(options.output, context)
    of_image = None
    # Of an environment, whose recipe its root does not keep, only a base is asked for.
    if name == DEFINITION and (options.base or options.binds or not named(options, context)):
        of_image = _inputs(options, context)
    source = render_source(options, context, of_image)
    form = _scheduler(source.source.chosen.site) if name == JOB else name
    if of_image and of_image.begins_with_folder:
        lock = source.source.subject.source
        if not isinstance(lock, Lock):
            raise UsageError(
                "lock.missing",
                "the definition file of an image on a base needs a lock",
                f"add --locked FILE, or use --as {IMAGE}, which makes a lock",
            )
        on = base_name(of_image.base, of_image.plan_inputs)
        candidate = options.candidate
        text = render_bundle_definition(lock, on, of_image.binds, candidate=candidate)
    else:
        text = source.text(form)
    return written_to(file, text, RenderResult(form=form, environment=source.environment))


def written_to(file: Path | None, text: str, result: RenderResult) -> RenderResult:
    """Write the text of a form to a file, if one is named; return the result with either."""
    if file is None:
        return result.model_copy(update={"text": text})
    write_atomically(file, text)
    return result.model_copy(update={"written": (str(file),)})


def _scheduler(site: Site) -> str:
    """Return the form for the site's scheduler. Raises UsageError where it states none."""
    if site.scheduler not in SCHEDULERS:
        which = " or ".join(f"--as {each}" for each in SCHEDULERS)
        raise UsageError(
            "site.no-scheduler",
            f"site {site.name} has no scheduler to render a job for",
            f"use {which}, or write scheduler: {next(iter(SCHEDULERS))} in the site file",
        )
    return site.scheduler


def _all(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    """Write every form that the plan can have; say which it cannot, and why."""
    source = render_source(options, context)
    plan = source.source.subject.plan
    texts, left_out = {}, {}
    for name, form in forms().items():
        try:
            texts[form.file_of(plan)] = source.text(name)
        except UsageError as error:
            left_out[name] = str(error)
            context.reporter.warn(f"skipped {name}: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        write_atomically(folder / file, text)
    return RenderResult(
        form=ALL,
        environment=source.environment,
        written=tuple(sorted(texts)),
        left_out=left_out,
    )


def _inputs(options: RenderOptions, context: Context) -> ImageInputs:
    asked = ImageOptions(options.base, tuple(options.binds or ()), build=options.build)
    try:
        return image_inputs(asked, options.choice, context)
    except UsageError as error:
        environment = named(options, context)
        if environment is None:
            raise
        raise UsageError(
            "recipe.not-found",
            f"the base of an image of {environment.name} is in its recipe, which is not available: "
            f"{error}",
            f"name the recipe's file, with --locked {environment.lock_file}",
        ) from error


def _image_on_base(
    asked: ImageInputs, options: RenderOptions, folder: Path, context: Context
) -> RenderResult:
    """Write what ``envbuild image`` starts Apptainer on: definition, bundle, a link to the base."""
    plan_inputs, base, binds = asked
    # lazy imports: what no other form needs
    from ..workflow.targets import bundle
    from ..workflow.targets.image import check_modules
    from ..workflow.targets.protocol import CreateRequest

    given = given_lock(options, plan_inputs, context, with_runtime=True)
    of = CreateOptions(choice=options.choice, output=folder)
    source = given or plan_recipe(plan_inputs, context, "to lock")
    request = CreateRequest(of, plan_inputs, source, context, base, binds)
    check_modules(request)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".envbuild-", dir=folder) as downloads:
        lock = bundle.lock_of(request, Path(downloads))
        bundle.write(lock, folder / BUNDLE_FOLDER, request, Path(downloads))
    candidate = options.candidate
    write_definition(lock, base_name(base, plan_inputs), folder, binds, candidate=candidate)
    if base:
        (folder / BASE).symlink_to(base.folder.resolve())
    else:
        context.reporter.say(f"before the build, put the site's Debian into {folder / BASE}")
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return RenderResult(form=IMAGE, written=tuple(sorted(map(str, paths))))


def _image(options: RenderOptions, folder: Path, context: Context) -> RenderResult:
    asked = _inputs(options, context)
    if asked.begins_with_folder:
        return _image_on_base(asked, options, folder, context)
    plan_inputs = asked.plan_inputs
    # Before any index is asked: is there an image of this at all?
    given = given_lock(options, plan_inputs, context, with_runtime=True)
    source = given or plan_recipe(plan_inputs, context, "to lock")
    make_image(source.plan, plan_inputs.knowledge.value, plan_inputs.prefix_of(source.plan))
    lock = source if isinstance(source, Lock) else lock_planned(source, context)
    subject = of_lock(lock, options, plan_inputs, context).source.subject
    parts = image_parts(lock.plan, subject.knowledge)
    start = image_start(parts.image.plan, subject.knowledge.components)
    texts = render_image(subject, parts, start)
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
    environment = named(options, context)
    if environment:
        return _folder_again(environment, options, folder, context)
    plan_inputs = load(options.choice, context)
    lock = given_lock(options, plan_inputs, context, with_runtime=True)
    if lock is None:
        published = environments_of(plan_inputs, options.root, context)
        found = selected(published, plan_inputs, options, context, "to lock")
        if isinstance(found, Published):
            return _folder_again(found, options, folder, context)
        lock = lock_planned(found, context)
    places = BuildFolders(
        home_of(lock.plan, options, plan_inputs, context).prefix(lock.id()), folder
    )
    start = script_start(facts_of(lock.plan, plan_inputs))
    texts = build_texts(lock, places, plan_inputs.prefix_of(lock.plan), plan_inputs.folders, start)
    prepare(folder, texts, plan_inputs.runtime_source)
    return RenderResult(form=FOLDER, written=tuple(sorted([*texts, *_BESIDE])))


def _folder_again(
    environment: Published, options: RenderOptions, folder: Path, context: Context
) -> RenderResult:
    """Write the build folder of a published environment; runtime and patches are those it keeps."""
    lock, build = environment.lock, environment.home.build(environment.version.id)
    runtime = lock.plan.runtime
    found = runtime.model_copy(update={"source_sha256": tree_sha256(build / "runtime")})
    check_runtime(lock, environment.lock_file, found, build / "runtime")
    choice, context = options.choice, environment.context(context)
    facts = facts_at(lock.plan, choice.site, choice.partition, context)
    prefix = prefix_parts(lock.plan, context.knowledge.components)
    places = BuildFolders(environment.prefix, folder)
    texts = build_texts(lock, places, prefix, (build,), script_start(facts))
    prepare(folder, texts, build / "runtime")
    context.reporter.say(f"rendered: {environment}")
    written = tuple(sorted([*texts, *_BESIDE]))
    return RenderResult(form=FOLDER, environment=environment.name, written=written)


# The forms of more than one file.
_FOLDERS = {ALL: _all, IMAGE: _image, FOLDER: _folder}
