"""Files of other tools: environment.yml and locks of conda, pixi and conda-lock become recipes."""

from __future__ import annotations

import platform
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..conda.solve import WITH_EVERY_PYTHON
from ..documents.library import NAME
from ..errors import DocumentError, Problem, UsageError
from ..files import write_atomically
from ..formats.foreign import ForeignFile, losses_of_lock, read_foreign
from ..formats.recipe import recipe_name, recipe_text
from ..formats.recipe_draft import KnownNames
from ..knowledge.channels import SUBDIRS
from ..knowledge.entries import check_choice
from ..knowledge.names import package_names
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch
from ..machine.modules.names import stems
from ..model.outcome import ImportResult
from ..runtimes import BUNDLED, RUNTIMES
from ..text import shown
from .context import Context
from .document_checks import check
from .output import output_path

_SUFFIX = ".yaml"
# 0.23.0 in the name of a file is no suffix.
_SUFFIX_OF_FILE = re.compile(r"(?<=.)\.[A-Za-z]\w*$")
_ARCHES: Mapping[str, Arch] = {subdir: arch for arch, subdir in SUBDIRS.items()}


def read_file(file: Path, arch: str | None, context: Context) -> tuple[ForeignFile, Arch]:
    """Read a file of another tool, and say for which architecture.

    What was left out is in its notes. Raises DocumentError or UsageError.
    """
    if arch is not None:
        check_choice("architecture", arch, SUBDIRS)
    own = SUBDIRS.get(platform.machine(), "")  # type: ignore[call-overload]
    wanted = SUBDIRS[arch] if arch else None  # type: ignore[index]
    found = read_foreign(context.path(file), shown(str(file), 240), wanted, own)
    subdir = found.platform
    if subdir not in _ARCHES:
        raise UsageError(
            "list.unsupported-platform",
            f"{shown(str(file))} is for {shown(subdir)}, but envbuild supports only "
            f"{', '.join(SUBDIRS.values())}",
        )
    return found, _ARCHES[subdir]


def import_recipe(
    file: Path,
    name: str | None,
    arch: str | None,
    output: Path | None,
    context: Context,
    *,
    strict: bool = False,
) -> ImportResult:
    """Make a recipe of a file; write it to *output* where nothing is yet.

    Raises DocumentError for what cannot be read, or makes no good recipe; with *strict* also for
    each part of the file that the recipe lacks.
    """
    output_path(output, context)
    found, for_arch = read_file(file, arch, context)
    called = _name(name, output, found, file)
    known = known_names(context.knowledge)
    notes = (*found.notes, *(losses_of_lock(found.packages) if found.packages else ()))
    text, left_out = recipe_text(found.asked, known, called, for_arch, file.name, notes)
    if strict and left_out:
        raise DocumentError(tuple(Problem("package-list.loss", each, None) for each in left_out))
    check_recipe(text, called, file, context)
    if output is not None:
        write_new(context.path(output), text)
    return ImportResult(
        name=called,
        form=found.form,
        arch=for_arch,
        file=str(output) if output else None,
        recipe=text,
        left_out=left_out,
    )


def _name(name: str | None, output: Path | None, found: ForeignFile, file: Path) -> str:
    """Return what the recipe is called: as said, as its file, as its environment, as the file."""
    own = recipe_name(found.asked.name or "") or recipe_name(_SUFFIX_OF_FILE.sub("", file.name))
    return name_of_recipe(name, output, own, file.name)


def name_of_recipe(name: str | None, output: Path | None, own: str | None, origin: str) -> str:
    """Return what a recipe is called: as said, as its file, else *own*; *origin*: for people.

    Raises UsageError where that is no name of a recipe.
    """
    if output is not None and output.suffix != _SUFFIX:
        raise UsageError(
            "recipe.invalid-file-name",
            f"'{shown(str(output))}' is not a valid recipe file name: it must end in {_SUFFIX}",
        )
    said = name or (output.stem if output else None)
    if said is not None:
        if not NAME.fullmatch(said):
            raise UsageError(
                "recipe.invalid-name",
                f"'{shown(said)}' is not a valid name of a recipe",
                "use lower case, such as my-recipe",
            )
        if output is not None and output.stem != said:
            raise UsageError(
                "recipe.name-mismatch",
                f"the file {shown(output.name)} does not have the name of the recipe {shown(said)}",
                f"use --output {shown(said)}{_SUFFIX}",
            )
        return said
    if own is None:
        raise UsageError(
            "recipe.name-missing",
            f"'{shown(origin)}' does not contain a valid name for the recipe",
            "add --name NAME",
        )
    return own


def known_names(knowledge: Knowledge) -> KnownNames:
    """Return what conda, pip and channels call what is known."""
    conda = {
        package.name: component
        for channel in knowledge.channels.values()
        for component, packages in channel.packages.items()
        for package in packages
        if package.name
    }
    components = knowledge.components.items()
    bundled = RUNTIMES[BUNDLED].TRAITS
    conda |= {each.conda: name for name, each in components if each.conda}
    return KnownNames(
        conda=conda,
        pip={each.pip: name for name, each in components if each.pip},
        channels={each.url: name for name, each in knowledge.channels.items()},
        pip_variants={variant: name for name, each in components for variant in each.pip_variants},
        others=package_names(knowledge.components),
        modules=stems(knowledge.components),
        toolchains={kind: each.mpi for kind, each in knowledge.kinds.items()},
        named_channels=frozenset(knowledge.channels),
        built=frozenset(name for name, each in RUNTIMES.items() if each.TRAITS.is_component),
        tools=frozenset({*WITH_EVERY_PYTHON, *bundled.build_needs}),
        bundled=frozenset({BUNDLED}),
    )


def check_recipe(text: str, name: str, file: Path, context: Context) -> None:
    """Raise DocumentError unless the recipe is as good as one that is written by hand."""
    with tempfile.TemporaryDirectory(prefix="envbuild-import-") as folder:
        draft = Path(folder, f"{name}{_SUFFIX}")
        draft.write_text(text, encoding="utf-8")
        try:
            check("recipe", [draft], context)
        except DocumentError as error:
            raise DocumentError(
                tuple(
                    Problem(
                        "recipe.not-convertible",
                        f"cannot convert {shown(str(file))} to a recipe: {each.message}",
                        None,
                        each.hints,
                    )
                    for each in error.problems
                )
            ) from error


def write_new(path: Path, text: str) -> None:
    """Write a file where there is none. Raises UsageError if there is one, OSError."""
    try:
        write_atomically(path, text, is_new=True)
    except FileExistsError:
        raise UsageError(
            "output.exists",
            f"'{shown(str(path), 240)}' already exists",
            "use another --output",
        ) from None
