"""What channels hold of the components that a recipe can ask for, as if it had been recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base import fits
from ..errors import BuildError
from ..knowledge.channels import (
    NOARCH,
    SUBDIRS,
    Channel,
    CondaPackage,
    VirtualPackage,
    copy_hint,
)
from ..knowledge.components import Component
from ..knowledge.terms import Arch, PlainVersion
from .cache import ChannelCache, ChannelContents
from .engine import Engine, EngineError

Records = Iterable[Mapping[str, Any]]
Urls = Mapping[str, Sequence[str]]
"""Where each channel can be read, in the order in which that is tried."""

# The packages that others pin to a series, and the fact that says which.
_PINNED = {"cudatoolkit": "cuda", "cudatoolkit-dev": "cuda", "cudnn": "cudnn", "nccl": "nccl"}
_IN_BUILD = re.compile(r"(cuda|cudnn|nccl)(\d{1,2})\.?(\d)(?!\d)")
_PIN = re.compile(r"=*(\d+\.\d+)")


@dataclass(frozen=True)
class Cached:
    """What was read before, and who is told of it. ``anew``: it is read again, however young."""

    cache: ChannelCache
    say: Callable[[str], None]
    warn: Callable[[str], None]
    anew: bool = False


def read_channels(
    channels: Mapping[str, Channel],
    arch: Arch,
    components: Mapping[str, Component],
    engine: Engine,
    cached: Cached | None = None,
    virtual: Sequence[VirtualPackage] = (),
    copies: Urls | None = None,
) -> dict[str, Channel]:
    """Return the channels with what they hold and where they were read, in the order given.

    *channels*: by name, each with its own URL; *copies* are read in place of it, the first one that
    can be. What packages are called that have another name there than elsewhere is taken from what
    is recorded. *cached*: what was read before is taken while it is young, but of channels that are
    folders, and whatever its age where one cannot be read. *virtual*: what the target has; builds
    that need what it lacks are left out, unless that leaves none of the package. Raises
    BuildError for a channel that cannot be read and never was, MissingToolError without py-rattler.
    """
    names = {name: component_names(each, components) for name, each in channels.items()}
    urls = places_of(channels, copies)
    wanted = {name for each in names.values() for name in each}

    def read(warn: Callable[[str], None]) -> ChannelContents:
        days = {name: each.withdrawal.since for name, each in channels.items() if each.withdrawal}
        held, served = read_records(urls, wanted, arch, engine, virtual, warn, days)
        packages = {name: rows(held[name], names[name], arch) for name in urls}
        return ChannelContents(packages, served)

    if cached is None:
        return _clear_withdrawals(channels, read(lambda _: None))
    file = cached.cache.file(urls, arch, names, virtual)
    kept, which = cached.cache.find(file), ", ".join(channels)
    in_network = not any(url.startswith("file:") for each in urls.values() for url in each)
    if kept and kept.young and in_network and not cached.anew:
        cached.say(
            f"using the contents of the conda channels {which} that were read {kept.age_text()}"
        )
        return _clear_withdrawals(channels, kept.contents)
    try:
        contents = read(cached.warn)
    except BuildError as error:
        if kept is None:
            raise
        cached.warn(f"{error}; using the contents that were read {kept.age_text()}")
        return _with(channels, kept.contents)
    cached.cache.store(file, contents)
    return _clear_withdrawals(channels, contents)


def places_of(channels: Mapping[str, Channel], copies: Urls | None) -> dict[str, Sequence[str]]:
    """Return where each channel is read: at the site's copies, else at its own URL."""
    return {name: (copies or {}).get(name) or (each.url,) for name, each in channels.items()}


def _clear_withdrawals(
    channels: Mapping[str, Channel], read: ChannelContents
) -> dict[str, Channel]:
    """Return channels that were read: one with packages is not gone."""
    return {
        name: each.model_copy(update={"withdrawal": None}) if each.packages else each
        for name, each in _with(channels, read).items()
    }


def _with(channels: Mapping[str, Channel], read: ChannelContents) -> dict[str, Channel]:
    return {
        name: each.model_copy(
            update={
                "url": read.served.get(name, each.url),
                "packages": with_recorded_facts(each, read.packages.get(name, {})),
            }
        )
        for name, each in channels.items()
    }


def read_records(
    urls: Urls,
    names: Iterable[str],
    arch: Arch,
    engine: Engine,
    virtual: Sequence[VirtualPackage],
    warn: Callable[[str], None],
    withdrawals: Mapping[str, str] | None = None,
) -> tuple[dict[str, list[Mapping[str, Any]]], dict[str, str]]:
    """Return the records of packages in each channel, and the URL at which each was read.

    *withdrawals*: the day since when a channel is reported to have no packages. Raises BuildError
    for a channel that cannot be read, MissingToolError without py-rattler.
    """
    request = {
        "do": "read",
        "channels": [[*each] for each in urls.values()],
        "platforms": [SUBDIRS[arch], NOARCH],
        "names": sorted(names),
        "virtual": [list(each) for each in virtual],
    }
    try:
        answer = engine.answer(request)
    except EngineError as error:
        which = [*urls][error.channel or 0]
        since = f", gone since {withdrawals[which]}" if withdrawals and which in withdrawals else ""
        raise BuildError(
            "channel.unreadable",
            f"cannot read the conda channel {which}{since}: {error}",
            copy_hint(which),
        ) from error
    channels = [*urls]
    held: dict[str, list[Mapping[str, Any]]] = {name: [] for name in channels}
    for each in answer["records"]:
        held[channels[each["number"]]].append(each)
    served = {
        name: each[number]
        for (name, each), number in zip(urls.items(), answer["served"], strict=True)
    }
    for each in answer["failed"]:
        name = channels[each["channel"]]
        warn(f"reading the conda channel {name} from {served[name]}: {each['text']}")
    return held, served


def component_names(channel: Channel, components: Mapping[str, Component]) -> dict[str, list[str]]:
    """Return what the packages of a channel are, by what it calls them: components."""
    found: dict[str, list[str]] = {}
    for component, known in components.items():
        own = {each.name for each in channel.packages.get(component, ()) if each.name}
        usual = {known.conda} if known.conda else set()
        for name in sorted(own or usual):
            found.setdefault(name, []).append(component)
    return found


def rows(
    records: Records, names: Mapping[str, list[str]], arch: Arch
) -> dict[str, tuple[CondaPackage, ...]]:
    """Return a row for each version of each component; builds differ in what they are for."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for each in _for_the_target(records):
        # Versions that are no plain ones (1!2.0, r34) nothing of ours could ask for.
        if each["name"] in names and fits(PlainVersion, each["version"]):
            for component in names[each["name"]]:
                key = (component, each["name"], each["version"])
                found.setdefault(key, []).append(each)
    found_rows: dict[str, list[CondaPackage]] = {}
    for (component, name, version), builds in sorted(found.items(), key=lambda item: item[0]):
        row = CondaPackage(
            version=version,
            name=name,
            arch=() if any(each["subdir"] == NOARCH for each in builds) else (arch,),
            pythons=_pythons(builds),
            facts=dict(_series(builds)),
        )
        found_rows.setdefault(component, []).append(row)
    return {component: tuple(each) for component, each in found_rows.items()}


def with_recorded_facts(
    recorded: Channel, packages: Mapping[str, tuple[CondaPackage, ...]]
) -> dict[str, tuple[CondaPackage, ...]]:
    """Return the packages of a channel, each also with the facts that are recorded of it."""
    return {
        component: tuple(
            each.model_copy(
                update={"facts": _find_recorded_facts(recorded, component, each) | each.facts}
            )
            for each in those
        )
        for component, those in packages.items()
    }


def _find_recorded_facts(
    channel: Channel, component: str, package: CondaPackage
) -> dict[str, bool | str]:
    """Return the recorded facts of the same release for the same architecture."""
    for each in channel.packages.get(component, ()):
        fits_arch = not each.arch or set(each.arch) >= set(package.arch)
        if each.version == package.version and fits_arch:
            return each.facts
    return {}


def _series(builds: Records) -> Iterator[tuple[str, str]]:
    """Yield the series of CUDA, cuDNN and NCCL that all builds are for.

    Their build strings name it (cuda10.1_514, cuda112py39), or they pin its package.
    """
    found: dict[str, set[str | None]] = {name: set() for name in _PINNED.values()}
    for each in builds:
        named = {
            name: f"{major}.{minor}" for name, major, minor in _IN_BUILD.findall(each["build"])
        }
        for spec in each.get("depends", ()):
            package, _, version = spec.partition(" ")
            pinned = _PIN.match(version)
            if package in _PINNED and pinned:
                named.setdefault(_PINNED[package], pinned[1])
        for name, series in found.items():
            series.add(named.get(name))
    for name, series in found.items():
        (first, *others) = series
        if first and not others:
            yield name, first


def _for_the_target(records: Records) -> Iterator[Mapping[str, Any]]:
    """Yield the builds whose needs of virtual packages are met; all of a name that has none such.

    Those the solver refuses, and says what the target lacks.
    """
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for each in records:
        by_name.setdefault(each["name"], []).append(each)
    for builds in by_name.values():
        yield from [each for each in builds if not each.get("unmet")] or builds


def _pythons(builds: Records) -> tuple[str, ...]:
    """Return the series of Python that builds are for; none: any, as one asks for no Python."""
    wanted = [each.get("pythons") for each in builds]
    if any(each is None for each in wanted):
        return ()
    return tuple(sorted({series for each in wanted for series in each or ()}))
