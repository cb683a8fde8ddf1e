"""conda-lock.yml, version 1, as conda-lock 1.0 to 3 write and install it.

https://conda.github.io/conda-lock/output/#unified-lockfile
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..base import canonical_json, sha256_text
from ..documents.source import Source
from ..documents.tree import Node, Pairs, Scalar
from ..documents.yaml_nodes import parse
from ..text import shown
from .package_rows import conda_entry, pip_entry
from .packages import DEFAULTS, OWN_CHANNELS, CondaEntry, PackageList, PipEntry
from .reading import MOST_VALUES, Reading, node_at, pairs_at
from .writing import yaml_text

_AGAIN = "conda-lock lock writes such a file"
_KEYS = ("version", "metadata", "package")
# content_hash: over what was locked; it says nothing of the packages.
_HASHES = ("md5", "sha256")
_OF_METADATA = ("channels", "platforms", "content_hash")
# ``optional`` repeats the category, ``build`` the URL. ``source`` is read by no reader.
_OF_PACKAGE = frozenset(
    {"name", "version", "manager", "platform", "dependencies", "url", "hash", "category"}
    | {"optional", "build"}
)
# Packages of an environment that is used, not developed.
MAIN = "main"


def read(
    source: Source, platform: str, category: str = MAIN
) -> tuple[PackageList, tuple[str, ...]]:
    """Return the packages of a platform, and notes on what was left out.

    Raises DocumentError, also where the file has nothing for the platform.
    """
    root, problems = parse(source, MOST_VALUES)
    reading = Reading(_AGAIN, [*problems])
    if reading.text(root, "version") not in (None, "1"):
        place = root.index["version"][1].place
        message = "envbuild reads only version 1 of conda-lock.yml"
        reading.stop("package-list.unknown-version", place, message)
    metadata = pairs_at(root, "metadata")
    platforms = reading.texts(node_at(metadata, "platforms"), "platforms")
    if platform not in platforms:
        place = metadata.place if metadata else root.place
        there = ", ".join(platforms) or "no platform"
        message = f"the file is for {there}, not for {platform}"
        hint = f"conda-lock lock --platform {platform} adds that platform"
        reading.stop("package-list.other-platform", place, message, hint)
    channels = tuple(_channels(reading, node_at(metadata, "channels")))
    conda: list[CondaEntry] = []
    pip: list[PipEntry] = []
    left: set[str] = set()
    rows: list[Pairs] = []
    for each in reading.mappings(node_at(root, "package"), "package"):
        if reading.text(each, "platform") != platform:
            continue
        own = reading.text(each, "category", required=False) or MAIN
        if own != category:
            left.add(own)
            continue
        rows.append(each)
        entry = _entry(reading, each)
        if isinstance(entry, CondaEntry):
            conda.append(entry)
        elif entry:
            pip.append(entry)
    reading.check()
    _note_others(reading, metadata, platform)
    reading.others(root, _KEYS)
    reading.others(metadata, _OF_METADATA)
    for channel in reading.items(node_at(metadata, "channels"), "channels"):
        reading.others(channel, ("url",), "channel: ")
    reading.others_of(rows, _OF_PACKAGE, "packages")
    reading.others_of(filter(None, (pairs_at(row, "hash") for row in rows)), _HASHES, "hash")
    for name in sorted(left):
        reading.note(root.place, f"the packages of category {name} are left out")
    channels += tuple(_further_channels(reading, channels, conda))
    found = PackageList(platform, channels, tuple(conda), tuple(pip)).sorted()
    return found, tuple(reading.notes)


def _note_others(reading: Reading, metadata: Pairs | None, platform: str) -> None:
    for item in reading.items(node_at(metadata, "platforms"), "platforms"):
        if isinstance(item, Scalar) and item.text != platform:
            reading.note(item.place, f"platform {shown(item.text)} is left out")


def _further_channels(
    reading: Reading, channels: tuple[str, ...], conda: list[CondaEntry]
) -> Iterator[str]:
    """Yield the channels of packages that metadata.channels lacks, each once, with a note.

    conda-lock writes the channel of CHANNEL::NAME into the URL of the package alone.
    """
    further: set[str] = set()
    for each in conda:
        url = each.channel
        if url not in further and not any(_is_channel(channel, url) for channel in channels):
            further.add(url)
            yield url
            text = f"{shown(each.name)} is from {shown(url)}, which metadata.channels lacks"
            reading.note(each.place, f"{text}; using that channel as the last one")


def _is_channel(channel: str, url: str) -> bool:
    """Return whether a channel, by name or URL, can be the one at a URL."""
    channel = channel.rstrip("/")
    if channel == DEFAULTS:
        return url.startswith(f"{OWN_CHANNELS}/")
    return url == channel or ("://" not in channel and url.endswith(f"/{channel}"))


def _channels(reading: Reading, node: Node | None) -> Iterator[str]:
    for each in reading.items(node, "channels"):
        # The first releases wrote the name alone.
        url = each.text if isinstance(each, Scalar) else None
        if isinstance(each, Pairs):
            url = reading.text(each, "url")
        elif url is None:
            message = "each item of channels must be a name or URL"
            reading.wrong("package-list.not-text", each.place, message)
        if url:
            yield reading.clean(url, each.place)


def _entry(reading: Reading, holder: Pairs) -> CondaEntry | PipEntry | None:
    url, manager = reading.text(holder, "url"), reading.text(holder, "manager")
    depends = tuple(_depends(reading, node_at(holder, "dependencies")))
    hashes = pairs_at(holder, "hash")
    if url is None or manager is None:
        return None
    readers: dict[str, Callable[[], CondaEntry | PipEntry | None]] = {
        "conda": lambda: conda_entry(reading, url, holder.place, hashes, None, depends),
        "pip": lambda: pip_entry(reading, holder, url, hashes, depends),
    }
    if manager in readers:
        return readers[manager]()
    place = holder.index["manager"][1].place
    message = f"unknown manager {manager}; use conda or pip"
    reading.wrong("package-list.unknown-manager", place, message)
    return None


def _depends(reading: Reading, node: Node | None) -> Iterator[str]:
    for name, value in reading.pairs(node, "dependencies"):
        if isinstance(value, Scalar):
            yield f"{name.text} {value.text}".strip()


def write(packages: PackageList) -> str:
    """Return the file. Its content hash is over what is in it: conda-lock locks anew then."""
    rows = [_conda_row(each, packages.platform) for each in packages.conda]
    rows += [_pip_row(each, packages.platform) for each in packages.pip]
    metadata = {
        "content_hash": {packages.platform: sha256_text(canonical_json(rows))},
        "channels": [{"url": each, "used_env_vars": []} for each in packages.channels],
        "platforms": [packages.platform],
        "sources": [],
    }
    return yaml_text({"version": 1, "metadata": metadata, "package": rows})


def _conda_row(each: CondaEntry, platform: str) -> dict[str, Any]:
    sums = {"md5": each.md5, "sha256": each.sha256}
    return _row("conda", each, platform, {name: value for name, value in sums.items() if value})


def _pip_row(each: PipEntry, platform: str) -> dict[str, Any]:
    return _row("pip", each, platform, {"sha256": each.sha256} if each.sha256 else {})


def _row(
    manager: str, each: CondaEntry | PipEntry, platform: str, sums: dict[str, str]
) -> dict[str, Any]:
    return {
        "name": each.name,
        "version": each.version,
        "manager": manager,
        "platform": platform,
        "dependencies": _dependencies(each.depends),
        "url": each.url,
        "hash": sums,
        "category": MAIN,
        "optional": False,
    }


def _dependencies(specs: tuple[str, ...]) -> dict[str, str]:
    """Return the specs by their names; several of one name hold together."""
    found: dict[str, str] = {}
    for spec in specs:
        name, _, rest = spec.partition(" ")
        found[name] = ",".join(filter(None, (found.get(name), rest.strip())))
    return found
