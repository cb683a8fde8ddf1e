"""Rules over the facts of wheels: what they contain and require, instead of a row for each release.

A driver runs the CUDA of a wheel, the GPUs of the site are among those that it has code for, a
process has one series of CUDA, two wheels do not install the same library, and what a wheel's
metadata requires is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.conditions import Value
from ..knowledge.names import package_names
from ..knowledge.ranges import sort_key
from ..knowledge.rows import Advisory, Coupling, Knowledge, Release
from ..knowledge.terms import GpuVendor
from ..knowledge.wheels import WheelFacts, has_code_for, needed_driver, vendor_of
from ..target_tools.names import normalize
from .facts import Facts
from .pool import Pool, fits
from .problem import Candidate, Rule
from .rules import GroundRule

WHEEL_ROWS = (
    "WHEEL-DRIVER",
    "WHEEL-GPU",
    "WHEEL-CUDA",
    "WHEEL-VENDOR",
    "WHEEL-LIBRARY",
    "WHEEL-REQUIRES",
    "WHEEL-MPI",
)
"""The ids of these rules."""


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
    findings = [*_requirements(knowledge, pool), *_mpis(pool, tuple(site_mpis))]
    if not silent:
        findings += [*_vendors(knowledge, pool, facts), *_series(pool)]
    of_gpus = [*_drivers(knowledge, pool, facts), *_gpus(pool, facts)]
    every: tuple[Advisory | Coupling, ...] = (*knowledge.advisories, *knowledge.couplings)
    rows = {row.id: row for row in every if row.replaced_by}
    replaced = {name: rows[name] for name in allow if name in rows}
    return tuple(
        _rule(one, reason, silent and each in of_gpus)
        for each in (*findings, *of_gpus)
        for one, reason in _waived(each, pool, allow, replaced)
    )


def _waived(
    each: _WheelRule,
    pool: Pool,
    allow: Mapping[str, str],
    replaced: Mapping[str, Advisory | Coupling],
) -> Iterator[tuple[_WheelRule, str | None]]:
    """Yield the rule with its waiver; apart, for releases of rows that it replaces, with theirs.

    Those keep the id that the user waived, so that a plan has the decisions that it had.
    """
    first = each.slots[0]
    for name, row in replaced.items():
        covered = first & _releases_of(row, pool)
        if row.replaced_by == each.id and covered:
            yield each._replace(id=name, slots=(covered, *each.slots[1:])), allow[name]
            first -= covered
    if first:
        yield each._replace(slots=(first, *each.slots[1:])), allow.get(each.id)


def _releases_of(row: Advisory | Coupling, pool: Pool) -> frozenset[str]:
    """Return the candidates that a row is about."""
    if isinstance(row, Advisory):
        return pool.within(row.component, row.affected)
    component, selection = next(iter(row.given.items()))
    return pool.selected(component, selection)


def _rule(each: _WheelRule, reason: str | None, silent: bool) -> GroundRule:
    row = Coupling.model_construct(
        id=each.id,
        severity="error",
        summary=each.summary,
        fix=each.fix,
        evidence="source-statement",
        sources=each.sources,
        given={},
        needs={},
        unknown="info",
    )
    name = f"{each.id}: {each.summary}"
    hard = not each.unknown and not silent
    rule = Rule(name, name, hard, slots=each.slots, can_waive=each.can_waive)
    return GroundRule(rule, row, each.unknown, reason, silent=silent)


def _vendors(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[_WheelRule]:
    """Yield the wheels and packages for GPUs of another vendor than all those of the site."""
    gpus = facts.stated.get("gpu")
    vendors = {vendor_of(gpu) for gpu in gpus} if isinstance(gpus, frozenset) else set()
    if not vendors or None in vendors:
        return
    found: dict[tuple[str, GpuVendor], list[Candidate]] = {}
    for each in pool.candidates:
        vendor = _vendor(each, knowledge, pool)
        if vendor is not None and vendor not in vendors:
            found.setdefault((each.component, vendor), []).append(each)
    for (component, vendor), those in found.items():
        built = pool.wheels.get(those[0].id, WheelFacts())
        words = ", ".join(sorted(gpus)) if isinstance(gpus, frozenset) else ""
        yield _WheelRule(
            "WHEEL-VENDOR",
            (frozenset(each.id for each in those),),
            f"the package of {component} is for GPUs of {_VENDOR_NAMES[vendor]}, and those of the "
            f"site are {words}",
            f"a build of {component} for these GPUs: a module, or an index of its own in "
            "pip-indexes",
            built.sources or (f"recipes/knowledge/components.yaml, {component}",),
            unknown=built.unknown,
        )


_VENDOR_NAMES: Mapping[GpuVendor, str] = {"nvidia": "NVIDIA", "amd": "AMD"}


def _vendor(each: Candidate, knowledge: Knowledge, pool: Pool) -> GpuVendor | None:
    if each.module is not None or each.origin not in _FETCHED:
        return None
    known = knowledge.components.get(each.component)
    built = pool.wheels.get(each.id)
    return (built.vendor if built else None) or (known.gpu_vendor if known else None)


def _drivers(knowledge: Knowledge, pool: Pool, facts: Facts) -> Iterator[_WheelRule]:
    """Yield the wheels whose CUDA the driver does not run, or may not run."""
    gpus, driver = facts.stated.get("gpu"), facts.stated.get("driver")
    open_facts = _open(gpu=gpus, driver=driver)
    for (component, needed, cuda), those in _by_cuda(knowledge, pool, gpus).items():
        if isinstance(driver, str) and sort_key(driver) >= sort_key(needed):
            continue
        built = pool.wheels[those[0].id]
        has = f", and the site has {driver}" if driver else ""
        yield _WheelRule(
            "WHEEL-DRIVER",
            (frozenset(each.id for each in those),),
            f"the wheel of {component} is built with CUDA {cuda}, which needs a driver of {needed} "
            f"or later{has}",
            f"driver {needed} or later, or a {component} with an older CUDA",
            (knowledge.cuda_drivers[_recorded(knowledge, cuda)].source, *built.sources),
            unknown=(*open_facts, *built.unknown),
            can_waive=True,
        )


def _built(pool: Pool) -> Iterator[tuple[Candidate, WheelFacts]]:
    """Yield the wheels whose contents are recorded."""
    return ((each, pool.wheels[each.id]) for each in pool.candidates if each.id in pool.wheels)


def _by_cuda(
    knowledge: Knowledge, pool: Pool, gpus: Value | None
) -> dict[tuple[str, str, str], list[Candidate]]:
    """Return the wheels with CUDA by component, the driver that it needs, and its series."""
    found: dict[tuple[str, str, str], list[Candidate]] = {}
    if not _has(gpus, "nvidia"):
        return found
    for each, built in _built(pool):
        needed = needed_driver(knowledge, built.cuda) if built.cuda else None
        if built.cuda and needed:
            found.setdefault((each.component, needed, built.cuda), []).append(each)
    return found


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
    found: dict[tuple[str, str, str], list[Candidate]] = {}
    for each, built in _built(pool):
        if built.gpus:
            lacking = [
                gpu
                for gpu in sorted(gpus if isinstance(gpus, frozenset) else ())
                if vendor_of(gpu) == built.vendor and not has_code_for(built.gpus, gpu)
            ]
            if lacking or gpus is None:
                key = (each.component, ", ".join(lacking), ", ".join(built.gpus))
                found.setdefault(key, []).append(each)
    for (component, missing, there), those in found.items():
        built = pool.wheels[those[0].id]
        yield _WheelRule(
            "WHEEL-GPU",
            (frozenset(each.id for each in those),),
            f"the wheel of {component} has code for {there}"
            + (f", not {missing}" if missing else ""),
            f"another release of {component}, a build with another CUDA, or that of a module",
            built.sources,
            unknown=(*_open(gpu=gpus), *built.unknown),
            can_waive=True,
        )


def _series(pool: Pool) -> Iterator[_WheelRule]:
    """Yield the pairs of wheels that hold two series of CUDA; those that load it are not meant."""
    found: dict[tuple[str, str], list[Candidate]] = {}
    for each, built in _built(pool):
        if built.cuda and not built.loads:
            found.setdefault((each.component, built.cuda.partition(".")[0]), []).append(each)
    for (one, cuda), (other, other_cuda) in combinations(sorted(found), 2):
        if one != other and cuda != other_cuda:
            those = (found[one, cuda], found[other, other_cuda])
            yield _WheelRule(
                "WHEEL-CUDA",
                tuple(frozenset(each.id for each in part) for part in those),
                f"the wheel of {one} is built with CUDA {cuda}, and that of {other} with CUDA "
                f"{other_cuda}",
                "wheels of one series of CUDA",
                tuple(pool.wheels[part[0].id].sources[0] for part in those),
                unknown=tuple({u for part in those for u in pool.wheels[part[0].id].unknown}),
            )


def _mpis(pool: Pool, site_mpis: tuple[str, ...]) -> Iterator[_WheelRule]:
    """Yield the MPIs of an index at a site whose own MPI alone reaches its network."""
    fetched = [each for each in pool.of("mpi") if each.origin in _FETCHED]
    if site_mpis and fetched:
        own = " and ".join(site_mpis)
        yield _WheelRule(
            "WHEEL-MPI",
            (frozenset(each.id for each in fetched),),
            f"the site has {own}: no MPI of an index or a channel reaches its network",
            f"{own} instead of {' and '.join(sorted({each.component for each in fetched}))}",
            (f"recipes/knowledge/components.yaml, {site_mpis[0]}",),
        )


def _requirements(knowledge: Knowledge, pool: Pool) -> Iterator[_WheelRule]:
    """Yield what wheels require of other components, if a candidate contradicts it."""
    wanting: dict[tuple[str, str, str], list[Candidate]] = {}
    for component in {each.component for each in pool.candidates if each.origin == "pip"}:
        recorded = _releases(knowledge, component)
        for each in pool.of(component) if recorded else ():
            release = recorded.get(each.version.partition("+")[0])
            if each.origin == "pip" and release is not None:
                for required in _required(each, release, pool):
                    wanting.setdefault((component, *required), []).append(each)
    names = package_names(knowledge.components) if wanting else {}
    for (_, distribution, constraint), those in sorted(wanting.items()):
        needed = names.get(distribution)
        if needed and pool.of(needed):
            for id_, others in _contradicting(pool, needed, distribution, constraint, knowledge):
                yield _finding(id_, those, others, distribution, constraint)


def _releases(knowledge: Knowledge, component: str) -> dict[str, Release]:
    """Return the releases whose requirements are recorded, by their versions."""
    recorded = knowledge.releases.get(component, ())
    return {each.version: each for each in recorded if each.requires}


def _required(each: Candidate, release: Release, pool: Pool) -> Iterator[tuple[str, str]]:
    built = pool.wheels.get(each.id, WheelFacts())
    for distribution, constraint in release.requires.items():
        # The libraries of a build with another tag, or without CUDA, are others.
        if not distribution.startswith("nvidia-") or (built.cuda and not built.tag):
            yield distribution, constraint


def _contradicting(
    pool: Pool, needed: str, distribution: str, constraint: str, knowledge: Knowledge
) -> Iterator[tuple[str, list[Candidate]]]:
    """Yield the candidates of the same library in another distribution, and other releases."""
    there: Iterable[Candidate] = pool.of(needed)
    if knowledge.components[needed].python_import is None:
        # Libraries of modules are found by their folders, and not by pip.
        there = [each for each in there if each.origin == "pip"]
        doubles = [each for each in there if normalize(each.locator) != distribution]
        if doubles:
            yield "WHEEL-LIBRARY", doubles
        there = [each for each in there if each not in doubles]
    outside = [each for each in there if not fits(each, constraint)]
    if outside:
        yield "WHEEL-REQUIRES", outside


def _finding(
    id_: str, those: list[Candidate], others: list[Candidate], distribution: str, constraint: str
) -> _WheelRule:
    component = those[0].component
    versions = sorted({each.version for each in those}, key=sort_key)
    several = len(versions) > 1
    about = f"{component} {' to '.join(versions[:: max(1, len(versions) - 1)])}"
    wheel = f"the wheels of {about}" if several else f"the wheel of {about}"
    slots = (frozenset(each.id for each in those), frozenset(each.id for each in others))
    sources = (f"release list of {those[0].locator} in the Python package index, read 2026-11-28",)
    if id_ == "WHEEL-LIBRARY":
        doubles = " and ".join(sorted({each.locator for each in others}))
        return _WheelRule(
            id_,
            slots,
            f"{wheel} bring{'' if several else 's'} {distribution}, and {doubles} would install "
            "the same files",
            f"{distribution} {constraint}, or another {component}",
            sources,
        )
    return _WheelRule(
        id_,
        slots,
        f"{wheel} require{'' if several else 's'} {distribution} {constraint}",
        f"{distribution} {constraint}, or another {component}",
        sources,
    )
