"""What evidence is bound to, and the evidence of releases that did not bind it.

The nonce of a run contains a hash of what the run proves. The data that the ranks reduce depend on
the nonce. The records of the ranks are therefore of one environment, lock, site, partition and
architecture, and do not fit another one.
"""

import hashlib
import secrets
from pathlib import Path
from typing import Any, Mapping, NamedTuple

from ..files import LARGE_BYTES, canonical_json, read_json, read_regular, write_atomically
from .records import RECORD_BYTES, RECORD_FILES

# Of an Evidence; the first one was not bound.
SCHEMA = 2
# The keys of an Evidence that name what it is about.
BOUND = ("environment", "id", "lock-sha256", "site", "partition", "arch")
RANDOM_DIGITS, HASH_DIGITS = 32, 16
# In a root, or beside the records of an image: the hashes of the evidence that was there before
# evidence was bound.
EARLIER = ".envbuild.evidence.json"
ROOT_RUNS = "*/*.evidence/*/evidence.json"
BESIDE_RUNS = "*/evidence.json"
# Seconds by which the clocks of two nodes may differ, as Kerberos allows it.
CLOCK_SKEW = 300.0


def new_nonce(about: "Mapping[str, Any]") -> str:
    """Return the nonce of a new run that proves what *about* names."""
    return with_hash(secrets.token_hex(RANDOM_DIGITS // 2), about)


def with_hash(random: str, about: "Mapping[str, Any]") -> str:
    """Return the nonce that begins with these random digits."""
    text = canonical_json([random, *(about.get(name) for name in BOUND)])
    return random + hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def is_bound(nonce: str, about: "Mapping[str, Any]") -> bool:
    """Return whether a run with this nonce proved what *about* names."""
    return nonce == with_hash(nonce[:RANDOM_DIGITS], about)


def misfit(evidence: "Mapping[str, Any]", subject: "Mapping[str, Any]") -> "str | None":
    """Return which of BOUND differs between an Evidence and the environment, or None.

    A partition is compared if both name one: a login node belongs to none.
    """
    for name in BOUND:
        expected, stated = subject.get(name), evidence.get(name)
        if name == "partition" and None in (expected, stated):
            continue
        # Evidence of a lock with an earlier kind of hash: the folder is named by that hash.
        by_id = name == "lock-sha256" and evidence["schema"] == 1
        if expected != stated and not (by_id and str(stated).startswith(str(subject["id"]))):
            return f"it is for {name.replace('-', ' ')} {stated or 'none'}, not for {expected}"
    return None


class EarlierEvidence(NamedTuple):
    """The hashes of evidence that was not bound, by its folder below *folder*.

    hashes: None: no release that binds evidence has written to *folder*.
    """

    folder: Path
    hashes: "dict[str, str] | None"

    def misfit(self, run: Path) -> "str | None":
        """Return why the unbound evidence in *run* does not count, or None."""
        if self.hashes is None:
            return None
        if self.hashes.get(str(run.relative_to(self.folder))) == run_hash(run):
            return None
        return f"it is not bound, and {EARLIER} does not list it as it is"


def read_earlier(folder: Path) -> EarlierEvidence:
    """Return the hashes that lie in a root, or beside an image; a damaged file lists none."""
    try:
        hashes = read_json(folder / EARLIER, LARGE_BYTES)["evidence"]
    except FileNotFoundError:
        return EarlierEvidence(folder, None)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        hashes = {}
    return EarlierEvidence(folder, hashes if isinstance(hashes, dict) else {})


def record_earlier(folder: Path, runs: str, is_new: bool, mode: "int | None" = None) -> None:
    """Write the hashes of the evidence that is there, unless an earlier call has.

    A command that is refused afterwards shall change nothing in an empty folder. Only one that
    *is_new* gets an empty list.
    """
    if (folder / EARLIER).exists():
        return
    hashes = {}
    for path in sorted(folder.glob(runs)):
        try:
            hashes[str(path.parent.relative_to(folder))] = run_hash(path.parent)
        except (OSError, ValueError):
            continue  # what cannot be read counts for nothing, and its reader reports it
    if hashes or is_new:
        write_atomically(folder / EARLIER, canonical_json({"schema": 1, "evidence": hashes}), mode)


def run_hash(run: Path) -> str:
    """Return the hash of an evidence record and of the records of its ranks."""
    files = [(run / "evidence.json", LARGE_BYTES)]
    files += [(path, RECORD_BYTES) for path in sorted(run.glob(f"ranks/{RECORD_FILES}"))]
    parts = [
        [path.name, hashlib.sha256(read_regular(path, size, links=False)).hexdigest()]
        for path, size in files
    ]
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()
