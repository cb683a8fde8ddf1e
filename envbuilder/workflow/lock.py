"""``envbuild lock``, and plan -> lock for every verb that needs one.

pip is asked inside the plan's own environment, or, where that is not on this machine or too old,
for it; what it refuses is barred.
"""

from __future__ import annotations

import contextlib
import json
import platform
import tempfile
from dataclasses import replace
from pathlib import Path

from .. import files, process
from ..conda.solve import ChannelRefusal
from ..documents.json_file import JsonFile
from ..documents.source import name_of, read_bytes, source_of
from ..errors import DocumentError, EnvbuildError, NoSolutionError, Place, Problem
from ..locking.failures import Refusal
from ..locking.fingerprint import request_fingerprint
from ..locking.lock_check import changed_inputs, check_is_for, check_runtime, contradictions
from ..locking.locker import LockEnvironment, distributions_of, make_lock
from ..locking.target import OLDEST_GLIBC
from ..locking.virtualenv import Run
from ..machine.host import glibc_version
from ..model.decisions import plan_decisions
from ..model.outcome import LockCheck
from ..model.places import BuildFolders
from ..model.plan import Lock, Modules, Plan
from ..model.resolution import decided
from ..model.site import glibc_of
from ..render.build import render_shell
from ..render.subject import UnlockedPlan
from ..root.environment_lock import published_id
from ..runtimes import RUNTIMES
from ..target_tools.root.layout import Home
from .channels import solved, virtual_packages
from .context import Context
from .entries import entries
from .load import PlanInputs, Planned, load, plan, plan_of, plan_recipe
from .options import SignatureOptions
from .places import root_path
from .plan_options import PlanOptions
from .signed import check_no_key, check_signed

# How often pip may refuse a pin before the stack is given up.
_MAX_REFUSALS = 8

_PIP_SECONDS = 600.0


def check(choice: PlanOptions, file: Path, signed: SignatureOptions, context: Context) -> LockCheck:
    """Say which inputs of a lock have changed; what the choice leaves open is as it was locked.

    Raises UsageError for a lock of another recipe, site or architecture, DriftError for one that is
    not signed with the key. No network.
    """
    path = context.path(file)
    lock = read_lock(path, signed, context)
    plan_inputs = load(choice.as_locked(lock.plan), context)
    _check_fits(lock, path, plan_inputs)
    identity = lock.id()
    with contextlib.suppress(EnvbuildError):
        # In its root an environment of an earlier release goes by another id.
        root = root_path(None, plan_inputs.site, plan_inputs.arch, context)
        identity = published_id(Home(root, lock.plan.recipe), lock)
    changed = changed_inputs(lock, plan_inputs.inputs())
    return LockCheck(file=str(path), id=identity, changed=changed)


def new_lock(plan_inputs: PlanInputs, context: Context) -> Lock:
    """Return a lock for which nothing is taken from before; may use the network."""
    return lock_planned(plan_recipe(plan_inputs, context, "to lock"), context)


def lock_planned(planned: Planned, context: Context) -> Lock:
    """Return a new lock of a plan; may use the network."""
    with tempfile.TemporaryDirectory(prefix="envbuild-lock-") as folder:
        return obtain_lock(planned, context, Path(folder) / "work")


def read_lock(file: Path, signed: SignatureOptions, context: Context) -> Lock:
    """Return the lock in a file, which is read once; DriftError unless the key signed those bytes.

    Raises as ``JsonFile.load`` and ``check_signed`` do.
    """
    data = read_bytes(file, LOCKS.max_bytes)
    check_signed(file, data, signed, context)
    return LOCKS.read(source_of(data, name_of(file)))


def named_lock(
    file: Path | None,
    signed: SignatureOptions,
    plan_inputs: PlanInputs,
    context: Context,
    *,
    with_runtime: bool,
) -> Lock | None:
    """Return the lock of ``--locked``, None without that option.

    Raises UsageError for one of another recipe, site or architecture, or (*with_runtime*) of other
    sources of the runtime than those that are put beside it; DriftError for one that is not signed
    with the key.
    """
    if file is None:
        check_no_key(None, signed)
        return None
    lock = read_lock(file, signed, context)
    _check_fits(lock, file, plan_inputs)
    if with_runtime:
        check_runtime(lock, file, plan_inputs.runtime, plan_inputs.runtime_source)
    return lock


def _check_fits(lock: Lock, file: Path, plan_inputs: PlanInputs) -> None:
    recipe = plan_inputs.recipe.value.name
    check_is_for(lock, file, recipe, plan_inputs.site.name, plan_inputs.arch)


def check_derived(lock: Lock, file: Path, plan_inputs: PlanInputs) -> None:
    """Raise DocumentError unless what follows from unchanged documents is in a lock as it follows.

    The components are taken as they were decided: nothing is solved again.
    """
    follows = plan_of(plan_inputs, decided(lock.plan))
    wrong = []
    for key in ("proofs", "smoke"):
        said, now = (plan_decisions(each)[key] for each in (lock.plan, follows))
        if said != now:
            wrong.append(
                f"{key}: the lock has {json.dumps(said)}, but its recipe gives {json.dumps(now)}"
            )
    if wrong:
        place = Place(str(file))
        raise DocumentError(
            tuple(Problem("lock.recipe-mismatch", each, place, (LOCKS.again,)) for each in wrong)
        )


def obtain_lock(
    planned: Planned, context: Context, scratch: Path, downloads: Path | None = None
) -> Lock:
    """Ask pip for the files; a pin that the index lacks is barred and the stack solved again.

    *scratch* is a folder for this alone; it is made, and removed at the end. What had to be
    downloaded for the answer, wheels and git trees, is left in *downloads*.
    """
    plan_inputs, now = planned.inputs, planned.plan
    recipe, components = plan_inputs.recipe.value, plan_inputs.knowledge.value.components
    distributions = distributions_of(recipe, components)
    refused: frozenset[tuple[str, str]] = frozenset()
    while True:
        try:
            with (
                files.scratch(scratch),
                context.reporter.working("resolve packages against the index"),
            ):
                conda = solved(now, plan_inputs, context)
                environment = lock_environment(now, scratch, plan_inputs, context)
                environment = replace(environment, downloads=downloads)
                made = make_lock(now, environment, distributions, conda)
        except (Refusal, ChannelRefusal) as refusal:
            who = "index does" if isinstance(refusal, Refusal) else "conda channels do"
            context.reporter.say(
                f"the {who} not have {refusal.component} {refusal.version}: resolving again"
            )
            refused |= {(refusal.component, refusal.version)}
            if len(refused) > _MAX_REFUSALS:
                raise NoSolutionError(
                    "index.too-many-missing",
                    f"the package index or the conda channels lack {len(refused)} versions; the "
                    f"last one: {refusal}",
                    "check that the index is a complete mirror; pip-indexes in the recipe or site "
                    "file names another index",
                ) from refusal
            now = _plan_again(planned, refused, now)
        else:
            return made


def fingerprint(
    planned: Plan, plan_inputs: PlanInputs, context: Context, scratch: Path
) -> str | None:
    """Return the fingerprint of asking for this plan's files; None where it cannot be known.

    *scratch* as for ``obtain_lock``.
    """
    # A Python of conda packages is not there before it is locked, and is not asked.
    if not _is_here(planned, python=not planned.channels):
        return None
    with files.scratch(scratch):
        environment = lock_environment(planned, scratch, plan_inputs, context)
        virtual = virtual_packages(plan_inputs) if planned.channels else ()
        return request_fingerprint(planned, environment.glibc, environment.inside, virtual)


def _plan_again(planned: Planned, refused: frozenset[tuple[str, str]], before: Plan) -> Plan:
    """Solve again without what the index refused.

    Where that has no answer and the site's glibc is not known, the reason may be that wheels were
    chosen for the oldest: then the error names the fact to state.
    """
    plan_inputs = planned.inputs
    try:
        return plan(plan_inputs, planned.offered, refused)
    except NoSolutionError as error:
        if _is_here(before) or _glibc_stated(plan_inputs):
            raise
        first, *rest = error.problems
        hint = (
            f"site {plan_inputs.site.name} does not state its glibc, so only wheels for "
            f"{OLDEST_GLIBC} are used: write facts: {{glibc: ...}} in the site file (ldd --version "
            "shows it there)"
        )
        error.problems = (first._replace(hints=(hint, *first.hints)), *rest)
        raise


def _glibc_stated(plan_inputs: PlanInputs) -> str | None:
    return glibc_of(plan_inputs.site, plan_inputs.chosen.facts, plan_inputs.snapshot)


def lock_environment(
    planned: Plan, scratch: Path, plan_inputs: PlanInputs, context: Context
) -> LockEnvironment:
    """Return where pip is asked for a plan's files; *scratch* is there, for this alone."""
    parts = plan_inputs.prefix_of(planned)

    def shell(plan: Plan, folder: Path) -> Run:
        """Return what starts a command as the build's steps do, its virtualenv being venv/."""
        folder.mkdir()
        places = BuildFolders(prefix=scratch / "venv", build=folder)
        for name, text in render_shell(UnlockedPlan(plan), places, parts).items():
            (folder / name).write_text(text, encoding="utf-8")
        start = ["bash", str(folder / "shell.sh")]
        return lambda command: process.run(
            [*start, *command], env=context.environ, timeout=_PIP_SECONDS
        )

    here = _is_here(planned)
    # Without what would change the environment of a Python that is not the plan's own.
    bare = planned.model_copy(update={"modules": Modules(), "environment": ()})
    return LockEnvironment(
        inside=shell(planned, scratch / "inside"),
        outside=shell(bare, scratch / "outside"),
        scratch=scratch,
        here=here,
        glibc=(here and glibc_version()) or _glibc_stated(plan_inputs) or OLDEST_GLIBC,
        environ=context.environ,
        say=context.reporter.say,
    )


def _is_here(planned: Plan, *, python: bool = True) -> bool:
    """Whether the plan's modules can be asked on this machine, and its interpreter (*python*)."""
    init = planned.modules.init
    return (
        platform.machine() == planned.arch
        and (not python or (planned.python is not None and Path(planned.python).exists()))
        and (init is None or Path(init).exists())
    )


LOCKS = JsonFile(
    model=Lock,
    called="lock",
    again="make the lock again: envbuild lock RECIPE --output FILE",
    max_bytes=64 * 1024 * 1024,
    entries=entries,
    faults=lambda lock: contradictions(lock, entries().backends, RUNTIMES),
)
