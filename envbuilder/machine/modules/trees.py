"""Module trees on disk: their hash, whether they changed, how old a snapshot is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from ...model.site import Snapshot
from ..host import is_folder

# Days after which a snapshot of a live site is called old: sites install software every month.
OLD = 180


def tree_sha256(tree: Path) -> str:
    """Return one sha256 over the names and contents of all files of a module tree.

    Links are followed. What cannot be read counts by its name, as what it is.
    """
    whole = hashlib.sha256()
    for name, path in sorted(_files(tree)):
        try:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            content = f"unreadable ({type(error).__name__})"
        whole.update(f"{content}  {name}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def tree_state(tree: Path) -> str:
    """Return one sha256 over the names, sizes and times of all files of a module tree.

    It is another one where a file was added, removed or written, and no file is read for it. That
    of a folder that is not there is that of an empty one.
    """
    whole = hashlib.sha256()
    try:
        found = sorted(_files(tree))
    except OSError as error:  # a folder that went away in between
        return f"unreadable ({type(error).__name__})"
    for name, path in found:
        try:
            about = path.stat()
            state = f"{about.st_size} {about.st_mtime_ns}"
        except OSError as error:
            state = f"unreadable ({type(error).__name__})"
        whole.update(f"{state}  {name}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _files(tree: Path) -> Iterator[tuple[str, Path]]:
    # Trees link to one another's folders (EasyBuild's classes do); a loop must end.
    seen: set[tuple[int, int]] = set()
    for folder, names, files in os.walk(tree, followlinks=True):
        about = Path(folder).stat()
        if (about.st_dev, about.st_ino) in seen:
            names.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        for name in files:
            path = Path(folder, name)
            yield path.relative_to(tree).as_posix(), path


def changed_trees(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the trees that are on this machine and are not what the snapshot found.

    Every file of these trees is read. Trees that are not here, and those of a snapshot from
    documentation, cannot be compared and are left out.
    """
    return tuple(
        tree.path
        for tree in snapshot.trees
        if tree.sha256 is not None
        and is_folder(tree.path)
        and tree_sha256(Path(tree.path)) != tree.sha256
    )


def age_note(snapshot: Snapshot, today: date) -> str | None:
    """Return in words that a snapshot is old, or from documentation; None: neither."""
    if snapshot.kind == "documented":
        day = f" of {snapshot.taken}" if snapshot.taken else ""
        return f"the modules of the site come from documentation{day}, not from the machine"
    if snapshot.taken is None:
        return None
    days = (today - date.fromisoformat(snapshot.taken)).days
    if days <= OLD:
        return None
    return (
        f"the site's snapshot is {days} days old (taken {snapshot.taken}): "
        "update it with envbuild sites snapshot"
    )
