"""What ``list`` said of the environments of a root, in the user's cache.

Reading and judging take some milliseconds for each; a root may hold thousands. An environment is
known by the state of what its row was read from, lock, evidence and ranks' records: their inodes,
sizes and times, also that of the last change, which nobody can set. What is kept of it is kept for
this state and for this envbuild alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from .. import __version__, files
from ..base import canonical_json, sha256_text
from ..machine.host import LocalMachine, cache_folder
from ..model.outcome import EnvironmentEntry
from ..target_tools.files import make_folder
from ..target_tools.proving.evidence import RECORD
from ..target_tools.proving.runner import RECORDS

Rows = Mapping[str, EnvironmentEntry]
"""Rows by the states of their environments."""

# Nanoseconds: a file that was changed so lately may be changed again without another time.
_FRESH = 2 * 10**9
# Seconds after which what is kept of another root, or of another envbuild, is removed.
_OLD = 30 * 24 * 3600
_CODE = Path(__file__).parent.parent


def state_of(evidence: Path, files: Sequence[Path], now: int) -> str | None:
    """Return what tells the files that a row is read from from all that they may be changed to.

    None where one was changed just now, or cannot be looked at. *files*: the lock, which must be
    there, and what else decides. *now*: nanoseconds since the epoch.
    """
    lock, *others = files
    try:
        every = [(str(lock), lock.stat()), *_stats(str(evidence))]
        every += [(str(each), each.stat()) for each in others if each.exists()]
    except OSError:
        return None
    if max(stat.st_ctime_ns for _, stat in every) > now - _FRESH:
        return None
    lines = [
        f"{name} {stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        for name, stat in sorted(every, key=lambda each: each[0])
    ]
    return sha256_text("\n".join(lines))


def _stats(evidence: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield each record of each smoke test with its state: what is not there yields nothing."""
    for run in _entries(evidence):
        if not run.name.isdecimal():
            continue
        with contextlib.suppress(FileNotFoundError):
            path = f"{run.path}/{RECORD}"
            yield path, os.stat(path)  # noqa: PTH116 - thousands of them
        for rank in _entries(f"{run.path}/{RECORDS}"):
            if rank.name.endswith(".jsonl"):
                yield rank.path, rank.stat()


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing where there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []


def cache_file(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return where the rows of a root are kept; None: nowhere."""
    caches = cache_folder(LocalMachine(environ))
    if caches is None:
        return None
    key = sha256_text(canonical_json([__version__, files.code_state(_CODE), str(root.resolve())]))
    return caches / "listed" / f"listed-{key}.json"


def load(file: Path | None) -> Rows:
    """Return the rows that are kept; none where others can write the file, or it is damaged."""
    text = files.read_own(file) if file else None
    try:
        return TypeAdapter(dict[str, EnvironmentEntry]).validate_json(text or b"{}")
    except ValidationError:
        return {}


def store(file: Path | None, rows: Rows) -> None:
    """Keep the rows, where that is possible, in place of those before."""
    if file is None:
        return
    plain = {state: row.plain() for state, row in rows.items()}
    with contextlib.suppress(OSError):
        make_folder(file.parent)
        files.write_atomically(file, canonical_json(plain), mode=0o600)
        made = file.stat().st_mtime
        for path in file.parent.glob("listed-*.json"):
            if path.stat().st_mtime < made - _OLD:
                path.unlink(missing_ok=True)
