"""``for-arch``: the recipe as it is on one architecture."""

from __future__ import annotations

from dataclasses import replace

from ..knowledge.terms import Arch
from ..model.recipe import Recipe
from .load import LoadedDocument
from .tree import Pairs, find


def for_arch(recipe: LoadedDocument[Recipe], arch: Arch) -> LoadedDocument[Recipe]:
    """Return the recipe with what it says of *arch*, each line with its place in the file."""
    variant = recipe.value.for_arch.get(arch)
    written = find(recipe.root, ("for-arch", arch))
    if variant is None or not isinstance(written, Pairs):
        return recipe
    said = {name: getattr(variant, name) for name in type(variant).model_fields}
    update = {name: value for name, value in said.items() if value is not None}
    others = (pair for pair in recipe.root.pairs if pair[0].text not in written.index)
    root = Pairs(recipe.root.place, (*others, *written.pairs))
    return replace(recipe, value=recipe.value.model_copy(update=update), root=root)
