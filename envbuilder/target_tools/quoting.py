"""Quoting for the languages of modulefiles."""

import re

LUA_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
# Braces too: they count where a string stands inside a braced body.
TCL_SPECIAL = re.compile(r'[\\"$\[\]{}]')
CONTROL = re.compile(r"[\x01-\x1f\x7f]")


def lua(text: str) -> str:
    """Return *text* as a string of Lua 5.1 and later."""
    escaped = "".join(LUA_ESCAPES.get(char, char) for char in without_nul(text))
    return '"' + CONTROL.sub(lambda match: f"\\{ord(match.group()):03d}", escaped) + '"'


def tcl(text: str) -> str:
    """Return *text* as one word of Tcl 8.4 and later, also inside a braced body."""
    escaped = TCL_SPECIAL.sub(r"\\\g<0>", without_nul(text))
    return '"' + CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", escaped) + '"'


def without_nul(text: str) -> str:
    """Return *text*. Raises ValueError for a NUL character, which no variable can hold."""
    if "\0" in text:
        raise ValueError(f"an environment variable cannot contain a NUL character: {text!r}")
    return text


QUOTED = {"lua": lua, "tcl": tcl}
