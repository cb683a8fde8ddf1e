"""Images that a registry holds under numbers: ``NAME:N-ARCH``, and ``NAME:ID-ARCH`` by the lock."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..errors import UsageError
from ..images import RegistryImage, parse_base, pull, push, tags_of
from ..machine.host import LocalMachine
from ..model.outcome import ImageResult
from ..model.plan import Lock
from ..record import read_all
from ..root.environments import find
from ..target_tools.root.store import read_root
from .context import Context
from .image import ImageRequest, image_result
from .image_contents import opened


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
