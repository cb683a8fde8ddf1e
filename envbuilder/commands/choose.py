"""Which site, which part of it, which architecture: said, found here, or named by the recipe."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from ..documents import Loaded, catalogue, find, load_site
from ..errors import EnvbuildError, UsageError
from ..model.base import canonical_json, sha256_text
from ..model.knowledge import Knowledge
from ..model.recipe import Arch, Recipe
from ..model.site import Partition, Site, SiteFacts
from ..text import unknown
from .context import Context

LOCAL = "local"


@dataclass(frozen=True)
class ChosenSite:
    """A site, why it is the one, and the file it was read from (None: detected)."""

    site: Site
    why: str
    sha256: str
    path: Path | None = None
    partition: Partition | None = None
    partition_name: str | None = None

    @property
    def preload(self) -> tuple[str, ...]:
        own = self.partition.preload if self.partition else None
        return self.site.preload if own is None else own

    @property
    def facts(self) -> SiteFacts:
        return self.partition.facts if self.partition else SiteFacts()

    def told(self) -> str:
        """Return the first line of output: which site, and why."""
        part = f", partition {self.partition_name}" if self.partition_name else ""
        return f"site {self.site.name}{part} ({self.why}): {self.site.summary}"


def choose_site(
    asked: str | None,
    context: Context,
    folders: Sequence[Path],
    knowledge: Knowledge,
    recipe: Recipe | None = None,
    arch: str | None = None,
) -> ChosenSite:
    """Return the site: asked for, from ENVBUILD_SITE, found here, the recipe's, or this machine.

    Raises UsageError where several sites' module trees are on this machine.
    """
    if asked:
        return _named(asked, "asked for", context, folders, knowledge)
    from_environ = context.environ.get("ENVBUILD_SITE")
    if from_environ:
        return _named(from_environ, "from ENVBUILD_SITE", context, folders, knowledge)
    here = _sites_here(folders, knowledge)
    documented = recipe.documented_for.get(_arch_of(recipe, arch)) if recipe else None
    if len(here) > 1:
        here = _narrowed(here, arch or platform.machine(), documented)
    if len(here) > 1:
        names = ", ".join(each.value.name for each in here)
        raise UsageError(
            f"several sites' module trees are on this machine: {names}", "say which: --site NAME"
        )
    if here:
        return ChosenSite(here[0].value, "its modules are here", here[0].sha256, here[0].path)
    if documented:
        why = "the recipe is documented for it"
        return _named(documented, why, context, folders, knowledge)
    return _named(LOCAL, "this machine", context, folders, knowledge)


def _narrowed(here: list[Loaded[Site]], arch: str, documented: str | None) -> list[Loaded[Site]]:
    """Return of the sites that share trees those of the architecture, then the recipe's own."""
    fitting = [each for each in here if arch in each.value.arch] or here
    own = [each for each in fitting if each.value.name == documented]
    return own or fitting


def _arch_of(recipe: Recipe, asked: str | None) -> Arch:
    named = asked or platform.machine()
    return next((arch for arch in recipe.arch if arch == named), recipe.arch[0])


def _named(
    name: str, why: str, context: Context, folders: Sequence[Path], knowledge: Knowledge
) -> ChosenSite:
    if name == LOCAL:
        from ..detect import local_site

        site = local_site(context.environ)
        return ChosenSite(site, why, sha256_text(canonical_json(site.plain())))
    loaded = load_site(find("site", name, folders), knowledge)
    return ChosenSite(loaded.value, why, loaded.sha256, loaded.path)


def _sites_here(folders: Sequence[Path], knowledge: Knowledge) -> list[Loaded[Site]]:
    """Return the sites all of whose module trees are on this machine; a broken one is none."""
    found = []
    for _, path in catalogue("site", folders):
        with contextlib.suppress(EnvbuildError):
            loaded = load_site(path, knowledge)
            trees = loaded.value.module_trees
            if trees and all(Path(tree).is_dir() for tree in trees):
                found.append(loaded)
    return found


def with_partition(chosen: ChosenSite, name: str | None) -> ChosenSite:
    """Return the site with one of its partitions; UsageError where it has none of that name."""
    if name is None:
        return chosen
    partitions = chosen.site.partitions
    if name not in partitions:
        raise UsageError(
            unknown(f"partition of {chosen.site.name}", name, partitions),
            f"it has: {', '.join(partitions) or 'none'}",
        )
    return replace(chosen, partition=partitions[name], partition_name=name)


def choose_arch(asked: str | None, recipe: Loaded[Recipe], chosen: ChosenSite) -> Arch:
    """Return the architecture: asked for, else the partition's, the site's, this machine's.

    Raises UsageError if recipe or site do not have it.
    """
    site = chosen.site
    own = chosen.partition.arch if chosen.partition else None
    only = site.arch[0] if len(site.arch) == 1 else None
    wanted = asked or own or only or platform.machine()
    known: tuple[Arch, ...] = get_args(Arch)
    arch = next((each for each in known if each == wanted), None)
    if arch is None:
        raise UsageError(f"unknown architecture {wanted!r}", f"known: {', '.join(known)}")
    if arch not in recipe.value.arch:
        raise UsageError(
            f"recipe {recipe.value.name} is for {', '.join(recipe.value.arch)}, not for {arch}",
            f"--arch {recipe.value.arch[0]} asks for one of these, on any machine",
            place=recipe.place("arch"),
        )
    has = (own,) if own else site.arch
    if arch not in has:
        raise UsageError(
            f"site {site.name} has {', '.join(has)}, not {arch}",
            "--site names another site; envbuild sites list shows them",
        )
    return arch
