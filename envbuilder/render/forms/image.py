"""What the forms of an image have in common. No form itself."""

from __future__ import annotations

from ...model.plan import Lock
from ..image import Image
from ..image_folder import image_of
from ..renderable import Renderable, UnlockedPlan
from ..subject import Subject


def image_and_notes(subject: Subject) -> tuple[Renderable, Image, tuple[str, ...]]:
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
    inside: Renderable = UnlockedPlan(image.plan)
    if isinstance(subject.source, Lock):
        inside = Lock(plan=image.plan, artifacts=subject.source.artifacts)
    return inside, image, tuple(notes)
