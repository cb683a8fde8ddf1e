"""Why there is no stack, and which ones are closest: as few lines as say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..errors import KnownBadError, NoSolutionError, Place, Problem
from ..knowledge import matching
from ..knowledge.channels import channel_name, package_name
from ..knowledge.conda_order import conda_matches
from ..knowledge.ranges import ANY_VERSION, matches
from ..knowledge.releases import fit_text, glibc_suffices
from ..knowledge.rows import Advisory, Knowledge, Row
from ..machine.modules.names import key as name_of
from ..machine.modules.names import statement, unread_modules
from ..machine.modules.variants import loaded_as
from ..model.recipe import names_module
from ..text import filled, nearest
from .engine import LimitError, Limits, closest, conflicts, solve
from .problem import Assumption, Stack, StackProblem, Want
from .problem_builder import ProblemInputs, problem_inputs
from .providers import channel_packages
from .request import Request
from .rules import row_id
from .runtime import wanted_as

# So many closest stacks and conflicts fit on a screen; --verbose shows more.
CLOSEST = 3
ALL_CLOSEST = 10
CONFLICTS = 2
# All conflicts are looked for, whatever is shown: the exit code is that of all of them.
ALL_CONFLICTS = 20

_SECONDS = 20.0

_MOST_PYTHONS = 5
_LAWS = {
    "generations": "all components of a stack belong to one toolchain generation",
    "replaces": "a release replaces another one only within its ABI series and generation",
    "loading": "conflicting modules cannot be loaded together, nor modules without their parents",
}


@dataclass(frozen=True)
class Member:
    """One of those that cannot hold together. ``text``: in words, ``link``: where to read on."""

    of: Assumption
    text: str
    place: Place | None = None
    link: str | None = None
    fix: str | None = None

    def plain(self) -> dict[str, object]:
        place = str(self.place) if self.place else None
        known = {"switch": str(self.of), "text": self.text, "place": place, "link": self.link}
        return {**known, "fix": self.fix}


Conflict = tuple[Member, ...]


def no_solution(request: Request, verbose: bool = False) -> NoSolutionError:
    """Return the error that says why a request has no stack, and what to change.

    Its class, and with it the exit code, is that of all conflicts, whatever is shown of them.
    """
    inputs = problem_inputs(request, strict=False)
    found = _conflicts(inputs)
    shown = found if verbose else found[:CONFLICTS]
    stacks, late = closest(
        inputs.problem, ALL_CLOSEST if verbose else CLOSEST, Limits(seconds=_SECONDS)
    )
    stacks = _rechecked(inputs, stacks)
    message = "\n".join(_lines(inputs, shown, found[len(shown) :], stacks, late))
    members = [each for one in shown for each in one]
    known_bad = any(each.of.kind == "row" for one in found for each in one)
    error = (
        KnownBadError("plan.known-bad", message)
        if known_bad
        else NoSolutionError("plan.no-solution", message)
    )
    place = next((each.place for each in members if each.place), None)
    error.problems = (Problem(error.id, message, place, tuple(_hints(inputs, members))),)
    error.details = {
        "conflicts": [[each.plain() for each in one] for one in found],
        "closest": [
            {"changes": list(_changes(inputs, each)), "loads": list(each.loads)} for each in stacks
        ],
    }
    return error


def _conflicts(inputs: ProblemInputs) -> tuple[Conflict, ...]:
    """Return the conflicts, as many as are found in time, the shortest first.

    Raises NoSolutionError where not even one is.
    """
    found: list[Conflict] = []
    try:
        for each in islice(conflicts(inputs.problem, Limits(seconds=_SECONDS)), ALL_CONFLICTS):
            found.append(tuple(member(inputs, one) for one in each))
    except LimitError as limit:
        if not found:
            raise too_hard(limit) from limit
    return tuple(sorted(found, key=len))


def too_hard(limit: LimitError) -> NoSolutionError:
    """Return the error for a request that the solver gave up on."""
    return NoSolutionError(
        "plan.solver-limit",
        f"the solver reached its limit: {limit}",
        "narrow the ranges of the recipe's stack, or name modules in it, to reduce the choices",
    )


def _lines(
    inputs: ProblemInputs,
    shown: Sequence[Conflict],
    more: Sequence[Conflict],
    stacks: Sequence[Stack],
    late: bool,
) -> Iterator[str]:
    for n, one in enumerate(shown):
        yield from _in_words(inputs, one, first=n == 0)
    if more:
        noun, it = ("conflict", "it") if len(more) == 1 else ("conflicts", "them")
        names = "; ".join(_name(each) for each in more)
        yield from filled("", f"and {len(more)} more {noun} (--verbose shows {it}): {names}", 2)
    if stacks:
        yield "closest stacks that work:"
        for n, stack in enumerate(stacks, start=1):
            text = "; ".join(_changes(inputs, stack))
            yield from filled(f"  {n}. ", text, 5)
    elif late:
        yield f"no closest stack was found within {_SECONDS:g} s"


def _in_words(inputs: ProblemInputs, members: Conflict, first: bool) -> Iterator[str]:
    where = f"at site {inputs.request.site.name} for {inputs.request.arch}"
    provides = members[0].of in _without_candidates(inputs)
    verb = "nothing provides" if provides else "no stack has"
    alone = len(members) == 1
    if first and alone:
        yield f"{verb} {members[0].text} {where}"
    else:
        if first:
            yield f"no stack {where} satisfies all of these:"
        else:
            also = f"{verb} this" if alone else "no stack satisfies all of these"
            yield f"independently, {also}:"
        yield from _listed(members)
    yield from (f"  {line}" for line in _nothing_there(inputs, members))


def _name(members: Conflict) -> str:
    """Return a conflict in a few words: its rows, or the first that a user wrote."""
    rows = [row_id(each.of.name) for each in members if each.of.kind == "row"]
    return ", ".join(rows) or members[0].text


def _listed(members: Sequence[Member]) -> Iterator[str]:
    for each in members:
        yield from filled("  - ", each.text)
        for part in (each.place, each.link):
            if part:
                yield f"      {part}"
        if each.fix:
            yield from filled("      ", f"fix: {each.fix}", 8)


def _hints(inputs: ProblemInputs, members: Sequence[Member]) -> Iterator[str]:
    python = Assumption("line", "python")
    if python in _without_candidates(inputs) and any(each.of == python for each in members):
        if inputs.request.backend.channels:
            yield from _recorded_pythons(inputs)
        else:
            yield "envbuild doctor lists the interpreters and what each of them lacks"
    site = inputs.request.site
    if site.module_trees and site.snapshot is None and not site.modules:
        yield f"no module of site {site.name} is recorded; run envbuild sites snapshot"
    # What the table of flags says has no row of its own to show.
    known = {each.id for each in matching.rows(inputs.request.knowledge)}
    rows = [each.of.name for each in members if each.of.kind == "row" and each.of.name in known]
    if rows:
        yield f"for details: envbuild advisories show {rows[0]}"


def _recorded_pythons(inputs: ProblemInputs) -> Iterator[str]:
    """Say for which architectures each channel of the recipe is known to hold a Python."""
    for name in inputs.request.recipe.channels:
        held = inputs.request.knowledge.channels[name].packages.get("python", ())
        found = sorted({arch for each in held for arch in each.arch})
        yield f"channel {name} has a python for {', '.join(found) or 'no architecture'}"


def member(inputs: ProblemInputs, of: Assumption) -> Member:
    """Return one of those that cannot hold together, in words."""
    if of.is_want:
        return _want_member(inputs, of)
    name = of.name
    if of.kind == "row":
        row = next(each.row for each in inputs.grounded if each.rule.row == name)
        about = f" ({_subject(row)})" if _subject(row) else ""
        return Member(of, f"{row.id}{about}: {row.summary}", link=row.sources[0], fix=row.fix)
    if of.kind == "flag":
        value = inputs.request.recipe.runtime.flags[name]
        return Member(of, f"{name}={value}", inputs.request.places.get(f"flags.{name}"))
    if of.kind == "fit":
        return Member(
            of, f"each release of {name} supports only certain Pythons{_fits(inputs, name)}"
        )
    if of.kind == "provider":
        return Member(of, one_provider(name, inputs.request.knowledge))
    return Member(of, _LAWS[name])


def one_provider(role: str, knowledge: Knowledge) -> str:
    """Return that an environment has one provider of a component or virtual, in words."""
    which = ", in one version"
    if role not in knowledge.components:
        which = f": {' or '.join(knowledge.fulfilling(role))}"
    return f"an environment has one {role}{which}"


def _fits(inputs: ProblemInputs, component: str) -> str:
    """Return for which Pythons the releases are that the lines admit."""
    recorded = inputs.request.knowledge.releases.get(component, ())
    admitted = _admitted(inputs, component)
    text = fit_text(component, [each for each in recorded if each.version in admitted])
    pythons = ", ".join(_admitted(inputs, "python")[:_MOST_PYTHONS])
    return f": {text}; available: Python {pythons}" if text and pythons else ""


def _admitted(inputs: ProblemInputs, component: str) -> list[str]:
    """Return the releases of a component that all its lines admit, the newest first."""
    wants = [want for want in inputs.problem.wants if want.component == component]
    candidates = sorted(inputs.pool.of(component), key=lambda each: each.rank)
    admitted = (each for each in candidates if all(each.id in want.allowed for want in wants))
    return list(dict.fromkeys(each.version for each in admitted))


def _two_releases(inputs: ProblemInputs, members: Sequence[Member]) -> Iterator[str]:
    """Yield, for one name of modules, what two lines load in different releases."""
    loading: dict[str, dict[str, str]] = {}
    refs = {each.of for each in members}
    for want in inputs.problem.wants if any(ref.is_law for ref in refs) else ():
        modules = {inputs.candidate(name).module or "" for name in want.allowed}
        if want.ref in refs and len(modules) == 1 and all(modules):
            for loaded in sorted(inputs.index.with_loads(tuple(modules))):
                by_module = loading.setdefault(name_of(loaded_as(loaded)), {})
                by_module.setdefault(loaded_as(loaded), loaded_as(*modules))
    several = [each for each in loading.values() if len(set(each.values())) > 1]
    for each in several[:1]:
        yield ", ".join(one if one == by else f"{by} loads {one}" for one, by in each.items())


def _subject(row: Row) -> str:
    """Return what a row is about: ``openmpi ==3.1.3``; '' where its words say it."""
    if not isinstance(row, Advisory):
        return ""
    ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
    return row.component if ranges == (ANY_VERSION,) else f"{row.component} {' or '.join(ranges)}"


def _want_member(inputs: ProblemInputs, of: Assumption) -> Member:
    required = inputs.requirements[of]
    what = required.component
    what += "" if required.constraint == ANY_VERSION else f" {required.constraint}"
    what += wanted_as(inputs.request, required.component)
    by = "" if required.place else f", which {required.why} needs"
    return Member(of, f"{what}{by}", required.place)


def _nothing_there(inputs: ProblemInputs, members: Sequence[Member]) -> Iterator[str]:
    """Say of each line which modules are unread; if nothing fulfils it, what there is instead."""
    yield from _two_releases(inputs, members)
    wants = _without_candidates(inputs)
    components = inputs.request.knowledge.components
    all_unread = unread_modules(inputs.index.modules.values(), components)
    for member in members:
        if not member.of.is_want:
            continue
        required = inputs.requirements[member.of]
        constraint = required.constraint
        unread = [name for name, component in all_unread if component == required.component]
        if unread and not names_module(constraint):
            yield (
                f"the name of the site's module {unread[0]}{_more(unread)} contains no release: "
                f"state it in the site file, modules: {statement(unread[0], required.component)}"
            )
        if member.of not in wants:
            continue
        want = wants[member.of]
        if names_module(constraint):
            yield _module_text(inputs, constraint, want.component)
        there = sorted(
            inputs.pool.of(want.component), key=lambda each: (not each.module, each.rank)
        )
        if there:
            listing = ", ".join(f"{c.version} ({c.origin})" for c in there[:5])
            more = f" and {len(there) - 5} more" if len(there) > 5 else ""
            yield f"available {want.component}: {listing}{more}"
        elif len(members) > 1:
            yield f"nothing provides {want.component}"
        yield from _unsuitable(inputs.request, want.component, constraint)
        yield from _hidden(inputs.request, want.component, constraint)
        for name, refused in sorted(inputs.request.refused):
            if name == want.component:
                who = "channels do" if inputs.request.backend.channels else "package index does"
                yield f"the {who} not have {name} {refused}"


def _unsuitable(request: Request, component: str, constraint: str) -> Iterator[str]:
    """Say for which architectures, or for which glibc, the wheels are that a line admits."""
    releases = [
        release
        for release in request.knowledge.releases.get(component, ())
        if not names_module(constraint) and matches(release.version, constraint)
    ]
    if "pip" not in request.site.origins or not releases:
        return
    here = [release for release in releases if not release.arch or request.arch in release.arch]
    if not here:
        archs = sorted({arch for release in releases for arch in release.arch})
        yield f"its wheels are for {' and '.join(archs)}, not {request.arch}"
    for release in reversed(here):
        if not glibc_suffices(release, request.glibc):
            needs = f"glibc {release.glibc}, and the site has {request.glibc}"
            yield f"the wheels of {component} {release.version} need {needs}"
            return


def _module_text(inputs: ProblemInputs, module: str, component: str) -> str:
    """Return what is wrong with a module that a line names."""
    names = {loaded_as(name): name for name in inputs.index.modules}
    if module not in names:
        near = nearest(module, names)
        return f"there is no module {module}" + (f": did you mean {near}?" if near else "")
    provided = inputs.index.provides(names[module])
    words = ", ".join(f"{name} {version}" for name, version in sorted(provided.items()))
    if words:
        return f"module {module} provides {words}"
    return (
        f"the release of {component} in module {module} is unknown: state it in the site file, "
        f"modules: {statement(module, component)}"
    )


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _hidden(request: Request, component: str, constraint: str) -> Iterator[str]:
    """Say which packages would do, were it not for an earlier channel with others of the name."""
    if names_module(constraint):
        return
    versions: dict[tuple[str, str], list[str]] = {}
    for each in channel_packages(request, component):
        if each.hidden_by and conda_matches(each.package.version, constraint):
            versions.setdefault((each.locator, each.hidden_by), []).append(each.package.version)
    for (locator, by), those in versions.items():
        channel, name = channel_name(locator), package_name(locator)
        yield (
            f"channel {by} hides {name} {', '.join(those[:3])} of channel {channel}: it comes "
            f"first and also has {name}"
        )


def _without_candidates(inputs: ProblemInputs) -> dict[Assumption, Want]:
    return {want.ref: want for want in inputs.problem.wants if not want.allowed}


def _changes(inputs: ProblemInputs, stack: Stack) -> Iterator[str]:
    used = dict(stack.used)
    for change in stack.changes:
        if change.kind in ("widen", "add"):
            candidate = inputs.candidate(used[change.of])
            source = candidate.locator if candidate.module else candidate.origin
            also = "with " if change.kind == "add" else ""
            yield f"{also}{candidate.component} {candidate.version} ({source})"
        elif change.kind == "waive":
            yield f"the same stack with a waiver: --allow {row_id(change.of.name)}=REASON"
        else:
            yield f"without {change.of.name}"


def _rechecked(inputs: ProblemInputs, stacks: Sequence[Stack]) -> tuple[Stack, ...]:
    """Return those that still work when the recipe is really changed that way."""
    return tuple(each for each in stacks if solve(_applied(inputs.problem, each)) is not None)


def _applied(problem: StackProblem, stack: Stack) -> StackProblem:
    """Return the problem as it is when the recipe is changed like that."""
    used = dict(stack.used)
    kinds = {change.of: change.kind for change in stack.changes}
    wants = [
        replace(want, allowed=frozenset({used[want.ref]}), distance=())
        if kinds.get(want.ref) == "widen"
        else want
        for want in (*problem.wants, *problem.addable)
        if kinds.get(want.ref) != "drop" and (want.ref.kind != "addition" or want.ref in kinds)
    ]
    gone = frozenset(of.name for of, kind in kinds.items() if kind == "flag")
    return replace(
        problem,
        wants=tuple(wants),
        addable=(),
        rules=tuple(
            replace(rule, cases=tuple(case for case in rule.cases if not case.kept & gone))
            for rule in problem.rules
            if Assumption("row", rule.row) not in kinds
        ),
        flags=tuple(flag for flag in problem.flags if flag not in gone),
    )
