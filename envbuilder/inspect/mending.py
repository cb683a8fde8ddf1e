"""What the files of an environment have to be, by what recorded them: ``validate --fix``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..host import is_file
from ..model.mending import FindingKey, Package, Wanted
from ..target_tools import manifest
from .checks.conda import replaced
from .checks.files import (
    changed_summary,
    damaged,
    disputed,
    gone_summary,
    manifest_file,
    owners,
    published_summary,
)
from .checks.protocol import spoken
from .conda import recorded_digest
from .facts import Distribution, Environment, Installed

_FILES = "files of a wheel or a conda package that is to be had again, by the hash that it recorded"
_BYTES = f"{_FILES}; not files that no package recorded"
_CHOICE = "--fix puts files back and chooses no package"
_SHELL = "it is of this shell and its modules, which --fix does not change"
_TWO = "which of the two is wanted nobody recorded"

MENDS: Mapping[str, str] = {
    "package.gone": _FILES,
    "package.changed": _FILES,
    "package.damaged": "METADATA and its like, where RECORD has their hash",
    "published.changed": "every file whose content a package of its lock has, links and permissions"
    "; files that were not there stay",
    "library.damaged": _BYTES,
    "library.other-machine": _BYTES,
    "library.newer-glibc": _BYTES,
    "python.missing": "the link, in an environment that envbuild published",
}
"""What --fix puts back, by the id of what is found."""

_REASONS: Mapping[str, str] = {
    "package.twice": _TWO,
    "package.overwritten": _TWO,
    "package.damaged": "RECORD does not say what was there",
    "package.gone": "the packages do not say what was there",
    "package.changed": "the packages do not say what was there",
    "published.changed": "its manifest does not say what was there",
    "conda.damaged": "what a record of conda said is written nowhere else",
    "conda.replaced-by-pip": "the files are pip's, and which of the two is wanted nobody recorded",
    "python.missing": "the Python that it was made with belongs to no package",
    "library.overruled": _SHELL,
    "library.newer-processor": "another build of it is another package: --fix chooses none",
    "path.no-programs": "how a file system is mounted is its administrator's to change",
}
_TOPICS: Mapping[str, str] = {
    "python.": "the Python that it was made with, and the paths in it, belong to no package",
    "package.": _CHOICE,
    "conda.": _CHOICE,
    "library.": "its packages are as they were installed, or did not record this file",
    "mpi.": "its packages are as they were installed",
    "nccl.": "its packages are as they were installed",
    "openmp.": "its packages are as they were installed",
    "path.": _SHELL,
    "module.": _SHELL,
    "horovod.": _SHELL,
    "site.": "an environment is made for one architecture: make it there",
    "recipe.": _CHOICE,
    "run.": "its packages are as they were installed",
}
_ADVISORY = f"it is about the releases that are there: {_CHOICE}"


def reason(id_: str) -> str:
    """Return why --fix leaves a finding, but for what is said of its files."""
    return _REASONS.get(id_) or _TOPICS.get(f"{id_.partition('.')[0]}.", _ADVISORY)


def wanted(environment: Environment) -> Iterator[Wanted]:
    """Yield every file that is not as it was recorded, hashed all of them.

    Of what envbuild published the manifest says what every file was; else the packages do.
    """
    path = manifest_file(environment.prefix)
    if is_file(path):
        yield from _as_published(environment, path)
    else:
        yield from _as_installed(environment)


def _as_installed(environment: Environment) -> Iterator[Wanted]:
    over = {package for package, _ in replaced(environment)}
    known = set(owners(environment))
    for each in environment.installed:
        if each in over:
            continue
        gone, changed = damaged(environment, each, hashes=True)
        keys = [gone_summary(each, gone), changed_summary(each, changed)]
        ids = ["package.gone", "package.changed"]
        if each not in known and isinstance(each, Distribution):
            keys, ids = [f"{each}: {each.problem}"] * 2, ["package.damaged"] * 2
        elsewhere = disputed(environment)
        for id_, summary, those in zip(ids, keys, (gone, changed), strict=True):
            for file, field, value in those:
                yield Wanted(
                    path=file.path,
                    finding=FindingKey(id_, spoken(summary)),
                    was=value if field != "size" else f"{field} {value}",
                    digest=file.digest,
                    package=_package(each),
                    unfit=_TWO if file.path in elsewhere else None,
                )


def _package(each: Installed) -> Package:
    if isinstance(each, Distribution):
        return Package("wheel", each.name, each.version, each.record, each.tags)
    return Package("conda package", each.name, each.version, each.record)


def _as_published(environment: Environment, path: Path) -> Iterator[Wanted]:
    try:
        recorded = manifest.read(path)
        if recorded is None:
            return
        lines = manifest.compare(environment.prefix, recorded, with_hashes=True, run_python=False)
    except (OSError, ValueError):
        return
    brought = {file.path: each for each in environment.installed for file in each.files}
    finding = FindingKey("published.changed", published_summary(len(lines)))
    for line in lines:
        name, _, was = line.rpartition(": ")
        place = os.path.normpath(environment.prefix / name)
        owner = brought.get(place)
        yield _recorded(
            place, was, recorded["files"].get(name), finding, _package(owner) if owner else None
        )


def _recorded(
    path: str, was: str, entry: Mapping[str, Any] | None, finding: FindingKey, by: Package | None
) -> Wanted:
    """Return what a manifest says of a file; *entry* None: it was not there."""
    if entry is None:
        return Wanted(path, finding, was, unfit="nothing is removed")
    if "size" not in entry:
        link = entry.get("link")
        unfit = None if link is not None else "it was neither file nor link"
        return Wanted(path, finding, was, link=link, unfit=unfit)
    return Wanted(
        path,
        finding,
        was,
        digest=recorded_digest(entry["sha256"]),
        mode=entry["mode"],
        mtime=next(iter(entry.get("times") or ()), None),
        package=by,
    )
