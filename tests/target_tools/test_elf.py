"""Reading ELF headers and ld.so's cache: against pyelftools and ldconfig, and of damaged files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from target_environments import compile_library

from envbuilder.target_tools.elf import ElfError, Library, machine_words, read_library
from envbuilder.target_tools.files import is_elf, open_regular
from envbuilder.target_tools.ld_so import Search, read_cache


def by_pyelftools(path: Path) -> Library:
    """Return what pyelftools reads of a library, through its section headers."""
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as stream:
        elf = elffile.ELFFile(stream)
        section = elf.get_section_by_name(".dynamic")
        tags = [*section.iter_tags()] if section else []

        def texts(tag: str) -> list[str]:
            return [getattr(t, tag[3:].lower()) for t in tags if t.entry.d_tag == tag]

        needs = elf.get_section_by_name(".gnu.version_r")
        note = elf.get_section_by_name(".note.gnu.property")
        properties = [p for n in (note.iter_notes() if note else ()) for p in n["n_desc"]]
        return Library(
            path=str(path),
            machine=(elf["e_machine"], elf.elfclass, elf.little_endian),
            needed=tuple(texts("DT_NEEDED")),
            rpath=tuple(e for text in texts("DT_RPATH") for e in text.split(":") if e),
            runpath=tuple(e for text in texts("DT_RUNPATH") for e in text.split(":") if e),
            soname=next(iter(texts("DT_SONAME")), None),
            versions=tuple(
                (need.name, each.name)
                for need, all_of_it in (needs.iter_versions() if needs else ())
                for each in all_of_it
            ),
            isa_needed=sum(
                p["pr_data"] for p in properties if p["pr_type"] == "GNU_PROPERTY_X86_ISA_1_NEEDED"
            ),
        )


def test_installed_libraries_as_pyelftools_reads_them(need: Callable[[str], str]) -> None:
    folders = (sysconfig.get_path("platlib"), "/lib/x86_64-linux-gnu/security")
    found = [p for folder in folders for p in sorted(Path(folder).rglob("*.so*")) if is_elf(p)]
    programs = [Path(sys.executable).resolve(), Path(need("bash")).resolve()]
    # Each fifth is enough: pyelftools takes a second for all.
    some = [*programs, *found[::5]]
    assert len(some) > 20
    for path in some:
        wanted, read = by_pyelftools(path), read_library(str(path))
        words = machine_words(read.machine)
        assert words.startswith(wanted.machine[0].removeprefix("EM_").lower() + " ")
        assert read.machine[1:] == wanted.machine[1:]
        assert read._replace(machine=wanted.machine) == wanted


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the bytes of a small library that needs versions of libc, with an rpath."""
    folder = tmp_path_factory.mktemp("library")
    source = '#include <stdio.h>\nvoid say(void) { puts(""); }'
    options = ["-Wl,-rpath,$ORIGIN/a:/b"]
    return compile_library(folder / "one.so", source, *options, soname="libone.so.1").read_bytes()


def test_without_section_headers(library: bytes, tmp_path: Path) -> None:
    whole, stripped = tmp_path / "whole.so", tmp_path / "stripped.so"
    whole.write_bytes(library)
    # e_shoff, e_shnum and e_shstrndx: strip --strip-section-headers writes zeros there.
    without = bytearray(library)
    without[40:48] = bytes(8)
    without[60:64] = bytes(4)
    stripped.write_bytes(without)
    assert read_library(stripped)._replace(path=whole) == read_library(whole)
    assert read_library(whole).runpath == ("$ORIGIN/a", "/b")
    assert read_library(whole).soname == "libone.so.1"
    assert ("libc.so.6", "GLIBC_2.2.5") in read_library(whole).versions


def test_one_that_ends_early_is_damaged_wherever_it_ends(library: bytes, tmp_path: Path) -> None:
    whole = tmp_path / "whole.so"
    whole.write_bytes(library)
    path = tmp_path / "cut.so"
    for length in range(0, len(library), 97):
        path.write_bytes(library[:length])
        try:
            read = read_library(path)
        except ElfError:
            continue
        # What ld.so needs lies in front; it was all there.
        assert read._replace(path=whole) == read_library(whole)


@given(st.lists(st.tuples(st.integers(0, 4096), st.integers(0, 255)), max_size=12))
def test_a_forged_one_is_read_or_refused(library: bytes, changes: list[tuple[int, int]]) -> None:
    forged = bytearray(library)
    for place, value in changes:
        forged[place % len(forged)] = value
    number = os.memfd_create("forged")
    try:
        os.write(number, forged)
        read_library(f"/proc/self/fd/{number}")
    except ElfError:
        pass
    finally:
        os.close(number)


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.so")
    (tmp_path / "loop.so").symlink_to("loop.so")
    (tmp_path / "folder.so").mkdir()
    for path in (*sorted(tmp_path.iterdir()), Path("/dev/zero"), "a\0b", tmp_path / "absent"):
        with pytest.raises(OSError, match=r"not a regular file|null byte|Too many|No such file"):
            open_regular(path)
        assert not is_elf(path)


def test_the_cache_of_ld_so_as_ldconfig_prints_it(need: Callable[[str], str]) -> None:
    program = next((p for p in ("/sbin/ldconfig", "/usr/sbin/ldconfig") if Path(p).exists()), None)
    text = subprocess.run([program or need("ldconfig"), "-p"], capture_output=True, text=True)
    wanted: dict[str, list[str]] = {}
    for name, path in re.findall(r"^\s*(\S+) \(.*\) => (/.*)$", text.stdout, re.MULTILINE):
        wanted.setdefault(name, []).append(path)
    assert wanted
    assert read_cache() == wanted


def test_a_file_that_is_no_library_of_this_machine_has_no_tree(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no ELF file")
    search = Search(read_library(os.path.realpath(sys.executable)), {})
    assert search.tree(str(tmp_path / "text.so")) == {}
    assert search.tree(os.path.realpath(sys.executable))["libc.so.6"] is not None


def cache(order: str, *pairs: tuple[str, str]) -> bytes:
    """Return a cache as a machine of that byte order has it, by glibc's dl-cache.h."""
    strings, entries = b"", b""
    start = 48 + 24 * len(pairs)
    byteorder = "little" if order == "<" else "big"
    for pair in pairs:
        entries += (3).to_bytes(4, byteorder)
        for text in pair:
            entries += (start + len(strings)).to_bytes(4, byteorder)
            strings += text.encode() + b"\0"
        entries += bytes(12)
    counts = len(pairs).to_bytes(4, byteorder) + len(strings).to_bytes(4, byteorder)
    return b"glibc-ld.so.cache1.1" + counts + bytes(20) + entries + strings


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("older", [b"", b"ld.so-1.7.0\0" + bytes(20)], ids=["new", "with older"])
def test_caches_of_other_machines_and_releases(order: str, older: bytes, tmp_path: Path) -> None:
    pairs = [("libmpi.so.40", "/b/libmpi.so.40"), ("libmpi.so.40", "/a/libmpi.so.40")]
    path = tmp_path / "ld.so.cache"
    path.write_bytes(older + cache(order, *pairs))
    assert read_cache(path) == {"libmpi.so.40": ["/b/libmpi.so.40", "/a/libmpi.so.40"]}


@given(st.binary(max_size=200))
def test_a_damaged_cache_holds_nothing_or_something(rest: bytes) -> None:
    number = os.memfd_create("cache")
    try:
        os.write(number, b"glibc-ld.so.cache1.1" + rest)
        assert isinstance(read_cache(f"/proc/self/fd/{number}"), dict)
    finally:
        os.close(number)
