"""What conda recorded of the packages in a prefix: conda-meta, a JSON file for each.

Source of the form: PrefixRecord of conda (https://docs.conda.io/projects/conda/en/stable/), and
paths.json of conda-build.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..machine.host import names_in
from ..target_tools.conda_packages import places_of
from ..target_tools.files import open_regular, parse_json
from ..target_tools.names import without_credentials
from .facts import InstalledCondaPackage, RecordedFile, normal

# Of Python itself some 6 MB.
_LARGEST_RECORD = 64 * 1024 * 1024
_SUBDIR = re.compile(r"noarch|linux-[a-z0-9_]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def conda_packages(prefix: Path) -> tuple[tuple[InstalledCondaPackage, ...], dict[str, str]]:
    """Return the packages of a prefix, by their names, and why other records cannot be read."""
    found: list[InstalledCondaPackage] = []
    damaged: dict[str, str] = {}
    for name in names_in(prefix / "conda-meta"):
        path = prefix / "conda-meta" / name
        if name.endswith(".json"):
            try:
                found.append(_package(path, prefix))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                damaged[str(path)] = str(error)
    return tuple(found), damaged


def _package(path: Path, prefix: Path) -> InstalledCondaPackage:
    """Return what a record says. Raises OSError, ValueError."""
    with open_regular(path) as stream:
        record = parse_json(stream.read(_LARGEST_RECORD).decode("utf-8", "replace"))
    if type(record) is not dict or {type(record.get(key)) for key in ("name", "version")} != {str}:
        raise ValueError("it does not contain the name and version of a package")
    depends, build, subdir = (record.get(key) for key in ("depends", "build", "subdir"))
    texts = depends if isinstance(depends, list) else []
    return InstalledCondaPackage(
        name=record["name"],
        version=record["version"],
        path=path,
        depends=tuple(each for each in texts if isinstance(each, str)),
        files=tuple(_files(record, str(prefix))),
        build=build if isinstance(build, str) else None,
        channel=_channel(record),
        subdir=subdir if isinstance(subdir, str) else None,
    )


def _channel(record: Mapping[str, Any]) -> str | None:
    """Return the channel that a package came from: its URL, or as conda calls it."""
    url, said = record.get("url"), record.get("channel")
    if isinstance(url, str) and "://" in url:
        said = url.rpartition("/")[0]
    if not isinstance(said, str) or said.startswith("<"):  # <unknown>, of a file
        return None
    above, _, last = without_credentials(said).rstrip("/").rpartition("/")
    return above if above and _SUBDIR.fullmatch(last) else without_credentials(said)


def _files(record: Mapping[str, Any], prefix: str) -> Iterator[RecordedFile]:
    """Yield the files that are to stay as they are; bytecode need not.

    Text in which conda puts the prefix has another size and hash than in the package, unless the
    record says which in the prefix.
    """
    data = record.get("paths_data")
    paths = data.get("paths") if isinstance(data, dict) else None
    files = record.get("files")
    where = places_of(
        [each for each in files if isinstance(each, str)] if isinstance(files, list) else ()
    )
    for each in paths if isinstance(paths, list) else ():
        name = each.get("_path") if isinstance(each, dict) else None
        if not isinstance(name, str) or name.endswith((".pyc", ".pyo")):
            continue
        kind, inside = each.get("path_type"), each.get("sha256_in_prefix")
        if kind == "directory":
            continue
        changed = each.get("prefix_placeholder") is not None
        sha256 = inside or (None if changed else each.get("sha256"))
        size = None if changed or kind == "softlink" else each.get("size_in_bytes")
        yield RecordedFile(
            normal(prefix, where.get(name, name)),
            _recorded_digest(sha256) if kind != "softlink" else "",
            str(size) if isinstance(size, int) else "",
        )


def _recorded_digest(sha256: object) -> str:
    """Return a hash as RECORD writes it."""
    if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        return ""
    return "sha256=" + base64.urlsafe_b64encode(bytes.fromhex(sha256)).decode().rstrip("=")
