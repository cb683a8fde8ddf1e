"""What differs between two plans, or two locks: every decision, each once.

Both are taken apart into leaves by the fields they have, so that a field that is added to the
models later is compared as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..base import Document
from .decisions import decisions, plan_decisions
from .plan import Lock, Plan

# Of the lists with entries that have names: the fields that tell the entries apart, and what an
# entry is in a few words; its other fields are told only where they alone differ.
_LISTS: Mapping[str, tuple[str, str]] = {
    "pins": ("component", "{version} <- {origin}:{locator}"),
    "build-pins": ("component", "{version} <- {origin}:{locator}"),
    "brought": ("component version", "{version} <- {origin}:{locator}"),
    "builds": ("component", "{version}"),
    "findings": ("id", "{status}: {summary} {remedy}{reason}"),
    "environment": ("kind name", "{value}"),
    "steps": ("id", "{title}"),
    "replaced": ("module", "by {by}"),
    "inputs": ("kind name", "{sha256}"),
    "artifacts": ("name", "{filename}"),
    "channels": ("name", "{url}"),
}

# Their fields are told even where the words differ: a flag that changed with the release.
_DETAILED = frozenset({"builds"})

_SECTIONS: Mapping[str, str] = {
    "pins": "components",
    "build-pins": "build components",
    "brought": "additional components of modules",
    "builds": "builds and their flags",
    "findings": "advisories",
    "pip-indexes": "package indexes",
    "find-links": "package indexes",
    "channels": "package indexes",
    "artifacts": "files",
}

INPUTS = "inputs"

_ORDER = "(order)"

Path = tuple[str, ...]
Leaves = dict[Path, str]
"""Every decision as text, by where it stands: its section first."""


class Difference(Document):
    """One thing that is not the same. None: it is not there on that side."""

    section: str
    name: str
    before: str | None
    after: str | None


class Diff(Document):
    """All that differs.

    ``same``: both decide the same; what else differs (inputs that changed without effect, reasons,
    titles) is shown as well. Files are compared between two locks: a plan has none yet.
    """

    before: str  # The first object of the comparison, in words.
    after: str
    same: bool
    differences: tuple[Difference, ...]


def diff(before: Lock | Plan, after: Lock | Plan, names: tuple[str, str]) -> Diff:
    """Return what differs; *names* say what the two are."""
    both = isinstance(before, Lock) and isinstance(after, Lock)
    one, other = (_leaves_of(each, with_files=both) for each in (before, after))
    decided = [
        decisions(each) if both and isinstance(each, Lock) else plan_decisions(_plan_of(each))
        for each in (before, after)
    ]
    differences = [_difference(path, one, other) for path in _changed(one, other)]
    sections = list(dict.fromkeys(each.section for each in differences))
    differences.sort(key=lambda each: (sections.index(each.section), each.name))
    return Diff(
        before=names[0],
        after=names[1],
        same=decided[0] == decided[1],
        differences=tuple(differences),
    )


def _plan_of(value: Lock | Plan) -> Plan:
    return value.plan if isinstance(value, Lock) else value


def _leaves_of(value: Lock | Plan, *, with_files: bool) -> Leaves:
    plain = _plan_of(value).plain()
    for pin in (*plain["pins"], *plain["build-pins"], *plain["brought"]):
        # Which virtuals a component fulfils follows from its name; earlier locks do not say it.
        del pin["fulfils"]
    leaves = dict(_leaves(plain, ()))
    if isinstance(value, Lock) and with_files:
        # How large a file is nobody decided: it is told by some indexes and not by others.
        # A conda package's file name is in its URL alone.
        files = [
            {"filename": each.filename, **{k: v for k, v in each.plain().items() if k != "size"}}
            for each in value.artifacts
        ]
        leaves.update(_leaves({"artifacts": files, "lock-schema": value.schema_}, ()))
    return leaves


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list) and path and path[-1] in _LISTS:
        yield from _entries(value, path)
    elif isinstance(value, list):
        yield from _items(value, path)
    elif value is not None:
        yield path, value if isinstance(value, str) else json.dumps(value)


def _entries(entries: Sequence[dict[str, Any]], path: Path) -> Iterator[tuple[Path, str]]:
    keys, template = _LISTS[path[-1]]
    # Once where kind and name are the same word: "knowledge".
    words = [dict.fromkeys(str(each[key]) for key in keys.split()) for each in entries]
    names = _distinct([" ".join(each) for each in words])
    yield (*path, _ORDER), ", ".join(names)
    for name, each in zip(names, entries, strict=True):
        values = {key: "" if text is None else text for key, text in each.items()}
        yield (*path, name), template.format_map(values).strip()
        more = each
        if path[-1] in _DETAILED:
            more = {key: below for key, below in each.items() if f"{{{key}}}" not in template}
        yield from _leaves(more, (*path, name))


def _items(items: Sequence[Any], path: Path) -> Iterator[tuple[Path, str]]:
    texts = [each if isinstance(each, str) else json.dumps(each, sort_keys=True) for each in items]
    names = _distinct(texts)
    yield (*path, _ORDER), ", ".join(names)
    for name, text in zip(names, texts, strict=True):
        yield (*path, name), text


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names, those that come again with a number behind them."""
    seen: dict[str, int] = {}
    distinct = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        distinct.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return distinct


def _changed(one: Mapping[Path, str], other: Mapping[Path, str]) -> Iterator[Path]:
    """Yield what differs, without what follows from another difference."""
    paths = [path for path in dict.fromkeys((*one, *other)) if one.get(path) != other.get(path)]
    changed = frozenset(paths)
    for path in paths:
        inside = any(
            above in changed
            and (above[0] not in _DETAILED or above not in one or above not in other)
            for above in (path[:length] for length in range(1, len(path)))
        )
        moved = path[-1] == _ORDER and any(
            each[:-1] == path[:-1] and (each in one) != (each in other) for each in changed - {path}
        )
        if not inside and not moved:
            yield path


def _difference(path: Path, one: Mapping[Path, str], other: Mapping[Path, str]) -> Difference:
    first, *rest = path
    return Difference(
        section=_SECTIONS.get(first, first) if rest else "about",
        name=" ".join(rest) or first,
        before=one.get(path),
        after=other.get(path),
    )
