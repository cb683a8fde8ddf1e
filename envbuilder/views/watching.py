"""What changed in the environments of a list, as text; nothing where nothing did: cron mails it."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.watching import EnvironmentChange, WatchReport
from ..text import counted, filled
from .layout import joined


@joined
def watching(value: WatchReport) -> Iterator[str]:
    """Return what is new and what is gone, for each environment that changed."""
    for each in value.changed:
        yield from _change(each)
    quiet = value.environments - len(value.changed)
    if value.changed and quiet:
        yield f"{counted(quiet, 'environment')} as last time"


def _change(one: EnvironmentChange) -> Iterator[str]:
    about = " (first looked at)" if one.first else ""
    about = " (can be looked at again)" if one.readable else about
    nothing = not (one.new or one.gone or one.problem)
    same = ": nothing is wrong" if one.first else ": as it was"
    yield from filled("", f"{one.environment}{about}{same if nothing else ''}", 2)
    if one.problem is not None:
        yield from filled("  cannot be looked at: ", one.problem, 4)
    for each in one.new:
        yield from filled("  new  ", f"{each.severity} {each.id}: {each.summary}", 7)
        yield from filled("       fix: ", each.fix, 12)
    for was in one.gone:
        yield from filled("  gone ", f"{was.severity} {was.id}: {was.summary}", 7)
