"""The template engine: templates substitute and loop; what is decided is decided in Python."""

from __future__ import annotations

from typing import Any

from .. import data
from . import quoting


def render(template: str, /, **values: Any) -> str:
    """Return the text of a template (a path below templates/).

    Raises jinja2's UndefinedError for a value that is missing, TypeError for one that is printed
    without a quoting filter: both are our own bugs.
    """
    # Late: 45 ms that most commands do without.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    engine = Environment(
        loader=FileSystemLoader(data.TEMPLATES),
        undefined=StrictUndefined,
        finalize=_only_quoted,
        autoescape=False,  # noqa: S701 - that would be for HTML; _only_quoted is for these
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters |= {
        "bash": quoting.bash,
        "lua": quoting.lua,
        "tcl": quoting.tcl,
        "comment": quoting.comment,
    }
    return engine.get_template(template).render(**values)


def program(name: str) -> str:
    """Return the text of a program that goes into the build folder as it is."""
    return (data.TEMPLATES / "programs" / name).read_text(encoding="utf-8")


def _only_quoted(value: object) -> object:
    # Jinja hands over undefined values too and raises for them itself, with their name.
    from jinja2 import Undefined

    if isinstance(value, (quoting.Quoted, Undefined)):
        return value
    raise TypeError(f"printed without a quoting filter: {value!r}")
