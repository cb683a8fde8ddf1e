"""Which smoke tests of a root the judge was found to agree with, in the user's cache.

Judging takes some milliseconds for each; a root may hold thousands. A run is known by the state of
its evidence and of its ranks' records: their inodes, sizes and times, also that of the last change,
which nobody can set. What is found is found for this state and for this judge alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Set
from pathlib import Path

from .. import __version__, files
from ..host import Host, cache_folder
from ..model.base import canonical_json, sha256_text
from ..target_tools import proving
from ..target_tools.files import make_folder
from ..target_tools.proving.evidence import RECORD
from ..target_tools.proving.runner import RECORDS

# Nanoseconds: a file that was changed so lately may be changed again without another time.
_FRESH = 2 * 10**9
# Seconds after which what is kept of another root, or of another envbuild, is removed.
_OLD = 30 * 24 * 3600


def state_of(run: Path, now: int) -> str | None:
    """Return what tells the files of a run from all that they may be changed to.

    None where there is nothing to judge, or a file was changed just now. *now*: nanoseconds since
    the epoch.
    """
    try:
        with os.scandir(run / RECORDS) as entries:
            ranks = [(each.name, each.stat()) for each in entries if each.name.endswith(".jsonl")]
        every = [(RECORD, (run / RECORD).stat()), *sorted(ranks, key=lambda each: each[0])]
    except OSError:
        return None
    if not ranks or max(stat.st_ctime_ns for _, stat in every) > now - _FRESH:
        return None
    lines = [
        f"{name} {stat.st_dev} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
        for name, stat in every
    ]
    return sha256_text("\n".join([str(run), *lines]))


def cache_file(root: Path, environ: Mapping[str, str]) -> Path | None:
    """Return where the states of the runs of a root are kept; None: nowhere."""
    caches = cache_folder(Host(environ))
    if caches is None:
        return None
    code = sorted(Path(str(proving.__file__)).parent.glob("*.py"))
    judge = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in code]
    key = sha256_text(canonical_json([__version__, judge, str(root.resolve())]))
    return caches / "judged" / f"judged-{key}.json"


def load(file: Path | None) -> frozenset[str]:
    """Return the states that are kept; none where others can write the file, or it is damaged."""
    text = files.read_own(file) if file else None
    try:
        kept = json.loads(text or b"[]")
    except (ValueError, RecursionError):
        kept = None
    found = kept if isinstance(kept, list) else []
    return frozenset(each for each in found if isinstance(each, str))


def store(file: Path | None, states: Set[str]) -> None:
    """Keep the states, where that is possible, in place of those before."""
    if file is None:
        return
    with contextlib.suppress(OSError):
        make_folder(file.parent)
        files.write_atomically(file, canonical_json(sorted(states)), mode=0o600)
        made = file.stat().st_mtime
        for path in file.parent.glob("judged-*.json"):
            if path.stat().st_mtime < made - _OLD:
                path.unlink(missing_ok=True)
