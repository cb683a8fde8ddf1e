"""From a file to a checked value: every problem at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DocumentError, Place, Problem
from ..model.base import sha256_text
from ..model.knowledge import (
    Advisories,
    Component,
    Components,
    Couplings,
    Flags,
    Knowledge,
    Symptoms,
    Toolchains,
    Versions,
)
from ..model.recipe import Recipe
from ..model.site import Site
from .checks import components_are_known, name_fits, schema_is_a_number
from .scalars import value
from .source import read
from .text import unknown
from .tree import Keys, Pairs, key_places, parse
from .wording import problem

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

# More would push the first ones off the screen.
MAX_PROBLEMS = 20

# So many of pydantic's findings are put into words, and sorted; the search for near names takes
# time, and a hostile document has tens of thousands of wrong ones.
_ENOUGH = 500

_PACKAGES_HINT = (
    "a package that envbuild need not know goes under 'packages:', as a pip requirement"
)
_OWN_COMPONENTS_HINT = (
    "a folder of your own can add it: knowledge/components.yaml (docs/recipes.md)"
)


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """A document's value with where it came from. ``sha256``: of the file's bytes, 64 digits."""

    value: T
    path: Path
    sha256: str
    places: Mapping[Keys, Place] = field(repr=False)

    def place(self, *keys: str | int) -> Place:
        """Return where *keys* stand, as in ``place("stack", "nccl")``.

        What is not written (a default) has the place of the nearest thing around it that is.
        """
        while keys not in self.places:
            keys = keys[:-1]
        return self.places[keys]


@dataclass(frozen=True)
class LoadedKnowledge:
    """All knowledge that was found, its files, and the sha256 of their names and contents."""

    value: Knowledge
    paths: tuple[Path, ...]
    sha256: str


def load_recipe(path: Path, known: Knowledge) -> Loaded[Recipe]:
    """Read and check a recipe. Raises DocumentError (what is written) or UsageError (the file)."""
    return _load(path, Recipe, known)


def load_site(path: Path, known: Knowledge) -> Loaded[Site]:
    """Read and check a site. Raises DocumentError (what is written) or UsageError (the file)."""
    return _load(path, Site, known)


def load_knowledge(folders: Sequence[Path]) -> LoadedKnowledge:
    """Read the files in the ``knowledge`` folder of every folder.

    Folders come in the order of the search; each file may be absent. What an earlier one says of a
    component, of a component's releases, of a flag, or under an id, replaces what later ones say.
    Raises like :func:`load_recipe`.
    """
    components = _of_all(folders, "components.yaml", Components)
    versions = _of_all(folders, "versions.yaml", Versions)
    symptoms = _of_all(folders, "symptoms.yaml", Symptoms)
    advisories = _of_all(folders, "advisories.yaml", Advisories)
    couplings = _of_all(folders, "couplings.yaml", Couplings)
    toolchains = _of_all(folders, "toolchains.yaml", Toolchains)
    flags = _of_all(folders, "flags.yaml", Flags)
    knowledge = Knowledge(
        components=_first_wins(each.value.components for each in components),
        releases=_first_wins(each.value.releases for each in versions),
        existing=_first_wins(each.value.existing for each in versions),
        symptoms=_first_of_each_id(each.value.symptoms for each in symptoms),
        advisories=_first_of_each_id(each.value.advisories for each in advisories),
        couplings=_first_of_each_id(each.value.couplings for each in couplings),
        kinds=_first_wins(each.value.kinds for each in toolchains),
        generations=_first_wins(each.value.generations for each in toolchains),
        flags=_first_wins(each.value.flags for each in flags),
        flag_rules=_first_of_each_id(each.value.rules for each in flags),
    )
    _every_release_is_known(versions, knowledge.components)
    documents: list[Loaded[Any]] = [*components, *versions, *symptoms]
    documents += [*advisories, *couplings, *toolchains, *flags]
    # Names and hashes, not paths: the same knowledge elsewhere is the same.
    digest = sha256_text("".join(f"{each.path.name} {each.sha256}\n" for each in documents))
    return LoadedKnowledge(knowledge, tuple(each.path for each in documents), digest)


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


Row = TypeVar("Row", bound=_HasId)


def _first_of_each_id(each: Iterable[Iterable[Row]]) -> tuple[Row, ...]:
    return tuple(_first_wins({one.id: one for one in rows} for rows in each).values())


def _of_all(folders: Sequence[Path], name: str, model: type[M]) -> list[Loaded[M]]:
    paths = [folder / "knowledge" / name for folder in folders]
    return [_load(path, model, None) for path in paths if path.exists()]


def _first_wins(each: Iterable[Mapping[str, T]]) -> dict[str, T]:
    merged: dict[str, T] = {}
    for one in each:
        for name, known in one.items():
            merged.setdefault(name, known)
    return merged


def _every_release_is_known(
    recorded: Iterable[Loaded[Versions]], components: Mapping[str, Component]
) -> None:
    problems = [
        Problem(unknown("component", name, components), loaded.place("releases", name))
        for loaded in recorded
        for name in loaded.value.releases
        if name not in components
    ]
    if problems:
        raise _error(problems)


def _load(path: Path, model: type[M], known: Knowledge | None) -> Loaded[M]:
    source = read(path)
    root, found = parse(source)
    result, faults = _validated(model, root)
    checks = [*schema_is_a_number(root)]
    if known is not None:
        checks += [*name_fits(root, path), *components_are_known(root, known)]
    problems = _first_at_each_place(found, faults, checks)
    if result is None or problems:
        raise _error(problems)
    return Loaded(result, path, source.sha256, dict(key_places(root)))


def _validated(model: type[M], root: Pairs) -> tuple[M | None, list[Problem]]:
    """Return the value, or None and what is wrong."""
    try:
        # Strict: what is not written as a number, or as true, is none. Keys are spelt as in the
        # documents, not as in Python.
        return model.model_validate(value(root), strict=True, by_alias=True, by_name=False), []
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)[:_ENOUGH]
        return None, [each for each in (problem(one, root, model) for one in details) if each]


def _first_at_each_place(*findings: Sequence[Problem]) -> list[Problem]:
    """Leave out what is found where an earlier look has already found something."""
    problems: list[Problem] = []
    for finding in findings:
        reported = {each.place for each in problems}
        problems += [each for each in finding if each.place not in reported]
    return problems


def _error(problems: Sequence[Problem]) -> DocumentError:
    ordered = sorted(problems, key=_position)
    first = ordered[:MAX_PROBLEMS]
    if len(ordered) > MAX_PROBLEMS:
        rest = len(ordered) - MAX_PROBLEMS
        first.append(Problem(f"and at least {rest} more problems", ordered[MAX_PROBLEMS].place))
    return DocumentError(tuple(first))


def _position(found: Problem) -> tuple[str, int, int]:
    place = found.place or Place("")
    return place.file, place.line, place.column
