"""``envbuild image``: the base, and what is built, packed and kept; see ``targets.image``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import BuildError, UsageError
from ..images.apptainer import MOUNT, find_builder
from ..images.oci import OciConfig, check_layer, pack_layout
from ..images.sif import arch_of
from ..machine.host import LocalMachine, wheel_cache
from ..model.base_image import BaseImage, Bind
from ..model.evidence import Evidence, newest_passed, telling
from ..model.outcome import ImageResult
from ..model.places import ImageFormat
from ..model.plan import Lock, Step
from ..model.progress import reported
from ..record import read_all
from ..render.bundle_image import BASE, render_bundle_definition
from ..render.container import FOLDER, labels, variables
from ..target_tools import manifest
from ..target_tools.files import make_folder, sha256_of, text_or_none
from ..target_tools.root import publish
from ..target_tools.root.attestations import PREDICATE, PROVENANCE, statement
from ..target_tools.root.layout import MANIFEST, Home
from .context import Context
from .emulate import system_of
from .image_base import base_name
from .launch_requests import facts_of
from .load import PlanInputs

_BUILD = Step(id="image", title="build and test in the base")
_PACK = Step(id="pack", title="pack the image")
_TEST = Step(id="test", title="test the packed image")


_ENDINGS: Mapping[ImageFormat, str] = {"sif": ".sif", "oci": ".oci", "sandbox": ""}


@dataclass(frozen=True)
class ImageRequest:
    """What an image is made of, and how. *base*: None for the Debian that the site states.

    *binds*: the folders of the site's modules, which the image does not hold. *candidate*: it is
    kept without a proof over GPUs, where there are none.
    """

    lock: Lock
    base: BaseImage | None
    plan_inputs: PlanInputs
    format: ImageFormat
    output: Path
    binds: tuple[Bind, ...] = ()
    candidate: bool = False

    @property
    def name(self) -> str:
        return f"{self.lock.plan.recipe}-{self.lock.id()}-{self.lock.plan.arch}"

    @property
    def base_name(self) -> str:
        """What the system in it is, for people."""
        return base_name(self.base, self.plan_inputs)

    @property
    def image(self) -> Path:
        """Where the image is put: the file, or the folder that it is."""
        return self.output / (self.name + _ENDINGS[self.format])

    @property
    def beside(self) -> Path:
        """Where its lock, manifest and records are put."""
        return self.output / f"{self.name}.evidence"

    @property
    def log(self) -> Path:
        return self.output / f"{self.name}.log"


def write_definition(
    lock: Lock, base: str, folder: Path, binds: Sequence[Bind] = (), *, candidate: bool = False
) -> Path:
    """Write what is built from into the folder that holds the bundle, and BASE or a link to it.

    *base*: what its system is, for people.
    """
    file = folder / f"{lock.plan.recipe}.def"
    text = render_bundle_definition(lock, base, binds, candidate=candidate)
    file.write_text(text, encoding="utf-8")
    return file


def check_places(request: ImageRequest) -> None:
    """Raise UsageError for an image that is there already, or for records of another one."""
    for path in (request.image, request.beside):
        if path.exists() and not _left_behind(request, path):
            raise UsageError(
                "output.exists",
                f"{path} already exists",
                "move it away, or use another --output",
            )


def _left_behind(request: ImageRequest, path: Path) -> bool:
    """Return whether a run was killed between putting the records and the image in place."""
    lock = request.beside / "lock.json"
    return (
        path == request.beside
        and not request.image.exists()
        and not path.is_symlink()
        and text_or_none(lock) == request.lock.text()
    )


def build_image(request: ImageRequest, bundle: Path, context: Context) -> ImageResult:
    """Build an image in the folder of *bundle*, and put what is asked for where it belongs.

    Raises MissingToolError, BuildError or SmokeError; then there is no image, only a log.
    """
    lock, scratch = request.lock, bundle.parent
    gpus = facts_of(lock.plan, request.plan_inputs).gpus
    base = request.base.folder if request.base else system_of(request.plan_inputs, context)
    builder = replace(
        find_builder(LocalMachine(context.environ)),
        binds=request.binds,
        gpus=gpus,
        handed=lock.plan.licence_variables,
        wheels=_wheels(base, request.binds, context),
    )
    definition = write_definition(
        lock, request.base_name, scratch, request.binds, candidate=request.candidate
    )
    (scratch / BASE).symlink_to(base.resolve())
    request.log.unlink(missing_ok=True)
    root, packed = scratch / "root", scratch / request.image.name
    steps = (_BUILD,) if request.format == "sandbox" else (_BUILD, _PACK, _TEST)
    with context.reporter.steps(steps) as listener:
        with reported(_BUILD, listener):
            builder.build_root(definition, root, request.log, listener)
            every = _kept(root, lock, scratch / "evidence")
        if request.format == "sif":
            with reported(_PACK, listener):
                builder.pack(root, packed, request.log, listener)
                _check_arch(packed, lock.plan.arch)
                _attest(packed.name, sha256_of(packed), bundle, scratch / "evidence")
            with reported(_TEST, listener):
                builder.test(packed, request.log, listener)
        elif request.format == "oci":
            with reported(_PACK, listener):
                digest = pack_layout(root, packed, _oci_config(request))
                _attest(packed.name, digest, bundle, scratch / "evidence")
            with reported(_TEST, listener):
                builder.test(root, request.log, listener)
                _check_packed(packed, lock, scratch / "evidence")
    made = root if request.format == "sandbox" else packed
    if request.beside.exists():
        request.beside.rename(scratch / "left-behind")
    (scratch / "evidence").rename(request.beside)
    made.rename(request.image)
    return image_result(request, every, request.image, request.beside)


def image_result(
    request: ImageRequest, every: Sequence[Evidence], image: Path, beside: Path
) -> ImageResult:
    """Return what is known of an image. *every*: its records, oldest first."""
    lock, proofs = request.lock, newest_passed(every)
    passed = {(each.result.api, each.result.transport) for each in proofs}
    return ImageResult(
        environment=lock.plan.recipe,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        base=request.base_name,
        binds=tuple(map(str, request.binds)),
        gpus=facts_of(lock.plan, request.plan_inputs).gpus,
        arch=lock.plan.arch,
        format=request.format,
        image=str(image),
        bytes=_bytes(image),
        beside=str(beside),
        evidence=telling(proofs or every),
        proofs=proofs,
        unproved=tuple(
            each for each in every if (each.result.api, each.result.transport) not in passed
        ),
    )


def _wheels(base: Path, binds: Sequence[Bind], context: Context) -> Path | None:
    """Return the cache of wheels; None where a build cannot see it as MOUNT of the base."""
    wheels, mount = wheel_cache(LocalMachine(context.environ)), base / MOUNT.lstrip("/")
    taken = any(str(bind.target).startswith(MOUNT) for bind in binds)
    if wheels is None or set(":,") & set(str(wheels)) or taken:
        return None
    if mount.is_symlink() or not mount.is_dir() or any(mount.iterdir()):
        return None
    make_folder(wheels)
    return wheels


def _kept(root: Path, lock: Lock, folder: Path) -> tuple[Evidence, ...]:
    """Copy lock, manifest and records out of a root; return the records.

    Raises BuildError where the root does not hold what it was to hold.
    """
    home = Home(root / FOLDER.relative_to("/"), lock.plan.recipe)
    version = publish.find_reserved(home, lock.id())
    if version is None or not publish.is_published(home, version):
        raise BuildError(
            "image.nothing-published",
            "the installer succeeded, but published nothing in the image",
        )
    shutil.copytree(home.evidence(lock.id()), folder)
    (folder / "lock.json").write_text(lock.text(), encoding="utf-8")
    records = read_all(home, version, lock, in_image=True)
    if not records.evidence:
        raise BuildError(
            "image.evidence-missing",
            "the image contains no evidence of a smoke test",
            *records.claimed,
        )
    return records.evidence


def _attest(name: str, digest: str, bundle: Path, folder: Path) -> None:
    """Say beside an image how it was made; that of its prefix is about the prefix alone.

    *digest*: of a SIF its file's, of an OCI image its manifest's, as registries have it.
    """
    predicate = (bundle / "build" / PREDICATE).read_text(encoding="utf-8")
    text = statement(predicate, {name: digest})
    (folder / f"image.{PROVENANCE}").write_text(text, encoding="utf-8")


def _oci_config(request: ImageRequest) -> OciConfig:
    lock = request.lock
    prefix = Home(FOLDER, lock.plan.recipe).prefix(lock.id())
    source = request.base.source if request.base else None
    values = variables(lock.plan, prefix, source.variables if source else ())
    return OciConfig(
        arch=lock.plan.arch,
        tag=lock.id(),
        environment=tuple(f"{name}={value}" for name, value in sorted(values.items())),
        labels=dict(labels(lock, request.base_name, request.binds)),
    )


def _check_packed(image: Path, lock: Lock, evidence: Path) -> None:
    """Raise BuildError where the files of the prefix are not as they were proved."""
    prefix = Home(FOLDER.relative_to("/"), lock.plan.recipe).prefix(lock.id())
    recorded = manifest.read(evidence / MANIFEST)
    if recorded is None:
        raise BuildError(
            "image.manifest-missing",
            f"the manifest of the prefix is missing: {evidence / MANIFEST}",
        )
    check_layer(image, str(prefix), recorded["files"])


def _check_arch(image: Path, arch: str) -> None:
    """Raise BuildError for an image that Apptainer would start on other machines alone."""
    found = arch_of(image)
    if found != arch:
        raise BuildError(
            "image.arch-mismatch",
            f"the image is marked as {found}, but contains programs for {arch}",
        )


def _bytes(image: Path) -> int:
    """Return the size of a file, or of all files in a folder."""
    if image.is_file():
        return image.stat().st_size
    every = (Path(folder, name) for folder, _, names in os.walk(image) for name in names)
    return sum(each.lstat().st_size for each in every)
