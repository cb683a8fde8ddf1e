"""What an image is planned for: its base, or a site whose modules it binds in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..documents.library import find
from ..documents.load import load_recipe
from ..documents.site_choice import choose_site
from ..errors import UsageError
from ..model.base_image import BaseImage, Bind
from .context import Context
from .entries import entries
from .image_base import named_base
from .image_binds import bound_inputs, parse_binds
from .load import PlanInputs, load
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
    modules = own.stack == "modules" and not asked.binds
    if asked.base and not modules:
        return given
    if asked.base is None and own.base:
        given = given._replace(base=own.base, folder=recipe.path.parent, by_document=True)
    chosen = choose_site(choice.site, site_search(context), recipe.value, choice.arch)
    site = chosen.site.image
    if given.base is None and site.base and chosen.path:
        given = given._replace(base=site.base, folder=chosen.path.parent, by_document=True)
    if modules and not site.binds:
        raise UsageError(
            "bind.missing",
            f"an image of {recipe.value.name} uses the modules of {chosen.site.name}, but the site "
            "does not state their folders",
            "add --bind FOLDER for each folder with modules",
            "or write image: {binds: [/sw, ...]} in the site file",
            place=recipe.place("image"),
        )
    return given._replace(binds=site.binds) if modules else given
