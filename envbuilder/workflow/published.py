"""The published environment that a word means: one answer for every verb that takes NAME[/N].

A word is the name of an environment, or a recipe. The path of a recipe's file means the environment
of that recipe, if one is published.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..documents.library import catalogue
from ..errors import BuildError, DriftError, EnvbuildError, UsageError
from ..locking.lock_check import changed_inputs
from ..model.decisions import plan_decisions
from ..model.plan import Lock, Plan
from ..root.environment_lock import lock_file, read_lock
from ..root.environments import check_not_image, find
from ..target_tools.root.layout import Home, Version
from ..target_tools.root.publish import published
from ..target_tools.root.registry import default_number
from ..target_tools.root.stamp import Root
from .context import Context
from .inputs import with_inputs
from .load import PlanInputs, Planned, Reading, load, plan_recipe
from .options import RootOptions
from .places import existing_root, local_root, root_path
from .plan_options import PlanOptions

# NAME, or NAME/NUMBER. A path of a recipe ends in .yaml, and is no such name.
_NAME = re.compile(r"(?P<name>[a-z0-9][a-z0-9._+-]*)(?P<number>/[0-9]+)?")


@dataclass(frozen=True)
class Published:
    """A published environment, with the lock that it was built from."""

    home: Home
    version: Version
    lock: Lock

    @property
    def name(self) -> str:
        return f"{self.home.name}/{self.version.number}"

    @property
    def plan(self) -> Plan:
        return self.lock.plan

    @property
    def prefix(self) -> Path:
        return self.home.prefix(self.version.id)

    @property
    def lock_file(self) -> Path:
        return lock_file(self.home, self.version)

    def context(self, context: Context) -> Context:
        """Return a context that also finds the documents that the environment was built from."""
        return with_inputs(context, self.home, self.version.id)

    def __str__(self) -> str:
        return f"{self.name} ({self.version.id}) in {self.home.root}"


def is_recipe_file(word: str) -> bool:
    """Whether a word is meant as the path of a recipe's file."""
    return word.endswith(".yaml")


def find_published(choice: PlanOptions, root: str | None, context: Context) -> Published | None:
    """Return the environment of the root that the word NAME[/N] means; None: it may be a recipe.

    A name without a number is a recipe if it comes with options that only a plan has, or with
    another site or architecture than the environment's. Raises UsageError if there is no
    environment of that number, or if a number comes with such options; BuildError if its lock is
    missing or damaged.
    """
    word = choice.recipe
    match = None if is_recipe_file(word) else _NAME.fullmatch(word)
    if match is None:
        return None
    of_plan = choice.profile or choice.allow
    if of_plan and match["number"]:
        raise UsageError(
            "option.only-for-plan",
            f"--profile and --allow apply to a plan, but {word} is a published environment",
            "leave them out, or name a recipe",
        )
    where = RootOptions(root, choice.site, choice.arch)
    found = existing_root(where, context) if match["number"] else _local_root(where, context)
    if found is None or of_plan or not (match["number"] or _is_environment(word, found, context)):
        return None
    environment = read_published(*find(found, word))
    plan, place = environment.plan, (_site_name(choice.site), choice.arch)
    if place[0] in (None, plan.site) and place[1] in (None, plan.arch):
        return environment
    if match["number"]:
        requested = " ".join(filter(None, place))
        raise UsageError(
            "environment.other-site",
            f"{environment.name} is for site {plan.site} and {plan.arch}, not for {requested}",
            "leave --site and --arch out, or use another --root",
        )
    return None


def _site_name(site: str | None) -> str | None:
    """Return the name of a site that is given by its name, or by its file, which has that name."""
    return Path(site).stem if site and site.endswith(".yaml") else site


def _is_environment(name: str, root: Root, context: Context) -> bool:
    """Whether a name is published in a root, or can only be something that was."""
    home = next((each for each in root.homes() if each.name == name), None)
    if home is None:
        return False
    return bool(published(home)) or name not in dict(catalogue("recipe", context.folders))


def _local_root(where: RootOptions, context: Context) -> Root | None:
    try:
        return local_root(where, context)
    except UsageError:
        # Several sites are on this machine: only a recipe says which of them is meant.
        return None


def environments_of(
    plan_inputs: PlanInputs, root: str | None, context: Context
) -> tuple[Published, ...]:
    """Return what is published of a recipe's name: the default first, then the newest first.

    An environment whose lock is damaged is left out, with a warning.
    """
    path = root_path(root, plan_inputs.site, plan_inputs.arch, context)
    home = Home(path, plan_inputs.recipe.value.name)
    return tuple(_readable(home, context))


def _readable(home: Home, context: Context) -> Iterator[Published]:
    default = default_number(home)
    for version in sorted(published(home), key=lambda each: (each.number != default, -each.number)):
        try:
            yield read_published(home, version)
        except BuildError as error:
            context.reporter.warn(str(error))


def read_published(home: Home, version: Version) -> Published:
    """Return a published environment. Raises BuildError if its lock is missing or damaged."""
    return Published(home, version, read_lock(home, version))


def select(
    environments: Sequence[Published],
    plan_inputs: PlanInputs,
    choice: PlanOptions,
    context: Context,
    reading: Reading = "to plan",
) -> Published | Planned:
    """Return the environment that was built from the recipe as it is now, or else a plan.

    Its lock was made from the same text of the recipe, or decides the same. With waivers of the
    command line only the second counts.
    """
    for environment in environments:
        if not choice.allow and _same_recipe(environment, plan_inputs):
            return environment
    planned = plan_recipe(plan_inputs, context, reading)
    same = (each for each in environments if decides_same(each, planned.plan))
    return next(same, planned)


def _same_recipe(environment: Published, plan_inputs: PlanInputs) -> bool:
    plan = environment.plan
    recipes = [each.sha256 for each in plan.inputs if each.kind == "recipe"]
    place = (plan_inputs.site.name, plan_inputs.arch)
    return (plan.site, plan.arch) == place and recipes == [plan_inputs.recipe.sha256]


def decides_same(environment: Published, plan: Plan) -> bool:
    """Whether a plan made now decides what the lock of the environment does."""
    return plan_decisions(environment.plan) == plan_decisions(plan)


def plan_again(environment: Published, choice: PlanOptions, context: Context) -> Planned:
    """Return a plan of the environment made now, if that decides the same.

    Raises DriftError if it decides something else, or if it cannot be made: the root keeps what was
    decided, not the recipe.
    """
    context = environment.context(context)
    try:
        plan_inputs = load(replace(choice, recipe="").as_locked(environment.plan), context)
        planned = plan_recipe(plan_inputs, context)
        if decides_same(environment, planned.plan):
            return planned
    except EnvbuildError as error:
        raise DriftError(
            "environment.not-plannable",
            f"cannot make a new plan of {environment.name}: {error}",
            f"its lock: {environment.lock_file}",
            "use the path of the recipe's file to examine a plan made now",
        ) from error
    changed = changed_inputs(environment.lock, plan_inputs.inputs())
    raise DriftError(
        "environment.outdated",
        f"a plan made now differs from {environment.name}; changed: {', '.join(changed)}",
        f"envbuild diff {environment.name} live shows the differences",
        f"use the recipe's file to examine a plan made now: {plan_inputs.recipe.path}",
    )


def check_programs(environment: Published, *names: str) -> None:
    """Raise DriftError unless the prefix and these programs of it are there, UsageError for images.

    A link to a Python that only the compute nodes have counts as there.
    """
    check_not_image(environment.home, environment.version)
    prefix = environment.prefix
    paths = (prefix, *(prefix / "bin" / name for name in names))
    gone = next((path for path in paths if not os.path.lexists(path)), None)
    if gone is not None:
        raise DriftError(
            "environment.damaged",
            f"{environment.name} is damaged: {gone} is missing",
            "it was moved or removed after it was published; an environment cannot be moved",
            f"build it again from its lock: {environment.lock_file}",
        )
