"""``envbuild create``: the whole way from a recipe to a published, proven environment."""

from __future__ import annotations

import platform

from ..errors import BuildError
from ..model.entries import check_choice
from ..model.evidence import TIERS
from ..model.outcome import BundleResult, CreateResult
from ..targets import TARGETS, default_target
from .context import Context
from .load import load
from .options import CreateOptions
from .stages import create_stages


def create(options: CreateOptions, context: Context) -> CreateResult | BundleResult:
    """Build, prove and publish an environment; or find that it is there already.

    For an architecture that this machine is not: make a bundle, which is built there. Raises
    NoSolutionError, BuildError or SmokeError; then nothing was published and what was published
    before is as it was.
    """
    plan_inputs = load(options.choice, context)
    name = options.target or default_target(plan_inputs.arch, platform.machine())
    check_choice("target", name, TARGETS)
    _check_tier(options.require_tier, name, plan_inputs.arch)
    return TARGETS[name].make(create_stages(options, plan_inputs, context))


def _check_tier(required: str | None, target: str, arch: str) -> None:
    """Raise BuildError for a tier that nothing which the target makes can reach."""
    highest = TARGETS[target].HIGHEST_TIER
    if required is not None and TIERS.index(required) > TIERS.index(highest):
        raise BuildError(
            f"a {target} is of tier {highest}, and {required} is required",
            f"this machine is {platform.machine()}: what is for {arch} is proved on one",
        )
