"""Libraries that look for others relative to where they lie: their wheel fits any prefix."""

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator
from io import BytesIO
from pathlib import Path

from elftools.elf.elffile import ELFFile

from .elf import split_path
from .files import is_below


class RpathError(Exception):
    """A library cannot be made to look relative to where it lies."""


def moved(
    entries: "Iterable[str]", origin: str, prefixes: "Collection[str]", builds: "Collection[str]"
) -> "list[str]":
    """Return rpath entries with those in the prefix relative to *origin*, the library's folder.

    Left out are entries of folders that are gone or below *builds*, the build folder, which may
    go: anybody might make them.
    """
    found = []
    for entry in entries:
        normal = posixpath.normpath(entry)
        inside = next((each for each in prefixes if is_below(normal, each)), None)
        if inside is not None:
            there = posixpath.relpath(posixpath.relpath(normal, inside), origin)
            # Not normalised: that takes $ORIGIN for a folder that .. leaves.
            found.append("$ORIGIN" if there == "." else "$ORIGIN/" + there)
        elif not entry.startswith("/") or lasting(normal, builds):
            found.append(entry)
    return list(dict.fromkeys(found))


def lasting(folder: str, builds: "Iterable[str]") -> bool:
    """Return whether a folder is there, and will be."""
    return Path(folder).is_dir() and not any(is_below(folder, each) for each in builds)


def relocate(
    data: bytes, origin: str, prefixes: "Collection[str]", builds: "Collection[str]"
) -> bytes:
    """Return the bytes of a library with its rpaths relative to where it lies in the prefix.

    *origin* is the library's folder in the prefix, *builds* the build folder. The text is replaced
    in its place, as CMake does when it installs: nothing in the file moves. Raises RpathError where
    that is impossible.
    """
    elf = ELFFile(BytesIO(data))
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag == "DT_NEEDED" and any(is_below(tag.needed, p) for p in prefixes):
            raise RpathError(f"it needs {tag.needed} by an absolute path")
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            old = getattr(tag, tag.entry.d_tag[3:].lower())
            new = ":".join(moved(split_path([old]), origin, prefixes, builds))
            if new != old:
                data = with_text(data, elf, tag.entry.d_val, old, new)
    return data


def with_text(data: bytes, elf: ELFFile, offset: int, old: str, new: str) -> bytes:
    """Return the bytes with one text of the dynamic string table replaced."""
    before, after = os.fsencode(old), os.fsencode(new)
    if len(after) > len(before):
        raise RpathError(f"the new rpath is too long: {new}")
    # Linkers let a text begin inside another one that ends the same.
    if any(offset <= other <= offset + len(before) for other in other_offsets(elf)):
        raise RpathError("its rpath is part of another name")
    table = elf.get_section(elf.get_section_by_name(".dynamic")["sh_link"])
    start = table["sh_offset"] + offset
    if data[start : start + len(before) + 1] != before + b"\0":
        raise RpathError("the string table is not where the header states")
    return data[:start] + after.ljust(len(before), b"\0") + data[start + len(before) :]


def other_offsets(elf: ELFFile) -> "Iterator[int]":
    """Yield where, in the dynamic string table, the names other than rpaths begin."""
    for tag in elf.get_section_by_name(".dynamic").iter_tags():
        if tag.entry.d_tag in ("DT_NEEDED", "DT_SONAME", "DT_AUXILIARY", "DT_FILTER"):
            yield tag.entry.d_val
    for symbol in elf.get_section_by_name(".dynsym").iter_symbols():
        yield symbol.entry["st_name"]
    for name in (".gnu.version_r", ".gnu.version_d"):
        section = elf.get_section_by_name(name)
        for version, parts in section.iter_versions() if section else ():
            if name == ".gnu.version_r":
                yield version.entry["vn_file"]
            for part in parts:
                yield part.entry["vna_name" if name == ".gnu.version_r" else "vda_name"]
