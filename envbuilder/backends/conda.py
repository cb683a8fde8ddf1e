"""conda environments: Python and most packages from the recipe's conda channels."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import Problem
from ..model.backend import BackendTraits, ImageParts, PrefixParts, Script
from ..model.channels import match_spec
from ..model.knowledge import Component
from ..model.plan import Plan, Step
from ..model.profiles import recipe_arguments

TRAITS = BackendTraits(
    environment="conda environment",
    home_variable="CONDA_PREFIX",
    steps=(Step(id="conda", title="make the conda environment"),),
    python_origins=frozenset({"conda"}),
    # What a channel has comes from there, whatever a site prefers.
    first_origins=("conda",),
    channels=True,
)

# conda-forge's image has conda and nothing else.
_IMAGE = ImageParts(
    base="conda", build_packages=("make", "patch"), run_packages=("ca-certificates",)
)


def prefix(plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
    """Return how the conda environment is made."""
    values = {
        "channels": [each.url for each in plan.channels],
        "specs": _specs(plan),
        "accepting": [
            {"name": name, "value": value, "licence": each.licence or each.name}
            for each in plan.channels
            for name, value in each.accept.items()
        ],
    }
    return PrefixParts(
        environment=TRAITS.environment,
        scripts={"conda": Script("bash/steps/conda.sh.j2", values)},
        activation=Script("bash/activation/conda.sh.j2", {}),
        image=_IMAGE,
        refusal=_refusal(plan),
    )


def _specs(plan: Plan) -> tuple[str, ...]:
    """Return what conda is asked for: the plan's conda packages, and pip for the others."""
    pins = (pin for pin in (*plan.pins, *plan.build_pins) if pin.origin == "conda")
    return (*(match_spec(pin.locator, pin.version) for pin in pins), "pip")


def _refusal(plan: Plan) -> Problem:
    render = f"envbuild render {recipe_arguments(plan)} --as environment.yml"
    make = "conda env create --prefix FOLDER --file environment.yml"
    return Problem(
        f"{plan.recipe} is for conda, whose packages envbuild does not lock and build yet; "
        "it plans and renders them",
        hints=(
            f"{render} --output environment.yml",
            f"{make}; its head says what is built in it then",
        ),
    )
