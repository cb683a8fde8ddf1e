"""conda-meta: what conda installed in a prefix, read as a list of packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import Place, UsageError
from ..target_tools.conda_packages import META, is_outside
from ..target_tools.files import open_regular, parse_json
from ..target_tools.names import without_credentials
from ..text import shown
from .packages import CondaEntry, PackageList, platform_of, url_fault
from .reading import Reading

_AGAIN = "conda writes such a record of each package that it links"
# Of Python itself some 6 MB.
_LARGEST = 64 * 1024 * 1024
_HEX = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class PrefixPackages:
    """The packages of a prefix, and the record of each by the name of its package."""

    packages: PackageList
    records: Mapping[str, Mapping[str, Any]]


def read_prefix(prefix: Path) -> PrefixPackages:
    """Return what conda-meta says.

    Raises UsageError for a folder that is no conda environment, DocumentError for records that
    cannot be read or name no channel, each with its file.
    """
    files = sorted((prefix / META).glob("*.json"))
    if not files:
        raise UsageError(
            "conda.not-an-environment",
            "not a conda environment: conda-meta has no package records",
            place=Place(str(prefix)),
        )
    reading = Reading(_AGAIN)
    entries: list[CondaEntry] = []
    records: dict[str, Mapping[str, Any]] = {}
    for path in files:
        record = _record(reading, path)
        entry = record and _entry(reading, record, Place(str(path)))
        if record and entry:
            entries.append(entry)
            records[entry.name] = record
    platform = platform_of(entries)
    if platform is None and not reading.problems:
        message = "the packages do not share one platform"
        reading.wrong("package-list.no-platform", Place(str(prefix / META)), message)
    reading.check()
    channels = tuple(dict.fromkeys(each.channel for each in entries))
    return PrefixPackages(PackageList(str(platform), channels, tuple(entries)).sorted(), records)


def _record(reading: Reading, path: Path) -> Mapping[str, Any] | None:
    try:
        with open_regular(path) as stream:
            said = parse_json(stream.read(_LARGEST).decode("utf-8"))
    except (OSError, ValueError) as error:
        message = f"cannot read the package record: {shown(str(error))}"
        reading.wrong("conda.record-unreadable", Place(str(path)), message)
        return None
    wrong = next(_faults(said), None)
    if wrong:
        reading.wrong("conda.record-damaged", Place(str(path)), wrong)
        return None
    record: Mapping[str, Any] = said
    return record


def _faults(said: Any) -> Iterator[str]:
    """Yield what keeps JSON from being a record of a package."""
    if type(said) is not dict:
        yield "not a package record"
        return
    for key in ("name", "version", "build"):
        if type(said.get(key)) is not str:
            yield f"the package record has no {key}"
    for key in ("depends", "constrains", "files"):
        if any(type(each) is not str for each in said.get(key) or ()):
            yield f"{key} must be a list of texts"
            return
    data = said.get("paths_data")
    paths = data.get("paths") if type(data) is dict else None
    if type(paths) is not list or any(type(each) is not dict for each in paths):
        yield "the package record does not list its files: conda before 4.4 wrote it"
        return
    names = [*(said.get("files") or ()), *(each.get("_path") for each in paths)]
    for each in names:
        if type(each) is not str or is_outside(each):
            yield f"a listed file is outside of the prefix: {shown(str(each))}"
            return


def _entry(reading: Reading, record: Mapping[str, Any], place: Place) -> CondaEntry | None:
    url = without_credentials(_url(record))
    fault = url_fault(url)
    if fault:
        text = f"{record['name']} {record['version']} is not from a channel: {shown(url)}: {fault}"
        hint = "install it from a channel, or remove it from the environment"
        reading.wrong("conda.not-from-channel", place, text, hint)
        return None
    hashes = {
        key: value if isinstance(value, str) and len(value) == size else None
        for key, size in _HEX.items()
        for value in [record.get(key)]
    }
    size = record.get("size")
    entry = CondaEntry(
        url,
        size=size if isinstance(size, int) else None,
        depends=tuple(record.get("depends") or ()),
        place=place,
        **hashes,
    )
    own = record["name"], record["version"], record["build"]
    if own != (entry.name, entry.version, entry.build):
        # What it says names files, too: a package that is put together again.
        text = f"the record is of {shown(' '.join(own))}, but its file is {entry.filename}"
        reading.wrong("conda.record-mismatch", place, text)
        return None
    return entry


def _url(record: Mapping[str, Any]) -> str:
    """Return where a package came from: as recorded, else as channel, subdir and file say."""
    url = record.get("url")
    if isinstance(url, str) and "://" in url:
        return url
    channel, file = str(record.get("channel", "")), str(record.get("fn", ""))
    subdir = str(record.get("subdir") or record.get("platform") or "")
    return f"{channel.rstrip('/').removesuffix('/' + subdir)}/{subdir}/{file}"
