"""The folders that envbuild uses: can they be written, and how much fits. Writes nothing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from ..host import Host, cache_folder, is_folder, is_there, temp_folder
from ..model.doctor import Fact, Item, Section, Status
from .items import make

GIB = 2**30

# A small environment with its MPI takes a quarter of this, a framework several times as much.
LITTLE_SPACE = GIB
# An environment holds tens of thousands of files; file systems with quotas run out of them first.
FEW_FILES = 20_000


@dataclass(frozen=True)
class Place:
    """What can be told of a folder, or of the nearest one above it that exists."""

    path: Path
    existing: Path
    writable: bool
    free_bytes: int | None
    free_files: int | None
    runs_programs: bool


def look_at(path: Path) -> Place:
    """Return what the file system says about *path*, which need not exist yet."""
    existing = path
    while not is_there(existing) and existing != existing.parent:
        existing = existing.parent
    # access() tells permissions and a read-only mount alike, for root too.
    writable = is_folder(existing) and os.access(existing, os.W_OK | os.X_OK)
    try:
        system = os.statvfs(existing)
    except OSError:
        return Place(path, existing, writable, None, None, runs_programs=True)
    return Place(
        path=path,
        existing=existing,
        writable=writable,
        # A file system without a size of its own tells 0 of 0, bytes and files alike.
        free_bytes=system.f_bavail * system.f_frsize if system.f_blocks else None,
        free_files=system.f_favail if system.f_files else None,
        runs_programs=not system.f_flag & os.ST_NOEXEC,
    )


def _troubles(place: Place, *, must_run: bool) -> list[str]:
    troubles = []
    if not place.writable:
        troubles.append("cannot be written")
    if place.free_bytes is not None and place.free_bytes < LITTLE_SPACE:
        troubles.append(f"only {place.free_bytes / GIB:.2f} GiB free")
    if place.free_files is not None and place.free_files < FEW_FILES:
        troubles.append(f"only {place.free_files} more files fit")
    if must_run and not place.runs_programs:
        troubles.append("mounted noexec: programs there cannot be started")
    return troubles


def _item(item_id: str, title: str, path: Path, *, must_run: bool) -> Item:
    place = look_at(path)
    troubles = _troubles(place, must_run=must_run)
    facts: dict[str, Fact] = {"path": str(path), "writable": place.writable}
    details = []
    if place.free_bytes is not None:
        facts["free-bytes"] = place.free_bytes
        details.append(f"{place.free_bytes / GIB:.1f} GiB free")
    if place.existing != path:
        details.append(f"will be made in {place.existing}")
    found = f"{path}: {', '.join(troubles)}" if troubles else str(path)
    status: Status = "problem" if troubles else "ok"
    return make(item_id, title, status, found, details=details, facts=facts)


def places_section(host: Host, root: Path | None, cache: Path | None) -> Section:
    """Return home, cache, root and temporary folder; the caller may choose *root* and *cache*."""
    home = host.home()
    cache = cache or cache_folder(host)
    unset = "neither XDG_CACHE_HOME nor HOME is set"
    items = [
        _home_item(home),
        _item("places.cache", "Cache", cache, must_run=False)
        if cache
        else make("places.cache", "Cache", "problem", unset),
    ]
    if root:
        items.append(_item("places.root", "Root of environments", root, must_run=True))
    items += [
        _item("places.temp", "Temporary files", temp_folder(host), must_run=True),
        _umask_item(host),
    ]
    return Section(id="places", title="Places", items=tuple(items))


def _home_item(home: Path | None) -> Item:
    if home is None:
        return make("places.home", "Home", "problem", "HOME is not set to an absolute path")
    if not is_there(home):
        return make("places.home", "Home", "problem", f"{home} does not exist")
    return _item("places.home", "Home", home, must_run=False)


def _umask_item(host: Host) -> Item:
    # Asking the system call would set it for a moment, for all threads.
    match = re.search(r"^Umask:\s*(\d+)", host.read("/proc/self/status") or "", re.MULTILINE)
    if not match:
        return make("places.umask", "umask", "note", "this kernel does not tell it")
    text = match.group(1)
    private = int(text, 8) & 0o055 == 0o055
    details = ["what you build can be used by no one else unless it is shared"] if private else []
    status: Status = "note" if private else "ok"
    return make("places.umask", "umask", status, text, details=details, facts={"umask": text})
