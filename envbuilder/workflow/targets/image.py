"""An image: an environment in a system of its own, in one file.

A bundle is made and its installer run in the image's base: what is built, proved and published
there is what would be on a machine that has this system.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from ...errors import BuildError, UsageError
from ...images.reference import RegistryImage, parse_base
from ...images.registry import pull, push, tags_of
from ...machine.host import LocalMachine
from ...model.base_image import BUNDLE_FOLDER
from ...model.evidence import Tier
from ...model.outcome import ImageResult
from ...model.places import ImageFormat
from ...model.plan import Lock
from ...record import read_all
from ...render.modulefile import render_image_modulefile, render_image_start
from ...root.environment_lock import LOCK
from ...root.environments import find
from ...target_tools import manifest, sharing
from ...target_tools.root import publish
from ...target_tools.root.attestations import PREDICATE, PROVENANCE, SBOM
from ...target_tools.root.layout import Home, Version
from ...target_tools.root.store import read_root
from ..context import Context
from ..image import ImageRequest, build_image, check_places, image_result
from ..image_binds import check_binds
from ..image_contents import opened
from ..options import ImageOptions
from ..output import unfinished_in
from ..root_lock import downloads_of
from . import bundle, root
from .protocol import CreateRequest


def repository_of(registry: str, lock: Lock, context: Context) -> RegistryImage:
    """Return the image of a lock in a registry, by its id. Raises UsageError for a wrong name."""
    image = parse_base(f"{registry}/{lock.plan.recipe}", context.cwd)
    if not isinstance(image, RegistryImage) or image.digest or image.tag != "latest":
        raise UsageError(
            "image.malformed-registry",
            f"--to {registry} is not a registry and a path in it",
            "example: docker://registry.site:5000/images",
        )
    return replace(image, tag=f"{lock.id()}-{lock.plan.arch}")


def find_pushed(
    request: ImageRequest, image: RegistryImage, scratch: Path, context: Context
) -> ImageResult | None:
    """Return what the registry holds of a lock, read from the image; None: it does not hold it."""
    host, arch = LocalMachine(context.environ), request.lock.plan.arch
    tags = tags_of(image, arch, scratch, host)
    if image.tag not in tags:
        return None
    layout = scratch / "pulled.oci"
    pull(image, layout, host, arch)
    with opened(str(layout), partial(read_root, layout), context) as held:
        home, version = find(held.root, held.environment)
        records = read_all(home, version, request.lock, in_image=True)
    made = image_result(request, records.evidence, layout, layout)
    context.reporter.say(f"{image} already has exactly this lock")
    return _as_pushed(made, image)


def push_image(made: ImageResult, image: RegistryImage, context: Context) -> ImageResult:
    """Push a built layout under the next number and its id."""
    host, layout = LocalMachine(context.environ), Path(made.image)
    number = max(_numbers(tags_of(image, made.arch, layout.parent, host), made.arch), default=0) + 1
    # The id last: what has it is complete.
    tags = (f"{number}-{made.arch}", str(image.tag))
    push(layout, made.id, image, tags, host, made.arch)
    return _as_pushed(made, image, number)


def _as_pushed(made: ImageResult, image: RegistryImage, number: int | None = None) -> ImageResult:
    name = f"docker://{image}"
    return made.model_copy(update={"image": name, "beside": name, "number": number})


def _numbers(tags: tuple[str, ...], arch: str) -> list[int]:
    found = (re.fullmatch(rf"([1-9][0-9]{{0,8}})-{re.escape(arch)}", each) for each in tags)
    return [int(each[1]) for each in found if each]


# In the prefix of a published image: starts a program in it.
START = "start"
HIGHEST_TIER: Tier = "several ranks"
OWN_ARCH = True
OTHER_ARCH = True


def make(request: CreateRequest) -> ImageResult:
    """Write ``NAME-ID-ARCH.sif``, its lock, manifest and records beside it; may use the network.

    With a root the image is published there as ``NAME/N-ARCH.sif``. What fails leaves no image.
    """
    check_modules(request)
    if request.options.root is not None:
        return _make_published(request)
    if request.options.image and request.options.image.registry:
        return _make_pushed(request, request.options.image.registry)
    request.output.mkdir(parents=True, exist_ok=True)
    say = request.context.reporter.say
    with unfinished_in(request.output, request.source.plan, say) as scratch:
        downloads, folder = scratch / "downloads", scratch / "image" / BUNDLE_FOLDER
        downloads.mkdir()
        lock = bundle.lock_of(request, downloads)
        asked = _image(request, lock)
        check_places(asked)
        bundle.write(lock, folder, request, downloads)
        return build_image(asked, folder, request.context)


def check_modules(request: CreateRequest) -> None:
    """Raise UsageError if the modules of the plan are not in the folders that are bound."""
    if request.binds:
        base = request.base.folder if request.base else None
        check_binds(request.source.plan.modules, request.binds, base)


def _make_published(request: CreateRequest) -> ImageResult:
    """Build an image and publish it; what is published already only becomes the default.

    A candidate does not become the default.
    """
    _check_format(request, "sif", "in a folder")
    with root.hold(request, here=False, others=True) as held:
        lock = root.root_lock(held)
        number = root.published_number(held, lock)
        if number is None:
            number = _publish(held, lock)
        made = _result(held, lock, number)
        if not made.unproved:
            root.make_default(held, number)
        return made


def _check_format(request: CreateRequest, expected: ImageFormat, place: str) -> None:
    form = (request.options.image or ImageOptions()).format
    if form != expected:
        raise UsageError(
            "image.format-not-published",
            f"--to publishes the format {expected} {place}, not {form}",
            f"use --format {expected}, or --output instead of --to",
        )


def _make_pushed(request: CreateRequest, registry: str) -> ImageResult:
    """Build an OCI image and push it; what the registry holds already is not built."""
    _check_format(request, "oci", "in a registry")
    context = request.context
    with tempfile.TemporaryDirectory(prefix="envbuild-image-") as scratch:
        folder, downloads = Path(scratch) / "image" / BUNDLE_FOLDER, Path(scratch) / "downloads"
        downloads.mkdir()
        lock = bundle.lock_of(request, downloads)
        image = repository_of(registry, lock, context)
        asked = replace(_image(request, lock), output=Path(scratch))
        held = find_pushed(asked, image, Path(scratch), context)
        if held:
            return held
        bundle.write(lock, folder, request, downloads)
        made = build_image(asked, folder, context)
        if made.unproved:
            raise BuildError(
                "image.candidate-not-pushed",
                "the image is a candidate: its ranks over GPUs are not proved",
                "build it on a machine with GPUs, or use --output",
            )
        return push_image(made, image, context)


def _publish(request: CreateRequest, lock: Lock) -> int:
    """Build an image in the scratch folder of its root, and give it a number; return that.

    Its prefix holds the image, and a link of each program's name to what starts the image.
    """
    home, identity = root.home_of(request), lock.id()
    root.begin(request, lock)
    build, downloads = home.build(identity), downloads_of(home)
    folder = home.scratch / "image" / BUNDLE_FOLDER
    downloads.mkdir(exist_ok=True)
    bundle.write(lock, folder, request, downloads)
    # Where the log of a failure stays.
    asked = replace(_image(request, lock), output=build)
    made = build_image(asked, folder, request.context)
    (build / LOCK).write_text(lock.text(), encoding="utf-8")
    for name in (SBOM, PREDICATE):
        shutil.copy(folder / "build" / name, build)
    shutil.copytree(folder / "build" / "inputs", build / "inputs")
    publish.clear(home, home.evidence(identity))
    asked.beside.rename(home.evidence(identity))
    # It is bound to the manifest of the image, which the image holds.
    publish.unlink(home.evidence(identity) / PROVENANCE)
    prefix = home.prefix(identity)
    (prefix / "bin").mkdir(parents=True)
    asked.image.rename(prefix / asked.image.name)
    _write_starts(made, home)
    sharing.share_trees(home.group, build, home.evidence(identity))
    version = publish.reserve(home, identity, "tcl")
    proofs = (made.evidence, *(each for each in made.proofs if each != made.evidence))
    start = (*_words(made)[1], str(_link(home, version, made)), "mpiexec", "-n", "2", "python")
    text = render_image_modulefile(
        lock, prefix, version.number, proofs, ("apptainer", _words(made)[0], *start, "PROGRAM.py")
    )
    publish.publish(home, version, text)
    _link(home, version, made).symlink_to(f"{identity}/{asked.image.name}")
    return version.number


def _words(made: ImageResult) -> tuple[str, tuple[str, ...]]:
    """Return what starts an image: Apptainer's verb and its options."""
    # What loads the modules is the image's runscript.
    binds = tuple(word for each in made.binds for word in ("--bind", each))
    return ("run" if made.binds else "exec"), (*binds, *(("--nv",) if made.gpus else ()))


def _write_starts(made: ImageResult, home: Home) -> None:
    """Write what starts the image, and a link to it for each program of the environment."""
    prefix = home.prefix(made.id)
    recorded = manifest.read(home.manifest(made.id))
    if recorded is None:
        raise BuildError("image.manifest-missing", f"the manifest is missing: {made.image}")
    start = prefix / START
    text = render_image_start(prefix / Path(made.image).name, *_words(made))
    start.write_text(text, encoding="utf-8")
    start.chmod(0o755)
    for path in map(PurePosixPath, recorded["files"]):
        if path.parent == PurePosixPath("bin") and not path.name.startswith("activate"):
            (prefix / "bin" / path.name).symlink_to(f"../{START}")


def _link(home: Home, version: Version, made: ImageResult) -> Path:
    return home.folder / f"{version.number}-{made.arch}.sif"


def _result(request: CreateRequest, lock: Lock, number: int) -> ImageResult:
    """Return what is known of a published image. Raises UsageError for an environment."""
    home = root.home_of(request)
    version = publish.find_version(home, number)
    [image] = home.images(number) or (None,)
    if image is None:
        raise UsageError(
            "image.not-an-image",
            f"{home.name}/{number} in {home.root} is an environment, not an image",
            "use --to with another folder",
        )
    records = read_all(home, version, lock)
    if not records.evidence:
        raise BuildError(
            "environment.evidence-missing",
            f"{home.name}/{number} is published, but its evidence is missing",
            *records.claimed,
        )
    made = image_result(_image(request, lock), records.evidence, image, home.evidence(version.id))
    modulefiles = str(home.root / "modulefiles")
    return made.model_copy(update={"number": number, "modulefiles": modulefiles})


def _image(request: CreateRequest, lock: Lock) -> ImageRequest:
    asked = request.options.image or ImageOptions()
    return ImageRequest(
        lock,
        request.base,
        request.plan_inputs,
        asked.format,
        request.output,
        request.binds,
        asked.candidate,
    )
