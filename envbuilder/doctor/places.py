"""The folders that envbuild uses: can they be written, and how much fits. Writes nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..machine.hardware import GIB
from ..machine.host import LocalMachine, cache_folder, is_folder, is_there, temp_folder
from ..machine.item_values import Item, Section, Status
from ..machine.items import make, section

# A small environment with its MPI takes a quarter of this, a framework several times as much.
LITTLE_SPACE = GIB
# An environment holds tens of thousands of files; file systems with quotas run out of them first.
FEW_FILES = 20_000


@dataclass(frozen=True)
class FolderState:
    """What can be told of a folder, or of the nearest one above it that exists.

    None: its file system does not report it.
    """

    path: Path
    existing: Path
    writable: bool
    free_bytes: int | None
    free_files: int | None
    runs_programs: bool | None


def look_at(path: Path) -> FolderState:
    """Return what the file system says about *path*, which need not exist yet."""
    existing = path
    while not is_there(existing) and existing != existing.parent:
        existing = existing.parent
    # access() tells permissions and a read-only mount alike, for root too.
    writable = is_folder(existing) and os.access(existing, os.W_OK | os.X_OK)
    try:
        system = os.statvfs(existing)
    except OSError:
        return FolderState(path, existing, writable, None, None, None)
    return FolderState(
        path=path,
        existing=existing,
        writable=writable,
        # A file system without a size of its own tells 0 of 0, bytes and files alike.
        free_bytes=system.f_bavail * system.f_frsize if system.f_blocks else None,
        free_files=system.f_favail if system.f_files else None,
        runs_programs=not system.f_flag & os.ST_NOEXEC,
    )


def _troubles(place: FolderState, *, must_run: bool) -> Iterator[str]:
    if not place.writable:
        yield "not writable"
    if place.free_bytes is not None and place.free_bytes < LITTLE_SPACE:
        yield f"only {place.free_bytes / GIB:.2f} GiB free"
    if place.free_files is not None and place.free_files < FEW_FILES:
        yield f"only {place.free_files} free inodes"
    if must_run and place.runs_programs is False:
        yield "mounted noexec: programs there cannot start"


def _item(item_id: str, path: Path, *, must_run: bool) -> Item:
    place = look_at(path)
    troubles, free = ", ".join(_troubles(place, must_run=must_run)), place.free_bytes
    unknown = place.runs_programs is None
    return make(
        item_id,
        "problem" if troubles else "note" if unknown else "ok",
        f"{path}: {troubles}" if troubles else str(path),
        details=[
            "its free space is unknown" if free is None else f"{free / GIB:.1f} GiB free",
            "it is unknown whether programs there can start" if unknown else None,
            None if place.existing == path else f"will be created in {place.existing}",
        ],
        facts={"path": str(path), "writable": place.writable, "free-bytes": free},
    )


def places_section(host: LocalMachine, root: Path | None, cache: Path | None) -> Section:
    """Return home, cache, root and temporary folder; the caller may choose *root* and *cache*."""
    return section("places", _items(host, root, cache or cache_folder(host)))


def _items(host: LocalMachine, root: Path | None, cache: Path | None) -> Iterator[Item]:
    home = host.home()
    if home is None:
        yield make("places.home", "problem", "HOME is not set to an absolute path")
    elif not is_there(home):
        yield make("places.home", "problem", f"{home} does not exist")
    else:
        yield _item("places.home", home, must_run=False)
    if cache is None:
        yield make("places.cache", "problem", "neither XDG_CACHE_HOME nor HOME is set")
    else:
        yield _item("places.cache", cache, must_run=False)
    if root:
        yield _item("places.root", root, must_run=True)
    yield _item("places.temp", temp_folder(host), must_run=True)
    yield _umask(host)


def _umask(host: LocalMachine) -> Item:
    # Asking the system call would set it for a moment, for all threads.
    match = re.search(r"^Umask:\s*(\d+)", host.read("/proc/self/status") or "", re.MULTILINE)
    if not match:
        return make("places.umask", "note", "this kernel does not report it")
    private = int(match[1], 8) & 0o055 == 0o055
    details = ["other users cannot use what you build unless it is shared"] if private else []
    status: Status = "note" if private else "ok"
    return make("places.umask", status, match[1], details=details, facts={"umask": match[1]})
