"""Snapshots of sites, read from the files that ``envbuild sites snapshot`` writes."""

from __future__ import annotations

from pathlib import Path

from ..model.site import Snapshot
from .json_file import JsonFile

SNAPSHOT: JsonFile[Snapshot] = JsonFile(
    model=Snapshot,
    called="snapshot",
    again="take it again: envbuild sites snapshot SITE --output FILE",
    # 12,000 modules take about 6 MB.
    max_bytes=64 * 1024 * 1024,
)


def load_snapshot(path: Path) -> Snapshot:
    """Read and check a snapshot.

    Raises DocumentError with line and column of every problem, UsageError when the file cannot be
    read at all.
    """
    return SNAPSHOT.load(path)
