"""What the resolver decided: the value that crosses from resolving to planning."""

from __future__ import annotations

from typing import NamedTuple

from .plan import Pin, Plan, PlanFinding, Replacement, SiteFinding, SourceBuild


class Resolution(NamedTuple):
    """The components decided, the interpreter, the modules to load, and what is known of it all.

    ``brought``: components that come along with modules, asked for by nobody. ``stand_ins``: of the
    modules those that stand in for what cannot be had.
    """

    pins: tuple[Pin, ...]
    build_pins: tuple[Pin, ...]
    brought: tuple[Pin, ...]
    python: str | None
    loads: tuple[str, ...]
    final: tuple[str, ...]
    replaced: tuple[Replacement, ...] = ()
    builds: tuple[SourceBuild, ...] = ()
    findings: tuple[PlanFinding, ...] = ()
    stand_ins: tuple[str, ...] = ()
    site_findings: tuple[SiteFinding, ...] = ()


def decided(plan: Plan) -> Resolution:
    """Return what was decided for a plan."""
    return Resolution(
        pins=plan.pins,
        build_pins=plan.build_pins,
        brought=plan.brought,
        python=plan.python,
        loads=plan.modules.loads,
        final=plan.modules.final,
        replaced=plan.modules.replaced,
        builds=plan.builds,
        findings=plan.findings,
        stand_ins=plan.modules.stand_ins,
        site_findings=plan.site_findings,
    )
