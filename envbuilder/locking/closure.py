"""Is what pip chose for another Python complete and right there? Walked with that Python's eyes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import BuildError
from .target import Target

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def check_closure(
    installs: Sequence[Mapping[str, Any]], roots: Sequence[str], target: Target
) -> None:
    """Raise BuildError unless a report's entries are all that *roots* need on *target*.

    *roots* are requirements as pip takes them. Every requirement whose marker holds there must be
    met by an entry, every entry must take that Python, and none may be there for nothing.
    """
    # lazy import: 36 ms
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    entries = {str(canonicalize_name(each["metadata"]["name"])): each for each in installs}
    wrong = [*_unfit(entries, target)]
    todo = [Requirement(each) for each in roots]
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = todo.pop()
        name = str(canonicalize_name(wanted.name))
        entry = entries.get(name)
        if entry is None:
            wrong.append(f"{wanted} is missing")
            continue
        version = entry["metadata"]["version"]
        if not wanted.url and not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted} is wanted, {name} {version} was chosen")
        for extra in {"", *wanted.extras} - {extra for each, extra in seen if each == name}:
            seen.add((name, extra))
            todo += _needs(entry, extra, target)
    wrong += [f"{name} is needed by nothing" for name in entries.keys() - {n for n, _ in seen}]
    if wrong:
        raise BuildError(
            "pip chose files that are not right for Python "
            f"{target.python} on {target.arch}: {'; '.join(sorted(wrong))}",
            "make the lock on a machine of that architecture that has this Python, or with "
            "another pip: python -m pip install --upgrade pip",
        )


def _unfit(entries: Mapping[str, Mapping[str, Any]], target: Target) -> Iterator[str]:
    from packaging.specifiers import SpecifierSet

    python = target.markers()["python_full_version"]
    for name, entry in entries.items():
        requirement = entry["metadata"].get("requires_python")
        if requirement and not SpecifierSet(requirement).contains(python, prereleases=True):
            yield f"{name} {entry['metadata']['version']} wants Python {requirement}"


def _needs(entry: Mapping[str, Any], extra: str, target: Target) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    environment = {**target.markers(), "extra": extra}
    for text in entry["metadata"].get("requires_dist", ()):
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate(environment):
            yield need
