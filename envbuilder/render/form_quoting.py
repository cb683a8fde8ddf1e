"""Quoting for the forms that are no script: YAML, Dockerfile and Apptainer's definition file.

The languages of scripts and modulefiles are in quoting.py.
"""

from __future__ import annotations

import re

from ..text import shown
from .quoting import Quoted, bash

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# The name of a variable that holds a line break; see definition_word.
LINE_BREAK = "ENVBUILD_LF"


def yaml(text: str) -> Quoted:
    """Return *text* as a double-quoted scalar of YAML 1.1 and 1.2."""
    return Quoted('"' + "".join(_yaml_character(char) for char in text) + '"')


def _yaml_character(char: str) -> str:
    if char in '\\"':
        return "\\" + char
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def dockerfile(text: str) -> Quoted:
    """Return *text* as a double-quoted word of a Dockerfile, in which nothing is expanded.

    Raises ValueError for a control character: a Dockerfile's word ends with its line.
    """
    if has_control(text):
        raise ValueError(f"no word of a Dockerfile can hold a control character: {text!r}")
    return Quoted('"' + re.sub(r'[\\"$]', r"\\\g<0>", text) + '"')


def definition_word(text: str) -> Quoted:
    """Return *text* as one word of a shell section (%post, %environment) of a definition file.

    Two things have a meaning there before any shell sees them: a line whose first word begins with
    ``%``, and ``{{ name }}``. So no line break stands in the word (``$ENVBUILD_LF`` must hold one),
    nor two braces together.
    """
    parts = [bash(part) for part in text.split("\n")]
    return Quoted(_apart(f'"${LINE_BREAK}"'.join(parts), "''"))


def line(text: str) -> Quoted:
    """Return *text* as prose on one line: for a comment, or a section that is no script.

    What does not print is shown as an escape. It must not begin the line.
    """
    return Quoted(_apart(shown(text, len(text)), " "))


def has_control(text: str) -> bool:
    """Whether *text* holds a line break or another control character."""
    return _CONTROL.search(text) is not None


def _apart(text: str, between: str) -> str:
    """Keep braces apart: Apptainer takes ``{{ name }}`` for a build argument, wherever it is."""
    return re.sub(r"\{(?=\{)", "{" + between, text)
