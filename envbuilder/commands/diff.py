"""``envbuild diff``: two locks, bills of materials or environments; or one and a plan made now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..documents.library import find as find_document
from ..documents.load import load_recipe
from ..documents.source import read
from ..errors import UsageError
from ..model.diff import Diff, diff, diff_leaves
from ..model.plan import Lock
from ..record.bills import Bill, as_bill, read_bill
from ..root.environment_lock import read_lock
from ..root.environments import find
from .context import Context
from .entries import entries
from .image_contents import opened
from .load import load
from .lock import LOCKS
from .options import LiveOptions, RootOptions
from .places import existing_root
from .published import is_recipe_file
from .texts import bill_of

LIVE = "live"
_IMAGES = (".sif", ".oci")


def compare(before: str, after: str, choice: LiveOptions, context: Context) -> Diff:
    """Return what differs between two of: lock files, bills of materials, environments; ``live``.

    *choice*: the root, and how a plan made now is made; what is not said, as locked. Raises
    UsageError for what is none of these; what a plan raises where a plan made now has no answer.
    """
    if before == LIVE:
        raise UsageError("'live' comes second: envbuild diff LOCK live")
    where = RootOptions(choice.root, choice.site, choice.arch)
    if is_recipe_file(before) and not choice.recipe:
        choice = replace(choice, recipe=before)
    one, name = _read(before, where, context)
    if after == LIVE:
        if not isinstance(one, Lock):
            raise UsageError(
                f"{before} names files, and a plan has none", "compare it with a lock: LOCK"
            )
        live = load(choice.as_locked(one.plan), context).planned
        return diff(one, live, (name, "a plan made now"))
    other, its_name = _read(after, where, context)
    names = name, its_name
    if isinstance(one, Lock) and isinstance(other, Lock):
        return diff(one, other, names)
    return _diff_bills(_bill(one), _bill(other), names)


def _read(word: str, where: RootOptions, context: Context) -> tuple[Lock | Bill, str]:
    """Return what a word means, and what to call it: a file, an image, or an environment.

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
        return _from_file(word, path)
    with opened(word, lambda: existing_root(where, context), context) as found:
        home, version = find(found.root, found.environment)
        said = word if found.image else f"{home.name}/{version.number}"
        return read_lock(home, version), f"{said} ({version.id})"


def _from_file(word: str, path: Path) -> tuple[Lock | Bill, str]:
    source = read(path, LOCKS.max_bytes)
    try:
        bill = read_bill(source.text)
    except ValueError as error:
        raise UsageError(f"{word} cannot be read: {error}") from error
    if bill:
        return bill, f"{word} ({bill.kind})"
    lock = LOCKS.read(source)
    return lock, f"{word} ({lock.id()})"


def _bill(value: Lock | Bill) -> Bill:
    """Return what a lock names: its own bill of materials, read as any other."""
    if isinstance(value, Bill):
        return value
    return as_bill(bill_of(value))


def _diff_bills(one: Bill, other: Bill, names: tuple[str, str]) -> Diff:
    """Compare two bills; with provenance, which says no more, their files alone."""
    if one.kind == other.kind:
        return diff_leaves(one.leaves, other.leaves, names)
    return diff_leaves(one.files(), other.files(), names)
