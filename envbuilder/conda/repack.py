"""A package of a prefix as a file again, where no channel serves it any more.

What was filled in when it was linked is taken out again: in text the prefix becomes the placeholder
of the package, in binaries too, with the NUL bytes that were added taken away. The package's own
record has the hash of every file as it was packed, so what comes out is known to be that.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import md5, sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..knowledge.channels import NOARCH
from ..target_tools.conda_packages import ENTRY_POINT, META, placed
from ..target_tools.files import file_name, sha256_of, write_atomically
from ..target_tools.relocate import PLACEHOLDER

# Of noarch packages for Python; it is made again where they are linked.
_BYTECODE = "pyc_file"
_ENDING = ".tar.bz2"
# What rattler marks a prefix with, and what the step conda links to the compilers of packages.
_MARKS = ("CACHEDIR.TAG",)
_COMPILERS = ("bin/gcc", "bin/g++")
# What a base installation keeps in its prefix besides: packages and other environments.
_BASE = "condabin/conda"
_OF_BASE = ("pkgs", "envs")
_KEYS = ("name", "version", "build", "build_number", "depends", "constrains", "license", "subdir")


class CannotRepackError(Exception):
    """Why a package cannot be put together again."""


def strangers(
    prefix: Path, records: Iterable[Mapping[str, Any]], known: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the files of a prefix that belong to no package, sorted; *known*: others to leave out.

    Bytecode is no file of its own. The packages and environments of a base installation are not in
    it.
    """
    those = list(records)
    owned = {name for record in those for name, _ in placed(record)} | {*known}
    owned |= {name for record in those for name in record.get("files") or ()}
    base = _BASE in owned
    for path in sorted(prefix.rglob("*")):
        name = path.relative_to(prefix).as_posix()
        first = name.split("/", 1)[0]
        if path.is_dir() and not path.is_symlink():
            continue
        if name in _MARKS or (name in _COMPILERS and path.is_symlink()):
            continue
        if first == META or (base and first in _OF_BASE) or name.endswith(".pyc"):
            continue
        if name not in owned:
            yield name


class Archive(NamedTuple):
    """A package's file, and what an index of its channel says of it."""

    path: Path
    row: Mapping[str, Any]


def kept(prefix: Path, record: Mapping[str, Any]) -> Path | None:
    """Return the file that a package was linked from, where conda still has just that one."""
    link = record.get("link")
    source = link.get("source") if isinstance(link, dict) else None
    folders = [record.get("extracted_package_dir"), source]
    places = [Path(each).parent for each in folders if isinstance(each, str) and each]
    tarball = record.get("package_tarball_full_path")
    if isinstance(tarball, str) and tarball:
        places.insert(0, Path(tarball).parent)
    places += [prefix / "pkgs", prefix.parent.parent / "pkgs"]
    name = file_name(str(record.get("url") or record.get("fn") or ""))
    for path in (each / name for each in places if name):
        if path.is_file() and _is_that(path, record):
            return path
    return None


def _is_that(path: Path, record: Mapping[str, Any]) -> bool:
    if record.get("sha256"):
        return bool(sha256_of(path) == record["sha256"])
    content = path.read_bytes()
    return bool(md5(content, usedforsecurity=False).hexdigest() == record.get("md5"))


def take(archive: Path, record: Mapping[str, Any], channel: Path) -> Archive:
    """Copy a file of a package cache into a channel's folder.

    Raises CannotRepackError where the copy is not what the record says.
    """
    target = channel / str(record.get("subdir") or NOARCH) / archive.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(archive, target)
    if not _is_that(target, record):
        raise CannotRepackError(f"{archive} was changed while it was copied")
    return Archive(target, _row(target, _index_of(record)))


def repack(prefix: Path, record: Mapping[str, Any], channel: Path) -> Archive:
    """Write a package into a channel's folder, of its files in a prefix.

    Raises CannotRepackError for a file that cannot be put back as it was packed.
    """
    noarch = record.get("subdir") == NOARCH
    target = channel / (NOARCH if noarch else str(record["subdir"]))
    target.mkdir(parents=True, exist_ok=True)
    archive = target / "{name}-{version}-{build}{end}".format(**{**record, "end": _ENDING})
    index = {**_index_of(record), **({"noarch": "generic"} if noarch else {})}
    files = [*_files(prefix, record)]
    paths = [said for _, _, _, said in files]
    texts = {
        "info/index.json": json.dumps(index, sort_keys=True),
        "info/paths.json": json.dumps({"paths": paths, "paths_version": 1}, sort_keys=True),
        "info/files": "".join(f"{name}\n" for name, *_ in files),
    }
    with tarfile.open(archive, mode="w:bz2", compresslevel=1) as packed:
        for name, text in texts.items():
            _add(packed, name, text.encode(), None, 0o644)
        for name, content, link, _ in files:
            mode = 0o644 if link else (prefix / name).stat().st_mode & 0o777 | 0o200
            _add(packed, name, content, link, mode)
    return Archive(archive, _row(archive, index))


def _index_of(record: Mapping[str, Any]) -> dict[str, Any]:
    index = {key: record[key] for key in _KEYS if record.get(key) is not None}
    return {"depends": [], "build_number": 0, **index}


def _row(archive: Path, index: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **index,
        "sha256": sha256_of(archive),
        "md5": md5(archive.read_bytes(), usedforsecurity=False).hexdigest(),
        "size": archive.stat().st_size,
    }


def _add(packed: tarfile.TarFile, name: str, content: bytes, link: str | None, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.mode = mode
    if link is not None:
        info.type, info.linkname = tarfile.SYMTYPE, link
        packed.addfile(info)
        return
    info.size = len(content)
    packed.addfile(info, io.BytesIO(content))


_Packed = tuple[str, bytes, "str | None", dict[str, Any]]
"""Path, content, where it leads to as a link, and what info/paths.json says."""


def _files(prefix: Path, record: Mapping[str, Any]) -> Iterator[_Packed]:
    for name, each in placed(record):
        kind = each.get("path_type", "hardlink")
        if kind == _BYTECODE:
            continue
        path = prefix / name
        if path.is_symlink():
            link = str(path.readlink())
            if link.startswith("/"):
                raise CannotRepackError(f"{name} is a link to {link}")
            yield name, b"", link, {"_path": name, "path_type": "softlink"}
            continue
        content = path.read_bytes()
        said = {"_path": name, "path_type": "hardlink"}
        if kind == ENTRY_POINT:
            content = content.replace(os.fsencode(prefix), PLACEHOLDER.encode())
            said |= {"prefix_placeholder": PLACEHOLDER, "file_mode": "text"}
        elif each.get("prefix_placeholder"):
            content, placeholder = _restored(content, prefix, each, name)
            said |= {"prefix_placeholder": placeholder, "file_mode": each.get("file_mode", "text")}
        size = {"sha256": sha256(content).hexdigest(), "size_in_bytes": len(content)}
        yield name, content, None, {**said, **size}


def _restored(
    content: bytes, prefix: Path, each: Mapping[str, Any], name: str
) -> tuple[bytes, str]:
    """Return a file as it was packed, which its record knows, and its placeholder.

    A text whose first line was written another way, as it was too long for Linux, keeps it.
    """
    own, placeholder = os.fsencode(prefix), str(each["prefix_placeholder"])
    binary = each.get("file_mode") == "binary"
    put_back = _in_binary if binary else bytes.replace
    for found in (content, put_back(content, own, placeholder.encode())):
        if sha256(found).hexdigest() == each.get("sha256"):
            return found, placeholder
    if not binary and sha256(content).hexdigest() == each.get("sha256_in_prefix"):
        return content.replace(own, PLACEHOLDER.encode()), PLACEHOLDER
    raise CannotRepackError(f"cannot restore {name} as it was packed")


def _in_binary(content: bytes, own: bytes, placeholder: bytes) -> bytes:
    """Put the placeholder into every string that holds the prefix; its padding makes room."""
    more = len(placeholder) - len(own)

    def restored(match: re.Match[bytes]) -> bytes:
        text = match[0]
        string = text.rstrip(b"\0")
        wanted = string.count(own) * more
        return string.replace(own, placeholder) + text[len(string) + wanted :]

    # A string up to its NUL bytes, from the prefix on.
    return re.sub(re.escape(own) + rb"[^\0]*\0+", restored, content)


def write_repodata(channel: Path, archives: Sequence[Archive]) -> None:
    """Write the index of a channel's folder; *archives*: all that it holds."""
    for subdir in sorted({each.path.parent for each in archives} | {channel / NOARCH}):
        subdir.mkdir(parents=True, exist_ok=True)
        own = {each.path.name: each.row for each in archives if each.path.parent == subdir}
        old = {name: each for name, each in own.items() if name.endswith(_ENDING)}
        said = {
            "info": {"subdir": subdir.name},
            "packages": old,
            "packages.conda": {name: each for name, each in own.items() if name not in old},
            "repodata_version": 1,
        }
        write_atomically(subdir / "repodata.json", json.dumps(said, indent=1, sort_keys=True))
