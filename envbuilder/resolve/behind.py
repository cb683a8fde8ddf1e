"""Which choices are far behind the newest release that their line admits, and what holds them."""

from __future__ import annotations

from collections.abc import Iterator

from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.ranges import matches, series, sort_key
from ..model.recipe import names_module
from .problem import Candidate, Stack
from .problem_builder import ProblemInputs

# So many newer series (1.14, 1.15, ...) make a choice one that a user would ask about.
_FAR = 3
_SERIES = 2


def far_behind(inputs: ProblemInputs, stack: Stack) -> Iterator[tuple[str, str]]:
    """Yield the components that are far behind, each with what holds it, in words.

    Of lines of the recipe that are met by an index or a channel: which modules there are, a user
    sees, and that they come first was said by the site.
    """
    for ref, name in stack.used:
        chosen = inputs.candidate(name)
        if ref.kind == "line" and chosen.origin not in ("module", "system"):
            newer = _newer(inputs, chosen)
            if len({series(each, _SERIES) for each in newer}) >= _FAR:
                yield chosen.component, _held(inputs, stack, chosen, max(newer, key=sort_key))


def _newer(inputs: ProblemInputs, chosen: Candidate) -> list[str]:
    """Return the releases that are newer and that all lines admit, whether they run here or not."""
    component = chosen.component
    ranges = [r.constraint for r in inputs.requirements.values() if r.component == component]
    known = {each.version for each in inputs.pool.of(component) if each.origin == chosen.origin}
    if chosen.origin not in CHANNEL_ORIGINS:
        known |= {each.version for each in inputs.request.knowledge.releases.get(component, ())}
    return [
        each
        for each in known
        if sort_key(each) > sort_key(chosen.version)
        and all(not names_module(one) and matches(each, one) for one in ranges)
    ]


def _held(inputs: ProblemInputs, stack: Stack, chosen: Candidate, newest: str) -> str:
    request = inputs.request
    offered = [each for each in inputs.pool.of(chosen.component) if each.origin == chosen.origin]
    best = min(offered, key=lambda each: each.rank)
    said = ""
    if sort_key(best.version) < sort_key(newest):
        glibc = f", glibc {request.glibc}" if request.glibc else ""
        said = (
            f"the newest, {newest}, has no file for {request.arch}{glibc} and a Python of this site"
        )
        if best.id == chosen.id:
            return said
    # lazy import: few plans have such a choice
    from .why import held_by

    what = f"{said}; {best.version}" if said else f"the newest, {newest},"
    return f"{what} {held_by(inputs, stack, best)}"
