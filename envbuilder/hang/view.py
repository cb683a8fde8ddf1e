"""Where the ranks of a job are, as text: those at one place together."""

from __future__ import annotations

from collections.abc import Iterator

from ..text import counted, filled
from ..views.layout import joined
from .values import Hang, HangRank

# So many ranks of a group are listed with their processes, and so many frames are shown.
MOST_RANKS = 8
MOST_FRAMES = 6


@joined
def hang(value: Hang, *, everything: bool = False) -> Iterator[str]:
    """Return the ranks, those that are waited for first; *everything*: all frames and ranks."""
    of = f" of {value.size}" if value.size is not None else ""
    yield f"{counted(len(value.ranks), 'rank')}{of} on {value.host}, two samples"
    groups: dict[object, list[HangRank]] = {}
    for each in value.ranks:
        stopped = each.state == "stopped"
        groups.setdefault((stopped, each.call, each.at, each.unseen), []).append(each)
    waited_for = sorted(groups.values(), key=lambda those: those[0].rank not in value.culprits)
    for those in waited_for:
        yield ""
        yield from _group(those, everything)
    yield ""
    yield from filled("", value.says + ".")
    yield from filled("hint: ", value.hint)


def _group(those: list[HangRank], everything: bool) -> Iterator[str]:
    shown = those if everything else those[:MOST_RANKS]
    for each in shown:
        moved = ", moved since the first sample" if each.moved else ""
        yield f"rank {each.rank}: process {each.pid}, {each.state}, {each.cpu:.1f} cores{moved}"
    if len(shown) < len(those):
        yield f"and {len(those) - len(shown)} more: --all"
    first = those[0]
    if first.unseen:
        yield from filled("  no stack: ", first.unseen)
    elif not first.frames:
        yield "  no stack: it does not run Python"
    if first.call:
        yield from filled("  in ", first.call)
    written = first.frames if everything else [one for one in first.frames if one.line]
    if first.at and not everything:
        written = written[written.index(first.at) :]
    for frame in written if everything else written[:MOST_FRAMES]:
        yield from filled("    ", frame.text(), 6)
    if not everything and len(written) > MOST_FRAMES:
        yield f"    and {len(written) - MOST_FRAMES} more: --all"
