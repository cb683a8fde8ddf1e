"""Is what pip chose for another Python complete and right there? Walked with that Python's eyes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import BuildError
from ..target_tools.names import normalize
from .target import TargetPlatform

if TYPE_CHECKING:
    from packaging.requirements import Requirement


@dataclass(frozen=True)
class Closure:
    """What *roots* need of a report's entries, followed from one to the next.

    ``needs``: of each entry that something needs, the names that it needs itself. ``wrong``: what
    is missing or of another version than is wanted.
    """

    needs: Mapping[str, tuple[str, ...]]
    wrong: tuple[str, ...]


def closure_of(
    installs: Sequence[Mapping[str, Any]], roots: Sequence[str], markers: Mapping[str, str]
) -> Closure:
    """Follow the requirements whose markers hold. *roots* are requirements as pip takes them.

    *markers*: the environment that they are evaluated in, as in PEP 508.
    """
    # lazy import: 36 ms
    from packaging.requirements import Requirement

    entries = _by_name(installs)
    wrong = []
    todo = [Requirement(each) for each in roots]
    seen: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    while todo:
        wanted = todo.pop()
        name = normalize(wanted.name)
        entry = entries.get(name)
        if entry is None:
            wrong.append(f"{wanted} is missing")
            continue
        version = entry["metadata"]["version"]
        if not wanted.url and not wanted.specifier.contains(version, prereleases=True):
            wrong.append(f"{wanted} is required, but {name} {version} was chosen")
        for extra in {"", *wanted.extras} - seen.setdefault(name, set()):
            seen[name].add(extra)
            found = [*_needs(entry, {**markers, "extra": extra})]
            needs.setdefault(name, set()).update(normalize(each.name) for each in found)
            todo += found
    return Closure({name: tuple(sorted(each)) for name, each in needs.items()}, tuple(wrong))


def check_closure(
    installs: Sequence[Mapping[str, Any]], closure: Closure, target: TargetPlatform
) -> None:
    """Raise BuildError unless a report's entries are all that is needed on *target*.

    Every requirement whose marker holds there must be met by an entry, every entry must take that
    Python, and none may be there for nothing.
    """
    entries = _by_name(installs)
    wrong = [*_unfit(entries, target), *closure.wrong]
    wrong += [f"no package needs {name}" for name in entries.keys() - closure.needs.keys()]
    if wrong:
        raise BuildError(
            "pip.wrong-files",
            "pip chose wrong files for Python "
            f"{target.python} on {target.arch}: {'; '.join(sorted(wrong))}",
            "make the lock on a machine of that architecture with this Python, or upgrade "
            "pip: python -m pip install --upgrade pip",
        )


def _by_name(installs: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {normalize(each["metadata"]["name"]): each for each in installs}


def _unfit(entries: Mapping[str, Mapping[str, Any]], target: TargetPlatform) -> Iterator[str]:
    from packaging.specifiers import SpecifierSet

    python = target.markers()["python_full_version"]
    for name, entry in entries.items():
        requirement = entry["metadata"].get("requires_python")
        if requirement and not SpecifierSet(requirement).contains(python, prereleases=True):
            yield f"{name} {entry['metadata']['version']} requires Python {requirement}"


def _needs(entry: Mapping[str, Any], environment: dict[str, str]) -> Iterator[Requirement]:
    from packaging.requirements import Requirement

    for text in entry["metadata"].get("requires_dist", ()):
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate(environment):
            yield need
