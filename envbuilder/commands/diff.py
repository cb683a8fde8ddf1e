"""``envbuild diff``: two locks or environments; or one and a plan made now."""

from __future__ import annotations

from dataclasses import replace

from ..documents.library import find as find_document
from ..documents.load import load_recipe
from ..errors import UsageError
from ..model.diff import Diff, diff
from ..model.plan import Lock
from ..root.environment_lock import read_lock
from ..root.environments import find
from ..workflow.context import Context
from ..workflow.entries import entries
from ..workflow.image_contents import opened
from ..workflow.inputs import with_inputs
from ..workflow.load import load, plan_recipe
from ..workflow.lock import LOCKS
from ..workflow.options import LiveOptions, RootOptions
from ..workflow.places import existing_root
from ..workflow.published import is_recipe_file

LIVE = "live"
_IMAGES = (".sif", ".oci")


def compare(before: str, after: str, choice: LiveOptions, context: Context) -> Diff:
    """Return what differs between two of: lock files, environments, images; ``live``.

    *choice*: the root, and how a plan made now is made; what is not said, as locked. Raises
    UsageError for what is none of these; what a plan raises where a plan made now has no answer.
    """
    if before == LIVE:
        raise UsageError(
            "diff.live-first", "'live' must be the second argument", "envbuild diff LOCK live"
        )
    where = RootOptions(choice.root, choice.site, choice.arch)
    if is_recipe_file(before) and not choice.recipe:
        choice = replace(choice, recipe=before)
    one, name, known = _read(before, where, context)
    if after == LIVE:
        live = plan_recipe(load(choice.as_locked(one.plan), known), known).plan
        # No index is asked for it.
        return diff(one, live, (name, "a plan made now, without files"))
    other, its_name, _ = _read(after, where, context)
    return diff(one, other, (name, its_name))


def _read(word: str, where: RootOptions, context: Context) -> tuple[Lock, str, Context]:
    """Return the lock that a word means, and what to call it: a file, an image, or an environment.

    The context returned also finds the documents that the environment was built from.

    A recipe's file means the environment of the recipe's name.
    """
    if is_recipe_file(word):
        recipe = load_recipe(
            find_document("recipe", word, context.folders), context.knowledge, entries()
        )
        word = recipe.value.name
    path = context.path(word)
    image = path.suffix in _IMAGES or path.is_dir()
    if not image and (word.startswith(("/", ".")) or word.endswith(".json") or path.is_file()):
        lock = LOCKS.load(path)
        return lock, f"{word} ({lock.id()})", context
    with opened(word, lambda: existing_root(where, context), context) as found:
        home, version = find(found.root, found.environment)
        said = word if found.image else f"{home.name}/{version.number}"
        known = context if found.image else with_inputs(context, home, version.id)
        return read_lock(home, version), f"{said} ({version.id})", known
