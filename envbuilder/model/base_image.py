"""What an image begins with, as a site: what is planned for an image is planned for its base."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..base import Document, Line
from .site import AbsolutePath, Site, Snapshot

# What an image is built from: the folder that holds the definition file has it.
BUNDLE_FOLDER = "bundle"
# What a path that is bound cannot have: to Apptainer a comma parts binds, a colon the sides of one;
# and what no path has for a good reason.
BIND_UNFIT = re.compile(r"[,:\0\n\r]")


class VendorPackage(Document):
    """A package that is in no Debian, and the component that it holds, to build against."""

    package: Line
    """Pattern of its name."""
    locator: AbsolutePath
    home: AbsolutePath


class Bind(NamedTuple):
    """A folder of the machine that an image does not hold, and has while it runs.

    ``target``: where in the image, an absolute path.
    """

    source: Path
    target: PurePosixPath

    def __str__(self) -> str:
        """As Apptainer's --bind takes it."""
        same = str(self.source) == str(self.target)
        return str(self.target) if same else f"{self.source}:{self.target}"


class BaseSource(NamedTuple):
    """The image or archive that a base was unpacked from.

    ``sha256``: of a registry's image or of OCI's layout its manifest's, else the file's.
    ``variables``: what the image sets, ``NAME=VALUE``.
    """

    name: str
    sha256: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseImage:
    """A folder that holds a Linux system, the site that it is, and what was found in it.

    ``source``: None for a folder that the user names.
    """

    folder: Path
    site: Site
    snapshot: Snapshot
    source: BaseSource | None = None
