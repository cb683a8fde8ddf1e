"""Snapshots of sites, read from the files that ``envbuild sites snapshot`` writes."""

from __future__ import annotations

from ..model.site import Snapshot
from .json_file import JsonFile

load_snapshot = JsonFile(
    model=Snapshot,
    called="snapshot",
    again="take it again: envbuild sites snapshot SITE --output FILE",
    # 12,000 modules take about 6 MB.
    max_bytes=64 * 1024 * 1024,
).load
