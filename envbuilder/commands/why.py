"""``envbuild why`` and ``why-not``: one component of the stack that a plan would choose."""

from __future__ import annotations

from ..errors import UsageError
from ..model.why import Why, WhyNot
from ..resolve import why as resolve_why
from ..resolve import why_not as resolve_why_not
from ..text import unknown
from .context import Context
from .load import PlanInputs, PlanOptions, load, request


def why(choice: PlanOptions, component: str, context: Context) -> Why:
    """Say why a component of the plan is what it is."""
    plan_inputs = load(choice, context)
    _check(component, plan_inputs)
    return resolve_why(request(plan_inputs), component)


def why_not(choice: PlanOptions, requirement: str, context: Context) -> WhyNot:
    """Say what stands against ``COMPONENT==VERSION``."""
    component, equals, version = requirement.partition("==")
    if not (component and equals and version):
        raise UsageError(f"'{requirement}' is not COMPONENT==VERSION", "write openmpi==3.1.3")
    plan_inputs = load(choice, context)
    _check(component, plan_inputs)
    return resolve_why_not(request(plan_inputs), component, version)


def _check(component: str, plan_inputs: PlanInputs) -> None:
    components = plan_inputs.knowledge.value.components
    if component not in components:
        raise UsageError(unknown("component", component, components))
