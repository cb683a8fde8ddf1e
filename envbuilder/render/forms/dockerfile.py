"""The Dockerfile."""

from __future__ import annotations

from ..container import render_dockerfile
from ..subject import Subject
from .image import image_and_notes

FILE = "Dockerfile"
SUMMARY = "the Dockerfile"


def render(subject: Subject) -> str:
    """Return the text for the image that the plan can have."""
    return render_dockerfile(*image_and_notes(subject))
