"""A small plan that the tests of this folder change."""

from __future__ import annotations

from envbuilder.model.plan import Pin, Plan, RuntimePlan, Step
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import SiteLauncher


def plan(**changes: object) -> Plan:
    values: dict[str, object] = {
        "recipe": "demo",
        "summary": "A demo",
        "site": "here",
        "arch": "x86_64",
        "backend": "virtualenv",
        "system_site_packages": False,
        "python": "/usr/bin/python3",
        "pins": (
            Pin(
                component="python",
                version="3.11.7",
                origin="system",
                locator="/usr/bin/python3",
                why="w",
            ),
            Pin(component="numpy", version="2.4.6", origin="pip", locator="numpy", why="w"),
        ),
        "build_pins": (
            Pin(component="flit-core", version="4.2.0", origin="pip", locator="flit-core", why="w"),
        ),
        "runtime": RuntimePlan(package="runtime", version="0.1.0", source_sha256="0" * 64),
        "launcher": SiteLauncher(kind="hydra", command=("mpiexec",)),
        "smoke": Smoke(),
        "steps": (Step(id="venv", title="make it"),),
    }
    return Plan(**{**values, **changes})  # type: ignore[arg-type]
