"""conda environments: Python and most packages from the recipe's conda channels."""

from __future__ import annotations

from collections.abc import Mapping

from ...knowledge.components import Component
from ...model.backend import BackendTraits, ImageParts, PrefixParts, Script
from ...model.plan import Plan, Step

TRAITS = BackendTraits(
    environment="conda environment",
    home_variable="CONDA_PREFIX",
    steps=(
        Step(id="packages", title="fetch the locked conda packages"),
        Step(id="conda", title="make the conda environment of them"),
    ),
    python_origins=frozenset({"conda"}),
    # What a channel has comes from there, whatever a site prefers.
    first_origins=("conda",),
    channels=True,
    enter="conda activate '{prefix}'",
)

# conda-forge's image has conda and nothing else.
_IMAGE = ImageParts(
    base="conda", build_packages=("make", "patch"), run_packages=("ca-certificates",)
)


def prefix(plan: Plan, components: Mapping[str, Component]) -> PrefixParts:
    """Return how the conda environment is made."""
    values = {
        "accepting": [
            {"name": name, "value": value, "licence": each.licence or each.name}
            for each in plan.channels
            for name, value in each.accept.items()
        ],
    }
    return PrefixParts(
        environment=TRAITS.environment,
        scripts={
            "packages": Script("bash/steps/packages.sh.j2", {}),
            "conda": Script("bash/steps/conda.sh.j2", values),
        },
        activation=Script("bash/activation/conda.sh.j2", {}),
        image=_IMAGE,
    )
