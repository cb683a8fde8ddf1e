"""The matrix: several recipes on the architectures of one site, each planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from ..documents.library import catalogue, find
from ..documents.load import load_recipe
from ..documents.site_choice import choose_site, with_partition
from ..errors import EnvbuildError, UsageError
from ..machine.workspaces import expand_workspace
from ..model.plan import Input, Step
from ..model.progress import Listener
from ..model.site import Site
from .context import Context, Reporter
from .entries import entries
from .launch_requests import facts_of
from .load import Planned, load, plan_recipe
from .options import MatrixOptions
from .places import site_folder
from .plan_options import PlanOptions
from .site_contents import site_search


@dataclass(frozen=True)
class MatrixRow:
    """One row of the matrix.

    ``word``: what the user calls the recipe. ``planned``: None if the recipe has no plan, which
    the user was told.
    """

    word: str
    name: str
    arch: str
    planned: Planned | None = None

    @property
    def gpus(self) -> bool:
        """Whether it is proved on GPUs."""
        return self.planned is not None and facts_of(self.planned.plan, self.planned.inputs).gpus

    @property
    def several(self) -> bool:
        """Whether it is proved on several ranks."""
        return self.planned is None or self.planned.plan.smoke.ranks > 1

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.planned.inputs.inputs() if self.planned else ()


@dataclass(frozen=True)
class Matrix:
    """A site's rows. ``base``: the folder that its roots are below."""

    site: Site
    rows: tuple[MatrixRow, ...]
    base: Path
    options: MatrixOptions

    def root(self, arch: str) -> Path:
        """Return the root of an architecture."""
        return site_folder(self.base, self.site) / arch


def matrix(options: MatrixOptions, context: Context) -> Matrix:
    """Plan every recipe for every architecture of the site.

    Without recipes it is those that are documented for the site. What cannot be planned is warned
    of: of the recipes that the user names it stays a row, whose first job says why.
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
    rows = [row for word in words for row in _rows(word, site, options, context)]
    if not rows:
        raise UsageError(
            "recipe.missing",
            f"no recipe is documented for {site.name}",
            "name recipes after the command",
        )
    if len({(row.name, row.arch) for row in rows}) != len(rows):
        raise UsageError(
            "recipe.duplicate",
            "two of the recipes have the same name",
            "leave one of them out",
        )
    base = expand_workspace(base, context.environ)
    return Matrix(site, tuple(rows), context.path(base), options)


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


def _rows(word: str, site: Site, options: MatrixOptions, context: Context) -> Iterator[MatrixRow]:
    """Yield a recipe's rows: the architectures that it shares with the site."""
    try:
        recipe = load_recipe(
            find("recipe", word, context.folders), context.knowledge, entries()
        ).value
    except EnvbuildError as error:
        context.reporter.warn(f"cannot read {word}: {error}")
        for arch in options.arch or site.arch:
            yield MatrixRow(word, Path(word).stem, arch)
        return
    wanted = options.arch or site.arch
    for arch in (each for each in recipe.arch if each in wanted):
        try:
            yield _planned(word, arch, options, context)
        except EnvbuildError as error:
            context.reporter.warn(f"cannot plan {word} for {arch}: {error}")
            if options.matrix:
                yield MatrixRow(word, recipe.name, arch)


def _planned(word: str, arch: str, options: MatrixOptions, context: Context) -> MatrixRow:
    choice = PlanOptions(word, options.site, arch, options.partition)
    quiet = replace(context, reporter=_Silent(context.reporter))
    planned = plan_recipe(load(choice, quiet), quiet)
    return MatrixRow(word, planned.plan.recipe, arch, planned)


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
