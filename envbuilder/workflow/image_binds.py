"""The folders of a machine that an image binds in: the modules of the site that its stack needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from ..errors import UsageError
from ..knowledge.ranges import version
from ..model.base_image import BIND_UNFIT, BaseImage, Bind
from ..model.plan import Modules
from ..text import shown
from .context import Context
from .load import PlanInputs


def parse_binds(given: Sequence[str], context: Context) -> tuple[Bind, ...]:
    """Return what ``--bind SOURCE[:TARGET]`` names. Raises UsageError for what cannot be bound."""
    return tuple(_parsed(text, context) for text in given)


def _parsed(text: str, context: Context) -> Bind:
    source, _, target = text.partition(":")
    folder = context.path(Path(source))
    place = PurePosixPath(target or str(folder))
    if not folder.is_dir():
        raise UsageError(
            "bind.not-a-folder",
            f"--bind {shown(text)}: {folder} is not a folder of this machine",
        )
    if not place.is_absolute() or ".." in place.parts or len(place.parts) < 2:
        raise UsageError(
            "bind.invalid-target",
            f"--bind {shown(text)}: the path in the image must be absolute and not /",
            "write --bind SOURCE:/TARGET, or --bind /SOURCE if both paths are the same",
        )
    if BIND_UNFIT.search(str(folder)) or BIND_UNFIT.search(str(place)):
        raise UsageError(
            "bind.reserved-character",
            f"--bind {shown(text)}: Apptainer does not accept ',' or ':' in a path",
        )
    return Bind(folder, place)


def bound_inputs(
    inputs: PlanInputs, base: BaseImage | None, warn: Callable[[str], None]
) -> PlanInputs:
    """Return what a plan of the site's own modules is made of, for an image.

    Inside are no scheduler and no launcher of the site: ranks are started by the MPI's own. Raises
    UsageError for a base in which the site's programs do not run; *warn* is told if that cannot be
    compared.
    """
    site = inputs.site
    if base is not None:
        if inputs.arch not in base.site.arch:
            raise UsageError(
                "base.other-arch",
                f"the base is for {', '.join(base.site.arch)}, not {inputs.arch}",
            )
        _check_glibc(inputs, base, warn)
    inside = site.model_copy(update={"launcher": None, "scheduler": None})
    source = base.source if base else None
    return replace(inputs, chosen=inputs.chosen._replace(site=inside), base=source)


def _check_glibc(inputs: PlanInputs, base: BaseImage, warn: Callable[[str], None]) -> None:
    """Raise UsageError for a base that is older than what the site's programs were linked with."""
    of_site = inputs.chosen.facts.glibc or inputs.site.facts.glibc
    of_base = base.site.facts.glibc
    oldest, version_of_base = (version(each or "") for each in (of_site, of_base))
    if oldest is None or version_of_base is None:
        warn(
            f"the glibc of the base, {of_base or 'unknown'}, is not compared with that of "
            f"{inputs.site.name}, {of_site or 'not stated'}: state facts: {{glibc: ...}} in the "
            "site file"
        )
    elif version_of_base < oldest:
        raise UsageError(
            "base.old-glibc",
            f"the base has glibc {of_base}, but the programs of {inputs.site.name} need {of_site}",
            f"use a base with glibc {of_site} or newer",
        )


def check_binds(modules: Modules, binds: Sequence[Bind], base: Path | None) -> None:
    """Raise UsageError where the image would not have a folder that its modules are loaded from.

    *base*: the folder that the image begins with; None where it is not made yet.
    """
    _check_loads(modules)
    for path in map(PurePosixPath, (*filter(None, [modules.init]), *modules.trees)):
        if not any(_holds(each, path) for each in binds) and not _in_base(base, path):
            raise _missing(path)


def check_trees(modules: Modules, binds: Sequence[str]) -> None:
    """Raise UsageError where a module tree is below no folder that is bound; read no folder."""
    _check_loads(modules)
    targets = [text.rpartition(":")[2] for text in binds]
    for path in map(PurePosixPath, modules.trees):
        if not any(path.is_relative_to(each) for each in targets):
            raise _missing(path)


def _check_loads(modules: Modules) -> None:
    if not modules.loads:
        raise UsageError(
            "bind.no-modules",
            "--bind is for the modules of a site, but the plan uses no modules",
            "leave --bind out: the image is then planned for its base",
        )


def _missing(path: PurePosixPath) -> UsageError:
    return UsageError(
        "bind.missing",
        f"the image does not bind {path}, from which its modules are loaded",
        "add --bind FOLDER with a folder of this machine above it, such as /sw",
    )


def _holds(bind: Bind, path: PurePosixPath) -> bool:
    if not path.is_relative_to(bind.target):
        return False
    return (bind.source / path.relative_to(bind.target)).exists()


def _in_base(base: Path | None, path: PurePosixPath) -> bool:
    return base is None or (base / path.relative_to("/")).exists()
