"""Checks of recipes and sites: every problem of all files at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from ..documents.load import LoadedDocument, load_recipe, load_site
from ..documents.snapshots import (
    lacks_snapshot,
    other_snapshots,
    snapshot_command,
    snapshot_of_site,
)
from ..errors import DocumentError, EnvbuildError, Problem
from ..knowledge.fact_values import nothing_known, unread_gpus
from ..knowledge.rows import Knowledge
from ..machine.modules.names import unknown_module_notes, unread_modules
from ..model.outcome import DocumentCheck, UnreadModule
from ..model.recipe import Recipe
from ..model.site import Site
from ..runtimes import RUNTIMES
from .context import Context
from .entries import entries

Kind = Literal["recipe", "site"]


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
            "recipe.flag-refused",
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
        f"the snapshot {path.name} of its module trees is not used: add the line "
        f"'snapshot: {path.name}'"
        for path in other_snapshots(loaded)
    ]
    if site.snapshot is None:
        if lacks_snapshot(site) and not notes:
            command = snapshot_command(loaded.path)
            notes.append(f"it has module trees, but no snapshot of them: {command} records one")
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
    gpus = {
        gpu
        for facts in (site.facts, *(each.facts for each in site.partitions.values()))
        for gpu in facts.gpu or ()
    }
    notes += map(nothing_known, unread_gpus(gpus, context.knowledge))
    return (*notes, *unknown_module_notes(modules, components, context.knowledge.kinds)), unread
