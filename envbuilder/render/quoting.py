"""Quoting: one filter for each language that text is rendered into.

Templates may print nothing that did not pass one of these (see templates.py), so a document can
never put a command into a script or a modulefile.
"""

from __future__ import annotations

import re
import shlex

_LUA_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
# Braces too: they count where a string stands inside a braced body.
_TCL_SPECIAL = re.compile(r'[\\"$\[\]{}]')
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_PLAIN = re.compile(r"[A-Za-z0-9 ._+,:/-]*")


class Quoted(str):
    """Text of the target language, ready to stand in it."""

    __slots__ = ()


def bash(text: str) -> Quoted:
    """Return *text* as one word of bash; text that is bash already stays as it is."""
    return text if isinstance(text, Quoted) else Quoted(shlex.quote(_checked(text)))


def bash_value(name: str) -> Quoted:
    """Return what bash expands to the value of a variable, to nothing where it is not set."""
    return Quoted(f"${{{comment(name)}:-}}")


def lua(text: str) -> Quoted:
    """Return *text* as a string of Lua 5.1 and later."""
    escaped = "".join(_LUA_ESCAPES.get(char, char) for char in _checked(text))
    return Quoted('"' + _CONTROL.sub(lambda match: f"\\{ord(match[0]):03d}", escaped) + '"')


def tcl(text: str) -> Quoted:
    """Return *text* as one word of Tcl 8.4 and later, also inside a braced body."""
    escaped = _TCL_SPECIAL.sub(r"\\\g<0>", _checked(text))
    return Quoted('"' + _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped) + '"')


def comment(text: str) -> Quoted:
    """Return *text* for a comment of any language; only what no language gives a meaning."""
    if not _PLAIN.fullmatch(text):
        raise ValueError(f"not fit for a comment: {text!r}")
    return Quoted(text)


def _checked(text: str) -> str:
    if "\0" in text:
        raise ValueError(f"no environment can hold a NUL character: {text!r}")
    return text
