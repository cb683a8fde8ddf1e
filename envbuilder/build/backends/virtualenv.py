"""Virtualenvs: made with a Python that the site or the machine has, and filled by pip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...knowledge.components import Component
from ...model.backend import BackendTraits, PrefixParts, Script
from ...model.plan import Pin, Plan, Step

TRAITS = BackendTraits(
    environment="virtualenv",
    home_variable="VIRTUAL_ENV",
    steps=(Step(id="venv", title="make the virtualenv"),),
    python_origins=frozenset({"module", "system"}),
    profiles=frozenset({"scorep"}),
)


def prefix(plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
    """Return how the virtualenv is made."""
    python = plan.pin("python")
    values = {
        "python": plan.python or "",
        # Wheels, and what is compiled, fit one series of Python: 3.11.
        "series": ".".join(python.version.split(".")[:2]) if python else "",
        "brought": list(_brought(plan, components)),
        "venv_options": ("--system-site-packages",) if plan.system_site_packages else (),
    }
    return PrefixParts(
        environment=TRAITS.environment,
        scripts={"venv": Script("bash/steps/venv.sh.j2", values)},
    )


def _brought(plan: Plan, components: Mapping[str, Component]) -> Iterator[dict[str, str]]:
    """Yield the Python packages that the site itself brings, by whom: no step installs them."""
    for pin in sorted(plan.pins, key=lambda each: each.component):
        known = components.get(pin.component)
        if known and known.python_import and pin.origin in ("module", "system"):
            label = f"{pin.component} {pin.version}"
            yield {"package": known.python_import, "label": label, "by": _by(pin)}


def _by(pin: Pin) -> str:
    return f"module {pin.locator}" if pin.origin == "module" else pin.locator
