"""What shared libraries and programs say in their ELF headers, also those of another machine."""

from pathlib import Path
from typing import NamedTuple

from elftools.elf.elffile import ELFFile


class Library(NamedTuple):
    """What ld.so reads of a shared library or program."""

    path: str
    machine: tuple  # (e_machine, bits, little endian)
    needed: tuple
    rpath: tuple
    runpath: tuple


def read_library(path):
    """Return what ld.so reads of a file; raise ELFError or OSError if it is no ELF file."""
    with Path(path).open("rb") as stream:
        return described(ELFFile(stream), path)


def described(elf, path):
    """Return a Library for an opened ELF file."""
    found = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag in found:
            # pyelftools names the text after the tag: needed, rpath, runpath.
            found[tag.entry.d_tag].append(getattr(tag, tag.entry.d_tag[3:].lower()))
    return Library(
        path=path,
        machine=machine_of(elf),
        needed=tuple(found["DT_NEEDED"]),
        rpath=split_path(found["DT_RPATH"]),
        runpath=split_path(found["DT_RUNPATH"]),
    )


def machine_of(elf):
    """Return what must agree between libraries of one process."""
    # ppc64 and ppc64le differ in nothing but the order of bytes.
    return (elf.header["e_machine"], elf.elfclass, elf.little_endian)


def machine_words(machine):
    """Return a machine in words."""
    name, bits, little = machine
    order = "little" if little else "big"
    return "{} {}-bit {}-endian".format(str(name).replace("EM_", "").lower(), bits, order)


def split_path(values):
    """Return the entries of rpath texts."""
    return tuple(entry for value in values for entry in value.split(":") if entry)


def symbols(path, table=".dynsym"):
    """Return the names of the symbols that a library defines, and of those it lacks."""
    with Path(path).open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(table)
        defined, lacking = set(), set()
        for symbol in section.iter_symbols() if section else ():
            (lacking if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    return defined, lacking
