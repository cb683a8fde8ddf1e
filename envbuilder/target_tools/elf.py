"""What shared libraries and programs say in their ELF headers, also those of another machine.

Only the program headers and what they lead to are read, as ld.so(8) does: a library without section
headers is a library too. Every read has a limit, so a damaged or forged file costs no more than a
good one. Source of the layout: elf(5), and the "Symbol Versioning" part of the Linux Standard Base.
"""

import os
import struct
from typing import Iterable, Iterator, NamedTuple

from .files import ELF_MAGIC, open_regular

# The names of e_machine as elf.h has them, in lower case.
MACHINES = {
    3: "386",
    8: "mips",
    20: "ppc",
    21: "ppc64",
    22: "s390",
    40: "arm",
    62: "x86_64",
    183: "aarch64",
    243: "riscv",
    258: "loongarch",
}
PT_LOAD, PT_DYNAMIC, PT_GNU_PROPERTY = 1, 2, 0x6474E553
DT_NULL, DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH = 0, 1, 5, 14, 15, 29
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
# What is read at most. glibc's own libraries have 14 program headers; an rpath of conda is 255
# bytes, those of Spack may have some thousands.
MOST_HEADERS = 512
MOST_DYNAMIC = 256 * 1024
MOST_VERSIONS = 256 * 1024
LONGEST_TEXT = 64 * 1024
MOST_PROPERTIES = 4 * 1024
# Of the x86-64 psABI: a bit for each level of the processor without which ld.so does not load it.
X86_ISA_1_NEEDED = 0xC0008002


class ElfError(ValueError):
    """A file is not an ELF file, or is damaged."""


class Library(NamedTuple):
    """The parts of a shared library or program that ld.so reads.

    versions: (library, version) for each version of symbols that it needs: libc.so.6, GLIBC_2.34.
    isa_needed: the levels of an x86-64 processor that it needs, a bit each: 1 the baseline, 2 v2,
    4 v3, 8 v4; 0 where it does not say.
    """

    path: str
    machine: "tuple[int, int, bool]"  # (e_machine, bits, little endian)
    needed: "tuple[str, ...]"
    rpath: "tuple[str, ...]"
    runpath: "tuple[str, ...]"
    soname: "str | None"
    versions: "tuple[tuple[str, str], ...]"
    isa_needed: int = 0


class _Layout(NamedTuple):
    """How the structures of a class and byte order of ELF are laid out."""

    header: struct.Struct  # type, machine, version, entry, phoff, shoff, flags, sizes
    program: struct.Struct
    program_fields: "tuple[int, ...]"  # where type, offset, vaddr and filesz are
    dynamic: struct.Struct
    versions: struct.Struct


def _layout(bits: int, order: str) -> _Layout:
    wide = bits == 64
    return _Layout(
        header=struct.Struct(order + ("HHIQQQIHHH" if wide else "HHIIIIIHHH")),
        program=struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII")),
        program_fields=(0, 2, 3, 5) if wide else (0, 1, 2, 4),
        dynamic=struct.Struct(order + ("qQ" if wide else "iI")),
        versions=struct.Struct(order + "HHIII"),
    )


# A section header: type, offset, size and link of it; a symbol: name, information, section.
_SECTIONS = {32: ("4x I 8x II I 12x", 40), 64: ("4x I 16x QQ I 20x", 64)}
_SYMBOLS = {32: "I 8x B x H", 64: "I B x H 16x"}
_SHT_DYNSYM, _STB_GLOBAL, _MOST_SECTIONS = 11, 1, 4096

LAYOUTS = {(bits, order): _layout(bits, order) for bits in (32, 64) for order in "<>"}


def read_library(path: str) -> Library:
    """Read the parts of an ELF file that ld.so reads. Raises ElfError, OSError."""
    with open_regular(path) as stream:
        try:
            return _ElfReader(stream.fileno()).library(path)
        except (struct.error, OverflowError) as error:
            raise ElfError("damaged: {}".format(error)) from error


def dynamic_symbols(path: str) -> "tuple[set[str], set[str]]":
    """Return the names of the symbols that a library defines, and of those it requires (not weak).

    Both are empty without section headers. Raises ElfError, OSError.
    """
    with open_regular(path) as stream:
        try:
            return _ElfReader(stream.fileno()).symbols()
        except (struct.error, OverflowError, ValueError) as error:
            raise ElfError("damaged: {}".format(error)) from error


class _ElfReader:
    """Reads one opened file."""

    def __init__(self, number: int) -> None:
        self.number = number
        ident = self.at(0, 16)
        if not ident.startswith(ELF_MAGIC) or len(ident) < 16:
            raise ElfError("the magic number is missing")
        bits, order = {1: 32, 2: 64}.get(ident[4]), {1: "<", 2: ">"}.get(ident[5])
        if bits is None or order is None:
            raise ElfError("unknown ELF class or byte order")
        self.bits, self.order = bits, order
        self.layout = LAYOUTS[bits, order]
        header = self.layout.header
        fields = header.unpack(self.at(16, header.size))
        self.machine = (fields[1], self.bits, self.order == "<")
        self.segments = self._segments(fields[4], fields[8], fields[9])

    def at(self, offset: int, length: int) -> bytes:
        """Return *length* bytes at an offset; fewer if the file ends before."""
        try:
            return os.pread(self.number, length, offset)
        except (OSError, OverflowError) as error:
            raise ElfError("cannot read at offset {}: {}".format(offset, error)) from error

    def _segments(self, offset: int, size: int, count: int) -> "list[tuple[int, ...]]":
        """Return (type, offset, address, length) of each program header."""
        program = self.layout.program
        if count == 0:
            return []
        if size != program.size or count > MOST_HEADERS:
            raise ElfError("malformed program headers")
        data = self.at(offset, size * count)
        if len(data) < size * count:
            raise ElfError("the file ends within its program headers")
        pick = self.layout.program_fields
        return [tuple(fields[i] for i in pick) for fields in program.iter_unpack(data)]

    def offset_of(self, address: int) -> int:
        """Return the offset in the file of the bytes that are loaded at an address."""
        for kind, offset, start, length in self.segments:
            if kind == PT_LOAD and start <= address < start + length:
                return offset + address - start
        raise ElfError("no data at address {:#x}".format(address))

    def text(self, offset: int) -> str:
        """Return the text that begins at an offset of the file."""
        for length in (256, LONGEST_TEXT):
            data, end, _ = self.at(offset, length).partition(b"\0")
            if end:
                return os.fsdecode(data)
        raise ElfError("a name is not terminated")

    def symbols(self) -> "tuple[set[str], set[str]]":
        """Return the names that the table of dynamic symbols defines, and those it requires."""
        header = self.layout.header
        offset = header.unpack(self.at(16, header.size))[5]
        count = struct.unpack(self.order + "HH", self.at(16 + header.size, 4))[1]
        form, size = _SECTIONS[self.bits]
        data = self.at(offset, min(count, _MOST_SECTIONS) * size)
        sections = list(struct.iter_unpack(self.order + form, data))
        defined: "set[str]" = set()
        required: "set[str]" = set()
        for kind, start, length, link in sections:
            if kind == _SHT_DYNSYM and link < len(sections):
                names = self.at(*sections[link][1:3])
                form = self.order + _SYMBOLS[self.bits]
                for name, info, section in struct.iter_unpack(form, self.at(start, length)):
                    text = names[name : names.index(b"\0", name)].decode("utf-8", "replace")
                    if section or info >> 4 == _STB_GLOBAL:
                        (defined if section else required).add(text)
        return defined, required

    def dynamic(self) -> "list[tuple[int, int]]":
        """Return the entries (tag, value) of the dynamic section; [] for a static program."""
        for kind, offset, _, length in self.segments:
            if kind == PT_DYNAMIC:
                size = self.layout.dynamic.size
                data = self.at(offset, min(length, MOST_DYNAMIC))
                whole = data[: len(data) // size * size]
                entries: "list[tuple[int, int]]" = []
                for tag, value in self.layout.dynamic.iter_unpack(whole):
                    if tag == DT_NULL:
                        return entries
                    entries.append((tag, value))
                raise ElfError("the dynamic section is not terminated")
        return []

    def library(self, path: str) -> Library:
        """Return the parts of the file as a Library."""
        end = os.fstat(self.number).st_size
        if any(kind == PT_LOAD and at + length > end for kind, at, _, length in self.segments):
            raise ElfError("the file ends within a segment")
        entries = self.dynamic()
        one = dict(entries)
        texts: "dict[int, list[str]]" = {
            tag: [] for tag in (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH)
        }
        if texts.keys() & one.keys() or DT_VERNEED in one:
            if DT_STRTAB not in one:
                raise ElfError("the string table is missing")
            table = self.offset_of(one[DT_STRTAB])
        for tag, value in entries:
            if tag in texts:
                texts[tag].append(self.text(table + value))
        versions: "tuple[tuple[str, str], ...]" = ()
        if DT_VERNEED in one:
            start = self.offset_of(one[DT_VERNEED])
            versions = tuple(self._versions(start, one.get(DT_VERNEEDNUM, 0), table))
        return Library(
            path=path,
            machine=self.machine,
            needed=tuple(texts[DT_NEEDED]),
            rpath=split_path(texts[DT_RPATH]),
            runpath=split_path(texts[DT_RUNPATH]),
            soname=next(iter(texts[DT_SONAME]), None),
            versions=versions,
            isa_needed=self._isa_needed(),
        )

    def _isa_needed(self) -> int:
        """Return the x86-64 levels that the GNU property note requires; 0 if it requires none."""
        for kind, offset, _, length in self.segments:
            if kind == PT_GNU_PROPERTY:
                data = self.at(offset, min(length, MOST_PROPERTIES))
                # The note: sizes of name and content, type 5, the name GNU; then the properties.
                place, step = 16, self.bits // 8
                while data[12:16] == b"GNU\0" and place + 8 <= len(data):
                    name, size = struct.unpack_from(self.order + "II", data, place)
                    if name == X86_ISA_1_NEEDED and size == 4:
                        return int(struct.unpack_from(self.order + "I", data, place + 8)[0])
                    place += 8 + -(-size // step) * step
        return 0

    def _versions(self, start: int, count: int, table: int) -> "Iterator[tuple[str, str]]":
        """Yield (library, version): a chain of libraries, each with a chain of its versions."""
        layout = self.layout.versions
        data = self.at(start, MOST_VERSIONS)
        left = MOST_VERSIONS // layout.size
        place = 0
        for _ in range(min(count, left)):
            _, inner, name, to_first, to_next = layout.unpack_from(data, place)
            library, at = self.text(table + name), place + to_first
            for _ in range(inner):
                left -= 1
                if left < 0:
                    raise ElfError("the version table is not terminated")
                # vna_hash is one word where vn_version and vn_cnt are two half words.
                _, _, _, name, step = layout.unpack_from(data, at)
                yield library, self.text(table + name)
                at += step
            place += to_next


def machine_words(machine: "tuple[int, int, bool]") -> str:
    """Return a machine in words."""
    number, bits, little = machine
    order = "little" if little else "big"
    # ppc64 and ppc64le differ in nothing but the order of bytes.
    return "{} {}-bit {}-endian".format(MACHINES.get(number, number), bits, order)


def split_path(values: "Iterable[str]") -> "tuple[str, ...]":
    """Return the entries of rpath texts."""
    return tuple(entry for value in values for entry in value.split(":") if entry)
