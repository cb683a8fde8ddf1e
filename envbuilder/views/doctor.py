"""What a machine has as text for people."""

from __future__ import annotations

from ..model.doctor import DoctorReport, Item
from ..text import filled

MARKS = {"ok": "ok", "missing": "--", "problem": "!!", "note": ".."}


def doctor(report: DoctorReport) -> str:
    """Return what a machine has; for what is missing, what it is for and how to get it."""
    parts: list[str] = []
    for section in report.sections:
        parts += [section.title, *(line for item in section.items for line in _item(item)), ""]
    parts.append("What this machine can do now")
    for ability in report.abilities:
        parts += filled(f"{'yes' if ability.can else 'no':>5}  ", f"{ability.title}: {ability.why}")
    return "\n".join(parts)


def _item(item: Item) -> list[str]:
    lines = filled(f"   {MARKS[item.status]}  ", f"{item.title}: {item.found}")
    for detail in item.details:
        lines += filled("         ", detail)
    if item.status in {"missing", "problem"}:
        for label, text in (("for", item.needed_for), ("get", item.without_root)):
            lines += filled(f"         {label}: ", text) if text else []
        if item.debian:
            lines += filled("         as root on Debian: ", f"apt-get install {item.debian}")
    return lines
