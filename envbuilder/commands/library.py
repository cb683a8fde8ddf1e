"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..documents.library import catalogue, find
from ..documents.load import LoadedDocument, load_recipe, load_site
from ..documents.schema import schemas
from ..documents.snapshots import load_snapshot
from ..errors import DocumentError, EnvbuildError, Problem
from ..model.knowledge import Knowledge
from ..model.module_names import unknown_module_notes
from ..model.outcome import DocumentEntry
from ..model.recipe import Recipe
from ..model.site import Site
from .context import Context
from .entries import entries

Kind = Literal["recipe", "site"]


def list_documents(kind: Kind, context: Context) -> tuple[DocumentEntry, ...]:
    """Return the name, summary and file of every recipe or site; a broken one says so."""
    return tuple(
        DocumentEntry(name=name, file=str(path), summary=_summary(kind, path, context))
        for name, path in catalogue(kind, context.folders)
    )


def _summary(kind: Kind, path: Path, context: Context) -> str:
    try:
        return _load(kind, path, context).value.summary
    except EnvbuildError as error:
        return f"broken: {error.problems[0].message}"


def _load(
    kind: Kind, path: Path, context: Context
) -> LoadedDocument[Recipe] | LoadedDocument[Site]:
    if kind == "recipe":
        return load_recipe(path, context.knowledge, entries())
    return load_site(path, context.knowledge, entries())


def show(kind: Kind, name: str, context: Context) -> tuple[Recipe | Site, str]:
    """Return a document as it is read and as it is written."""
    path = find(kind, name, context.folders)
    return _load(kind, path, context).value, path.read_text(encoding="utf-8")


def check(kind: Kind, files: Sequence[Path], context: Context) -> tuple[str, ...]:
    """Check files; raises one DocumentError with the problems of all of them.

    Of a recipe its flags are checked too, by the rules of a plan. Of a site its snapshot is
    checked too; what should be known of that is told.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for file in files:
        try:
            loaded = _load(kind, file, context)
            if isinstance(loaded.value, Site):
                said = _site_notes(loaded.value, file, context)
                notes += [f"{file.name}: {each}" for each in said]
            else:
                problems += _wrong_flags(loaded, loaded.value, context.knowledge)
        except EnvbuildError as error:
            problems.extend(error.problems)
    if problems:
        raise DocumentError(tuple(problems))
    for note in notes:
        context.reporter.warn(note)
    return tuple(str(file) for file in files)


def _wrong_flags(
    written: LoadedDocument[Recipe] | LoadedDocument[Site], recipe: Recipe, knowledge: Knowledge
) -> list[Problem]:
    """Return what every plan of the recipe would refuse of its flags, where it is written."""
    from ..resolve.flag_refusals import flag_refusals  # to list needs no resolver

    return [
        Problem(
            f"{each.row.id}: {each.row.summary}",
            written.place("runtime", "flags", *filter(None, [each.flag])),
            (each.row.fix,) if each.row.fix else (),
        )
        for each in flag_refusals(recipe, knowledge)
    ]


def _site_notes(site: Site, file: Path, context: Context) -> list[str]:
    """Return what should be known of the snapshot of a site document.

    Contradictions of what the document states, module trees on this machine that changed since,
    and age.
    """
    if site.snapshot is None:
        return []
    from ..module_system.merge import merged
    from ..module_system.trees import age_note, changed_trees

    recorded = load_snapshot(file.parent / site.snapshot)
    modules, notes = merged(site, recorded)
    age = age_note(recorded, context.clock().date())
    return [
        *notes,
        *unknown_module_notes(modules, context.knowledge.components),
        *(f"the module tree {tree} has changed since" for tree in changed_trees(recorded)),
        *([age] if age else []),
    ]


def schema(kind: Kind) -> str:
    """Return the JSON schema of a kind of document."""
    return schemas(entries())[kind]
