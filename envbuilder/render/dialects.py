"""Neutral lists of edits and module actions, as the lines of each language that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ..model.plan import Edit
from .quoting import Quoted, bash, definition_word, dockerfile, lua, tcl

Language = Literal["bash", "sh", "env", "lua", "tcl"]
"""bash; ``sh``: a shell section of a definition file; ``env``: instructions of a Dockerfile."""

# They work under ``set -u``, and make no empty entry: in PATH that is the working directory.
_SHELL = {
    "set": "export {name}={value}",
    "unset": "unset {name}",
    "prepend": 'export {name}={value}"${{{name}:+:${name}}}"',
    "append": 'export {name}="${{{name}:+${name}:}}"{value}',
}
_QUOTE: Mapping[Language, Callable[[str], Quoted]] = {
    "bash": bash,
    "sh": definition_word,
    "env": lambda text: Quoted(dockerfile(text)[1:-1]),
    "lua": lua,
    "tcl": tcl,
}
_LINES: Mapping[Language, Mapping[str, str]] = {
    # Functions of modules.sh.j2 load and unload.
    "bash": _SHELL | {what: f"{what}_module {{value}} || return 1" for what in ("load", "unload")},
    "sh": _SHELL,
    "env": {
        "set": 'ENV {name}="{value}"',
        "unset": "# {name} is not set in the base image.",
        "prepend": 'ENV {name}="{value}${{{name}:+:${name}}}"',
        "append": 'ENV {name}="${{{name}:+${name}:}}{value}"',
    },
    # ``pushenv`` gives the user's own value back at unload, for an unset variable too. It cannot
    # tell a variable that was empty from one that was not there (Lmod 8.6, Var.lua).
    "lua": {
        "set": 'pushenv("{name}", {value})',
        "unset": 'pushenv("{name}", false)',
        "prepend": 'prepend_path("{name}", {value})',
        "append": 'append_path("{name}", {value})',
        "load": "depends_on({value})",
        # Lmod would unload in unload mode too, and so take away what the user has loaded since.
        "unload": 'if mode() ~= "unload" then unload({value}) end',
    },
    # Its pushenv cannot unset.
    "tcl": {
        "set": "pushenv {name} {value}",
        "unset": "unsetenv {name}",
        "prepend": "prepend-path {name} {value}",
        "append": "append-path {name} {value}",
        "load": "depends-on {value}",
        "unload": "if {{[module-info mode load]}} {{ module unload {value} }}",
    },
}


def edit_line(language: Language, edit: Edit, prefix: Path) -> Quoted:
    """Return *edit* as a command of a language."""
    return _line(language, edit.kind, edit_value(edit, prefix), edit.name)


def action_line(language: Language, action: tuple[Literal["unload", "load"], str]) -> Quoted:
    """Return what to do with which module (see Modules.actions) as a command of a language."""
    return _line(language, *action)


def _line(language: Language, what: str, value: str, name: str = "") -> Quoted:
    return Quoted(_LINES[language][what].format(name=name, value=_QUOTE[language](value)))


def edit_value(edit: Edit, prefix: Path) -> str:
    """Return the value that the variable gets, or that is put before or behind the one it has."""
    return str(prefix / edit.value) if edit.in_prefix else edit.value
