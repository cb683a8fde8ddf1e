"""Making items: every text cleaned, and advice put to what is missing or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..host import clean
from ..model.doctor import Fact, Item, Status
from .advice import ADVICE


def make(
    item_id: str,
    title: str,
    status: Status,
    found: str,
    *,
    details: Sequence[str] = (),
    facts: Mapping[str, Fact] | None = None,
    advice: str | None = None,
) -> Item:
    """Return an item. What is missing or wrong gets the advice kept under *advice* or its id."""
    help_text = ADVICE.get(advice or item_id) if status in {"missing", "problem"} else None
    kept = {key: clean(v) if isinstance(v, str) else v for key, v in (facts or {}).items()}
    return Item(
        id=clean(item_id),
        title=clean(title),
        status=status,
        found=clean(found),
        details=tuple(clean(line) for line in details),
        facts=kept,
        needed_for=help_text.needed_for if help_text else None,
        without_root=help_text.without_root if help_text else None,
        debian=help_text.debian if help_text else None,
    )
