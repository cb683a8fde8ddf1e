"""``envbuild why`` and ``why-not``: one component of a published environment, or of a plan."""

from __future__ import annotations

from ..errors import DriftError, UsageError
from ..knowledge.rows import Knowledge
from ..model.why import ComponentReason, WhyNot
from ..resolve.stated_facts import stated_versions
from ..resolve.why import why as resolve_why
from ..resolve.why import why_not as resolve_why_not
from ..text import unknown
from ..workflow.context import Context
from ..workflow.load import PlanInputs, load, plan_offered, read_offered, request
from ..workflow.plan_options import WhyOptions
from ..workflow.published import (
    Published,
    decides_same,
    environments_of,
    find_published,
    plan_again,
)


def why(choice: WhyOptions, component: str, context: Context) -> ComponentReason:
    """Return why a component is what it is, in a published environment or in a plan made now.

    The lock of an environment says less than a plan: nothing of what else could be chosen. So an
    environment is answered by a plan if that decides the same.
    """
    components = context.knowledge.components
    if component not in components:
        raise UsageError("component.unknown", unknown("component", component, components))
    environment = _published(choice, context)
    if environment is None:
        plan_inputs = load(choice, context)
        offered = read_offered(plan_inputs, context)
        answer = resolve_why(request(plan_inputs, offered), component)
        name = _name(plan_inputs, offered, choice, context)
    else:
        answer, name = _why_published(environment, component, choice, context), environment.name
    return answer.model_copy(update={"environment": name})


def why_not(choice: WhyOptions, requirement: str, context: Context) -> WhyNot:
    """Return what stands against ``COMPONENT==VERSION``, in an environment or in a plan made now.

    Raises DriftError for an environment that cannot be planned again as it is.
    """
    [(component, version)] = stated_versions([requirement], context.knowledge).items()
    environment = _published(choice, context)
    if environment is None:
        plan_inputs = load(choice, context)
        offered = read_offered(plan_inputs, context)
        name = _name(plan_inputs, offered, choice, context)
    else:
        planned, name = plan_again(environment, choice, context), environment.name
        plan_inputs, offered = planned.inputs, planned.offered
    answer = resolve_why_not(request(plan_inputs, offered), component, version)
    return answer.model_copy(update={"environment": name})


def _published(choice: WhyOptions, context: Context) -> Published | None:
    environment = find_published(choice, choice.root, context)
    if environment:
        context.reporter.say(f"of {environment}")
    return environment


def _name(
    plan_inputs: PlanInputs, offered: Knowledge, choice: WhyOptions, context: Context
) -> str | None:
    """Return the environment that decides what the plan does; None, and say so: there is none."""
    environments = environments_of(plan_inputs, choice.root, context)
    if not environments:
        return None
    planned = plan_offered(plan_inputs, offered, context).plan
    name = next((each.name for each in environments if decides_same(each, planned)), None)
    if name is None:
        context.reporter.say(f"explaining a plan made now, which differs from {environments[0]}")
    return name


def _why_published(
    environment: Published, component: str, choice: WhyOptions, context: Context
) -> ComponentReason:
    try:
        planned = plan_again(environment, choice, context)
        return resolve_why(request(planned.inputs, planned.offered), component)
    except DriftError as error:
        context.reporter.say(f"explaining from the lock alone: {error}")
    plan = environment.plan
    pins = {pin.component: pin for pin in (*plan.build_pins, *plan.brought, *plan.pins)}
    if component not in pins:
        raise UsageError(
            "component.unknown",
            unknown(f"component of {environment.name}", component, pins),
            f"it has: {', '.join(sorted(pins))}",
        )
    pin = pins[component]
    return ComponentReason(
        component=component,
        version=pin.version,
        provider=f"{pin.origin}:{pin.locator}",
        asked=(pin.why,),
        findings=tuple(
            each
            for each in plan.findings
            if any(name.startswith(f"{component}@") for name in each.components)
        ),
    )
