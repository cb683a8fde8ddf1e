"""The documents that an environment is built from: kept with it, and found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ..model.plan import Plan
from ..root.inputs import InputFile, input_folders, recipe_text, site_texts
from ..target_tools.root.layout import Home
from ..target_tools.trust import distrust
from .context import Context
from .load import PlanInputs


def input_texts(inputs: PlanInputs, plan: Plan) -> dict[str, str]:
    """Return the texts of the documents of a plan under their places in the build folder.

    A plan that is locked may be made of other documents than *inputs*: those are not kept, and a
    detected site has no document. Raises UsageError if a document has changed since it was read.
    """
    recipe, chosen, folders = inputs.recipe, inputs.chosen, inputs.folders
    planned = {(each.kind, each.sha256) for each in plan.inputs}
    texts: dict[str, str] = {}
    if ("recipe", recipe.sha256) in planned:
        given = _is_given(recipe.path, folders)
        texts |= recipe_text(InputFile(recipe.path, recipe.sha256, given))
    if chosen.path is None or ("site", chosen.sha256) not in planned:
        return texts
    given = _is_given(chosen.path, [each / "sites" for each in folders])
    site, snapshot = InputFile(chosen.path, chosen.sha256, given), None
    name = chosen.site.snapshot
    if name and ("snapshot", inputs.snapshot_sha256) in planned:
        snapshot = InputFile(chosen.path.parent / name, inputs.snapshot_sha256, given)
    return texts | site_texts(site, snapshot)


def _is_given(file: Path, folders: Sequence[Path]) -> bool:
    """Whether a file is in none of the folders that are searched."""
    return file.resolve().parent not in {each.resolve() for each in folders}


def with_inputs(context: Context, home: Home, identity: str) -> Context:
    """Return a context that also finds the documents that are kept with an environment.

    Warns of a document that another user may have written, and leaves its folder out.
    """
    first, last = input_folders(home.build(identity))
    return replace(
        context,
        recipe_folders=(*context.recipe_folders, *_trusted(first, home, context)),
        last_folders=(*context.last_folders, *_trusted(last, home, context)),
    )


def _trusted(folders: Sequence[Path], home: Home, context: Context) -> Iterator[Path]:
    for folder in folders:
        files = [each for each in folder.rglob("*") if not each.is_dir()]
        wrong = next(filter(None, (distrust(each, home.group) for each in files)), None)
        if wrong:
            context.reporter.warn(f"ignored {folder}: {wrong}")
        else:
            yield folder
