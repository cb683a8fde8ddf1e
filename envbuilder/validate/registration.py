"""``envbuild import``: an environment of others is listed with what was found; never changed."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..base import Name, fits
from ..errors import UsageError
from ..model.outcome import ExternalEntry
from ..model.validation import ExternalEnvironment
from ..root import external
from ..target_tools.files import is_below
from ..target_tools.root.store import check_writable
from ..workflow.context import Context
from ..workflow.options import RootOptions
from ..workflow.places import opened_root
from .command import validate


def import_environment(
    where: RootOptions, path: str, name: str | None, context: Context
) -> ExternalEntry:
    """List an environment of others in a root, with what is found of it now.

    *where*: the root, which is made if there is none. *path*: a folder or an image. *name*: None
    takes that of the folder. Again: what is found now takes the place of what was. Raises
    UsageError for what is none, and for a name that is taken.
    """
    place = Path(os.path.normpath(context.path(path)))  # links stay: a site's may be moved
    called = name or re.sub(r"[^a-z0-9._+-]+", "-", place.stem.lower()).strip("-._+")
    if not fits(Name, called):
        raise UsageError(
            "environment.malformed-name",
            f"{called!r} is not a valid name of an environment",
            "add --name NAME",
        )
    validation = validate(str(place), None, context)
    root = opened_root(where, context)
    if is_below(os.path.realpath(place), os.path.realpath(root.path)):
        raise UsageError(
            "environment.not-external",
            f"{place} is in the root: import is for environments that envbuild did not build",
        )
    check_writable(root)
    known = external.find(root.path, called)
    if called in {home.name for home in root.homes()} or (known and known.path != str(place)):
        whose = f": {known.path}" if known else " of this root"
        raise UsageError(
            "environment.name-in-use",
            f"{called} is already the name of another environment{whose}",
            "use another name: --name NAME",
        )
    record = ExternalEnvironment(
        name=called,
        path=str(place),
        imported=context.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
        validation=validation,
    )
    external.write(root.path, record)
    return external.entry(record)
