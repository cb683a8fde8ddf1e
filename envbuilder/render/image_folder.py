"""The folder that an image is built from."""

from __future__ import annotations

from dataclasses import replace

from ..errors import UsageError
from ..model.plan import Lock
from .build import render_build
from .container import image_places, render_definition, render_dockerfile
from .image import Image, make_image
from .subject import Subject


def image_of(subject: Subject) -> Image:
    """Return the image of a plan, with the launchers that are inside it."""
    image = make_image(subject.plan, subject.knowledge, subject.prefix)
    return replace(image, plan=subject.in_image(image.plan))


def render_image(subject: Subject) -> dict[str, str]:
    """Return all files that an image is built from: definition, Dockerfile and ``build/...``.

    The runtime's sources and target_tools/ are put into ``build/`` by whoever writes the folder.
    Raises UsageError for a plan without a lock, and where the image needs files that the lock
    lacks.
    """
    image = image_of(subject)
    if not isinstance(subject.source, Lock):
        raise UsageError("an image is built from a lock", "envbuild lock makes one")
    if image.from_index:
        raise UsageError(
            f"the lock has no files for {', '.join(image.from_index)}: at {subject.plan.site} they "
            "come from modules, and an image takes them from the index",
            "lock the recipe for a site without modules, of the same Python: --site local",
        )
    lock = Lock(plan=image.plan, artifacts=subject.source.artifacts)
    start = subject.start(lock.plan) if subject.start else None
    prefix = subject.prefix_of(image.plan)
    files = render_build(lock, image_places(lock.plan.recipe), prefix, start)
    inside = {**files, "lock.json": lock.text()}
    return {
        f"{lock.plan.recipe}.def": render_definition(lock, image, ()),
        "Dockerfile": render_dockerfile(lock, image, ()),
        **{f"build/{name}": text for name, text in inside.items()},
    }
