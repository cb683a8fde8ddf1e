"""``envbuild why`` and ``why-not``: one component of the stack that a plan would choose."""

from __future__ import annotations

from ..errors import UsageError
from ..model.why import Why, WhyNot
from ..resolve.stated_facts import stated_versions
from ..resolve.why import why as resolve_why
from ..resolve.why import why_not as resolve_why_not
from ..text import unknown
from .context import Context
from .load import load, request
from .options import PlanOptions


def why(choice: PlanOptions, component: str, context: Context) -> Why:
    """Say why a component of the plan is what it is."""
    plan_inputs = load(choice, context)
    components = plan_inputs.knowledge.value.components
    if component not in components:
        raise UsageError(unknown("component", component, components))
    return resolve_why(request(plan_inputs), component)


def why_not(choice: PlanOptions, requirement: str, context: Context) -> WhyNot:
    """Say what stands against ``COMPONENT==VERSION``."""
    [(component, version)] = stated_versions([requirement], context.knowledge).items()
    return resolve_why_not(request(load(choice, context)), component, version)
