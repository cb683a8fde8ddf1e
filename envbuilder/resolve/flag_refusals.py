"""What a plan would refuse of a recipe's flags whatever the site: for ``recipes check``.

The rules are those that the solver is given, grounded over the releases of the runtime that the
recipe admits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..knowledge.ranges import matches
from ..knowledge.rows import Knowledge, Row
from ..model.recipe import Recipe
from ..model.runtime import CollectiveRuntime
from .facts import Facts, recipe_facts
from .flag_table import flag_table
from .pool import Pool
from .problem import Candidate
from .rules import GroundRule, ground


@dataclass(frozen=True)
class FlagRefusal:
    """A row of knowledge that forbids flags of a recipe. ``flag``: the last one that it is about,
    None where it asks for none by name.
    """

    row: Row
    flag: str | None


def flag_refusals(
    recipe: Recipe, knowledge: Knowledge, runtime: CollectiveRuntime
) -> tuple[FlagRefusal, ...]:
    """Return why no release of the runtime takes the recipe's flags; nothing if one does.

    Only what holds for every site is looked at: rows whose facts the recipe does not state, and
    those that a remedy may lift, are left to a plan. What the recipe waives is no refusal.
    """
    pool = _releases(recipe, knowledge)
    flags = recipe.runtime.flags
    facts = Facts(recipe_facts(recipe), flags, runtime)
    rows = knowledge.model_copy(update={"advisories": (), "couplings": ()})
    grounded = (
        *ground(rows, pool, facts, recipe.allow),
        *flag_table(knowledge, pool, flags, recipe.allow),
    )
    refusing = [each for each in grounded if _refuses(each)]
    refused = {name for each in refusing for name in each.rule.slots[0]}
    if len(refused) < len(pool.candidates):
        return ()
    found = {each.row.id: FlagRefusal(each.row, _last_flag(each, flags)) for each in refusing}
    return tuple(found.values())


def _releases(recipe: Recipe, knowledge: Knowledge) -> Pool:
    """Return the releases of the runtime that the recipe admits, as candidates."""
    runtime = recipe.runtime
    return Pool(
        tuple(
            Candidate(
                id=f"{runtime.package}@{release.version}",
                component=runtime.package,
                version=release.version,
                origin=runtime.origin,
                locator=runtime.package,
                rank=0,
                roles=frozenset({runtime.package}),
            )
            for release in knowledge.releases.get(runtime.package, ())
            if matches(release.version, runtime.version)
        )
    )


def _refuses(grounded: GroundRule) -> bool:
    """Whether a rule forbids its releases with all flags as they are, for certain."""
    rule = grounded.rule
    as_they_are = any(not case.dropped for case in rule.cases)
    return grounded.binds and grounded.sure and rule.hard and as_they_are and not rule.remedies


def _last_flag(grounded: GroundRule, flags: dict[str, str]) -> str | None:
    about = frozenset[str]().union(*(case.kept for case in grounded.rule.cases))
    return next((name for name in reversed(flags) if name in about), None)
