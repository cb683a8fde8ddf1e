"""Putting back what is not as it was recorded, file by file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..errors import EnvbuildError
from ..model.mending import Left, PutBack, Wanted
from ..target_tools.messages import LINE_LENGTH
from ..text import shown
from .contents import Member, UnfitError
from .sources import Sources
from .writing import digest_of, put

_RECORD = "its record"


def mend(
    wanted: Iterable[Wanted], prefix: Path, sources: Sources, *, dry_run: bool
) -> tuple[tuple[PutBack, ...], tuple[Left, ...]]:
    """Put files back; return those that were, and those that are left, with why.

    *dry_run*: nothing is written; all else is done, so that what is said is what would come of it.
    """
    done: list[PutBack] = []
    left: list[Left] = []
    for each in wanted:
        file, was = _line(os.path.relpath(each.path, prefix)), _line(each.was)
        try:
            member = _member(each, sources)
            put(each, member, prefix, dry_run=dry_run)
        except UnfitError as error:
            left.append(Left(file=file, was=was, reason=_line(str(error))))
        except OSError as error:
            why = f"it cannot be written: {error.strerror or error}"
            left.append(Left(file=file, was=was, reason=_line(why)))
        except EnvbuildError as error:
            left.append(Left(file=file, was=was, reason=_line(str(error))))
        else:
            source = member.source if member else _RECORD
            done.append(PutBack(file=file, was=was, source=_line(source)))
    return tuple(done), tuple(left)


def _member(wanted: Wanted, sources: Sources) -> Member | None:
    """Return what a file has to hold; None: its link or its permissions alone are to be set.

    Raises UnfitError.
    """
    if wanted.unfit is not None:
        raise UnfitError(wanted.unfit)
    if wanted.link is not None:
        return None
    right = wanted.digest.rstrip("=")
    known = wanted.mode is not None and right and not Path(wanted.path).is_symlink()
    if known and digest_of(wanted.path, right) == right:
        return None
    return sources.find(wanted)


def _line(text: str) -> str:
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return shown(safe, LINE_LENGTH - 100) or "-"
