"""Why there is no stack, and which ones are closest: as few lines as say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import KnownBadError, NoSolutionError, Place, Problem
from ..model import matching
from ..model.knowledge import Advisory, Row
from ..model.ranges import ANY_VERSION
from ..model.recipe import names_module
from ..text import filled, nearest
from .engine import closest, conflicts, solve
from .problem import Change, FlagCase, Rule, Stack, Want
from .problem import Problem as StackProblem
from .request import Request
from .runtime import wanted_as
from .world import World, world

# So many closest stacks fit on a screen; --verbose asks for more.
CLOSEST = 3
ALL_CLOSEST = 10
CONFLICTS = 2
ALL_CONFLICTS = 5

_LAWS = {
    "generations": "what runs together is of one toolchain generation",
    "provider": "one component is there in one version only, and one MPI",
    "replaces": "a release takes another's place only within its ABI series and generation",
    "loading": "modules that exclude each other, or need others first, are not loaded together",
}


@dataclass(frozen=True)
class Member:
    """One of those that cannot hold together. ``text``: in words, ``link``: where to read on."""

    switch: str
    text: str
    place: Place | None = None
    link: str | None = None
    fix: str | None = None

    def plain(self) -> dict[str, object]:
        place = str(self.place) if self.place else None
        known = {"switch": self.switch, "text": self.text, "place": place, "link": self.link}
        return {**known, "fix": self.fix}


def no_solution(request: Request, verbose: bool = False) -> NoSolutionError:
    """Return the error that says why a request has no stack, and what to change."""
    whole = world(request, strict=False)
    sets = conflicts(whole.problem, ALL_CONFLICTS if verbose else CONFLICTS)
    first, *others = (tuple(member(whole, switch) for switch in each) for each in sets)
    members = [each for one in (first, *others) for each in one]
    stacks = _rechecked(whole, closest(whole.problem, ALL_CLOSEST if verbose else CLOSEST))
    kind = KnownBadError if any(m.switch.startswith("row:") for m in members) else NoSolutionError
    message = "\n".join(_lines(whole, first, others, stacks))
    error = kind(message)
    place = next((each.place for each in members if each.place), None)
    error.problems = (Problem(message, place, tuple(_hints(whole, members))),)
    error.details = {
        "conflicts": [[each.plain() for each in one] for one in (first, *others)],
        "closest": [
            {"changes": list(_changes(whole, each)), "loads": list(each.loads)} for each in stacks
        ],
    }
    return error


def _lines(
    world: World,
    members: Sequence[Member],
    others: Sequence[Sequence[Member]],
    stacks: Sequence[Stack],
) -> Iterator[str]:
    request = world.request
    where = f"at site {request.site.name} for {request.arch}"
    if len(members) == 1:
        nothing = members[0].switch in _without_candidates(world)
        verb = "nothing provides" if nothing else "no stack has"
        yield f"{verb} {members[0].text} {where}"
    else:
        yield f"no stack {where} has all of this:"
        yield from _listed(members)
    for line in _nothing_there(world, members):
        yield f"  {line}"
    for other in others:
        yield "and, whatever becomes of that, not all of this:"
        yield from _listed(other)
        for line in _nothing_there(world, other):
            yield f"  {line}"
    if stacks:
        yield "closest stacks that work:"
        for n, stack in enumerate(stacks, start=1):
            text = "; ".join(_changes(world, stack))
            yield from filled(f"  {n}. ", text, 5)


def _listed(members: Sequence[Member]) -> Iterator[str]:
    for each in members:
        yield from filled("  - ", each.text)
        for part in (each.place, each.link):
            if part:
                yield f"      {part}"
        if each.fix:
            yield from filled("      ", f"fix: {each.fix}", 8)


def _hints(whole: World, members: Sequence[Member]) -> Iterator[str]:
    if {each.switch for each in members} & set(_without_candidates(whole)) & {"line:python"}:
        if whole.request.recipe.backend == "conda":
            yield from _recorded_pythons(whole)
        else:
            yield "envbuild doctor lists the interpreters and what each lacks"
    # What the table of flags says has no row of its own to show.
    known = {each.id for each in matching.rows(whole.request.knowledge)}
    rows = [each.switch.removeprefix("row:") for each in members if each.switch[:4] == "row:"]
    rows = [each for each in rows if each in known]
    if rows:
        yield f"envbuild advisories show {rows[0]} says more"


def _recorded_pythons(whole: World) -> Iterator[str]:
    """Say for which architectures each channel of the recipe is known to hold a Python."""
    for name in whole.request.recipe.channels:
        held = whole.request.knowledge.channels[name].packages.get("python", ())
        found = sorted({arch for each in held for arch in each.arch})
        yield f"of channel {name} a python is recorded for {', '.join(found) or 'nothing'}"


def member(world: World, switch: str) -> Member:
    kind, _, name = switch.partition(":")
    request = world.request
    if switch in world.wanted:
        return _wanted_member(world, switch)
    if kind == "row":
        row = next(each.row for each in world.grounded if each.row.id == name)
        about = f" ({_subject(row)})" if _subject(row) else ""
        return Member(switch, f"{name}{about}: {row.summary}", link=row.sources[0], fix=row.fix)
    if kind == "flag":
        value = request.recipe.runtime.flags[name]
        return Member(switch, f"{name}={value}", request.places.get(f"flags.{name}"))
    if kind == "fit":
        return Member(switch, f"each release of {name} is for certain Pythons only")
    return Member(switch, _LAWS[name])


def _subject(row: Row) -> str:
    """Return what a row is about: ``openmpi ==3.1.3``; '' where its words say it."""
    if not isinstance(row, Advisory):
        return ""
    ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
    return row.component if ranges == ("*",) else f"{row.component} {' or '.join(ranges)}"


def _wanted_member(world: World, switch: str) -> Member:
    wanted = world.wanted[switch]
    asked = wanted.constraint
    what = wanted.component if asked == ANY_VERSION else f"{wanted.component} {asked}"
    what += wanted_as(world.request.recipe, wanted.component)
    by = "" if wanted.place else f", which {wanted.why} needs"
    return Member(switch, f"{what}{by}", wanted.place)


def _nothing_there(world: World, members: Sequence[Member]) -> Iterator[str]:
    """Say of each line that nothing fulfils what there is instead."""
    wants = _without_candidates(world)
    for member in members:
        if member.switch not in wants:
            continue
        want = wants[member.switch]
        constraint = world.wanted[member.switch].constraint
        if names_module(constraint):
            near = nearest(constraint, world.shelf.modules)
            yield f"there is no module {constraint}" + (f": did you mean {near}?" if near else "")
        there = sorted(world.pool.of(want.component), key=lambda each: (not each.module, each.rank))
        if there:
            listing = ", ".join(f"{c.version} ({c.origin})" for c in there[:5])
            more = f" and {len(there) - 5} more" if len(there) > 5 else ""
            yield f"of {want.component} there is {listing}{more}"
        elif len(members) > 1:
            yield f"nothing provides {want.component} there at all"
        for name, refused in sorted(world.request.refused):
            if name == want.component:
                yield f"the package index does not offer {name} {refused}"


def _without_candidates(world: World) -> dict[str, Want]:
    return {want.switch: want for want in world.problem.wants if not want.allowed}


def _changes(world: World, stack: Stack) -> Iterator[str]:
    used = dict(stack.used)
    for change in stack.changes:
        name = change.switch.partition(":")[2]
        if change.kind == "widen":
            candidate = world.candidate(used[change.switch])
            source = candidate.locator if candidate.module else candidate.origin
            yield f"{candidate.component} {candidate.version} ({source})"
        elif change.kind == "drop" or change.kind == "flag":
            yield f"without {name}"
        else:
            yield f"as it is, with the risk: --allow {name}=REASON"


def _rechecked(world: World, stacks: Sequence[Stack]) -> tuple[Stack, ...]:
    """Return those that still work when the recipe is really changed that way."""
    return tuple(each for each in stacks if solve(_applied(world.problem, each)) is not None)


def _applied(problem: StackProblem, stack: Stack) -> StackProblem:
    used = dict(stack.used)
    of_kind = _by_kind(stack.changes)
    wants = [
        replace(want, allowed=frozenset({used[want.switch]}), distance=())
        if want.switch in of_kind["widen"]
        else want
        for want in problem.wants
        if want.switch not in of_kind["drop"]
    ]
    gone = frozenset(each.partition(":")[2] for each in of_kind["flag"])
    waived = {each.partition(":")[2] for each in of_kind["waive"]}
    rules = [_without(rule, gone) for rule in problem.rules if rule.row not in waived]
    flags = tuple(flag for flag in problem.flags if flag not in gone)
    return replace(problem, wants=tuple(wants), rules=tuple(rules), flags=flags)


def _by_kind(changes: Sequence[Change]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {"widen": set(), "drop": set(), "flag": set(), "waive": set()}
    for change in changes:
        found[change.kind].add(change.switch)
    return found


def _without(rule: Rule, gone: frozenset[str]) -> Rule:
    """Return the rule where these flags are not set any more."""
    cases = tuple(
        FlagCase(case.kept, case.dropped - gone) for case in rule.cases if not case.kept & gone
    )
    return replace(rule, cases=cases)
