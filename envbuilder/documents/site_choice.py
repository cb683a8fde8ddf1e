"""Which site, which partition of it, which architecture: given, found here, or the recipe's."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

from ..base import canonical_json, sha256_text
from ..errors import EnvbuildError, UsageError
from ..knowledge.channels import unrecorded
from ..knowledge.entries import Entries
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch
from ..model.recipe import Recipe
from ..model.site import Partition, Site, SiteFacts
from ..text import unknown
from .knowledge_cache import LoadedKnowledge
from .library import catalogue, find
from .load import LoadedDocument, load_site


def settle_channels(
    recipe: LoadedDocument[Recipe],
    chosen: ChosenSite,
    knowledge: LoadedKnowledge,
    say: Callable[[str], None],
) -> tuple[LoadedDocument[Recipe], ChosenSite, LoadedKnowledge]:
    """Return recipe and site with one name for each channel, and knowledge that has all of them.

    The URL of a recorded channel is that channel, with all that is known of it, so that writing it
    otherwise neither accepts a licence nor passes by the site's copies. The site's order holds.
    """
    recorded, site = knowledge.value.channels, chosen.site
    names = {each.url: name for name, each in recorded.items()}
    # It is the same one without encryption.
    names |= {url.replace("https:", "http:", 1): name for url, name in names.items()} | names
    asked = [names.get(each, each) for each in recipe.value.channels]
    order = [names.get(each, each) for each in site.channel_order]
    channels = tuple(dict.fromkeys(sorted(asked, key=lambda each: _place(each, order))))
    if channels != tuple(dict.fromkeys(asked)):
        say(f"site {site.name} asks the conda channels in this order: {', '.join(channels)}")
    copies = {names.get(name, name): urls for name, urls in site.channels.items()}
    known = {**recorded, **{each: unrecorded(each) for each in channels if each not in recorded}}
    return (
        replace(recipe, value=recipe.value.model_copy(update={"channels": channels})),
        chosen._replace(site=site.model_copy(update={"channels": copies})),
        knowledge._replace(value=knowledge.value.model_copy(update={"channels": known})),
    )


def _place(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)


LOCAL = "local"

DESCRIBE = "envbuild sites detect --output our-site.yaml"
"""What describes this machine as a site."""

NOT_DESCRIBED = "no site file describes this machine"


class ChosenSite(NamedTuple):
    """A site, why it is the one, and the file it was read from (None: detected).

    ``described``: it was asked for, or a file describes it. Else it is this machine, by default.
    """

    site: Site
    why: str
    sha256: str
    path: Path | None = None
    partition: Partition | None = None
    partition_name: str | None = None
    described: bool = True

    @property
    def preload(self) -> tuple[str, ...]:
        own = self.partition.preload if self.partition else None
        return self.site.preload if own is None else own

    @property
    def facts(self) -> SiteFacts:
        return self.partition.facts if self.partition else SiteFacts()

    def describe(self) -> str:
        """Return the first line of output: which site, and why."""
        part = f", partition {self.partition_name}" if self.partition_name else ""
        return f"site {self.site.name}{part} ({self.why}): {self.site.summary}"


class SiteSearch(NamedTuple):
    """What sites are chosen from.

    ``folders`` hold their documents, which are read with ``knowledge`` and ``entries``.
    ``from_environ``: the value of ENVBUILD_SITE. ``detect`` returns the site that this machine is.
    ``warn`` is told of documents that cannot be considered.
    """

    folders: Sequence[Path]
    knowledge: Knowledge
    entries: Entries
    from_environ: str | None
    detect: Callable[[], Site]
    warn: Callable[[str], None]

    def named(self, name: str, why: str) -> ChosenSite:
        """Return the site of that name; ``local`` is this machine."""
        if name == LOCAL:
            site = self.detect()
            return ChosenSite(site, why, sha256_text(canonical_json(site.plain())))
        loaded = load_site(find("site", name, self.folders), self.knowledge, self.entries)
        return ChosenSite(loaded.value, why, loaded.sha256, loaded.path)

    def here(self) -> list[LoadedDocument[Site]]:
        """Return the sites all of whose module trees are on this machine."""
        sites = []
        for name, path in catalogue("site", self.folders):
            try:
                loaded = load_site(path, self.knowledge, self.entries)
            except EnvbuildError as error:
                self.warn(f"site {name} is not considered, its document has a problem: {error}")
                continue
            trees = loaded.value.module_trees
            if trees and all(Path(tree).is_dir() for tree in trees):
                sites.append(loaded)
        return sites


def choose_site(
    name: str | None,
    search: SiteSearch,
    recipe: Recipe | None = None,
    arch: str | None = None,
) -> ChosenSite:
    """Return the site: the one named, ENVBUILD_SITE's, found here, the recipe's, or this machine.

    The recipe's is for another machine than this one: *arch* must ask for that. Raises UsageError
    where several sites' module trees are on this machine.
    """
    if name:
        return search.named(name, "asked for")
    if search.from_environ:
        return search.named(search.from_environ, "from ENVBUILD_SITE")
    here = search.here()
    machine = arch or platform.machine()
    documented = None
    if recipe:
        of = next((each for each in recipe.arch if each == machine), recipe.arch[0])
        documented = recipe.documented_for.get(of)
    if len(here) > 1:
        # Of sites that share trees those of the architecture, then the recipe's own.
        here = [each for each in here if machine in each.value.arch] or here
        here = [each for each in here if each.value.name == documented] or here
    if len(here) > 1:
        names = ", ".join(each.value.name for each in here)
        raise UsageError(
            "site.ambiguous",
            f"this machine has the module trees of several sites: {names}",
            "choose one: --site NAME",
        )
    if here:
        return ChosenSite(here[0].value, "its modules are here", here[0].sha256, here[0].path)
    if documented and machine != platform.machine():
        return search.named(documented, "the recipe is documented for it")
    return search.named(LOCAL, f"{NOT_DESCRIBED}: {DESCRIBE} writes one")._replace(described=False)


def with_partition(chosen: ChosenSite, name: str | None) -> ChosenSite:
    """Return the site with one of its partitions; UsageError where it has none of that name."""
    if name is None:
        return chosen
    partitions = chosen.site.partitions
    if name not in partitions:
        raise UsageError(
            "site.unknown-partition",
            unknown(f"partition of {chosen.site.name}", name, partitions),
            f"available: {', '.join(partitions) or 'none'}",
        )
    return chosen._replace(partition=partitions[name], partition_name=name)


def choose_arch(name: str | None, recipe: LoadedDocument[Recipe], chosen: ChosenSite) -> Arch:
    """Return the architecture: asked for, else the partition's, the site's, this machine's.

    Raises UsageError if recipe or site do not have it.
    """
    site = chosen.site
    own = chosen.partition.arch if chosen.partition else None
    only = site.arch[0] if len(site.arch) == 1 else None
    wanted = name or own or only or platform.machine()
    archs: tuple[Arch, ...] = get_args(Arch)
    arch = next((each for each in archs if each == wanted), None)
    if arch is None:
        raise UsageError(
            "arch.unknown",
            f"unknown architecture {wanted!r}",
            f"supported: {', '.join(archs)}",
        )
    if arch not in recipe.value.arch:
        raise UsageError(
            "recipe.other-arch",
            f"recipe {recipe.value.name} is for {', '.join(recipe.value.arch)}, not for {arch}",
            f"use --arch {recipe.value.arch[0]}, on any machine",
            place=recipe.place("arch"),
        )
    has = (own,) if own else site.arch
    if arch not in has:
        raise UsageError(
            "site.other-arch",
            f"site {site.name} is for {', '.join(has)}, not for {arch}",
            "use another --site; envbuild sites list shows the sites",
        )
    return arch
