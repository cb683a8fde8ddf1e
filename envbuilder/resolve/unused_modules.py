"""What a stack takes from an index or a channel although the site has modules of it; and modules
whose release cannot be compared with a range; and what is unknown about the site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..knowledge.channels import CHANNEL_ORIGINS
from ..knowledge.fact_values import nothing_known, unread_gpus
from ..knowledge.ranges import version
from ..knowledge.rows import Knowledge
from ..machine.modules.names import looks_unknown, statement, unknown_stacks, unread_modules
from ..machine.modules.variants import loaded_as
from ..model.plan import Pin, SiteFinding
from .problem import Candidate, Stack
from .problem_builder import ProblemInputs, admits

_FETCHED = ("pip", *CHANNEL_ORIGINS)
_LONGEST = 300


def unused_modules(
    inputs: ProblemInputs, stack: Stack, pins: Sequence[Pin]
) -> Iterator[SiteFinding]:
    """Yield the findings for what sites build for their network and GPUs: MPI, CUDA, frameworks."""
    knowledge = inputs.request.knowledge
    known = knowledge.components
    tuned = {name for name, each in known.items() if each.site_tuned}
    fetched = [pin for pin in pins if pin.origin in _FETCHED and pin.component in tuned]
    if not fetched:
        return
    unread = unread_modules(inputs.index.modules.values(), known)
    for pin in fetched:
        related = _related(pin.component, knowledge)
        names = {name for each in related for name in inputs.index.providing(each)}
        if names:
            yield _of_read(inputs, stack, pin, related, names)
        modules = [name for name, component in unread if component in related]
        if modules:
            yield SiteFinding(
                kind="unread-modules",
                component=pin.component,
                pin=str(pin),
                modules=tuple(dict.fromkeys(modules)),
                reason=f"the name contains no release of {pin.component}",
                fix=f"state it in the site file, modules: {statement(modules[0], pin.component)}",
            )


def unknown_site(
    inputs: ProblemInputs, pins: Sequence[Pin], compiles: bool
) -> Iterator[SiteFinding]:
    """Yield what a stack needs to know about its site and nothing is known about.

    GPUs that no row reads, and modules that look like what the stack takes from elsewhere.
    """
    gpus = inputs.facts.stated.get("gpu")
    for_cpus = inputs.facts.are_for_cpus()
    if isinstance(gpus, frozenset) and not for_cpus:
        for gpu in unread_gpus(gpus, inputs.request.knowledge):
            yield SiteFinding(kind="unknown-value", reason=nothing_known(gpu))
    origins = {role: pin.origin for pin in pins for role in (pin.component, *pin.fulfils)}
    looked_for = {
        "MPI": origins.get("mpi") in _FETCHED,
        "GPU stack": not for_cpus,
        "compiler": compiles and origins.get("gcc") != "module",
    }
    if compiles and "gcc" not in origins:
        yield SiteFinding(
            kind="no-compiler",
            reason="no compiler is stated: the c++ of the machine that builds compiles the sources",
            fix="add gcc to the stack of the recipe",
        )
    if any(looked_for.values()):
        knowledge, modules = inputs.request.knowledge, inputs.index.modules.values()
        found = unknown_stacks(modules, knowledge.components, knowledge.kinds)
        for kind, names in found.items():
            if looked_for[kind]:
                those = tuple(dict.fromkeys(map(loaded_as, names)))
                reason = looks_unknown(kind, those)[:_LONGEST]
                yield SiteFinding(kind="unknown-modules", modules=those, reason=reason)


def uncompared_releases(pins: Iterable[Pin]) -> Iterator[SiteFinding]:
    """Yield the pins of modules and of the system that no range of an advisory can contain."""
    for pin in pins:
        if pin.origin in ("module", "system") and version(pin.version) is None:
            module = pin.locator if pin.origin == "module" else "MODULE"
            yield SiteFinding(
                kind="uncompared-release",
                component=pin.component,
                pin=str(pin),
                reason=f"{pin.component} {pin.version} ({pin.locator}) is not compared with the "
                "ranges of advisories: PEP 440 does not know such a version",
                fix=f"state it in the site file, modules: {statement(module, pin.component)}",
            )


def _related(component: str, knowledge: Knowledge) -> tuple[str, ...]:
    """Return a component, those that fulfil the same virtuals, and those whose modules bear its
    name: CUDA's of cudatoolkit.
    """
    virtuals = knowledge.components[component].fulfils
    others = (name for each in virtuals for name in knowledge.fulfilling(each))
    namesakes = (
        name
        for name, each in knowledge.components.items()
        if component in map(str.lower, each.modules)
    )
    return tuple(dict.fromkeys((component, *others, *namesakes)))


def _of_read(
    inputs: ProblemInputs, stack: Stack, pin: Pin, related: Sequence[str], names: set[str]
) -> SiteFinding:
    candidates = sorted(
        (each for role in related for each in inputs.pool.of(role) if each.module in names),
        key=lambda each: (related.index(each.component), each.rank),
    )
    best = next((each for each in candidates if _is_admitted(inputs, each)), None)
    chosen = best or next(iter(candidates), None)
    first = [chosen.module] if chosen and chosen.module else []
    ordered = (*first, *sorted(names, reverse=True))
    return SiteFinding(
        kind="unused-modules",
        component=pin.component,
        pin=str(pin),
        modules=tuple(dict.fromkeys(map(loaded_as, ordered))),
        reason=_reason(inputs, stack, pin, best)[:_LONGEST],
    )


def _is_admitted(inputs: ProblemInputs, candidate: Candidate) -> bool:
    return all(
        admits(each.constraint, candidate)
        for each in inputs.requirements.values()
        if each.component == candidate.component
    )


def _reason(inputs: ProblemInputs, stack: Stack, pin: Pin, candidate: Candidate | None) -> str:
    """Return why a module is not used; *candidate*: what it provides, None: no line admits it."""
    request = inputs.request
    asking = [each for each in inputs.requirements.values() if each.component == pin.component]
    if "module" not in request.site.origins:
        return f"the origins of site {request.site.name} do not include modules"
    if candidate is None or (candidate.component != pin.component and asking):
        lines = (f"{each.why} requires {each.component} {each.constraint}" for each in asking)
        return "; ".join(lines) or f"the stack already has a {pin.component}"
    # lazy import: few plans have such a module
    from .why import held_by

    return f"{candidate.component} {candidate.version} {held_by(inputs, stack, candidate)}"
