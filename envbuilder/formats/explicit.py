"""conda's explicit lists: ``@EXPLICIT``, then the URL of each package with its md5 or sha256.

``conda list --explicit --sha256`` writes one; conda, mamba and micromamba install one without
solving: https://docs.conda.io/projects/conda, "Building identical conda environments".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal
from urllib.parse import unquote

from ..documents.source import Source
from ..errors import Place, UsageError
from ..target_tools.names import without_credentials
from ..text import shown
from .package_rows import conda_entry
from .packages import NOARCH, CondaEntry, PackageList, PipEntry, in_order, platform_of
from .reading import Reading

MARK = "@EXPLICIT"
# What conda writes of a package that no channel has.
_LACKING = "# no URL for:"
_PLATFORM = re.compile(r"#\s*platform:\s*(\S+)\s*")
_LINE = re.compile(
    r"(?P<url>[^\s#]+)(?:#(?:(?P<md5>[0-9a-f]{32})|(?:sha256:)?(?P<sha256>[0-9a-f]{64})))?"
)
# What conda-lock writes of a package of pip: https://conda.github.io/conda-lock, "pip support".
_PIP = re.compile(
    r"#\s*pip\s+(?P<name>\S+)\s+@\s+(?P<url>\S+/(?:[^/\s#]*?-(?P<version>\d[^-/\s#]*?)"
    r"(?:-[^/\s#]*\.whl|\.tar\.gz|\.zip))?)[#\s]*(?:--hash=)?"
    r"(?:sha256[=:](?P<sha256>[0-9a-f]{64}))?.*"
)
_AGAIN = "conda list --explicit --sha256 writes such a list"


def read(source: Source) -> tuple[PackageList, tuple[str, ...]]:
    """Return the packages, and notes on what was left out. Raises DocumentError."""
    reading = Reading(_AGAIN)
    entries = tuple(_entries(reading, source))
    _check_names(reading, entries)
    said = (_PLATFORM.fullmatch(line.strip()) for line in source.text.splitlines())
    platform = next((each[1] for each in said if each), None) or platform_of(entries)
    if platform is None:
        reading.wrong(
            "package-list.no-platform",
            Place(source.file, 1, 1),
            "the packages do not share one platform",
            "write the line '# platform: linux-64' above the packages",
        )
    for each in entries:
        if platform and each.subdir not in (platform, NOARCH):
            message = f"{each.filename} is for {each.subdir}, not for {platform}"
            reading.wrong("package-list.other-platform", each.place, message)
    reading.check()
    channels = tuple(dict.fromkeys(each.channel for each in entries))
    pip = tuple(_pip_entries(reading, source))
    return PackageList(str(platform), channels, entries, pip).sorted(), tuple(reading.notes)


def _pip_entries(reading: Reading, source: Source) -> Iterator[PipEntry]:
    """Yield the packages of pip, which conda-lock installs; note them, as conda does not."""
    for number, line in enumerate(source.text.splitlines(), start=1):
        found, place = _PIP.fullmatch(line.strip()), Place(source.file, number, 1)
        if found and found["version"]:
            name, version = found["name"], unquote(found["version"])
            reading.note(place, f"{shown(name)} of pip is a comment for conda: it is added")
            url = reading.clean(found["url"], place)
            yield PipEntry(name, version, url, found["sha256"], place=place)
        elif found:
            reading.note(place, f"{shown(line.strip(), 240)} is left out: not a release")


def _entries(reading: Reading, source: Source) -> Iterator[CondaEntry]:
    marked = False
    for number, line in enumerate(source.text.splitlines(), start=1):
        place, text = Place(source.file, number, 1), line.strip()
        if text == MARK:
            marked = True
        elif text.startswith(_LACKING):
            reading.note(place, f"not in the list: {shown(text.removeprefix(_LACKING).strip())}")
        elif text and not text.startswith("#"):
            if not marked:
                message = f"a line {MARK} must come before the packages"
                reading.stop("package-list.missing-explicit-mark", place, message)
            entry = _entry(reading, text, place)
            if entry:
                yield entry
    if not marked:
        message = f"not an explicit list: there is no line {MARK}"
        reading.stop("package-list.missing-explicit-mark", Place(source.file, 1, 1), message)


def _entry(reading: Reading, text: str, place: Place) -> CondaEntry | None:
    match = _LINE.fullmatch(text)
    if match is None:
        reading.wrong(
            "package-list.malformed-line",
            place,
            f"not a URL with a hash: {shown(without_credentials(text))}",
            "write URL#md5 or URL#sha256:HEX, one package a line",
        )
        return None
    entry = conda_entry(reading, match["url"], place)
    if entry is None:
        return None
    return CondaEntry(entry.url, match["sha256"], match["md5"], place=place)


def _check_names(reading: Reading, entries: Iterable[CondaEntry]) -> None:
    first: dict[str, CondaEntry] = {}
    for each in entries:
        before = first.setdefault(each.name, each)
        if before is not each:
            message = f"{each.name} is listed twice: {before.filename} at {before.place}"
            reading.wrong("package-list.duplicate-package", each.place, message, "keep one of them")


def write(packages: PackageList, by: Literal["sha256", "md5"] = "sha256") -> str:
    """Return the list, packages behind what they depend on.

    *by*: which hash. Before 24.3 conda knows md5 alone. Raises UsageError for packages without
    that hash, and for pip's, which such a list cannot have.
    """
    if packages.pip:
        names = ", ".join(each.name for each in packages.pip)
        raise UsageError(
            "package-list.pip-in-explicit-list",
            f"an explicit list cannot contain packages of pip: {names}",
            "use conda-lock.yml or pixi.lock, which contain both",
        )
    lines = [f"# platform: {packages.platform}", MARK]
    for each in in_order(packages.conda):
        found = each.sha256 if by == "sha256" else each.md5
        if found is None:
            raise UsageError(
                "package-list.missing-hash",
                f"{each.filename} has no {by}",
                "write the list with the other hash",
            )
        lines.append(f"{each.url}#{'sha256:' if by == 'sha256' else ''}{found}")
    return "".join(f"{line}\n" for line in lines)
