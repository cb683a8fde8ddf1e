"""One neutral list of environment edits, one small function for each language it is spelt in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..model.plan import Edit
from .quoting import Quoted, bash, lua, tcl

Dialect = Literal["lua", "tcl"]


def bash_edit(edit: Edit, prefix: Path) -> Quoted:
    """Return *edit* as a bash command that works under ``set -u``."""
    name, value = edit.name, bash(edit_value(edit, prefix))
    # No empty entry is made: in PATH that would mean the working directory.
    lines = {
        "set": f"export {name}={value}",
        "unset": f"unset {name}",
        "prepend": f'export {name}={value}"${{{name}:+:${name}}}"',
        "append": f'export {name}="${{{name}:+${name}:}}"{value}',
    }
    return Quoted(lines[edit.kind])


def lua_edit(edit: Edit, prefix: Path) -> Quoted:
    """Return *edit* as a command of an Lmod modulefile.

    ``pushenv`` gives the user's own value back at unload, for an unset variable too. It cannot
    tell a variable that was empty from one that was not there (Lmod 8.6, Var.lua).
    """
    name, value = lua(edit.name), lua(edit_value(edit, prefix))
    lines = {
        "set": f"pushenv({name}, {value})",
        "unset": f"pushenv({name}, false)",
        "prepend": f"prepend_path({name}, {value})",
        "append": f"append_path({name}, {value})",
    }
    return Quoted(lines[edit.kind])


def tcl_edit(edit: Edit, prefix: Path) -> Quoted:
    """Return *edit* as a command of a Tcl modulefile; its pushenv cannot unset."""
    name, value = edit.name, tcl(edit_value(edit, prefix))
    lines = {
        "set": f"pushenv {name} {value}",
        "unset": f"unsetenv {name}",
        "prepend": f"prepend-path {name} {value}",
        "append": f"append-path {name} {value}",
    }
    return Quoted(lines[edit.kind])


def edit_value(edit: Edit, prefix: Path) -> str:
    """Return the value that the variable gets, or that is put before or behind the one it has."""
    return str(prefix / edit.value) if edit.in_prefix else edit.value
