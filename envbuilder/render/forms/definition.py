"""Apptainer's definition file."""

from __future__ import annotations

from ..container import render_definition
from ..subject import Subject
from .image import image_and_notes

FILE = "{name}.def"
SUMMARY = "Apptainer's definition file"


def render(subject: Subject) -> str:
    """Return the text for the image that the plan can have."""
    return render_definition(*image_and_notes(subject))
