"""From a file to a checked value: every problem at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import DocumentError, Place, Problem
from ..model.entries import Entries
from ..model.knowledge import Knowledge
from ..model.recipe import Recipe
from ..model.site import Site
from .checks import (
    channels_are_known,
    components_are_known,
    flags_are_known,
    launcher_is_spelt_right,
    name_fits,
    pip_names_are_known,
    schema_is_a_number,
)
from .messages import problems
from .scalars import value
from .source import read
from .tree import Keys, Pairs, key_places
from .yaml_nodes import parse

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

# More would push the first ones off the screen.
MAX_PROBLEMS = 20

# So many of pydantic's findings are put into words, and sorted; the search for near names takes
# time, and a hostile document has tens of thousands of wrong ones.
_ENOUGH = 500


@dataclass(frozen=True)
class LoadedDocument(Generic[T]):
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
class Document(Generic[T]):
    """A document's value beside what was written, for the checks that look at both."""

    loaded: LoadedDocument[T]
    root: Pairs


def load_recipe(path: Path, knowledge: Knowledge, entries: Entries) -> LoadedDocument[Recipe]:
    """Read and check a recipe; *entries*: what it may name.

    Raises DocumentError (what is written) or UsageError (the file).
    """
    return _read(path, Recipe, knowledge, entries).loaded


def load_site(path: Path, knowledge: Knowledge, entries: Entries) -> LoadedDocument[Site]:
    """Read and check a site. Arguments and errors as for :func:`load_recipe`."""
    return _read(path, Site, knowledge, entries).loaded


def read_document(path: Path, model: type[M]) -> Document[M]:
    """Read a document and check it as far as it can be checked by itself.

    Raises like :func:`load_recipe`.
    """
    return _read(path, model, None)


def _read(
    path: Path, model: type[M], knowledge: Knowledge | None, entries: Entries | None = None
) -> Document[M]:
    source = read(path)
    root, problems = parse(source)
    result, faults = _validated(model, root, entries)
    checks = [*schema_is_a_number(root)]
    if knowledge is not None:
        checks += [*name_fits(root, path), *components_are_known(root, knowledge)]
        checks += [*pip_names_are_known(root, knowledge), *channels_are_known(root, knowledge)]
        checks += [*flags_are_known(root, knowledge)]
    if entries is not None:
        checks += [*launcher_is_spelt_right(root, entries.launch_programs)]
    wrong = _first_at_each_place(problems, faults, checks)
    if result is None or wrong:
        raise all_of(wrong)
    return Document(LoadedDocument(result, path, source.sha256, dict(key_places(root))), root)


def _validated(
    model: type[M], root: Pairs, entries: Entries | None
) -> tuple[M | None, list[Problem]]:
    """Return the value, or None and what is wrong."""
    try:
        # Strict: what is not written as a number, or as true, is none. Keys are spelt as in the
        # documents, not as in Python.
        plain = value(root)
        return (
            model.model_validate(plain, strict=True, by_alias=True, by_name=False, context=entries),
            [],
        )
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)[:_ENOUGH]
        return None, problems(details, root, model)


def _first_at_each_place(*findings: Sequence[Problem]) -> list[Problem]:
    """Leave out what is found where an earlier look has already found something."""
    kept: list[Problem] = []
    for finding in findings:
        reported = {each.place for each in kept}
        kept += [each for each in finding if each.place not in reported]
    return kept


def all_of(problems: Sequence[Problem]) -> DocumentError:
    """Return the error that says them all, in the order of the text; of very many the first."""
    ordered = sorted(problems, key=_position)
    first = ordered[:MAX_PROBLEMS]
    if len(ordered) > MAX_PROBLEMS:
        rest = len(ordered) - MAX_PROBLEMS
        first.append(Problem(f"and at least {rest} more problems", ordered[MAX_PROBLEMS].place))
    return DocumentError(tuple(first))


def _position(problem: Problem) -> tuple[str, int, int]:
    place = problem.place or Place("")
    return place.file, place.line, place.column
