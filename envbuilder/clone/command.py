"""``envbuild clone``: an environment like a conda prefix that exists, which stays as it is.

What conda recorded of the prefix is a lock: it becomes a recipe, and a lock of just its packages.
They come from their channels; what these no longer serve is taken from conda's package cache, or
put together again from the prefix, into a channel's folder of its own beside the recipe.
"""

from __future__ import annotations

import contextlib
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..commands.create import create
from ..commands.lock_listed import listed_of, lock_packages
from ..conda.contents import places_of, read_records
from ..conda.package_list import find
from ..conda.repack import Archive, CannotRepackError, kept, repack, strangers, take, write_repodata
from ..documents.library import NAME
from ..errors import BuildError, DocumentError, Place, Problem, UsageError
from ..files import remove_tree
from ..formats.environment_yml import EnvironmentFile, pinned
from ..formats.packages import CondaEntry, PackageList
from ..formats.prefix import PrefixPackages, read_prefix
from ..formats.recipe import recipe_text
from ..inspect.environments import prefix_of
from ..inspect.facts import InstalledDistribution
from ..inspect.origins import direct_origin
from ..inspect.reading import read_environment
from ..knowledge.channels import SUBDIRS, Channel
from ..knowledge.urls import plain_url
from ..model.outcome import BundleResult, CreateResult, ImageResult
from ..runtimes import BUNDLED
from ..target_tools.conda_packages import placed, scripts, wrong_files
from ..text import counted, shown
from ..workflow.channels import engine, virtual_packages
from ..workflow.context import Context
from ..workflow.foreign_files import check_recipe, known_names, write_new
from ..workflow.load import PlanInputs, load
from ..workflow.options import CloneOptions, CreateOptions
from ..workflow.plan_options import PlanOptions
from ..workflow.targets.protocol import BuildHints, no_hints

_SUFFIX = ".yaml"
_SHOWN = 20


def clone(
    options: CloneOptions, context: Context, build_hints: BuildHints = no_hints
) -> CreateResult | BundleResult | ImageResult:
    """Make, prove and publish an environment of the packages of a prefix.

    Writes the recipe NAME.yaml into the current folder, and beside it, where channels lack a
    package, the folder NAME.packages; neither is left where it fails. Raises DocumentError for a
    prefix that is not as its packages were packed, UsageError for what is no conda environment of
    this machine.
    """
    recipe = _new_recipe(options.name, context)
    prefix = prefix_of(options.source, options.root, context).resolve()
    found = read_prefix(prefix)
    _check_arch(found.packages)
    with context.reporter.working(f"compare {prefix} with its packages"):
        pip = _checked(prefix, found, options, context)
    asked = pinned(found.packages)
    asked = replace(asked, pip=tuple(f"{each.name}=={each.version}" for each in pip))
    inputs = _drafted(asked, options, context)
    with contextlib.ExitStack() as failed:
        packages = _available(prefix, found, inputs, options.name, context, failed)
        asked = replace(pinned(packages), pip=asked.pip)
        text, lost = _recipe(asked, options.name, prefix, context)
        for each in lost:
            context.reporter.warn(each)
        write_new(recipe, text)
        failed.callback(recipe.unlink, missing_ok=True)
        context.reporter.say(f"wrote {recipe.name}")
        made = _created(recipe, packages, options, context, str(prefix), build_hints)
        failed.pop_all()
    return made


def _created(
    recipe: Path,
    packages: PackageList,
    options: CloneOptions,
    context: Context,
    origin: str,
    build_hints: BuildHints,
) -> CreateResult | BundleResult | ImageResult:
    """Create the environment of a recipe and just these packages. *origin*: what they are from."""
    choice = PlanOptions(str(recipe), options.site, None, options.partition, None, options.allow)
    lock = lock_packages(packages, load(choice, context), context, origin)
    with tempfile.TemporaryDirectory(prefix="envbuild-clone-") as folder:
        file = Path(folder, "lock.json")
        file.write_text(lock.text(), encoding="utf-8")
        made = CreateOptions(
            replace(choice, allow=None), root=options.root, target="here", locked=file
        )
        return create(made, context, build_hints)


def _new_recipe(name: str, context: Context) -> Path:
    """Return where the recipe is written. Raises UsageError where something of that name is."""
    if not NAME.fullmatch(name):
        raise UsageError(
            "environment.malformed-name",
            f"'{shown(name)}' is not a valid name of an environment: use lower case",
        )
    recipe = context.cwd / f"{name}{_SUFFIX}"
    for each in (recipe, _packages(name, context)):
        if each.exists():
            hint = f"use another --name, or run envbuild create {recipe.name}"
            raise UsageError("clone.file-exists", f"{each.name} already exists", hint)
    return recipe


def _check_arch(packages: PackageList) -> None:
    own = SUBDIRS.get(platform.machine())  # type: ignore[call-overload]
    if packages.platform != own:
        raise UsageError(
            "clone.other-platform",
            f"the prefix is for {packages.platform}, but this machine is {own}",
            f"clone it on a machine for {packages.platform}",
        )


def _checked(
    prefix: Path, found: PrefixPackages, options: CloneOptions, context: Context
) -> tuple[InstalledDistribution, ...]:
    """Return what pip installed there. Raises DocumentError for what a clone would not have."""
    records = [*found.records.values()]
    pip = [*_by_pip(prefix, records, context)]
    files = {
        path.resolve().relative_to(prefix).as_posix()
        for each in pip
        for path in _files_of(each)
        if path.resolve().is_relative_to(prefix)
    }
    changed = [*wrong_files(prefix, records)]
    more = [f"{each} belongs to no package" for each in strangers(prefix, records, files)]
    wrong = [
        Problem("clone.package-runs-script", each, Place(str(prefix)), ())
        for each in scripts(records)
    ]
    for each in pip:
        origin = direct_origin(each)
        if origin and each.key != BUNDLED and not options.leave:
            wrong.append(
                Problem(
                    "clone.not-from-index",
                    f"pip installed {each} from {origin}, not from an index",
                    Place(str(prefix)),
                )
            )
    left = [*changed, *more]
    if left and not options.leave:
        hint = "use --leave to clone the packages without these files and changes"
        wrong += [
            Problem("clone.file-changed", shown(each, 300), Place(str(prefix)), ())
            for each in left[:_SHOWN]
        ]
        if len(left) > _SHOWN:
            wrong.append(
                Problem(
                    "clone.file-changed",
                    f"and {len(left) - _SHOWN} more",
                    Place(str(prefix)),
                    (),
                )
            )
        wrong[-1] = wrong[-1]._replace(hints=(hint,))
    if wrong:
        raise DocumentError(tuple(wrong))
    for line in left:
        context.reporter.warn(f"not cloned: {shown(line, 300)}")
    # A new environment gets a runtime of its own.
    others = [each for each in pip if each.key != BUNDLED]
    taken = tuple(each for each in others if direct_origin(each) is None)
    for each in others:
        if each not in taken:
            context.reporter.warn(f"not cloned: {each}, which pip did not install from an index")
    return taken


def _by_pip(
    prefix: Path, records: Sequence[Mapping[str, Any]], context: Context
) -> Iterator[InstalledDistribution]:
    owned = {name for record in records for name, _ in placed(record)}
    for each in read_environment(prefix, context.environ).distributions:
        metadata = (each.path / "METADATA").relative_to(prefix).as_posix()
        if metadata not in owned:
            yield each


def _files_of(each: InstalledDistribution) -> Iterator[Path]:
    yield from (each.path.parent / name for name in each.recorded or ())
    # A file of pip's that RECORD need not name.
    yield from (path for path in each.path.glob("*") if path.is_file())


def _drafted(asked: EnvironmentFile, options: CloneOptions, context: Context) -> PlanInputs:
    """Return what is read for a first recipe, which names every channel of the records."""
    text, _ = _recipe(asked, options.name, Path(options.source), context)
    with tempfile.TemporaryDirectory(prefix="envbuild-clone-") as folder:
        draft = Path(folder, f"{options.name}{_SUFFIX}")
        draft.write_text(text, encoding="utf-8")
        choice = PlanOptions(str(draft), options.site, None, options.partition, None, options.allow)
        return load(choice, context)


def _recipe(
    asked: EnvironmentFile, name: str, prefix: Path, context: Context
) -> tuple[str, tuple[str, ...]]:
    known = known_names(context.knowledge)
    arch = platform.machine()
    text, lost = recipe_text(asked, known, name, arch, str(prefix))  # type: ignore[arg-type]
    check_recipe(text, name, prefix, context)
    return text, lost


# ---------------------------------------------------------------- where the packages come from


def _available(
    prefix: Path,
    found: PrefixPackages,
    inputs: PlanInputs,
    name: str,
    context: Context,
    failed: contextlib.ExitStack,
) -> PackageList:
    """Return the packages, each from a place that has it. *failed*: what is made is removed by it.

    Raises DocumentError for one that no channel and no cache has and that cannot be put together.
    """
    channels = {
        each: inputs.knowledge.value.channels[each] for each in inputs.recipe.value.channels
    }
    with context.reporter.working(f"look up {counted(len(found.packages.conda), 'package')}"):
        served, dead = _served(found.packages, channels, inputs, context)
    lacking = [each for each in found.packages.conda if each not in served]
    _check_licences(dead, context)
    gone = {each.url for each in dead.values()}
    if not lacking:
        read = tuple(each for each in found.packages.channels if plain_url(each) not in gone)
        return replace(found.packages, channels=read)
    own = _packages(name, context)
    archives: dict[str, Archive] = {}
    wrong = []
    own.mkdir()
    failed.callback(remove_tree, own)
    for each in lacking:
        record = {**found.records[each.name], "subdir": each.subdir}
        file = kept(prefix, record)
        try:
            archives[each.name] = take(file, record, own) if file else repack(prefix, record, own)
        except (CannotRepackError, OSError) as error:
            wrong.append(
                Problem("clone.package-not-available", f"{each.filename}: {error}", each.place, ())
            )
        else:
            how = "using conda's cache" if file else "repacking it from the prefix"
            context.reporter.say(f"no channel serves {each.filename}: {how}")
    if wrong:
        raise DocumentError(tuple(wrong))
    write_repodata(own, [*archives.values()])
    conda = tuple(
        _moved(each, archives[each.name]) if each.name in archives else each
        for each in found.packages.conda
    )
    # First, as no other has them; those that cannot be read are left out.
    urls = [own.as_uri(), *(each.channel for each in conda if plain_url(each.channel) not in gone)]
    return replace(found.packages, channels=tuple(dict.fromkeys(urls)), conda=conda)


def _packages(name: str, context: Context) -> Path:
    """Return the channel's folder for what no channel serves."""
    return context.cwd / f"{name}.packages"


def _moved(each: CondaEntry, archive: Archive) -> CondaEntry:
    row = archive.row
    return replace(
        each, url=archive.path.as_uri(), sha256=row["sha256"], md5=row["md5"], size=row["size"]
    )


def _served(
    packages: PackageList,
    channels: Mapping[str, Channel],
    inputs: PlanInputs,
    context: Context,
) -> tuple[set[CondaEntry], dict[str, Channel]]:
    """Return the packages that the channels have just so, and the channels that cannot be read."""
    held: dict[str, list[Mapping[str, Any]]] = {}
    dead: dict[str, Channel] = {}
    names = {each.name for each in packages.conda}
    urls = places_of(channels, inputs.site.channels)
    for name in channels:
        try:
            records, _ = read_records(
                {name: urls[name]},
                names,
                inputs.arch,
                engine(context),
                virtual_packages(inputs),
                context.reporter.warn,
            )
        except BuildError as error:
            context.reporter.warn(str(error))
            dead[name] = channels[name]
        else:
            held |= records
    served = {
        each
        for each in packages.conda
        for wanted in listed_of([each])
        if not isinstance(find(wanted, held), Problem)
    }
    return served, dead


def _check_licences(dead: Mapping[str, Channel], context: Context) -> None:
    """Raise UsageError unless the licence of packages was accepted, whose channel is not asked."""
    for name, channel in dead.items():
        licence = channel.licence
        if licence and context.environ.get(licence.variable) != licence.value:
            raise UsageError(
                "clone.licence-not-accepted",
                f"the packages of {name} have a licence: {licence.summary}",
                f"read it; to accept it, set {licence.variable}={licence.value}",
            )
