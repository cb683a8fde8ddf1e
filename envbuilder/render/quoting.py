"""Quoting: one filter for each language that text is rendered into.

Templates may print nothing that did not pass one of these (see templates.py), so a document can
never put a command into a script or a modulefile.
"""

from __future__ import annotations

import re
import shlex

from ..target_tools import quoting

_PLAIN = re.compile(r"[A-Za-z0-9 ._+,:/-]*")


class Quoted(str):
    """Text of the target language, ready to stand in it."""

    __slots__ = ()


def bash(text: str) -> Quoted:
    """Return *text* as one word of bash; text that is bash already stays as it is."""
    return text if isinstance(text, Quoted) else Quoted(shlex.quote(quoting.without_nul(text)))


def bash_value(name: str) -> Quoted:
    """Return what bash expands to the value of a variable, to nothing where it is not set."""
    return Quoted(f"${{{comment(name)}:-}}")


def lua(text: str) -> Quoted:
    """Return *text* as a string of Lua 5.1 and later."""
    return Quoted(quoting.lua(text))


def tcl(text: str) -> Quoted:
    """Return *text* as one word of Tcl 8.4 and later, also inside a braced body."""
    return Quoted(quoting.tcl(text))


def comment(text: str) -> Quoted:
    """Return *text* for a comment of any language; only what no language gives a meaning."""
    if not _PLAIN.fullmatch(text):
        raise ValueError(f"not fit for a comment: {text!r}")
    return Quoted(text)
