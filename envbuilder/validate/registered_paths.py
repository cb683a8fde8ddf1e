"""Where the environments of others lie that a root lists by their names."""

from __future__ import annotations

from ..base import Name, fits
from ..machine.host import is_there
from ..root import external
from ..workflow.context import Context
from ..workflow.options import RootOptions
from ..workflow.places import find_root


def path_of(name: str | None, root: str | None, context: Context) -> str | None:
    """Return where an environment of others lies that a root lists by a name; None: it does not."""
    if name is None or "/" in name or not fits(Name, name):
        return None
    if root is None and is_there(context.path(name)):
        return None
    there = find_root(RootOptions(root), context)
    record = external.find(there.path, name) if there else None
    return record.path if record else None
