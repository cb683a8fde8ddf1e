"""What a site states over what its snapshot holds: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...model.site import Site, Snapshot, StatedModule

# Of these each entry counts by itself: a site that states one component of a module does not deny
# the others that were found in it.
_BY_ENTRY = frozenset({"provides", "facts"})


def merged(site: Site, snapshot: Snapshot) -> tuple[tuple[StatedModule, ...], tuple[str, ...]]:
    """Return all modules, sorted by name, and each disagreement in words, both values in it.

    What the site states wins, field by field; of ``provides`` and ``facts`` entry by entry. A field
    that only one of the two fills in is no disagreement.
    """
    recorded: dict[str, list[StatedModule]] = {}
    for module in snapshot.modules:
        recorded.setdefault(module.name, []).append(module)
    notes: list[str] = []
    several = Counter(module.name for module in site.modules)
    for stated in site.modules:
        there = recorded.get(stated.name, [])
        # Of several of a name, in a hierarchy, its parents say which one is meant.
        meant = [each for each in there if each.parents == stated.parents]
        if several[stated.name] == 1:
            meant = meant or there
        elif not meant:
            recorded[stated.name] = [*there, stated]
            continue
        others = [each for each in there if each not in meant]
        recorded[stated.name] = [*others, *(_over(stated, each) for each in meant)] or [stated]
        if there:
            notes += [note for each in meant for note in _disagreements(site, stated, each)]
        elif snapshot.kind == "live":
            # Documentation seldom lists everything; what looked at the trees has seen all of them.
            notes.append(
                f"site {site.name} states module {stated.name}, which is not in its snapshot: "
                "using the statement"
            )
    return tuple(each for name in sorted(recorded) for each in recorded[name]), tuple(notes)


def _filled(module: StatedModule) -> dict[str, Any]:
    """Return the fields that say something."""
    values = {name: getattr(module, name) for name in module.model_fields_set - {"name"}}
    return {name: value for name, value in values.items() if value not in (None, (), {})}


def _over(stated: StatedModule, there: StatedModule) -> StatedModule:
    changes = _filled(stated)
    for name in _BY_ENTRY & set(changes):
        changes[name] = {**getattr(there, name), **changes[name]}
    return there.model_copy(update=changes)


def _disagreements(site: Site, stated: StatedModule, there: StatedModule) -> Iterator[str]:
    mine, theirs = _entries(stated), _entries(there)
    for label in sorted(set(mine) & set(theirs)):
        if mine[label] != theirs[label]:
            yield (
                f"module {stated.name}: site {site.name} states {label} {_words(mine[label])}, "
                f"its snapshot has {_words(theirs[label])}: using the statement"
            )


def _entries(module: StatedModule) -> dict[str, Any]:
    """Return what is compared of a module, by what a note calls it."""
    entries: dict[str, Any] = {}
    for name, value in _filled(module).items():
        if name in _BY_ENTRY:
            entries |= {f"{name}.{key}": each for key, each in value.items()}
        else:
            entries[name] = value
    return entries


def _words(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        inner = ", ".join(_words(each) for each in value)
        return f"[{inner}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_words(each)}" for key, each in value.items()) + "}"
    return str(value)
