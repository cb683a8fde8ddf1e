"""The patches of a plan: files of ``patches/`` beside recipes, each for a stated range."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..base import sha256_text
from ..errors import Place, UsageError
from ..knowledge.artifacts import Patch
from ..knowledge.ranges import check_range, matches
from ..model.plan import Plan, SourceBuild
from ..text import shown

# The first line of a patch that says so: "Applies-to: horovod >=0.25,<=0.28.1".
_APPLIES = re.compile(r"^Applies-to: *(\S+) +(\S.*?) *$", re.MULTILINE)


def patches_of(builds: Iterable[SourceBuild], folders: Sequence[Path]) -> tuple[Patch, ...]:
    """Return the patches of *builds*, each once, with the hash of its file.

    Raises UsageError for one that is not there, or not for the release that is built.
    """
    texts: dict[str, str] = {}
    for build in builds:
        for name in build.patches:
            path, text = _read(name, folders)
            _fits(path, text, build)
            texts[name] = text
    return tuple(Patch(name=name, sha256=sha256_text(texts[name])) for name in sorted(texts))


def patch_files(plan: Plan, folders: Sequence[Path]) -> dict[str, str]:
    """Return the files of the build folder that hold the patches of *plan*.

    Raises UsageError for one that is not what was locked.
    """
    files = {}
    for patch in plan.patches:
        path, text = _read(patch.name, folders)
        if sha256_text(text) != patch.sha256:
            raise UsageError(
                "patch.changed",
                f"the patch {patch.name} has changed since it was locked",
                "make the lock again: envbuild lock",
                place=Place(str(path)),
            )
        files[f"patches/{patch.name}.patch"] = text
    return files


def patch_file(name: str, folders: Sequence[Path]) -> Path:
    """Return the file of a patch. Raises UsageError if it does not exist."""
    paths = [folder / "patches" / f"{name}.patch" for folder in folders]
    for path in paths:
        if path.is_file():
            return path
    raise UsageError(
        "patch.not-found",
        f"the patch '{shown(name)}' does not exist",
        "searched: " + ", ".join(str(path) for path in paths),
    )


def _read(name: str, folders: Sequence[Path]) -> tuple[Path, str]:
    path = patch_file(name, folders)
    return path, path.read_text(encoding="utf-8")


def _fits(path: Path, text: str, build: SourceBuild) -> None:
    head = text.partition("\n--- ")[0]
    stated = dict(_APPLIES.findall(head))
    if not stated:
        raise UsageError(
            "patch.no-applies-to",
            "the patch does not state which releases it applies to",
            "begin it with a line such as 'Applies-to: horovod >=0.25,<=0.28.1'",
            place=Place(str(path)),
        )
    try:
        fits = build.component in stated and matches(
            build.version, check_range(stated[build.component])
        )
    except ValueError as error:
        raise UsageError("patch.invalid-range", str(error), place=Place(str(path))) from error
    if not fits:
        ranges = ", ".join(f"{name} {range_}" for name, range_ in stated.items())
        raise UsageError(
            "patch.other-release",
            f"the patch is for {ranges}, not for {build.component} {build.version}",
            "build a release that it is for, or extend its Applies-to after you have tested it",
            place=Place(str(path)),
        )
