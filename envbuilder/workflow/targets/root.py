"""What the targets that publish in a root share: it is held, locked, looked at, told about."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ... import files
from ...build.backends import entering
from ...errors import BuildError, UsageError
from ...model.evidence import TIERS, Evidence, newest_passed, telling
from ...model.outcome import CreateResult
from ...model.plan import Lock, proofs_of
from ...record import read_all
from ...root import environment_lock
from ...root.environments import places_of
from ...root.used import remember_root
from ...target_tools import sharing
from ...target_tools.root import layout, locks, manifests, publish, registry, store
from ..channels import close_engine
from ..launch_requests import example
from ..load import Planned
from ..places import root_path
from ..root_lock import heal_lock, lock_of_root, tell_new_findings
from .protocol import CreateRequest


def home_of(request: CreateRequest) -> layout.Home:
    """Return the places of the environment in its root. Raises UsageError if none is known."""
    inputs = request.plan_inputs
    path = root_path(request.options.root, inputs.site, inputs.arch, request.context)
    return layout.Home(path, inputs.recipe.value.name)


@contextlib.contextmanager
def hold(
    request: CreateRequest, *, here: bool = True, others: bool = False
) -> Iterator[CreateRequest]:
    """Open the root and hold the environment's folder; yield the request to work with.

    *here*: it is built on this machine as it is. *others*: the root may be another site's. Raises
    UsageError for what cannot be, before anything is written.
    """
    plan_inputs, home, source = request.plan_inputs, home_of(request), request.source
    if isinstance(source, Lock):
        request.texts(source, places_of(home, source.id()))
    if here:
        _check_machine(request)
    shared = request.options.shared
    site = plan_inputs.site.name
    root = store.open_root(home.root, site, plan_inputs.arch, shared, others)
    store.open_home(root, home.name)
    remember_root(home.root, request.context.environ)
    context, say = request.context, request.context.reporter.say
    with contextlib.ExitStack() as stack:
        stack.enter_context(sharing.readable(home.group))
        held = stack.enter_context(locks.hold(home.lock_file, say=say, group=home.group))
        registry.heal_registry(home, say)
        publish.clear(home, home.scratch, say)
        stack.enter_context(files.scratch(home.scratch))
        environ = held.environ(context.environ)
        yield replace(request, context=replace(context, environ=environ))


def root_lock(request: CreateRequest) -> Lock:
    """Return the lock: the one that was asked for, the last one while it fits, or a new one."""
    lock, home, context = request.source, home_of(request), request.context
    if isinstance(lock, Planned):
        lock = lock_of_root(lock, home, context, relock=request.options.relock)
    # No decision: the lock of another partition may be reused, and is proved in this one.
    partition = request.plan_inputs.chosen.partition_name
    plan = lock.plan.model_copy(update={"partition": partition})
    lock = lock.model_copy(update={"plan": plan})
    files.write_atomically(home.last_lock, lock.text())
    # Read to plan, and of no use where the lock is one that was there.
    close_engine(context)
    return lock


def published_number(request: CreateRequest, lock: Lock) -> int | None:
    """Return the number under which just this lock is published, or None."""
    home, context = home_of(request), request.context
    version = environment_lock.find_published(home, lock)
    if version is None:
        return None
    context.reporter.say(f"{home.name}/{version.number} already has exactly this lock")
    here = lock.plan.arch == platform.machine()
    manifests.check_unchanged(home, version, runs_here=here, say=context.reporter.warn)
    heal_lock(home, version, lock, context)
    tell_new_findings(home, version, lock, context)
    return version.number


def begin(request: CreateRequest, lock: Lock) -> None:
    """Remove what an unfinished build of a lock left, unless it is to be resumed.

    Raises BuildError if just that prefix is published.
    """
    home = home_of(request)
    places = places_of(home, lock.id())
    version = publish.find_reserved(home, lock.id())
    if version and publish.is_published(home, version):
        # Jobs may run in it: a published prefix is never removed to be built anew.
        raise BuildError(
            "environment.exists",
            f"{home.name}/{version.number} is already published in {places.prefix}",
            f"remove it first: envbuild remove {home.name}/{version.number}",
        )
    others, say = publish.is_of_another(home, lock.id()), request.context.reporter.say
    if request.options.resume and others:
        say("not continuing the build of another user: building again")
    if not request.options.resume or others:
        publish.clear(home, places.prefix, say)
        publish.clear(home, places.build, say)
    publish.mark(home, lock.id())


def make_default(request: CreateRequest, number: int) -> None:
    """Make a published number the one that ``module load NAME`` loads."""
    home, say = home_of(request), request.context.reporter.say
    version = publish.find_version(home, number)
    with locks.hold(home.default_lock, say=say, group=home.group):
        publish.set_default(home, version)


def result(request: CreateRequest, lock: Lock, number: int) -> CreateResult:
    """Return what is known of a published number."""
    home = home_of(request)
    version = publish.find_version(home, number)
    records = read_all(home, version, environment_lock.read_lock(home, version))
    proofs = newest_passed(records.evidence)
    if not proofs:
        raise BuildError(
            "environment.evidence-missing",
            f"{home.name}/{number} is published, but its evidence is missing",
            *records.claimed,
            f"run the smoke test again: envbuild smoke {home.name}/{number} --root '{home.root}'",
        )
    return CreateResult(
        environment=home.name,
        number=number,
        id=version.id,
        lock_sha256=lock.sha256(),
        root=str(home.root),
        prefix=str(home.prefix(version.id)),
        enter=entering(lock.plan.backend, home.prefix(version.id)),
        modulefiles=str(home.root / "modulefiles"),
        loads=lock.plan.modules.loads,
        launch=example(request.facts(lock), "my_program.py").words,
        evidence=telling(proofs),
        proofs=proofs,
    )


def proved_result(request: CreateRequest, lock: Lock, number: int) -> CreateResult:
    """Return what is known of a published number, which has proofs of the required tier.

    Raises BuildError if it has none: it may have been published without that requirement.
    """
    published = result(request, lock, number)
    again = f"envbuild smoke {published.environment}/{number} --root '{published.root}'"
    required = request.options.require_tier
    check_tier(required, lock, published.proofs, f"run the smoke test again: {again}")
    return published


def check_tier(required: str | None, lock: Lock, proofs: Sequence[Evidence], hint: str) -> None:
    """Raise BuildError unless each smoke test of a lock passed with the required tier.

    What was proved with stand-ins is no proof of the recipe.
    """
    if required is None:
        return
    stand_ins = sorted({name for proof in proofs for name in proof.stand_ins})
    if stand_ins:
        raise BuildError(
            "tier.stand-ins",
            f"tier {required} is required, but the smoke test used stand-ins instead of the real "
            f"packages: {', '.join(stand_ins)}",
            hint,
        )
    tiers = {(each.result.api, each.result.transport): each.result.tier for each in proofs}
    for proof in proofs_of(lock.plan):
        tier = tiers.get((proof.api, proof.transport))
        if tier is None or TIERS.index(tier) < TIERS.index(required):
            raise BuildError(
                "tier.too-low",
                f"tier {required} is required, but the smoke test of {proof.api} over "
                f"{proof.transport} reached {f'only tier {tier}' if tier else 'no tier'}",
                hint,
                "a job on several nodes reaches a higher tier",
            )


def _check_machine(request: CreateRequest) -> None:
    """Raise UsageError if the chosen site has module trees and none of them is on this machine.

    A site without module trees states nothing that a machine could be recognised by.
    """
    site, choice = request.plan_inputs.site, request.options.choice
    trees = site.module_trees
    if not trees or any(Path(tree).is_dir() for tree in trees):
        return
    more = f" (nor are {len(trees) - 1} more)" if len(trees) > 1 else ""
    words = f"{choice.recipe} --site {choice.site or site.name}"
    raise UsageError(
        "site.not-this-machine",
        f"this machine is not site {site.name}: the module tree {trees[0]} is missing{more}",
        f"make a bundle to build there offline: envbuild create {words} --bundle",
        "or build for this machine: --site local",
    )
