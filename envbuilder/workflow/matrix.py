"""The matrix: several recipes on the architectures of one site, each planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ..documents.library import catalogue, find
from ..documents.load import load_recipe
from ..documents.site_choice import choose_site, with_partition
from ..errors import EnvbuildError, NoSolutionError, UsageError
from ..machine.workspaces import expand_workspace
from ..model.plan import Input, Step
from ..model.progress import Listener
from ..model.site import Site
from .context import Context, Reporter
from .entries import entries
from .image_inputs import planned_image
from .launch_requests import facts_of
from .load import Planned, load, plan_recipe
from .options import ImageOptions, MatrixOptions
from .plan_options import PlanOptions
from .site_contents import site_search


@dataclass(frozen=True)
class MatrixRow:
    """One row of the matrix: a recipe on an architecture, planned.

    ``word``: what the user calls the recipe. ``image``: the base and the folders to bind of its
    image; None: the site builds no image of it.
    """

    word: str
    arch: str
    planned: Planned
    image: ImageOptions | None = None

    @property
    def name(self) -> str:
        return self.planned.plan.recipe

    @property
    def gpus(self) -> bool:
        """Whether it is proved on GPUs."""
        return facts_of(self.planned.plan, self.planned.inputs).gpus

    @property
    def several(self) -> bool:
        """Whether it is proved on several ranks."""
        return self.planned.plan.smoke.ranks > 1

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.planned.inputs.inputs()


@dataclass(frozen=True)
class RefusedRow:
    """A recipe on an architecture that cannot pass, and the reason.

    ``channel``: the conda channel that is gone, if that is the reason.
    """

    name: str
    arch: str
    reason: str
    channel: str | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.arch}"


@dataclass(frozen=True)
class Matrix:
    """A site's rows. ``base``: the folder that its roots are below."""

    site: Site
    rows: tuple[MatrixRow, ...]
    base: Path
    options: MatrixOptions
    refused: tuple[RefusedRow, ...] = ()

    def root(self, arch: str) -> Path:
        """Return the root of an architecture."""
        return self.base / self.site.name / arch


def matrix(options: MatrixOptions, context: Context) -> Matrix:
    """Plan every recipe for every architecture of the site.

    Without recipes it is those that are documented for the site. What cannot be planned is no row;
    of documented recipes this is a warning.
    """
    chosen = with_partition(choose_site(options.site, site_search(context)), options.partition)
    context.reporter.say(chosen.describe())
    site, base = chosen.site, options.base or chosen.site.base
    if base is None:
        raise UsageError(
            "site.no-base",
            f"site {site.name} does not state a folder for its roots",
            "add --base DIR",
        )
    words = options.matrix or _documented(site, context)
    every = [row for word in words for row in _rows(word, site, options, context)]
    if not every and not site.ci.record:
        raise UsageError(
            "recipe.missing",
            f"no recipe is documented for {site.name}",
            "name recipes after the command",
        )
    rows = tuple(each for each in every if isinstance(each, MatrixRow))
    refused = tuple(each for each in every if isinstance(each, RefusedRow))
    for each in refused if not options.matrix else ():
        context.reporter.warn(f"cannot plan {each.name} for {each.arch}: {each.reason}")
    if len({(row.name, row.arch) for row in rows}) != len(rows):
        raise UsageError(
            "recipe.duplicate",
            "two of the recipes have the same name",
            "leave one of them out",
        )
    base = expand_workspace(base, context.environ)
    return Matrix(site, rows, context.path(base), options, refused)


def for_pipeline(planned: Matrix, context: Context) -> Matrix:
    """Return the rows of a pipeline, each with its image, without those that cannot pass.

    Raises NoSolutionError if a recipe that the user names cannot pass, or if none can.
    """
    quiet = replace(context, reporter=_Silent(context.reporter))
    every = [_for_pipeline(row, planned.options, quiet) for row in planned.rows]
    rows = tuple(each for each in every if isinstance(each, MatrixRow))
    unfit = tuple(each for each in every if isinstance(each, RefusedRow))
    refused = (*planned.refused, *unfit)
    lines = [f"{each}: {each.reason}" for each in refused]
    if refused and (planned.options.matrix or not rows):
        raise NoSolutionError(
            "ci.rows-refused",
            "\n".join(["these rows of the pipeline cannot pass:", *lines]),
            "leave them out, or change the recipe or the site",
        )
    for line in lines[len(planned.refused) :]:
        context.reporter.warn(f"not a row of the pipeline: {line}")
    return replace(planned, rows=rows, refused=refused)


def _for_pipeline(
    row: MatrixRow, options: MatrixOptions, context: Context
) -> MatrixRow | RefusedRow:
    """Return a row with its image, or why it cannot pass."""
    inputs = row.planned.inputs
    recipe, site = inputs.recipe.value, inputs.site
    for channel in recipe.channels:
        known = inputs.knowledge.value.channels.get(channel)
        if known and known.withdrawal and channel not in site.channels:
            since = known.withdrawal.since
            reason = f"the channel {channel} is gone since {since}, and the site states no copy"
            return RefusedRow(row.name, row.arch, reason, channel)
    images = site.ci.image
    if images is None or (images.recipes and recipe.name not in images.recipes):
        return row
    choice = PlanOptions(row.word, options.site, row.arch, options.partition)
    try:
        image = planned_image(images.base, choice, inputs, context)
    except EnvbuildError as error:
        return RefusedRow(row.name, row.arch, f"its image: {_reason(error)}")
    return replace(row, image=replace(image, format=images.format))


def _documented(site: Site, context: Context) -> tuple[str, ...]:
    """Return the recipes that are documented for a site."""
    found = []
    for name, path in catalogue("recipe", context.folders):
        try:
            recipe = load_recipe(path, context.knowledge, entries()).value
        except EnvbuildError as error:
            context.reporter.warn(f"skipped {name}: {error}")
            continue
        if site.name in recipe.documented_for.values():
            found.append(name)
    return tuple(found)


def _rows(
    word: str, site: Site, options: MatrixOptions, context: Context
) -> Iterator[MatrixRow | RefusedRow]:
    """Yield a recipe on each architecture that it shares with the site."""
    recipe = load_recipe(find("recipe", word, context.folders), context.knowledge, entries()).value
    requested = options.arch or site.arch
    quiet = replace(context, reporter=_Silent(context.reporter))
    for arch in (each for each in recipe.arch if each in requested):
        choice = PlanOptions(word, options.site, arch, options.partition)
        try:
            yield MatrixRow(word, arch, plan_recipe(load(choice, quiet), quiet))
        except EnvbuildError as error:
            yield RefusedRow(recipe.name, arch, _reason(error))


def _reason(error: EnvbuildError) -> str:
    _, message, place, _ = error.problems[0]
    line = message.partition("\n")[0]
    return f"{place}: {line}" if place else line


@dataclass(frozen=True)
class _Silent:
    """Tells no more than warnings: of twenty recipes each would say the same of the site."""

    heard: Reporter

    def say(self, line: str) -> None:
        pass

    def warn(self, line: str) -> None:
        self.heard.warn(line)

    def working(self, title: str) -> AbstractContextManager[None]:
        return self.heard.working(title)

    def steps(self, steps: tuple[Step, ...]) -> AbstractContextManager[Listener]:
        return self.heard.steps(steps)
