"""What ``envbuild render`` renders: a published environment, a lock, or what a recipe would be."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..locking.lock_check import changed_inputs
from ..model.evidence import newest_passed, telling
from ..model.plan import Lock, Plan
from ..record import read_all
from ..render.job import PYTHON
from ..render.subject import Renderable, UnlockedPlan
from ..root.environment_lock import find_published as find_version_of
from ..root.environments import places_of
from ..target_tools.root.layout import Home
from .context import Context
from .image_inputs import ImageInputs
from .launch_requests import facts_of, facts_there
from .load import PlanInputs, Planned, Reading, load
from .lock import named_lock
from .options import RenderOptions
from .places import root_path
from .published import Published, check_programs, environments_of, find_published, select
from .site_contents import site_of
from .texts import FormSource, forms, render_input


@dataclass(frozen=True)
class RenderSource:
    """What is rendered.

    ``environment``: the published one that it is, NAME/N. ``statement``: what a reader of any form
    must know first, None of a published environment.
    """

    source: FormSource
    environment: str | None = None
    statement: str | None = None

    def text(self, name: str) -> str:
        """Return the text of a form. Raises UsageError for one that the plan cannot have."""
        text = self.source.text(name)
        return text if self.statement is None else forms()[name].headed(text, self.statement)


def render_source(
    options: RenderOptions, context: Context, of_image: ImageInputs | None = None
) -> RenderSource:
    """Return the published environment; the lock of ``--locked``; or what the recipe would be."""
    environment = None if of_image else named(options, context)
    if environment:
        return _of_environment(environment, options, context)
    plan_inputs = of_image.plan_inputs if of_image else load(options.choice, context)
    lock = given_lock(options, plan_inputs, context, with_runtime=False)
    if lock:
        return of_lock(lock, options, plan_inputs, context)
    published = environments_of(plan_inputs, options.root, context)
    on_folder = of_image is not None and of_image.begins_with_folder
    found = selected(() if on_folder else published, plan_inputs, options, context)
    if isinstance(found, Published):
        return _of_environment(found, options, context)
    source = UnlockedPlan(found.plan)
    about = _about(source, source.id(), options, plan_inputs, context)
    home = home_of(source.plan, options, plan_inputs, context)
    statement = f"{home.name} is not published in {home.root}"
    if published:
        statement = (
            f"the recipe of {home.name} has changed since {published[0].name} in {home.root} was "
            "built"
        )
        context.reporter.warn(statement)
    statement = f"{statement}; run {_create(options)}"
    return RenderSource(about, statement=statement)


def named(options: RenderOptions, context: Context) -> Published | None:
    """Return the environment that NAME[/N] means; of ``--locked`` the word is a recipe."""
    return None if options.locked else find_published(options.choice, options.root, context)


def selected(
    published: Sequence[Published],
    plan_inputs: PlanInputs,
    options: RenderOptions,
    context: Context,
    reading: Reading = "to plan",
) -> Published | Planned:
    """Return the environment that was built from the recipe, or else a plan.

    Says which inputs of the environment have changed since it was built.
    """
    found = select(published, plan_inputs, options.choice, context, reading)
    if isinstance(found, Published) and (
        changed := changed_inputs(found.lock, plan_inputs.inputs())
    ):
        context.reporter.say(f"changed since {found.name} was built: {', '.join(changed)}")
    return found


def _of_environment(
    environment: Published, options: RenderOptions, context: Context
) -> RenderSource:
    choice, lock, home = options.choice, environment.lock, environment.home
    context = environment.context(context)
    check_programs(environment, PYTHON)
    # The partition of the job that this shell is in says nothing of the job that is rendered.
    chosen = site_of(lock.plan, choice.site, choice.partition, context)
    if choice.partition is None:
        chosen = chosen._replace(partition=None, partition_name=None)
    proofs = newest_passed(read_all(home, environment.version, lock).evidence)
    places, tree = places_of(home, environment.version.id), home.modulefiles.parent
    subject = replace(
        render_input(lock, places, tree, context.knowledge),
        number=environment.version.number,
        evidence=telling(proofs) if proofs else None,
    )
    facts = facts_there(lock.plan, chosen, context)
    context.reporter.say(f"rendered: {environment}")
    return RenderSource(FormSource(subject, facts, chosen, options.size), environment.name)


def of_lock(
    lock: Lock, options: RenderOptions, plan_inputs: PlanInputs, context: Context
) -> RenderSource:
    """Return what a lock renders to: the environment, if its decisions are published."""
    home = home_of(lock.plan, options, plan_inputs, context)
    version = find_version_of(home, lock)
    identity = version.id if version else lock.id()
    about = _about(lock, identity, options, plan_inputs, context)
    if version:
        name = f"{home.name}/{version.number}"
        subject = replace(about.subject, number=version.number)
        return RenderSource(replace(about, subject=subject), name)
    statement = (
        f"the lock {lock.id()} of {home.name} is not published in {home.root}; run "
        f"{_create(options)}"
    )
    return RenderSource(about, statement=statement)


def _create(options: RenderOptions) -> str:
    """Return the command that builds what was asked for."""
    choice = options.choice
    values = {
        "profile": choice.profile,
        "site": choice.site,
        "arch": choice.arch,
        "partition": choice.partition,
        "root": options.root,
        "locked": options.locked,
    }
    more = [word for name, value in values.items() if value for word in (f"--{name}", str(value))]
    waivers = [word for each in choice.allow or () for word in ("--allow", each)]
    return shlex.join(["envbuild", "create", choice.recipe, *more, *waivers])


def _about(
    source: Renderable,
    identity: str,
    options: RenderOptions,
    plan_inputs: PlanInputs,
    context: Context,
) -> FormSource:
    home = home_of(source.plan, options, plan_inputs, context)
    places, tree = places_of(home, identity), home.modulefiles.parent
    subject = render_input(source, places, tree, plan_inputs.knowledge.value)
    facts = facts_of(source.plan, plan_inputs)
    return FormSource(subject, facts, plan_inputs.chosen, options.size)


def home_of(
    planned: Plan, options: RenderOptions, plan_inputs: PlanInputs, context: Context
) -> Home:
    """Return the places of what is planned in its root."""
    root = root_path(options.root, plan_inputs.site, plan_inputs.arch, context)
    return Home(root, planned.recipe)


def given_lock(
    options: RenderOptions, plan_inputs: PlanInputs, context: Context, *, with_runtime: bool
) -> Lock | None:
    """Return the lock of ``--locked``, checked; None: no lock is given."""
    file = options.locked and context.path(options.locked)
    return named_lock(file, options.signed, plan_inputs, context, with_runtime=with_runtime)
