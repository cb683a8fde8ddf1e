"""What knowledge says of versions that are there together: the resolver's own rules, asked of one
stack.

``advisories check`` asks about a few versions, where what is not given is not known; of an
environment that exists everything is given. Rows are grounded by ``rules``, as for a plan, and
remedies lift what they lift there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from ..knowledge.matching import Verdict, kind
from ..knowledge.ranges import matches
from ..knowledge.rows import Knowledge, Remedy, Row
from ..knowledge.terms import Origin, Severity
from ..knowledge.wheels import wheel_facts
from ..model.outcome import RowMatch
from .facts import Facts, has_gpu_component
from .findings import in_case, remedy_text
from .flag_table import flag_table
from .laws import stated_laws
from .pool import Pool, roles
from .problem import Candidate, Rule
from .rules import GroundRule, ground
from .wheel_table import wheel_table

_ORIGINS: tuple[Origin, ...] = get_args(Origin)


@dataclass(frozen=True)
class StackFacts:
    """What is there: one version of each component, where it comes from (where that is known).

    ``complete``: what is not given is not there. ``built``: it exists, so that what its builds
    alone need no longer counts for them. ``by_envbuild``: envbuild builds it, with its remedies.
    ``distributions``: the names that packages have.
    """

    versions: Mapping[str, str]
    facts: Facts
    origins: Mapping[str, Origin] = field(default_factory=dict)
    distributions: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    built: bool = False
    by_envbuild: bool = True


@dataclass(frozen=True)
class Match:
    """A row that says something. ``about``: component@version; ``open``: what it depends on.

    ``remedy``: what lifts it. ``confirmed``: see ``GroundRule``.
    """

    row: Row
    verdict: Verdict
    about: tuple[str, ...]
    open: tuple[str, ...] = ()
    remedy: Remedy | None = None
    confirmed: str | None = None

    @property
    def severity(self) -> Severity:
        """What it weighs: where facts are not known a warning at most, unless it says otherwise."""
        if self.verdict == "unknown" and self.row.severity == "error":
            return self.row.unknown
        return self.row.severity

    @property
    def bad(self) -> bool:
        return self.verdict in ("holds", "unknown") and self.severity == "error"


_VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


def match(knowledge: Knowledge, given: StackFacts) -> tuple[Match, ...]:
    """Return the rows that say something, those that hold first, then by weight and id."""
    pool = _pool(knowledge, given)
    if has_gpu_component(given.versions, knowledge.components):
        facts = given.facts._replace(stated={"uses_gpu": True, **given.facts.stated})
        given = replace(given, facts=facts)
    grounded = (
        *ground(knowledge, pool, given.facts, {}, given.complete),
        *flag_table(knowledge, pool, given.facts.flags or {}, {}),
        *wheel_table(knowledge, pool, given.facts, {}, _sole_mpis(knowledge, given)),
        *(() if given.built else stated_laws(knowledge, pool, given.facts)),
    )
    grounded = tuple(each for each in grounded if not each.silent)
    if given.built:
        grounded = tuple(each for each in grounded if not _of_a_build(each.rule, pool, knowledge))
    found: dict[tuple[str, str], Match] = {}
    for each in (one for rule in grounded for one in _match(rule, pool, given)):
        name = (each.row.id, each.row.summary)
        known = found.setdefault(name, each)
        if _VERDICTS.index(each.verdict) < _VERDICTS.index(known.verdict):
            found[name] = each
    return tuple(sorted(found.values(), key=_place))


def _place(one: Match) -> tuple[int, int, str]:
    return _VERDICTS.index(one.verdict), _SEVERITIES.index(one.severity), one.row.id


def _pool(knowledge: Knowledge, given: StackFacts) -> Pool:
    """Return the versions as candidates: one for each origin where nobody said which it is."""
    candidates = tuple(
        Candidate(
            id=f"{component}@{release} <- {origin}",
            component=component,
            version=release,
            origin=origin,
            locator=_locator(component, origin, knowledge, given),
            rank=0,
            roles=roles(knowledge, component),
        )
        for component, version in given.versions.items()
        for origin in ((given.origins[component],) if component in given.origins else _ORIGINS)
        for release in (version, *_build_for_toolkit(component, version, origin, knowledge, given))
    )
    arch = given.facts.stated.get("arch")
    wheels = {
        each.id: wheel_facts(
            knowledge,
            each.component,
            each.version,
            each.locator,
            arch=arch if isinstance(arch, str) else None,
        )
        for each in candidates
        if each.origin == "pip" and each.component in knowledge.builds
    }
    facts = {name: built.values() for name, built in wheels.items() if built.values()}
    return Pool(candidates, facts, wheels=wheels)


def _build_for_toolkit(
    component: str, version: str, origin: Origin, knowledge: Knowledge, given: StackFacts
) -> Iterator[str]:
    """Yield the build of a release for the CUDA of the stack, if nobody said which build it is."""
    series = given.versions.get("cuda", "").split(".")[:2]
    tag = f"cu{''.join(series)}"
    if origin == "pip" and "+" not in version and not given.built:
        for build in knowledge.builds.get(component, ()):
            if build.tag == tag and matches(version, build.releases):
                yield f"{version}+{tag}"
                return


def _locator(component: str, origin: Origin, knowledge: Knowledge, given: StackFacts) -> str:
    """Return the name of a package; that of the component where nobody said which it is."""
    known = knowledge.components.get(component)
    name = given.distributions.get(component) or (known.pip if known else None)
    return name if origin == "pip" and name else component


def _sole_mpis(knowledge: Knowledge, given: StackFacts) -> list[str]:
    known = knowledge.components
    return [name for name in given.versions if name in known and known[name].sole_mpi]


def _presence(pool: Pool, candidates: frozenset[str]) -> bool | None:
    """Whether one of some candidates is there; None: that depends on where they come from."""
    components = {pool.by_id[name].component for name in candidates}
    whole = [all(each.id in candidates for each in pool.of(name)) for name in components]
    return bool(components) if any(whole) or not components else None


def _of_a_build(rule: Rule, pool: Pool, knowledge: Knowledge) -> bool:
    """Whether a rule says what another component is to be built with: CMake, for Horovod."""
    about = {pool.by_id[name].component for slot in rule.slots for name in slot}
    about.update(rule.lack_of)
    known = knowledge.components
    tools = {name for name in about if name in known and known[name].build_only}
    return bool(tools) and tools < about


def _match(grounded: GroundRule, pool: Pool, given: StackFacts) -> Iterator[Match]:
    rule = grounded.rule
    slots = [_presence(pool, each) for each in rule.slots]
    lacks = [_presence(pool, each) for each in rule.lacks]
    if False in slots or True in lacks or not in_case(rule, frozenset(given.facts.flags or ())):
        return
    about = {
        f"{each.component}@{each.version}"
        for each in pool.candidates
        if any(each.id in slot for slot in rule.slots)
        or any(each.component == role or role in each.roles for role in rule.lack_of)
    }
    hanging = {
        _open_fact(pool.by_id[name].component, given)
        for those, there in zip((*rule.slots, *rule.lacks), (*slots, *lacks), strict=True)
        if there is None
        for name in those
    }
    hanging.update(grounded.unknown)
    words = tuple(sorted(about))
    if grounded.beside:
        yield Match(grounded.row, "beside", words, grounded.beside)
        return
    remedy = _remedy(grounded, pool, given)
    if remedy is not None:
        yield Match(grounded.row, "lifted", words, remedy=remedy)
    else:
        verdict: Verdict = "unknown" if hanging else "holds"
        needed = tuple(sorted(hanging))
        yield Match(grounded.row, verdict, words, needed, confirmed=grounded.confirmed)


def _open_fact(component: str, given: StackFacts) -> str:
    """Return what to state of a component: its origin, or the CUDA of its build."""
    return f"{component}.{'cuda' if component in given.origins else 'origin'}"


def _remedy(grounded: GroundRule, pool: Pool, given: StackFacts) -> Remedy | None:
    """Return the first remedy that lifts a row; a plan takes one as well."""
    by_id = {each.id: each for each in grounded.row.remedies}

    def there(those: frozenset[str] | None) -> bool:
        return those is None or _presence(pool, those) is True

    for option in grounded.rule.remedies:
        remedy = by_id[option.id]
        if not given.by_envbuild and remedy.kind != "component":
            continue
        addable = given.by_envbuild and not given.complete and not pool.of(remedy.name)
        if there(option.helps) and (there(option.needs) or addable):
            return remedy
    return None


def row_matches(knowledge: Knowledge, stack: StackFacts) -> tuple[RowMatch, ...]:
    """Return the rows that say something of a stack, those that hold first."""
    return tuple(row_match(each) for each in match(knowledge, stack))


def row_match(match: Match) -> RowMatch:
    """Return what a row says of a stack, as the verbs print it."""
    row = match.row
    return RowMatch(
        id=row.id,
        kind=kind(row),
        verdict=match.verdict,
        severity=match.severity,
        summary=row.summary,
        about=match.about,
        open=match.open,
        remedy=remedy_text(match.remedy) if match.remedy else None,
        fix=row.fix,
        link=row.sources[0],
        confirmed_to=match.confirmed,
    )
