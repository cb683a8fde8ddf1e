"""Quoting: one filter for each language that text is rendered into.

Templates may print nothing that did not pass one of these (see templates.py), so a document can
never put a command into a script or a modulefile.
"""

from __future__ import annotations

import re
import shlex
from html import escape

from ..target_tools import modulefile
from ..text import shown

# The name of a variable that holds a line break; see definition_word.
LINE_BREAK = "ENVBUILD_LF"
_PLAIN = re.compile(r"[A-Za-z0-9 ._+,:/-]*")


class Quoted(str):
    """Text of the target language, ready to stand in it."""

    __slots__ = ()


def bash(text: str) -> Quoted:
    """Return *text* as one word of bash; text that is bash already stays as it is."""
    return text if isinstance(text, Quoted) else Quoted(shlex.quote(modulefile.without_nul(text)))


def bash_value(name: str) -> Quoted:
    """Return what bash expands to the value of a variable, to nothing where it is not set."""
    return Quoted(f"${{{comment(name)}:-}}")


def lua(text: str) -> Quoted:
    """Return *text* as a string of Lua 5.1 and later."""
    return Quoted(modulefile.lua(text))


def tcl(text: str) -> Quoted:
    """Return *text* as one word of Tcl 8.4 and later, also inside a braced body."""
    return Quoted(modulefile.tcl(text))


def comment(text: str) -> Quoted:
    """Return *text* for a comment of any language; only what no language gives a meaning."""
    if not _PLAIN.fullmatch(text):
        raise ValueError(f"not fit for a comment: {text!r}")
    return Quoted(text)


def html(text: str) -> Quoted:
    """Return *text* for HTML, between tags and in a quoted attribute; built text stays as it is."""
    return text if isinstance(text, Quoted) else Quoted(escape(text, quote=True))


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
        raise ValueError(f"a Dockerfile cannot contain a control character: {text!r}")
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
    return re.search(r"[\x00-\x1f\x7f]", text) is not None


def _apart(text: str, between: str) -> str:
    """Keep braces apart: Apptainer takes ``{{ name }}`` for a build argument, wherever it is."""
    return re.sub(r"\{(?=\{)", "{" + between, text)
