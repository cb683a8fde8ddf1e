"""Another architecture's system on this machine, as ``create`` and ``smoke`` use it."""

from __future__ import annotations

import contextlib
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from .. import data
from ..build import emulation as emulated
from ..build import sources
from ..build.emulation import (
    EmulatedRun,
    SystemRequest,
    can_be_found,
    check_emulator,
    find_system,
    systems_folder,
)
from ..errors import UsageError
from ..machine.host import LocalMachine, wheel_cache
from ..model.backend import Script
from ..model.evidence import Evidence
from ..model.plan import Lock, Plan, Step
from ..model.progress import Listener, reported
from ..model.site import Site
from ..render.build import render_text
from ..target_tools.files import LARGE_BYTES, canonical_json, make_folder, read_json
from ..target_tools.root.layout import Home, Version
from .context import Context
from .launch_requests import facts_there
from .load import PlanInputs
from .prove import evidence_of, proving_in, script_starts
from .site_contents import site_of

OFFER = "--emulate builds and tests it on this machine in qemu"


def can_emulate(plan_inputs: PlanInputs, context: Context) -> bool:
    """Return whether ``create --emulate`` has, or can make, a system for what is planned."""
    other = plan_inputs.arch != platform.machine()
    return other and can_be_found(_to_build(plan_inputs, context))


def emulated_system(plan_inputs: PlanInputs, home: Home, shared: bool, context: Context) -> Path:
    """Return the folder of a system; may use the network. *shared*: a shared root is asked for.

    Raises MissingToolError, UsageError or BuildError where there is none.
    """
    _check_not_shared(shared or home.group is not None, "built", "build it in a root of your own")
    return find_system(_to_build(plan_inputs, context), context.reporter.say)


def check_arch_runs(arch: str, context: Context) -> None:
    """Raise MissingToolError where programs of an architecture do not run, for who makes images."""
    check_emulator(arch, LocalMachine(context.environ), _without_emulator(arch))


def system_of(plan_inputs: PlanInputs, context: Context) -> Path:
    """Return the folder of a system as the site describes it, to begin an image with.

    Raises MissingToolError, UsageError or BuildError where there is none.
    """
    wanted = replace(_to_build(plan_inputs, context), instead=_without_emulator(plan_inputs.arch))
    return find_system(wanted, context.reporter.say)


def install_emulated(lock: Lock, bundle: Path, home: Home, system: Path, context: Context) -> Path:
    """Run a bundle's installer in a system; return its log. Raises BuildError or SmokeError."""
    host = LocalMachine(context.environ)
    log = systems_folder(host) / f"{home.name}-{lock.id()}.log"
    accepts, wheels = lock.plan.licence_variables, wheel_cache(host)
    if wheels:
        make_folder(wheels)
    with _step(f"build and test for {lock.plan.arch}, emulated", context) as listener:
        emulated.install(
            EmulatedRun(bundle, home.root, system, context.environ, log, listener, accepts, wheels)
        )
    return log


def check_emulates(
    plan: Plan, home: Home, version: Version, emulate: bool, context: Context
) -> None:
    """Raise UsageError where ``smoke`` is asked for emulation and needs none, or the reverse."""
    machine, name = platform.machine(), f"{home.name}/{version.number}"
    if plan.arch == machine:
        if emulate:
            raise UsageError(
                "emulation.native-arch",
                f"{name} is for {machine}, like this machine: --emulate is only for another "
                "architecture",
                "leave --emulate out",
            )
        return
    if emulate:
        shared = home.group is not None
        _check_not_shared(shared, "tested", "test it on a machine of its architecture")
        return
    hints = [_on_its_own(home, version)]
    try:
        site = site_of(plan, None, None, context).site
        if can_be_found(_to_prove(plan, site, home, version, context)):
            hints.insert(0, "--emulate tests it on this machine in qemu")
    except UsageError:
        pass  # its site is not known here: nothing says what a system for it is made of
    raise UsageError(
        "environment.other-arch",
        f"{name} is for {plan.arch}, but this machine is {machine}",
        *hints,
    )


def prove_emulated(
    lock: Lock,
    home: Home,
    version: Version,
    site: str | None,
    ranks: int | None,
    context: Context,
) -> tuple[Evidence, ...]:
    """Run every smoke test of a published number in a system, and keep each one's record.

    Raises DriftError, and MissingToolError, UsageError or BuildError where there is no system.
    """
    plan, chosen = lock.plan, site_of(lock.plan, site, None, context)
    request = _to_prove(plan, chosen.site, home, version, context)
    system = find_system(request, context.reporter.say)
    facts = facts_there(plan, chosen, context)
    proving = proving_in(lock, script_starts(facts, ranks), home, version.id, facts)
    values = {"name": home.name, "python": plan.python or "python3"}
    texts = {
        "environment.sh": proving["proofs"][0]["files"]["environment.sh"],
        "prove.sh": render_text(Script("bundle/prove.sh.j2", values)),
        "proving.json": canonical_json(proving),
    }
    log = systems_folder(request.host) / f"{home.name}-{version.id}.smoke.log"
    with tempfile.TemporaryDirectory(prefix="envbuild-smoke-") as scratch:
        given = Path(scratch)
        for name, text in texts.items():
            (given / name).write_text(text, encoding="utf-8")
        sources.copy(data.TARGET_TOOLS, given / data.TARGET_TOOLS.name)
        with _step(f"smoke test for {plan.arch}, emulated", context) as listener:
            entry = EmulatedRun(given, home.root, system, context.environ, log, listener)
            emulated.prove_again(entry, home.name, version.number)
        proved = read_json(given / "proved.json", LARGE_BYTES)
    return evidence_of(proved, lock)


@contextlib.contextmanager
def _step(title: str, context: Context) -> Iterator[Listener]:
    """Report one step: that it began, what it says, how it ended."""
    step = Step(id="emulated", title=title)
    with context.reporter.steps((step,)) as listener, reported(step, listener):
        yield listener


def _check_not_shared(shared: bool, what: str, hint: str) -> None:
    if shared:
        raise UsageError(
            "emulation.shared-root",
            f"an emulated environment cannot be {what} in a shared root: the emulated system does "
            "not have the root's group",
            hint,
        )


def _to_build(plan_inputs: PlanInputs, context: Context) -> SystemRequest:
    return SystemRequest(
        plan_inputs.arch, plan_inputs.site, LocalMachine(context.environ), context.cwd
    )


def _without_emulator(arch: str) -> str:
    return f"or build the image on a machine of {arch}, which needs no emulator"


def _to_prove(
    plan: Plan, site: Site, home: Home, version: Version, context: Context
) -> SystemRequest:
    instead = _on_its_own(home, version)
    return SystemRequest(plan.arch, site, LocalMachine(context.environ), context.cwd, instead)


def _on_its_own(home: Home, version: Version) -> str:
    name = f"{home.name}/{version.number}"
    return f"on a machine of its architecture: envbuild smoke {name} --root {home.root}"
