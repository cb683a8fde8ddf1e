"""Where one environment lies: the two absolute paths that rendered files know."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import UsageError

# How the name of an image of a registry begins.
REGISTRY = "docker://"

ImageFormat = Literal["sif", "oci", "sandbox"]
"""A SIF file, OCI's layout in a folder, or a folder that Apptainer runs as it is."""

AttestationForm = Literal["cyclonedx", "provenance"]
DocumentForm = Literal["cyclonedx", "provenance", "recipe", "site"]
"""A bill of materials, or an in-toto statement of how it was made."""

Dialect = Literal["lua", "tcl"]
"""The languages of modulefiles."""


@dataclass(frozen=True)
class BuildFolders:
    """The prefix, which is never moved, and the folder that it is built or tested from.

    Spaces, quotes and ``$`` are fine. Raises UsageError for a path that is not absolute, that
    holds a ``:`` (PATH and PYTHONPATH would be split there) or a character that does not print.
    """

    prefix: Path
    build: Path

    def __post_init__(self) -> None:
        for path in (self.prefix, self.build):
            check_path(str(path))


WORKSPACE = re.compile(r"ws:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<rest>(?:/.*)?)")
"""A folder in a workspace of the user: ws:NAME or ws:NAME/FOLDER."""


def check_path(path: str) -> None:
    """Raise UsageError for a path that scripts, modules and PATH cannot hold."""
    if not path.startswith("/"):
        raise UsageError("path.not-absolute", f"not an absolute path: {path!r}")
    if ":" in path:
        raise UsageError(
            "path.colon",
            f"the path {path!r} contains ':', which separates the entries of PATH",
            "use another folder for --root",
        )
    if not path.isprintable():
        raise UsageError(
            "path.unprintable",
            f"the path {path!r} contains an unprintable character",
            "use another folder for --root; if your terminal prints the name, set LC_ALL=C.UTF-8",
        )
