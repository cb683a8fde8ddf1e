"""What a machine has as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from ..machine.item_values import DoctorReport, Item
from ..text import filled
from ..views.layout import joined

MARKS = {"ok": "ok", "missing": "--", "problem": "!!", "note": ".."}


@joined
def doctor(report: DoctorReport) -> Iterator[str]:
    """Return what a machine has; for what is missing, what it is for and how to get it."""
    for section in report.sections:
        yield section.title
        for item in section.items:
            yield from _item(item)
        yield ""
    yield "Capabilities of this machine"
    for each in report.abilities:
        yield from filled(f"{'yes' if each.can else 'no':>5}  ", f"{each.title}: {each.why}")


def _item(item: Item) -> Iterator[str]:
    yield from filled(f"   {MARKS[item.status]}  ", f"{item.title}: {item.found}")
    for detail in item.details:
        yield from filled("         ", detail)
    if item.status in {"missing", "problem"}:
        for label, text in (("for", item.needed_for), ("get", item.without_root)):
            yield from filled(f"         {label}: ", text) if text else ()
        if item.debian:
            yield from filled("         as root on Debian: ", f"apt-get install {item.debian}")
