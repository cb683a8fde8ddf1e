"""``envbuild recipes from``: the recipe that would make an environment again. Only reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..base import fits
from ..documents.load import checked
from ..documents.source import source_of
from ..formats.recipe import recipe_name
from ..formats.writing import yaml_text
from ..inspect.environments import (
    backend_of,
    components_of,
    environment_of,
    provided_by_modules,
    rows_of,
)
from ..inspect.facts import Environment
from ..inspect.stack import InstalledStack
from ..knowledge.terms import PlainVersion
from ..model.outcome import RecipeDraft
from ..model.recipe import Recipe
from ..resolve.flag_refusals import flag_refusals
from ..resolve.flag_table import reads
from ..runtimes import BUNDLED, RUNTIMES
from ..text import LONG, filled, shown
from ..workflow.context import Context
from ..workflow.entries import entries
from ..workflow.foreign_files import name_of_recipe, write_new
from ..workflow.output import output_path
from .lines import RecipeInput
from .recipe import Draft, recipe_draft

_SUFFIX = ".yaml"


def recipe_from(
    name: str | None,
    root: str | None,
    called: str | None,
    output: Path | None,
    context: Context,
    *,
    loaded: bool = False,
) -> RecipeDraft:
    """Return the recipe of an environment that exists; write it to *output*, where nothing is yet.

    *name*, *loaded*: as ``environment_of`` has them; *called*: the recipe's name.
    Raises UsageError if PATH is not an environment, DocumentError if no recipe can describe it.
    """
    output_path(output, context)
    environment = environment_of(name, root, context, loaded=loaded)
    stack = components_of(environment, context)
    own = recipe_name(environment.prefix.name)
    called = name_of_recipe(called, output, own, environment.prefix.name)
    prefix = shown(str(environment.prefix), LONG)
    draft = recipe_draft(_subject(environment, stack, context), called, f"What {prefix} holds")
    recipe = _checked(yaml_text(dict(draft.values)), called, context)
    differs = (
        *draft.differs,
        *_refused(environment, stack, context),
        *_refused_flags(recipe, context),
    )
    text = _text(environment, draft, differs)
    _checked(text, called, context)
    if output is not None:
        write_new(context.path(output), text)
    return RecipeDraft(
        name=called,
        recipe=text,
        site=draft.site,
        unknown=draft.unknown,
        differs=differs,
        file=str(output) if output else None,
    )


def _subject(environment: Environment, stack: InstalledStack, context: Context) -> RecipeInput:
    knowledge = context.knowledge

    def known(flag: str, release: str) -> bool:
        found = knowledge.flags.get(flag) if fits(PlainVersion, release) else None
        # A folder is derived from what the plan chooses.
        return found is not None and found.derived is None and reads(found, release)

    return RecipeInput(
        environment=environment,
        stack=stack,
        components=knowledge.components,
        backend=backend_of(environment),
        runtimes=RUNTIMES,
        bundled=BUNDLED,
        implied=tuple(RUNTIMES[BUNDLED].TRAITS.needs),
        modules=provided_by_modules(environment, context),
        releases={
            name: frozenset(release.version for release in releases)
            for name, releases in knowledge.releases.items()
        },
        reads=known,
        channels={each.url: name for name, each in knowledge.channels.items()},
    )


def _refused(environment: Environment, stack: InstalledStack, context: Context) -> Iterator[str]:
    """Yield the advisories for which ``create`` refuses what is there."""
    for row in rows_of(environment, stack, context, {}):
        if row.verdict == "holds" and row.severity == "error":
            about = f"{', '.join(row.about)}: {row.summary}"
            yield shown(
                f"create refuses {about} ({row.id}); use another release, or waive it with "
                f"allow: {{{row.id}: REASON}}",
                480,
            )


def _refused_flags(recipe: Recipe, context: Context) -> Iterator[str]:
    """Yield the rows for which ``create`` refuses the flags, whatever the site."""
    for each in flag_refusals(recipe, context.knowledge, RUNTIMES[recipe.runtime.package]):
        yield shown(f"create refuses its flags: {each.row.summary} ({each.row.id})", 480)


def _text(environment: Environment, draft: Draft, differs: tuple[str, ...]) -> str:
    python = environment.interpreter.version or environment.interpreter.series or "unknown"
    made = f"Made from the {environment.kind} {shown(str(environment.prefix), LONG)}, Python"
    lines = [*filled("# ", f"{made} {python}, by envbuild recipes from.", 2)]
    for title, those in (
        ("Required in the site's document:", draft.site),
        ("Not in this recipe, because it is unknown or a recipe cannot express it:", draft.unknown),
        ("Differences of an environment made by create:", differs),
    ):
        if those:
            lines += ["#", f"# {title}"]
            lines += [line for each in those for line in filled("# - ", each, 4)]
    text = "".join(f"{'#' + line[1:] if line[:1] == ' ' else line}\n" for line in lines)
    return text + yaml_text(dict(draft.values))


def _checked(text: str, name: str, context: Context) -> Recipe:
    """Return the recipe of a text. Raises DocumentError for what ``recipes check`` refuses."""
    path = Path(f"{name}{_SUFFIX}")
    return checked(
        source_of(text.encode(), str(path)), path, Recipe, context.knowledge, entries()
    ).value
