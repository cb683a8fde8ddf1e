"""A conda prefix that can be made in any folder, without conda: packed, and unpacked at its place.

    python -I target_tools relocate pack PREFIX CACHE ARCHIVE TABLE
    python -I target_tools relocate unpack ARCHIVE TABLE PREFIX
    python -I target_tools relocate respell PREFIX CACHE

pack: PREFIX was linked of the packages that are unpacked in CACHE, its files naming PLACEHOLDER as
their prefix. Where a package's file names the placeholder of its build instead, that file is packed
as it is, so that nothing is lost; TABLE says how each is to be filled in. The same packages give
the same archive.

unpack: make PREFIX, which is not there yet, of an archive and its table, as conda does it: in text
the placeholder is replaced, in binaries every string that holds it keeps its place and gets NUL
bytes for what it is shorter; a first line that Linux would cut is written another way. Each file is
compared with its package before. Exit code 1: it cannot be made there.

respell: PREFIX was linked by conda of the packages that are unpacked in CACHE; let its scripts
begin as if py-rattler had linked it.
"""

import argparse
import contextlib
import gzip
import json
import os
import re
import shutil
import stat
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from typing import Any, Iterator

from .conda_packages import ENTRY_POINT, META, is_outside, originals, placed, records_of, scripts
from .files import canonical_json, read_json, remove_tree, sha256_of, write_atomically

# What a prefix is called that is linked to be packed.
PLACEHOLDER = "/envbuild-conda-prefix"
# Linux reads so many bytes of a script's first line, before 5.1: conda/core/portability.py.
LONGEST_SHEBANG = 127
SHEBANG = re.compile(rb"#! *(/(?:\\ |[^ \n\r\t])*)([^\n\r]*)")
PYTHON = re.compile(rb"python(\d+(\.\d+)?)?")


class CannotError(Exception):
    """A prefix cannot be packed or unpacked."""


# ---------------------------------------------------------------- packing


def pack(prefix: Path, cache: Path, archive: Path, table: Path) -> None:
    """Write a linked prefix as an archive, and the table of its placeholders."""
    records = records_of(prefix)
    found = [*scripts(records.values())]
    if found:
        raise CannotError("; ".join(found))
    filled: "dict[str, dict[str, str]]" = {}
    for path, record in records.items():
        unpacked = Path(cache, package_folder(record))
        for each in record["paths_data"]["paths"]:
            if each.get("path_type") == ENTRY_POINT:
                written = sha256_of(prefix / each["_path"])
                said = {"mode": "text", "placeholder": PLACEHOLDER, "sha256": written}
                filled[each["_path"]] = said
            elif each.get("prefix_placeholder"):
                put_original(prefix, unpacked, each)
                said = {"mode": each["file_mode"], "placeholder": each["prefix_placeholder"]}
                filled[each["_path"]] = dict(said, sha256=each["sha256"])
        for key in ("extracted_package_dir", "package_tarball_full_path", "link"):
            record.pop(key, None)
        path.write_text(canonical_json(record), encoding="utf-8")
    table.write_text(canonical_json({"files": filled}), encoding="utf-8")
    write_archive(prefix, archive)


def package_folder(record: "dict[str, Any]") -> str:
    """Return the name of the folder that a package is unpacked in."""
    name: str = record["fn"]
    ending = next(each for each in (".conda", ".tar.bz2") if name.endswith(each))
    return name[: -len(ending)]


def original_of(unpacked: Path, entry: "dict[str, Any]") -> "Path | None":
    """Return the file of an unpacked package that an entry of its record is about, or None."""
    paths = (unpacked / name for name in originals(entry["_path"]))
    return next((p for p in paths if p.is_file() and sha256_of(p) == entry["sha256"]), None)


def put_original(prefix: Path, unpacked: Path, entry: "dict[str, Any]") -> None:
    """Replace a file whose placeholder was filled in by the original one of its package."""
    target = prefix / entry["_path"]
    source = original_of(unpacked, entry)
    if source is None:
        raise CannotError("{}: its package's file is not in {}".format(entry["_path"], unpacked))
    # It may be one file with that of the cache.
    target.unlink()
    shutil.copy2(str(source), str(target))


def write_archive(prefix: Path, archive: Path) -> None:
    """Write a folder as an archive that does not depend on time or user."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = 0
        return info

    with archive.open("wb") as raw, contextlib.ExitStack() as opened:
        packed = opened.enter_context(gzip.GzipFile("", "wb", 1, raw, mtime=0))
        members = opened.enter_context(
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)
        )
        for path in sorted(prefix.rglob("*")):
            name = path.relative_to(prefix).as_posix()
            members.add(str(path), name, recursive=False, filter=plain)


# ---------------------------------------------------------------- unpacking


def unpack(archive: Path, table: Path, prefix: Path) -> int:
    """Make a prefix. Raises CannotError; then nothing is left of it."""
    if prefix.exists() or prefix.is_symlink():
        raise CannotError("{} already exists".format(prefix))
    filled = read_json(table)["files"]
    try:
        extract(archive, prefix)
        hashes = {name: fill_in(prefix, name, filled[name]) for name in sorted(filled)}
        for path, record in records_of(prefix).items():
            for each in record["paths_data"]["paths"]:
                if each["_path"] in hashes:
                    each["sha256_in_prefix"] = hashes[each["_path"]]
            write_atomically(path, json.dumps(record, indent=2) + "\n")
    except BaseException:
        remove_tree(prefix)
        raise
    return len(filled)


def extract(archive: Path, prefix: Path) -> None:
    """Unpack an archive of files, folders and links.

    A link leads where its package has it lead, as to /usr/share/terminfo; nothing is written
    through one.
    """
    prefix.mkdir(parents=True)
    with tarfile.open(str(archive)) as members:
        for each in members:
            kind = each.isfile() or each.isdir() or each.issym()
            if not kind or is_outside(each.name):
                raise CannotError(
                    "the archive contains an entry that is not a file of a prefix: " + each.name
                )
            target = prefix / each.name
            if any(above.is_symlink() for above in between(prefix, target)):
                raise CannotError("the archive writes through a link: " + each.name)
            put(members, each, target)
    if (prefix / META).is_symlink():
        raise CannotError("{} is a link in the archive".format(META))


def between(prefix: Path, target: Path) -> "Iterator[Path]":
    """Yield the folders between a prefix and a file in it."""
    for above in target.parents:
        if above == prefix:
            return
        yield above


def put(members: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Write one member of an archive."""
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        target.symlink_to(member.linkname)
        return
    content = members.extractfile(member)
    if content is None:
        raise CannotError("the archive has no content for " + member.name)
    with content, target.open("xb") as stream:
        shutil.copyfileobj(content, stream)
    target.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def fill_in(prefix: Path, name: str, entry: "dict[str, Any]") -> str:
    """Write the prefix into one file, which is compared before; return its new sha256."""
    path = prefix / name
    through = any(each.is_symlink() for each in [path, *between(prefix, path)])
    if is_outside(name) or through or not path.is_file():
        raise CannotError("{} is missing in the archive".format(name))
    data = path.read_bytes()
    found = sha256(data).hexdigest()
    if found != entry["sha256"]:
        text = "{}: its sha256 is {}, but {} was packed"
        raise CannotError(text.format(name, found, entry["sha256"]))
    old, new = entry["placeholder"].encode(), os.fsencode(str(prefix))
    binary = entry["mode"] == "binary"
    data = in_binary(data, old, new, name) if binary else in_text(data, old, new)
    path.write_bytes(data)
    return sha256(data).hexdigest()


def in_binary(data: bytes, old: bytes, new: bytes, name: str) -> bytes:
    """Replace a placeholder in the strings of a binary, each of which keeps its length."""
    if len(new) > len(old):
        raise CannotError(
            "the path of the prefix has {} bytes, but {} has room for {}".format(
                len(new), name, len(old)
            )
        )

    def replaced(match: "re.Match[bytes]") -> bytes:
        whole = match.group()
        return whole.replace(old, new) + b"\0" * ((len(old) - len(new)) * whole.count(old))

    return re.sub(re.escape(old) + rb"[^\0]*\0", replaced, data)


def in_text(data: bytes, old: bytes, new: bytes) -> bytes:
    """Replace a placeholder in a text; Linux must be able to read its first line whole."""
    first = SHEBANG.match(data)
    if first is None or old not in first.group():
        return data.replace(old, new)
    if len(first.group().replace(old, new)) <= LONGEST_SHEBANG and b" " not in new:
        return data.replace(old, new)
    program, options = first.groups()
    name = program.rpartition(b"/")[2]
    if PYTHON.fullmatch(name):
        # To a shell it starts Python with this file; to Python it is a string.
        line = b"#!/bin/sh\n'''exec' \"%s\"%s \"$0\" \"$@\" #'''" % (program, options)
    else:
        line = b"#!/usr/bin/env " + name + options
    return (line + data[first.end() :]).replace(old, new)


# ---------------------------------------------------------------- respelling

ENV = b"#!/usr/bin/env "


def respell(prefix: Path, cache: Path) -> int:
    """Let scripts start their own Python where conda has them look for one; return their number.

    It does so where Linux could not read the first line whole, or the path has a space.
    """
    number, new = 0, os.fsencode(str(prefix))
    for path, record in records_of(prefix).items():
        unpacked, before = Path(cache, package_folder(record)), number
        for name, each in placed(record):
            target, old = prefix / name, each.get("prefix_placeholder")
            if not old or each.get("file_mode") != "text" or not is_script(target):
                continue
            source = original_of(unpacked, each)
            data = source and in_text(source.read_bytes(), old.encode(), new)
            if data and data != target.read_bytes():
                target.write_bytes(data)
                each["sha256_in_prefix"] = sha256(data).hexdigest()
                number += 1
        if number > before:
            write_atomically(path, json.dumps(record, indent=2) + "\n")
    return number


def is_script(path: Path) -> bool:
    """Return whether a file is a script that looks for its program."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(ENV)) == ENV


def main(arguments: "list[str]") -> int:
    """Pack, unpack or respell; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = parser.add_subparsers(dest="what")
    one = what.add_parser("pack")
    for name in ("prefix", "cache", "archive", "table"):
        one.add_argument(name, type=Path)
    one = what.add_parser("unpack")
    for name in ("archive", "table", "prefix"):
        one.add_argument(name, type=Path)
    one = what.add_parser("respell")
    for name in ("prefix", "cache"):
        one.add_argument(name, type=Path)
    options = parser.parse_args(arguments)
    try:
        if options.what == "respell":
            respell(options.prefix, options.cache)
        elif options.what == "pack":
            pack(options.prefix, options.cache, options.archive, options.table)
        elif options.what == "unpack":
            number = unpack(options.archive, options.table, options.prefix)
            sys.stdout.write("{} files contain the new prefix\n".format(number))
        else:
            parser.error("name an action")
    except CannotError as error:
        sys.stderr.write("error: {}\n".format(error))
        return 1
    return 0
