"""Rules over the facts of wheels: what they contain and require, instead of a row for each release.

A driver runs the CUDA of a wheel, the GPUs of the site are among wheels that it has code for, a
process has one series of CUDA, two wheels do not install the same library, and what a wheel's
metadata requires is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.components import Release
from ..knowledge.conditions import Value
from ..knowledge.names import package_names
from ..knowledge.ranges import sort_key
from ..knowledge.rows import Advisory, Coupling, Knowledge
from ..knowledge.terms import GpuVendor
from ..knowledge.wheels import WheelFacts, has_code_for, needed_driver, vendor_of
from ..target_tools.names import normalize
from .facts import Facts
from .pool import Pool, fits
from .problem import Candidate, Rule
from .rules import GroundRule, rule_row

WHEEL_ROWS: Mapping[str, str] = {
    "WHEEL-DRIVER": "the CUDA of a wheel needs a newer driver",
    "WHEEL-GPU": "a wheel has neither machine code nor PTX for a GPU of the site",
    "WHEEL-CUDA": "the wheels of a stack contain two series of CUDA",
    "WHEEL-VENDOR": "a package is for GPUs of another vendor than those of the site",
    "WHEEL-LIBRARY": "two distributions install the same library",
    "WHEEL-REQUIRES": "a release is outside of what the metadata of a wheel requires",
    "WHEEL-MPI": "an index or a channel has no MPI for the network of the site",
}
"""The ids of these rules, and what they refuse."""


_FETCHED = ("pip", *CHANNEL_ORIGINS)


class _WheelRule(NamedTuple):
    """A rule in the making: its id, the candidates of each slot, and the words."""

    id: str
    slots: tuple[frozenset[str], ...]
    summary: str
    fix: str
    sources: tuple[str, ...]
    unknown: tuple[str, ...] = ()
    can_waive: bool = False


def wheel_table(
    knowledge: Knowledge,
    pool: Pool,
    facts: Facts,
    allow: Mapping[str, str],
    site_mpis: Iterable[str] = (),
) -> tuple[GroundRule, ...]:
    """Return the rules that some candidates can violate. *site_mpis*: components of modules."""
    silent = facts.are_for_cpus()
    rules = [*_requirements(knowledge, pool), *_mpis(pool, tuple(site_mpis))]
    if not silent:
        rules += [*_vendors(knowledge, pool, facts), *_series(pool)]
    gpu_rules = [*_drivers(knowledge, pool, facts), *_gpus(pool, facts)]
    shipped: tuple[Advisory | Coupling, ...] = (*knowledge.advisories, *knowledge.couplings)
    rows = {row.id: row for row in shipped if row.replaced_by}
    replaced = {name: rows[name] for name in allow if name in rows}
    return tuple(
        _rule(part, reason, silent and rule in gpu_rules)
        for rule in (*rules, *gpu_rules)
        for part, reason in _waived(rule, pool, allow, replaced)
    )


def _waived(
    rule: _WheelRule,
    pool: Pool,
    allow: Mapping[str, str],
    replaced: Mapping[str, Advisory | Coupling],
) -> Iterator[tuple[_WheelRule, str | None]]:
    """Yield the rule with its waiver; apart, for releases of rows that it replaces, with theirs.

    Those keep the id that the user waived, so that a plan has the decisions that it had.
    """
    remaining = rule.slots[0]
    for name, row in replaced.items():
        covered = remaining & _releases_of(row, pool)
        if row.replaced_by == rule.id and covered:
            yield rule._replace(id=name, slots=(covered, *rule.slots[1:])), allow[name]
            remaining -= covered
    if remaining:
        yield rule._replace(slots=(remaining, *rule.slots[1:])), allow.get(rule.id)


def _releases_of(row: Advisory | Coupling, pool: Pool) -> frozenset[str]:
    """Return the candidates that a row is about."""
    if isinstance(row, Advisory):
        return pool.within(row.component, row.affected)
    component, selection = next(iter(row.given.items()))
    return pool.selected(component, selection)


def _rule(draft: _WheelRule, reason: str | None, silent: bool) -> GroundRule:
    words: dict[str, Any] = {"evidence": "source-statement", "unknown": "info"}
    row = rule_row(draft.id, draft.summary, draft.fix, draft.sources, **words)
    name = f"{draft.id}: {draft.summary}"
    hard = not draft.unknown and not silent
    rule = Rule(name, name, hard, slots=draft.slots, can_waive=draft.can_waive)
    return GroundRule(rule, row, draft.unknown, reason, silent=silent)


def _vendors(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[_WheelRule]:
    """Yield the wheels and packages for GPUs of another vendor than all those of the site."""
    gpus = facts.stated.get("gpu")
    vendors = {vendor_of(gpu) for gpu in gpus} if isinstance(gpus, frozenset) else set()
    if not vendors or None in vendors:
        return
    groups: dict[tuple[str, GpuVendor], list[Candidate]] = {}
    for candidate in pool.candidates:
        vendor = _vendor(candidate, knowledge, pool)
        if vendor is not None and vendor not in vendors:
            groups.setdefault((candidate.component, vendor), []).append(candidate)
    for (component, vendor), wheels in groups.items():
        built = pool.wheels.get(wheels[0].id, WheelFacts())
        words = ", ".join(sorted(gpus)) if isinstance(gpus, frozenset) else ""
        yield _WheelRule(
            "WHEEL-VENDOR",
            (frozenset(candidate.id for candidate in wheels),),
            f"the package of {component} is for GPUs of {_VENDOR_NAMES[vendor]}, and those of the "
            f"site are {words}",
            f"a build of {component} for these GPUs: a module, or an index of its own in "
            "pip-indexes",
            built.sources or (f"recipes/knowledge/components.yaml, {component}",),
            unknown=built.unknown,
        )


_VENDOR_NAMES: Mapping[GpuVendor, str] = {"nvidia": "NVIDIA", "amd": "AMD"}


def _vendor(candidate: Candidate, knowledge: Knowledge, pool: Pool) -> GpuVendor | None:
    if candidate.module is not None or candidate.origin not in _FETCHED:
        return None
    known = knowledge.components.get(candidate.component)
    built = pool.wheels.get(candidate.id)
    return (built.vendor if built else None) or (known.gpu_vendor if known else None)


def _drivers(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[_WheelRule]:
    """Yield the wheels whose CUDA the driver does not run, or may not run."""
    gpus, driver = facts.stated.get("gpu"), facts.stated.get("driver")
    open_facts = _open(gpu=gpus, driver=driver)
    for (component, needed, cuda), wheels in _by_cuda(knowledge, pool, gpus).items():
        if isinstance(driver, str) and sort_key(driver) >= sort_key(needed):
            continue
        built = pool.wheels[wheels[0].id]
        has = f", and the site has {driver}" if driver else ""
        yield _WheelRule(
            "WHEEL-DRIVER",
            (frozenset(candidate.id for candidate in wheels),),
            f"the wheel of {component} is built with CUDA {cuda}, which needs a driver of {needed} "
            f"or later{has}",
            f"driver {needed} or later, or a {component} with an older CUDA",
            (knowledge.cuda_drivers[_recorded(knowledge, cuda)].source, *built.sources),
            unknown=(*open_facts, *built.unknown),
            can_waive=True,
        )


def _built(pool: Pool) -> Iterator[tuple[Candidate, WheelFacts]]:
    """Yield the wheels whose contents are recorded."""
    return (
        (candidate, pool.wheels[candidate.id])
        for candidate in pool.candidates
        if candidate.id in pool.wheels
    )


def _by_cuda(
    knowledge: Knowledge, pool: Pool, gpus: Value | None
) -> dict[tuple[str, str, str], list[Candidate]]:
    """Return the wheels with CUDA by component, the driver that it needs, and its series."""
    groups: dict[tuple[str, str, str], list[Candidate]] = {}
    if not _has(gpus, "nvidia"):
        return groups
    for candidate, built in _built(pool):
        needed = needed_driver(knowledge, built.cuda) if built.cuda else None
        if built.cuda and needed:
            groups.setdefault((candidate.component, needed, built.cuda), []).append(candidate)
    return groups


def _recorded(knowledge: Knowledge, cuda: str) -> str:
    major = cuda.partition(".")[0]
    return cuda if cuda in knowledge.cuda_drivers else major


def _has(gpus: Value | None, vendor: GpuVendor) -> bool:
    """Whether a site has, or may have, GPUs of a vendor."""
    if not isinstance(gpus, frozenset):
        return True
    return any(vendor_of(gpu) in (vendor, None) for gpu in gpus)


def _open(**facts: Value | None) -> tuple[str, ...]:
    return tuple(name for name, value in facts.items() if value is None)


def _gpus(pool: Pool, facts: Facts) -> Iterator[_WheelRule]:
    """Yield the wheels without code for a GPU of the site."""
    gpus = facts.stated.get("gpu")
    groups: dict[tuple[str, str, str], list[Candidate]] = {}
    for candidate, built in _built(pool):
        if built.gpus:
            lacking = [
                gpu
                for gpu in sorted(gpus if isinstance(gpus, frozenset) else ())
                if vendor_of(gpu) == built.vendor and not has_code_for(built.gpus, gpu)
            ]
            if lacking or gpus is None:
                key = (candidate.component, ", ".join(lacking), ", ".join(built.gpus))
                groups.setdefault(key, []).append(candidate)
    for (component, missing, architectures), wheels in groups.items():
        built = pool.wheels[wheels[0].id]
        yield _WheelRule(
            "WHEEL-GPU",
            (frozenset(candidate.id for candidate in wheels),),
            f"the wheel of {component} has code for {architectures}"
            + (f", not {missing}" if missing else ""),
            f"another release of {component}, a build with another CUDA, or that of a module",
            built.sources,
            unknown=(*_open(gpu=gpus), *built.unknown),
            can_waive=True,
        )


def _series(pool: Pool) -> Iterator[_WheelRule]:
    """Yield the pairs of wheels that hold two series of CUDA; wheels that load it are not meant."""
    groups: dict[tuple[str, str], list[Candidate]] = {}
    for candidate, built in _built(pool):
        if built.cuda and not built.loads:
            groups.setdefault((candidate.component, built.cuda.partition(".")[0]), []).append(
                candidate
            )
    for (first, cuda), (second, second_cuda) in combinations(sorted(groups), 2):
        if first != second and cuda != second_cuda:
            wheels = (groups[first, cuda], groups[second, second_cuda])
            yield _WheelRule(
                "WHEEL-CUDA",
                tuple(frozenset(candidate.id for candidate in part) for part in wheels),
                f"the wheel of {first} is built with CUDA {cuda}, and that of {second} with CUDA "
                f"{second_cuda}",
                "wheels of one series of CUDA",
                tuple(pool.wheels[part[0].id].sources[0] for part in wheels),
                unknown=tuple(
                    {name for part in wheels for name in pool.wheels[part[0].id].unknown}
                ),
            )


def _mpis(pool: Pool, site_mpis: tuple[str, ...]) -> Iterator[_WheelRule]:
    """Yield the MPIs of an index at a site whose own MPI alone reaches its network."""
    fetched = [candidate for candidate in pool.of("mpi") if candidate.origin in _FETCHED]
    if site_mpis and fetched:
        site_mpi = " and ".join(site_mpis)
        names = sorted({candidate.component for candidate in fetched})
        yield _WheelRule(
            "WHEEL-MPI",
            (frozenset(candidate.id for candidate in fetched),),
            f"the site has {site_mpi}: no MPI of an index or a channel reaches its network",
            f"{site_mpi} instead of {' and '.join(names)}",
            (f"recipes/knowledge/components.yaml, {site_mpis[0]}",),
        )


def _requirements(knowledge: Knowledge, pool: Pool) -> Iterator[_WheelRule]:
    """Yield what wheels require of other components, if a candidate contradicts it."""
    requiring: dict[tuple[str, str, str], list[Candidate]] = {}
    for component in {
        candidate.component for candidate in pool.candidates if candidate.origin == "pip"
    }:
        recorded = _releases(knowledge, component)
        for candidate in pool.of(component) if recorded else ():
            release = recorded.get(candidate.version.partition("+")[0])
            if candidate.origin == "pip" and release is not None:
                for required in _required(candidate, release, pool):
                    requiring.setdefault((component, *required), []).append(candidate)
    names = package_names(knowledge.components) if requiring else {}
    for (_, distribution, constraint), wheels in sorted(requiring.items()):
        needed = names.get(distribution)
        if needed and pool.of(needed):
            for id_, contradicting in _contradicting(
                pool, needed, distribution, constraint, knowledge
            ):
                yield _finding(id_, wheels, contradicting, distribution, constraint)


def _releases(knowledge: Knowledge, component: str) -> dict[str, Release]:
    """Return the releases whose requirements are recorded, by their versions."""
    recorded = knowledge.releases.get(component, ())
    return {release.version: release for release in recorded if release.requires}


def _required(candidate: Candidate, release: Release, pool: Pool) -> Iterator[tuple[str, str]]:
    built = pool.wheels.get(candidate.id, WheelFacts())
    for distribution, constraint in release.requires.items():
        # The libraries of a build with another tag, or without CUDA, are others.
        if not distribution.startswith("nvidia-") or (built.cuda and not built.tag):
            yield distribution, constraint


def _contradicting(
    pool: Pool, needed: str, distribution: str, constraint: str, knowledge: Knowledge
) -> Iterator[tuple[str, list[Candidate]]]:
    """Yield the candidates of the same library in another distribution, and other releases."""
    providers: Iterable[Candidate] = pool.of(needed)
    if knowledge.components[needed].python_import is None:
        # Libraries of modules are groups by their folders, and not by pip.
        providers = [candidate for candidate in providers if candidate.origin == "pip"]
        doubles = [
            candidate for candidate in providers if normalize(candidate.locator) != distribution
        ]
        if doubles:
            yield "WHEEL-LIBRARY", doubles
        providers = [candidate for candidate in providers if candidate not in doubles]
    outside = [candidate for candidate in providers if not fits(candidate, constraint)]
    if outside:
        yield "WHEEL-REQUIRES", outside


def _finding(
    id_: str,
    wheels: list[Candidate],
    contradicting: list[Candidate],
    distribution: str,
    constraint: str,
) -> _WheelRule:
    component = wheels[0].component
    versions = sorted({candidate.version for candidate in wheels}, key=sort_key)
    several = len(versions) > 1
    about = f"{component} {' to '.join(versions[:: max(1, len(versions) - 1)])}"
    wheel = f"the wheels of {about}" if several else f"the wheel of {about}"
    slots = (
        frozenset(candidate.id for candidate in wheels),
        frozenset(candidate.id for candidate in contradicting),
    )
    sources = (f"recipes/knowledge/versions.yaml, releases of {component}",)
    if id_ == "WHEEL-LIBRARY":
        doubles = " and ".join(sorted({candidate.locator for candidate in contradicting}))
        summary = f"{wheel} bring{'' if several else 's'} {distribution}, and {doubles} would "
        summary += "install the same files"
    else:
        summary = f"{wheel} require{'' if several else 's'} {distribution} {constraint}"
    return _WheelRule(
        id_, slots, summary, f"{distribution} {constraint}, or another {component}", sources
    )
