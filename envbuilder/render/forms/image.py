"""The files that an image is built from: Apptainer's definition file, and the Dockerfile."""

from __future__ import annotations

from ...model.plan import Lock
from ..container import image_of, render_definition, render_dockerfile
from ..image import Image
from ..subject import Renderable, Subject, UnlockedPlan


def definition(subject: Subject) -> str:
    """Return the definition file of the image that the plan can have."""
    return render_definition(*_image(subject))


def dockerfile(subject: Subject) -> str:
    """Return the Dockerfile of the image that the plan can have."""
    return render_dockerfile(*_image(subject))


def _image(subject: Subject) -> tuple[Renderable, Image, list[str]]:
    """Return lock or plan as in the image, the image, and what a reader must know."""
    image = image_of(subject)
    notes = [*subject.notes()]
    if subject.lockable:
        notes.append("Written with build/ beside it: envbuild render --as image.")
    for channel in subject.plan.channels:
        for name, value in channel.accept.items():
            notes.append(f"Set {name}={value} in it if you accept: {channel.licence}.")
    if image.from_index:
        notes.append(f"From the index, not from modules: {', '.join(image.from_index)}.")
    if isinstance(subject.source, Lock):
        return Lock(plan=image.plan, artifacts=subject.source.artifacts), image, notes
    return UnlockedPlan(image.plan), image, notes
