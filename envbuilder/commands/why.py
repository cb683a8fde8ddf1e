"""``envbuild why`` and ``why-not``: one component of the stack that a plan would choose."""

from __future__ import annotations

from ..errors import UsageError
from ..model.why import Why, WhyNot
from ..resolve import why as resolve_why
from ..resolve import why_not as resolve_why_not
from ..text import unknown
from .context import Context
from .load import Choice, Material, load, request


def why(choice: Choice, component: str, context: Context) -> Why:
    """Say why a component of the plan is what it is."""
    material = load(choice, context)
    _check(component, material)
    return resolve_why(request(material), component)


def why_not(choice: Choice, asked: str, context: Context) -> WhyNot:
    """Say what stands against ``COMPONENT==VERSION``."""
    component, equals, version = asked.partition("==")
    if not (component and equals and version):
        raise UsageError(f"'{asked}' is not COMPONENT==VERSION", "write openmpi==3.1.3")
    material = load(choice, context)
    _check(component, material)
    return resolve_why_not(request(material), component, version)


def _check(component: str, material: Material) -> None:
    known = material.knowledge.value.components
    if component not in known:
        raise UsageError(unknown("component", component, known))
