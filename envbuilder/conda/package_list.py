"""Packages that a list names, looked up in the channels: checked, and never solved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..errors import BuildError, DocumentError, Place, Problem
from ..knowledge.channels import Channel, VirtualPackage
from ..knowledge.components import Component
from ..knowledge.terms import Arch
from ..target_tools.files import file_name
from .contents import (
    Urls,
    component_names,
    places_of,
    read_records,
    rows,
    with_recorded_facts,
)
from .engine import Engine, EngineError

_AGAIN = "to solve with the current contents of the channels, run envbuild lock RECIPE"


class ListedPackage(NamedTuple):
    """A package of a list. Hashes that the list does not say are None."""

    name: str
    subdir: str
    url: str
    sha256: str | None
    md5: str | None
    place: Place

    @property
    def filename(self) -> str:
        return file_name(self.url)


@dataclass(frozen=True)
class ListedPackages:
    """``channels``: as if they held the listed packages alone. ``records``: one for each."""

    channels: Mapping[str, Channel]
    records: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ListTarget:
    """What packages are for. ``copies``: where the site keeps channels."""

    arch: Arch
    virtual: Sequence[VirtualPackage] = ()
    copies: Urls | None = None


def look_up(
    listed: Sequence[ListedPackage],
    channels: Mapping[str, Channel],
    target: ListTarget,
    components: Mapping[str, Component],
    engine: Engine,
    warn: Callable[[str], None],
) -> ListedPackages:
    """Return what the channels say of packages.

    Raises DocumentError for those that no channel has, or has with another hash, and for needs that
    are not met; BuildError for a channel that cannot be read, MissingToolError without py-rattler.
    """
    urls = places_of(channels, target.copies)
    names = {each.name for each in listed}
    held, served = read_records(urls, names, target.arch, engine, target.virtual, warn)
    chosen: list[tuple[str, Mapping[str, Any]]] = []
    problems: list[Problem] = []
    for each in listed:
        found = find(each, held)
        if isinstance(found, Problem):
            problems.append(found)
        else:
            chosen.append(found)
    if problems:
        raise DocumentError(tuple(problems))
    records = tuple(record for _, record in chosen)
    unmet = tuple(_unmet(listed, records, target, engine))
    if unmet:
        raise DocumentError(unmet)
    only = {}
    for name, channel in channels.items():
        own = [record for holder, record in chosen if holder == name]
        packages = rows(own, component_names(channel, components), target.arch)
        packages = with_recorded_facts(channel, packages)
        only[name] = channel.model_copy(update={"url": served[name], "packages": packages})
    return ListedPackages(only, records)


def find(
    wanted: ListedPackage, held: Mapping[str, Sequence[Mapping[str, Any]]]
) -> tuple[str, Mapping[str, Any]] | Problem:
    """Return a package's channel and record: of its own address first, then of another copy.

    A Problem: no channel has it, or has another file of that name.
    """
    there = [
        (channel, record)
        for channel, records in held.items()
        for record in records
        if (record["subdir"], file_name(record["url"])) == (wanted.subdir, wanted.filename)
    ]
    there.sort(key=lambda each: each[1]["url"] != wanted.url)
    same = [each for each in there if _is_same(wanted, each[1])]
    if same:
        return same[0]
    if not there:
        which = ", ".join(held)
        message = f"{wanted.subdir}/{wanted.filename} is in none of the channels {which}"
        return Problem("channel.package-missing", message, wanted.place, (_AGAIN,))
    channel, record = there[0]
    hashes = (("sha256", wanted.sha256), ("md5", wanted.md5))
    kind, own = next(each for each in hashes if each[1] not in (None, record.get(each[0])))
    return Problem(
        "channel.checksum-mismatch",
        f"the list has {kind} {own} for {wanted.filename}, but the channel {channel} has "
        f"{record.get(kind)}",
        wanted.place,
        ("one of the two files changed; ask the owner of the channel",),
    )


def _is_same(wanted: ListedPackage, record: Mapping[str, Any]) -> bool:
    pairs = ((wanted.sha256, record.get("sha256")), (wanted.md5, record.get("md5")))
    return all(own is None or own == said for own, said in pairs)


def _unmet(
    listed: Sequence[ListedPackage],
    records: Sequence[Mapping[str, Any]],
    target: ListTarget,
    engine: Engine,
) -> Iterator[Problem]:
    places = {each.name: each.place for each in listed}
    request = {
        "do": "check",
        "records": records,
        "virtual": [list(each) for each in target.virtual],
    }
    try:
        answer = engine.answer(request)
    except EngineError as error:
        raise BuildError("conda.check-failed", f"cannot check the packages: {error}") from error
    for each in answer["unmet"]:
        instead = f", but {each['found']} is available" if each["found"] else ", which is missing"
        message = f"{each['name']} requires {each['spec']}{instead}"
        yield Problem(
            "package-list.unmet-requirement",
            message,
            places[each["name"]],
            ("the list is incomplete or inconsistent",),
        )
