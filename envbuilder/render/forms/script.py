"""build.sh, which builds the environment with the other files of its folder."""

from __future__ import annotations

from ..build import render_script
from ..quoting import line
from ..subject import RenderInput


def render(subject: RenderInput) -> str:
    """Return the script, with what a reader must know at its head."""
    text = render_script(subject.source, subject.places, subject.prefix)
    first, rest = text.split("\n", 1)
    notes = [*subject.notes()]
    if notes:
        notes.append(
            "Needs the other files of its folder: envbuild render --output FOLDER writes all."
        )
    return "\n".join([first, *(f"# {line(each)}" for each in notes), rest])
