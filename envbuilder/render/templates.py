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
    # lazy import: 45 ms
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
        "bash_value": quoting.bash_value,
        "lua": quoting.lua,
        "tcl": quoting.tcl,
        "comment": quoting.comment,
        "html": quoting.html,
    }
    return engine.get_template(template).render(**values)


def _only_quoted(value: object) -> object:
    # Jinja hands over undefined values too and raises for them itself, with their name.
    from jinja2 import Undefined

    if isinstance(value, (quoting.Quoted, Undefined)):
        return value
    raise TypeError(f"printed without a quoting filter: {value!r}")
