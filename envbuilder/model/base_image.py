"""What an image begins with, as a site: what is planned for an image is planned for its base."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .site import Site, Snapshot

# What an image is built from: the folder that holds the definition file has it.
BUNDLE_FOLDER = "bundle"


@dataclass(frozen=True)
class BaseImage:
    """A folder that holds a Linux system, the site that it is, and what was found in it."""

    folder: Path
    site: Site
    snapshot: Snapshot
