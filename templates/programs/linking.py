"""How shared libraries are linked: what mpicxx names, where ld.so looks, rpaths that move along.

Imported by the programs beside it. Reads ELF files with pyelftools, so also those of another
machine. Runs on Python 3.6 and later.
"""

import os
import posixpath
import re
import shlex
import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

ELF_MAGIC = b"\x7fELF"
# Where ld.so looks last of all, in the order of glibc; folders that are absent do no harm.
DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
LDCONFIG = ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig")
SECONDS = 60


class Library(NamedTuple):
    """What ld.so reads of a shared library or program."""

    path: str
    machine: tuple  # (e_machine, bits, little endian)
    soname: str
    needed: tuple
    rpath: tuple
    runpath: tuple


class RpathError(Exception):
    """A library cannot be made to look relative to where it lies."""


def output_of(words, environ=None):
    """Return what a program prints on stdout, stripped; None if it cannot be asked."""
    try:
        done = subprocess.run(  # noqa: UP022 - capture_output is new in 3.7
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def is_elf(path):
    """Return whether a file begins as ELF files do."""
    try:
        with Path(path).open("rb") as stream:
            return stream.read(4) == ELF_MAGIC
    except OSError:
        return False


def read_library(path):
    """Return what ld.so reads of a file; raise ELFError or OSError if it is no ELF file."""
    with Path(path).open("rb") as stream:
        return described(ELFFile(stream), path)


def described(elf, path):
    """Return a Library for an opened ELF file."""
    found = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": [], "DT_SONAME": []}
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag in found:
            # pyelftools names the text after the tag: needed, rpath, runpath, soname.
            found[tag.entry.d_tag].append(getattr(tag, tag.entry.d_tag[3:].lower()))
    return Library(
        path=path,
        machine=machine_of(elf),
        soname="".join(found["DT_SONAME"]),
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


# ---------------------------------------------------------------- where ld.so looks


class Search:
    """Finds libraries as ld.so(8) does for a process of this program and environment."""

    def __init__(self, program, environ):
        self.program = read_library(str(Path(program).resolve()))
        # An empty entry is the current folder, for ld.so too.
        path = environ.get("LD_LIBRARY_PATH", "")
        self.library_path = [entry or "." for entry in re.split("[:;]", path)] if path else []
        self.cache = read_cache()
        self._libraries = {}

    def library(self, path):
        """Return what a file is, or None if it is no library of this machine."""
        if path not in self._libraries:
            try:
                found = read_library(path) if is_elf(path) else None
            except (ELFError, OSError):
                found = None
            fits = found is not None and found.machine == self.program.machine
            self._libraries[path] = found if fits else None
        return self._libraries[path]

    def find(self, name, chain):
        """Return the path of the library that is loaded for *name*, or None.

        *chain*: the library that needs it, who loaded that one, and so on.
        """
        candidates = [name] if "/" in name else self.candidates(name, chain)
        return next((path for path in candidates if self.library(path)), None)

    def candidates(self, name, chain):
        """Yield the paths at which ld.so looks, in its order."""
        wanting = chain[0]
        for folder in self.folders(wanting, chain):
            yield posixpath.join(folder, name)
        yield from self.cache.get(name, ())
        for folder in DEFAULT_FOLDERS:
            yield posixpath.join(folder, name)

    def folders(self, wanting, chain):
        """Return the folders that libraries and environment name."""
        found = []
        # RPATH is handed down from whoever loaded a library, RUNPATH is not, and hides RPATH.
        if not wanting.runpath:
            for each in [*chain, self.program]:
                if not each.runpath:
                    found += [expanded(entry, each.path) for entry in each.rpath]
        found += self.library_path
        found += [expanded(entry, wanting.path) for entry in wanting.runpath]
        return found

    def tree(self, path):
        """Return every name that a library and what it loads need -> path, None if not found."""
        found = {}
        waiting = [(self.library(path),)]
        while waiting:
            chain = waiting.pop(0)
            for name in chain[0].needed:
                if name not in found:
                    found[name] = self.find(name, chain)
                    if found[name]:
                        waiting.append((self.library(found[name]), *chain))
        return found


def expanded(entry, path):
    """Return an rpath entry with $ORIGIN, the folder of the library that has it."""
    origin = str(Path(path).absolute().parent)
    return entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def read_cache():
    """Return what ldconfig lists: name -> paths in its order."""
    found = {}
    for program in LDCONFIG:
        text = output_of([program, "-p"])
        for line in (text or "").splitlines():
            match = re.match(r"\s*(\S+) \(.*\) => (/.*)$", line)
            if match:
                found.setdefault(match.group(1), []).append(match.group(2))
        if found:
            break
    return found


# ---------------------------------------------------------------- what mpicxx names


def mpicxx_words():
    """Return (path of mpicxx, the words it would call a compiler with); None if there is none."""
    program = shutil.which("mpicxx")
    shown = output_of([program, "-show"]) if program else None
    return (program, shlex.split(shown)) if shown else None


def mpi_libraries(words):
    """Return the files, links resolved, of the MPI libraries that a compiler call names."""
    folders = option_values(words, "-L")
    names = [name for name in option_values(words, "-l") if "mpi" in name.lower()]
    found = []
    for name in names:
        found += library_files("lib" + name + ".so", folders, words[0])
    found += [word for word in words if word.endswith(".so") and word.startswith("/")]
    return sorted({str(Path(path).resolve()) for path in found})


def option_values(words, option):
    """Return the values of -Lx or -L x."""
    pairs = zip(words, [*words[1:], ""])  # noqa: B905 - strict is new in 3.10
    return [word[2:] or following for word, following in pairs if word.startswith(option)]


def library_files(name, folders, compiler):
    """Return the files that the linker takes for a name: one, or those of a linker script."""
    paths = [Path(folder, name) for folder in folders]
    paths += [Path(output_of([compiler, "-print-file-name=" + name]) or name)]
    # A compiler that finds nothing says the bare name.
    path = next((each for each in paths if each.is_absolute() and each.is_file()), None)
    if path is None or is_elf(path):
        return [path] if path else []
    # The wheels of PyPI hold no links; their libmpi.so is a script: INPUT(libmpi.so.40)
    text = path.read_text(encoding="utf-8", errors="replace")
    inputs = re.findall(r"(?:INPUT|GROUP)\s*\(([^)]*)\)", text)
    beside = [path.parent, *folders]
    targets = [word for text in inputs for word in re.split(r"[\s,]+", text) if ".so" in word]
    places = [[Path(folder, target) for folder in beside] for target in targets]
    return [next(p for p in each if is_elf(p)) for each in places if any(map(is_elf, each))]


# ---------------------------------------------------------------- rpaths that move along


def is_below(path, folder):
    """Return whether a normal path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def moved(entries, origin, prefixes, builds):
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


def lasting(folder, builds):
    """Return whether a folder is there, and will be."""
    return Path(folder).is_dir() and not any(is_below(folder, each) for each in builds)


def relocate(data, origin, prefixes, builds):
    """Return the bytes of a library with its rpaths relative to where it lies in the prefix.

    *origin* is the library's folder in the prefix, *builds* the build folder. The text is replaced
    in its place, as CMake does when it installs: nothing in the file moves. Raises RpathError where
    that is impossible.
    """
    elf = ELFFile(BytesIO(data))
    dynamic = elf.get_section_by_name(".dynamic")
    for tag in dynamic.iter_tags() if dynamic else ():
        if tag.entry.d_tag == "DT_NEEDED" and any(is_below(tag.needed, p) for p in prefixes):
            raise RpathError(f"it needs {tag.needed} by its path")
        if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
            old = getattr(tag, tag.entry.d_tag[3:].lower())
            new = ":".join(moved(split_path([old]), origin, prefixes, builds))
            if new != old:
                data = with_text(data, elf, tag.entry.d_val, old, new)
    return data


def with_text(data, elf, offset, old, new):
    """Return the bytes with one text of the dynamic string table replaced."""
    old, new = os.fsencode(old), os.fsencode(new)
    if len(new) > len(old):
        raise RpathError(f"the new rpath is longer: {os.fsdecode(new)}")
    # Linkers let a text begin inside another one that ends the same.
    if any(offset <= other <= offset + len(old) for other in other_offsets(elf)):
        raise RpathError("its rpath is part of another name")
    table = elf.get_section(elf.get_section_by_name(".dynamic")["sh_link"])
    start = table["sh_offset"] + offset
    if data[start : start + len(old) + 1] != old + b"\0":
        raise RpathError("its string table is not where its header says")
    return data[:start] + new.ljust(len(old), b"\0") + data[start + len(old) :]


def other_offsets(elf):
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
