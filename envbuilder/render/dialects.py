"""Neutral lists of edits and module actions, one small function for each language of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..model.plan import Edit
from .quoting import Quoted, bash, lua, tcl

Dialect = Literal["lua", "tcl"]
Action = tuple[Literal["unload", "load"], str]
"""What to do with which module; see Modules.actions."""


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


def bash_action(action: Action) -> Quoted:
    """Return *action* as a call of the functions in modules.sh.j2."""
    what, module = action
    return Quoted(f"{what}_module {bash(module)} || return 1")


def lua_action(action: Action) -> Quoted:
    """Return *action* as a command of an Lmod modulefile.

    Lmod would unload in unload mode too, and so take away what the user has loaded since.
    """
    what, module = action
    lines = {
        "load": f"depends_on({lua(module)})",
        "unload": f'if mode() ~= "unload" then unload({lua(module)}) end',
    }
    return Quoted(lines[what])


def tcl_action(action: Action) -> Quoted:
    """Return *action* as a command of a Tcl modulefile."""
    what, module = action
    lines = {
        "load": f"depends-on {tcl(module)}",
        "unload": f"if {{[module-info mode load]}} {{ module unload {tcl(module)} }}",
    }
    return Quoted(lines[what])


def edit_value(edit: Edit, prefix: Path) -> str:
    """Return the value that the variable gets, or that is put before or behind the one it has."""
    return str(prefix / edit.value) if edit.in_prefix else edit.value
