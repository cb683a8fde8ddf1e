"""``envbuild create``: the whole way from a recipe to a published, proven environment."""

from __future__ import annotations

import platform

from ..errors import BuildError, UsageError
from ..knowledge.entries import check_choice
from ..locking.lock_check import changed_inputs, check_runtime
from ..model.evidence import TIERS
from ..model.outcome import BundleResult, CreateResult, ImageResult
from ..model.plan import Lock
from ..root.environment_lock import find_published
from ..target_tools.root.layout import Home
from ..workflow.context import Context
from ..workflow.emulate import OFFER, can_emulate
from ..workflow.image_base import check_image
from ..workflow.image_inputs import ImageInputs, image_inputs
from ..workflow.load import PlanInputs, Reading, load, plan_recipe
from ..workflow.lock import check_derived, named_lock
from ..workflow.options import CreateOptions
from ..workflow.places import root_path
from ..workflow.targets import TARGETS, default_target, suits
from ..workflow.targets.protocol import BuildHints, CreateRequest, Target, no_hints


def create(
    options: CreateOptions, context: Context, build_hints: BuildHints = no_hints
) -> CreateResult | BundleResult | ImageResult:
    """Build, prove and publish an environment; or find that it is there already.

    For an architecture that this machine is not: make a bundle, which is built there. Raises
    NoSolutionError, BuildError or SmokeError; then nothing was published and what was published
    before is as it was.
    """
    if options.image:
        asked = image_inputs(options.image, options.choice, context)
        check_image(asked.base, asked.plan_inputs, context)
    else:
        asked = ImageInputs(load(options.choice, context))
    plan_inputs = asked.plan_inputs
    name = options.target or default_target(plan_inputs.arch, platform.machine())
    check_choice("target", name, TARGETS)
    _check_arch(name, plan_inputs.arch)
    _check_tier(options.require_tier, name, plan_inputs, context)
    _check_shared(options, name)
    reading: Reading = "to lock anew" if options.relock else "to lock"
    given = _given_lock(options, name, plan_inputs, context)
    source = given or plan_recipe(plan_inputs, context, reading)
    request = CreateRequest(
        options, plan_inputs, source, context, asked.base, asked.binds, build_hints
    )
    return TARGETS[name].make(request)


def _check_shared(options: CreateOptions, target: str) -> None:
    """Raise UsageError where a root is to be shared and nothing comes into one."""
    if options.shared and TARGETS[target].HIGHEST_TIER == "rendered":
        raise UsageError(
            "option.not-applicable",
            f"--shared does not apply to a {target}: it has no root",
            f"share the root when you install it: bash install.sh --shared={options.shared} ROOT",
        )


def _check_arch(target: str, arch: str) -> None:
    """Raise UsageError for what is built elsewhere alone, and is for this machine's architecture.

    That it is for another is told by what looks at this machine: how, the target knows.
    """
    if arch == platform.machine() and not suits(TARGETS[target], arch, arch):
        raise UsageError(
            "emulation.native-arch",
            f"this machine is {arch}: --emulate is only for another architecture",
            "leave --emulate out, or name another --arch",
        )


def _check_tier(
    required: str | None, target: str, plan_inputs: PlanInputs, context: Context
) -> None:
    """Raise BuildError if the target can never reach the required tier."""
    if required is None or _reaches(TARGETS[target], required):
        return
    machine, arch = platform.machine(), plan_inputs.arch
    hints = [f"this machine is {machine}: run the smoke test on a machine of {arch}"]
    others = (each for each in TARGETS.values() if suits(each, arch, machine))
    if any(_reaches(each, required) for each in others) and can_emulate(plan_inputs, context):
        hints = [OFFER]
    raise BuildError(
        "tier.unreachable",
        f"target {target} reaches at most tier {TARGETS[target].HIGHEST_TIER}, but tier "
        f"{required} is required",
        *hints,
    )


def _reaches(target: Target, tier: str) -> bool:
    return TIERS.index(tier) <= TIERS.index(target.HIGHEST_TIER)


def _given_lock(
    options: CreateOptions, target: str, plan_inputs: PlanInputs, context: Context
) -> Lock | None:
    """Return the lock of ``--locked``, and say what has changed since it was made.

    Raises UsageError for one that is for something else, or asked for with what would change it;
    for one of other sources of the runtime, unless its environment is published in the root.
    """
    file = options.locked and context.path(options.locked)
    if file and (options.relock or options.choice.allow):
        other = "--relock" if options.relock else "--allow"
        raise UsageError(
            "option.conflict",
            f"--locked and {other} cannot be combined: {other} would change the lock",
            "leave one of them out",
        )
    lock = named_lock(file, options.signed, plan_inputs, context, with_runtime=False)
    if file is None or lock is None:
        return None
    if not _is_published(lock, options, target, plan_inputs, context):
        check_runtime(lock, file, plan_inputs.runtime, plan_inputs.runtime_source)
    changed = changed_inputs(lock, plan_inputs.inputs())
    if changed:
        context.reporter.warn(
            f"building {file} as locked, although these inputs changed: {', '.join(changed)}"
        )
    else:
        check_derived(lock, file, plan_inputs)
    return lock


def _is_published(
    lock: Lock, options: CreateOptions, target: str, plan_inputs: PlanInputs, context: Context
) -> bool:
    """Return whether a root has the lock's environment, so that nothing is built."""
    if options.image is not None or TARGETS[target].HIGHEST_TIER == "rendered":
        return False
    root = root_path(options.root, plan_inputs.site, plan_inputs.arch, context)
    return find_published(Home(root, lock.plan.recipe), lock) is not None
