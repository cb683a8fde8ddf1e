"""Making items: every text cleaned, with the words that are kept under the item's id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from .. import data
from ..target_tools.messages import one_line
from .item_values import Fact, Item, Section, Status

# In the order of the report.
SECTIONS = {
    "machine": "Machine",
    "modules": "Module system",
    "mpi": "MPI",
    "compilers": "Compilers and build tools",
    "conda": "Conda family",
    "containers": "Containers",
    "scheduler": "Scheduler",
    "pythons": "Pythons",
    "python-settings": "Python settings",
    "network": "Network settings",
    "gpu": "GPU",
    "places": "Places",
}


@cache
def texts() -> Mapping[str, Mapping[str, str]]:
    """Return title and advice of the items by their ids."""
    import yaml  # lazy import: 0.1 s

    words: dict[str, dict[str, str]] = yaml.safe_load(
        (data.RECIPES / "knowledge" / "doctor.yaml").read_text(encoding="utf-8")
    )
    return words


def section(section_id: str, items: Iterable[Item]) -> Section:
    """Return a section of the report with these items."""
    return Section(id=section_id, title=SECTIONS[section_id], items=tuple(items))


def make(
    item_id: str,
    status: Status,
    found: str,
    *,
    title: str | None = None,
    details: Iterable[str | None] = (),
    facts: Mapping[str, Fact | None] | None = None,
    advice: str | None = None,
) -> Item:
    """Return an item. What is missing or wrong gets the advice kept under *advice* or its id.

    Details and facts that are None are left out. *title*: None for the one that is kept, or the
    second part of the id.
    """
    own, words = texts().get(item_id, {}), texts().get(advice or item_id, {})
    title = title or own.get("title") or words.get("title") or item_id.split(".")[1]
    advised = words if status in {"missing", "problem"} else {}
    return Item(
        id=one_line(item_id),
        title=one_line(title),
        status=status,
        found=one_line(found),
        details=tuple(one_line(line) for line in details if line is not None),
        facts={
            key: one_line(value) if isinstance(value, str) else value
            for key, value in (facts or {}).items()
            if value is not None
        },
        needed_for=advised.get("needed-for"),
        without_root=advised.get("without-root"),
        debian=advised.get("debian"),
    )
