"""The verbs over documents: recipes and sites listed, shown, checked; schemas; detection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..documents.library import catalogue, find
from ..documents.load import LoadedDocument, load_recipe, load_site
from ..documents.schema import schemas
from ..documents.snapshots import (
    lacks_snapshot,
    other_snapshots,
    snapshot_command,
    snapshot_of_site,
)
from ..errors import DocumentError, EnvbuildError, Problem
from ..knowledge.rows import Knowledge
from ..machine.modules.names import unknown_module_notes, unread_modules
from ..model.outcome import DocumentCheck, DocumentEntry, UnreadModule
from ..model.recipe import Recipe
from ..model.site import Site
from ..runtimes import RUNTIMES
from ..workflow.context import Context
from ..workflow.entries import entries

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


def check(kind: Kind, files: Sequence[Path], context: Context) -> DocumentCheck:
    """Check files; raises one DocumentError with the problems of all of them.

    Of a recipe its flags are checked too, by the rules of a plan. Of a site its snapshot is
    checked too, and prints what should be known of it.
    """
    problems: list[Problem] = []
    warnings: dict[str, tuple[str, ...]] = {}
    unread: dict[str, tuple[UnreadModule, ...]] = {}
    for file in files:
        try:
            if kind == "recipe":
                recipe = load_recipe(file, context.knowledge, entries())
                problems += _wrong_flags(recipe, context.knowledge)
            else:
                site = load_site(file, context.knowledge, entries())
                warnings[str(file)], unread[str(file)] = _check_site(site, context)
        except EnvbuildError as error:
            problems.extend(error.problems)
    if problems:
        raise DocumentError(tuple(problems))
    for name, notes in warnings.items():
        for note in notes:
            context.reporter.warn(f"{Path(name).name}: {note}")
    return DocumentCheck(
        good=tuple(map(str, files)),
        warnings={name: notes for name, notes in warnings.items() if notes},
        unread={name: modules for name, modules in unread.items() if modules},
    )


def _wrong_flags(written: LoadedDocument[Recipe], knowledge: Knowledge) -> list[Problem]:
    """Return what every plan of the recipe would refuse of its flags, where it is written."""
    from ..resolve.flag_refusals import flag_refusals  # to list needs no resolver

    runtime = RUNTIMES[written.value.runtime.package]
    return [
        Problem(
            f"{each.row.id}: {each.row.summary}",
            written.place("runtime", "flags", *filter(None, [each.flag])),
            (each.row.fix,) if each.row.fix else (),
        )
        for each in flag_refusals(written.value, knowledge, runtime)
    ]


def _check_site(
    loaded: LoadedDocument[Site], context: Context
) -> tuple[tuple[str, ...], tuple[UnreadModule, ...]]:
    """Return what should be known of a site's modules, and those that are unread.

    Module trees without a snapshot, snapshots that are not used, contradictions of what the
    document states, module trees on this machine that changed since, and age.
    """
    from ..machine.modules.merge import merged
    from ..machine.modules.trees import age_note, changed_trees

    site, components = loaded.value, context.knowledge.components
    notes = [
        f"the snapshot {path.name} of its module trees is not used: it needs the line "
        f"'snapshot: {path.name}'"
        for path in other_snapshots(loaded)
    ]
    if site.snapshot is None:
        if lacks_snapshot(site) and not notes:
            command = snapshot_command(loaded.path)
            notes.append(f"it has module trees and no snapshot of them: {command} records one")
        modules = site.modules
    else:
        recorded = snapshot_of_site(site, loaded.path)
        age = age_note(recorded, context.clock().date())
        changed = changed_trees(recorded)
        modules, differences = merged(site, recorded)
        notes += [
            *differences,
            *(f"the module tree {tree} has changed since" for tree in changed),
            *([age] if age else []),
        ]
    unread = tuple(
        UnreadModule(module=module, component=component)
        for module, component in unread_modules(modules, components)
    )
    return (*notes, *unknown_module_notes(modules, components)), unread


def schema(kind: Kind) -> str:
    """Return the JSON schema of a kind of document."""
    return schemas(entries())[kind]
