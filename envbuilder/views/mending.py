"""What ``validate --fix`` put back and what it left, as text."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.mending import Mending
from ..text import counted, filled

# So many files are shown of those that were put back, and of those that were not.
MOST_FILES = 10


def mending(value: Mending | None, *, everything: bool = False) -> Iterator[str]:
    """Yield the files, and the findings that are left with why."""
    if value is None:
        return
    most = None if everything else MOST_FILES
    done = "would be put back" if value.dry_run else "put back"
    yield f"{counted(len(value.put_back), 'file')} {done}{':' if value.put_back else ''}"
    for each in value.put_back[:most]:
        yield from filled("  ", f"{each.file} ({each.was}) from {each.source}", 6)
    yield from _more(len(value.put_back), most)
    if value.left:
        yield f"{counted(len(value.left), 'file')} left as it is:"
    for one in value.left[:most]:
        yield from filled("  ", f"{one.file} ({one.was}): {one.reason}", 6)
    yield from _more(len(value.left), most)
    if value.refused:
        yield "what --fix does nothing about:"
    for finding in value.refused:
        yield from filled("  ", f"{finding.id}: {finding.summary}", 6)
        yield from filled("      reason: ", finding.reason, 14)
    yield ""


def _more(number: int, most: int | None) -> Iterator[str]:
    if most is not None and number > most:
        yield f"  and {number - most} more: --all"
