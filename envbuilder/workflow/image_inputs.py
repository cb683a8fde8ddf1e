"""What an image is planned for: its base, or a site whose modules it binds in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..documents.library import find
from ..documents.load import LoadedDocument, load_recipe
from ..documents.site_choice import choose_site
from ..errors import UsageError
from ..model.base_image import BaseImage, Bind
from ..model.places import REGISTRY
from ..model.recipe import Recipe
from ..model.site import Site
from ..text import shown
from .context import Context
from .entries import entries
from .image_base import check_base_stated, named_base
from .image_binds import bound_inputs, check_trees, parse_binds
from .load import PlanInputs, load, plan_recipe
from .options import ImageOptions
from .plan_options import PlanOptions
from .site_contents import site_search


class ImageInputs(NamedTuple):
    """What a plan of an image is made of. *base*: None for the Debian that the site states."""

    plan_inputs: PlanInputs
    base: BaseImage | None = None
    binds: tuple[Bind, ...] = ()

    @property
    def begins_with_folder(self) -> bool:
        """Whether ``envbuild image`` builds it: else an image begins with one of a registry."""
        return self.base is not None or self.plan_inputs.site.debian is not None


class _ImageOptions(NamedTuple):
    """What an image begins with and binds. *folder*: what a path of the base is relative to."""

    base: str | None
    folder: Path
    binds: tuple[str, ...]
    by_document: bool = False


def image_inputs(asked: ImageOptions, choice: PlanOptions, context: Context) -> ImageInputs:
    """Read what an image is planned with: as options say, else recipe, else site.

    Raises UsageError for what no image can begin with or bind, BuildError for a base that cannot be
    fetched.
    """
    stated = _stated(asked, choice, context)
    bound = parse_binds(stated.binds, context)
    found = named_base(
        stated.base,
        choice,
        context,
        asked.build,
        site_counts=bool(bound) or stated.by_document,
        folder=stated.folder,
    )
    if bound:
        plan_inputs = bound_inputs(load(choice, context), found, context.reporter.warn)
    else:
        plan_inputs = load(choice, context, found)
    return ImageInputs(plan_inputs, found, bound)


def _stated(asked: ImageOptions, choice: PlanOptions, context: Context) -> _ImageOptions:
    document = find("recipe", choice.recipe, context.folders)
    recipe = load_recipe(document, context.knowledge, entries())
    own, given = recipe.value.image, _ImageOptions(asked.base, context.cwd, asked.binds)
    if asked.base and (asked.binds or own.stack != "modules"):
        return given
    if asked.base is None and own.base:
        given = given._replace(base=own.base, folder=recipe.path.parent, by_document=True)
    chosen = choose_site(choice.site, site_search(context), recipe.value, choice.arch)
    site = chosen.site.image
    if given.base is None and site.base and chosen.path:
        given = given._replace(base=site.base, folder=chosen.path.parent, by_document=True)
    if asked.binds or not _uses_modules(recipe.value, chosen.site):
        return given
    if asked.base and not site.binds:
        context.reporter.warn(
            f"site {chosen.site.name} does not state the folders of its modules: the image of "
            f"{recipe.value.name} is planned for --base alone"
        )
        return given
    _check_binds_stated(recipe, chosen.site)
    return given._replace(binds=site.binds)


def _uses_modules(recipe: Recipe, site: Site) -> bool:
    """Whether images of a recipe use the modules of a site; one without modules has none."""
    return recipe.image.stack == "modules" and site.module_system != "none"


def _check_binds_stated(recipe: LoadedDocument[Recipe], site: Site) -> None:
    if not site.image.binds:
        raise UsageError(
            "bind.missing",
            f"an image of {recipe.value.name} uses the modules of {site.name}, but the site "
            "does not state their folders",
            "add --bind FOLDER for each folder with modules",
            "or write image: {binds: [/sw, ...]} in the site file",
            place=recipe.place("image"),
        )


def planned_image(
    base: str | None, choice: PlanOptions, inputs: PlanInputs, context: Context
) -> ImageOptions:
    """Return the base and the binds that a pipeline names for an image, which was planned.

    *base*: that of the site's pipelines (default: the recipe's or the site's). *inputs*: of the
    environment. A base that is no folder of this machine is not read: its runner has it. Raises
    EnvbuildError if the image cannot be built.
    """
    own, site, document = inputs.recipe.value.image, inputs.site, inputs.chosen.path
    named = base or own.base or site.image.base
    document = inputs.recipe.path if own.base else document
    folder = context.cwd if base or document is None else document.parent
    check_base_stated(named, site)
    found, is_here = None, named is not None and (folder / named).is_dir()
    modules = _uses_modules(inputs.recipe.value, site)
    if modules:
        _check_binds_stated(inputs.recipe, site)
        if is_here:
            found = named_base(named, choice, context, site_counts=True, folder=folder)
        planned = plan_recipe(bound_inputs(inputs, found, context.reporter.warn), context)
        check_trees(planned.plan.modules, site.image.binds)
    elif is_here:
        of_base = PlanOptions(choice.recipe, arch=inputs.arch)
        found = named_base(named, of_base, context, folder=folder)
        plan_recipe(load(of_base, context, found), context)
    elif named:
        context.reporter.warn(
            f"the image of {inputs.recipe.value.name} is not planned: its base {shown(named)} is "
            "not a folder of this machine"
        )
    # What a document states relative to itself, the job reads there.
    is_stated = not base and (own.base or not str(named).startswith(("/", REGISTRY)))
    binds = site.image.binds if modules else ()
    return ImageOptions(None if is_stated else named, binds)
