"""The files that an image is built from: Apptainer's definition file, and the Dockerfile."""

from __future__ import annotations

from collections.abc import Callable

from ...model.plan import Lock
from ..image import Image
from ..subject import Renderable, RenderInput, UnlockedPlan

ImageText = Callable[[Renderable, Image, list[str]], str]
"""Returns a file of lock or plan, image, and notes for a reader."""


def render(of: ImageText, subject: RenderInput) -> str:
    """Return one of the files."""
    assert subject.image is not None  # noqa: S101 - Form.needs
    image, source = subject.image.image, subject.source
    notes = [
        *subject.notes(),
        "Needs the folder build/ next to it: envbuild render --as image writes both.",
    ]
    for channel in subject.plan.channels:
        for name, value in channel.accept.items():
            notes.append(f"Set {name}={value} in it if you accept: {channel.licence}.")
    if image.from_index:
        names = ", ".join(image.from_index)
        notes.append(f"The image takes these from the index, not from modules: {names}.")
    locked = isinstance(source, Lock) and Lock(plan=image.plan, artifacts=source.artifacts)
    return of(locked or UnlockedPlan(image.plan), image, notes)
