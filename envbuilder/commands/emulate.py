"""The emulated system of another architecture, as ``create`` uses it; see ``targets.emulation``."""

from __future__ import annotations

import platform
from pathlib import Path

from ..emulation import SystemRequest, can_be_found, find_system, install, systems_folder
from ..errors import UsageError
from ..host import Host
from ..model.plan import Lock, Step
from ..target_tools.root.layout import Home
from .context import Context
from .load import PlanInputs

OFFER = "--emulate builds and proves it on this machine, its programs run by qemu"


def can_emulate(plan_inputs: PlanInputs, context: Context) -> bool:
    """Return whether ``create --emulate`` has, or can make, a system for what is planned."""
    other = plan_inputs.arch != platform.machine()
    return other and can_be_found(_request(plan_inputs, context))


def emulated_system(plan_inputs: PlanInputs, home: Home, shared: bool, context: Context) -> Path:
    """Return the folder of a system; may use the network. *shared*: a shared root is asked for.

    Raises MissingToolError, UsageError or BuildError where there is none.
    """
    if shared or home.group is not None:
        raise UsageError(
            "an emulated environment cannot be made in a shared root: the group is not one of "
            "the emulated system",
            "make it in a root of your own",
        )
    return find_system(_request(plan_inputs, context), context.reporter.say)


def install_emulated(lock: Lock, bundle: Path, home: Home, system: Path, context: Context) -> Path:
    """Run a bundle's installer in a system; return its log. Raises BuildError or SmokeError."""
    log = systems_folder(Host(context.environ)) / f"{home.name}-{lock.id()}.log"
    step = Step(id="emulated", title=f"build and prove for {lock.plan.arch}, emulated")
    with context.reporter.steps((step,)) as listener:
        listener.step_begins(step)
        done = False
        try:
            install(bundle, home.root, system, context.environ, log, listener)
            done = True
        finally:
            listener.step_ends(step, done=done)
    return log


def _request(plan_inputs: PlanInputs, context: Context) -> SystemRequest:
    return SystemRequest(plan_inputs.arch, plan_inputs.site, Host(context.environ), context.cwd)
