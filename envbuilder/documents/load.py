"""From a file to a checked value: every problem at once, each with its line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from ..errors import NoSolutionError, Place, Problem, UsageError
from ..knowledge.entries import Entries, check_choice
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch, Profile
from ..model.backend import BackendTraits
from ..model.profiles import PROFILES, STACKS
from ..model.recipe import Recipe
from ..model.runtime import RuntimeTraits
from ..model.site import Site, Snapshot
from .checks import launcher_is_spelt_right, name_fits, names_are_known, schema_is_a_number
from .messages import all_of, problems
from .scalars import value
from .source import Source, read
from .tree import Pairs, find, key_place
from .yaml_nodes import parse


def profile_of(name: str | None) -> Profile | None:
    """Return the profile of that name. Raises UsageError where there is none."""
    check_choice("profile", name, PROFILES)
    return next((each for each in PROFILES if each == name), None)


def variant(
    recipe: LoadedDocument[Recipe],
    profile: Profile,
    backend: BackendTraits,
    runtime: RuntimeTraits,
) -> LoadedDocument[Recipe]:
    """Return the recipe with what the profile needs in its stack, under a name of its own.

    Raises UsageError for a recipe that builds nothing that could be measured.
    """
    value = recipe.value
    if not runtime.instrumented or value.runtime.origin != "build":
        raise UsageError(
            "profile.no-horovod",
            f"--profile {profile} instruments a build of Horovod, but recipe {value.name} has none",
            "use a recipe with runtime: {package: horovod}, such as horovod-mpi",
            place=recipe.place("runtime"),
        )
    if profile not in backend.profiles:
        raise UsageError(
            "profile.unsupported-backend",
            f"--profile {profile} does not work in a {backend.environment}, which recipe "
            f"{value.name} makes",
            place=recipe.place("backend"),
        )
    update = {
        "name": f"{value.name}-{profile}",
        "summary": f"{value.summary}, measured by Score-P",
        "stack": {**value.stack, **STACKS[profile]},
    }
    return replace(recipe, value=value.model_copy(update=update))


def check_is_there(profile: Profile, site: Site, snapshot: Snapshot, knowledge: Knowledge) -> None:
    """Raise NoSolutionError where no module of the site is the profile's tool."""
    names = knowledge.components[profile].modules
    if any(profile in m.provides or m.name.split("/")[0] in names for m in snapshot.modules):
        return
    raise NoSolutionError(
        "profile.module-missing",
        f"--profile {profile}: site {site.name} has no module {' or '.join(names)}",
        "if it has one, add it to the site file: modules: "
        f"[{{name: {names[0]}/..., provides: {{{profile}: ...}}}}]",
        "or plan without --profile",
    )


def for_arch(recipe: LoadedDocument[Recipe], arch: Arch) -> LoadedDocument[Recipe]:
    """Return the recipe with what it says of *arch*, each line with its place in the file."""
    variant = recipe.value.for_arch.get(arch)
    written = find(recipe.root, ("for-arch", arch))
    if variant is None or not isinstance(written, Pairs):
        return recipe
    said = {name: getattr(variant, name) for name in type(variant).model_fields}
    update = {name: value for name, value in said.items() if value is not None}
    others = (pair for pair in recipe.root.pairs if pair[0].text not in written.index)
    root = Pairs(recipe.root.place, (*others, *written.pairs))
    return replace(recipe, value=recipe.value.model_copy(update=update), root=root)


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class LoadedDocument(Generic[T]):
    """A document's value with where it came from.

    ``sha256``: of the file's bytes, 64 digits. ``root``: what was written.
    """

    value: T
    path: Path
    sha256: str
    root: Pairs = field(repr=False)

    def place(self, *keys: str | int) -> Place:
        """Return where *keys* stand, as in ``place("stack", "nccl")``: see ``key_place``."""
        return key_place(self.root, keys)


def load_recipe(path: Path, knowledge: Knowledge, entries: Entries) -> LoadedDocument[Recipe]:
    """Read and check a recipe; *entries*: what it may name.

    Raises DocumentError (what is written) or UsageError (the file).
    """
    return read_document(path, Recipe, knowledge, entries)


def load_site(path: Path, knowledge: Knowledge, entries: Entries) -> LoadedDocument[Site]:
    """Read and check a site. Arguments and errors as for :func:`load_recipe`."""
    return read_document(path, Site, knowledge, entries)


def read_document(
    path: Path,
    model: type[M],
    knowledge: Knowledge | None = None,
    entries: Entries | None = None,
) -> LoadedDocument[M]:
    """Read a document and check it by itself, and against what is handed over.

    Raises like :func:`load_recipe`.
    """
    return checked(read(path), path, model, knowledge, entries)


def checked(
    source: Source,
    path: Path,
    model: type[M],
    knowledge: Knowledge | None = None,
    entries: Entries | None = None,
) -> LoadedDocument[M]:
    """Check a document that was read; *path*: its file, or the one that it would be.

    Raises DocumentError.
    """
    root, found = parse(source)
    wrong = list(found)
    result: M | None = None
    try:
        # Strict: what is not written as a number, or as true, is none. Keys are spelt as in the
        # documents, not as in Python.
        result = model.model_validate(
            value(root), strict=True, by_alias=True, by_name=False, context=entries
        )
    except ValidationError as error:
        _add(wrong, problems(error, root, model))
    checks = [*schema_is_a_number(root)]
    if knowledge is not None:
        checks += [*name_fits(root, path), *names_are_known(root, knowledge)]
    if entries is not None:
        checks += launcher_is_spelt_right(root, entries.launch_programs)
    _add(wrong, checks)
    if result is None or wrong:
        raise all_of(wrong)
    return LoadedDocument(result, path, source.sha256, root)


def _add(found: list[Problem], more: Iterable[Problem]) -> None:
    """Add what is wrong, but where an earlier look has already found something."""
    reported = {each.place for each in found}
    found += [each for each in more if each.place not in reported]
