"""Where ld.so(8) finds the libraries that a program or another library needs."""

import os
import posixpath
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

from .elf import ElfError, Library, read_library
from .files import open_regular, real_in

# Where it looks last of all, in the order of glibc; folders that are absent do no harm.
DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
CACHE = "/etc/ld.so.cache"
MAGIC = b"glibc-ld.so.cache1.1"
# Of its newer table: magic, number of entries and so on; flags, name, path, release, capabilities.
HEADER, ENTRY = 48, "iIIIQ"
LARGEST_CACHE = 64 * 1024 * 1024


class Search:
    """Finds libraries as ld.so(8) does for a process of this program, a Library, and environment.

    *root*: the folder of the system that it runs in, an image's say; "" for this one. What is found
    is then without links. Nothing is run for it, and what is no regular file is passed over.
    """

    def __init__(self, program: Library, environ: "Mapping[str, str]", root: str = "") -> None:
        self.program = program
        self.root = root
        # An empty entry is the current folder, for ld.so too.
        path = environ.get("LD_LIBRARY_PATH", "")
        self.library_path = [entry or "." for entry in re.split("[:;]", path)] if path else []
        self.cache = read_cache(self.real(CACHE))
        self._libraries: "dict[str, Library | None]" = {}

    def real(self, path: str) -> str:
        """Return the location of a path of the system; the path itself without a root."""
        if not self.root:
            return path
        try:
            return real_in(self.root, path)
        except OSError:
            return self.root + "/dev/null"

    def library(self, path: str) -> "Library | None":
        """Return a library, or None if the file is not a library of this machine."""
        if path not in self._libraries:
            try:
                inside = path[len(self.root) :] if self.root else path
                found = read_library(self.real(inside))._replace(path=path)
            except (ElfError, OSError):
                found = None
            fits = found is not None and found.machine == self.program.machine
            self._libraries[path] = found if fits else None
        return self._libraries[path]

    def find(self, name: str, chain: "tuple[Library, ...]") -> "str | None":
        """Return the path of the library that is loaded for *name*, or None.

        *chain*: the library that needs it, the one that loaded that library, and so on.
        """
        candidates = [name] if "/" in name else self.candidates(name, chain)
        return next((path for path in map(self.real, candidates) if self.library(path)), None)

    def candidates(self, name: str, chain: "tuple[Library, ...]") -> "Iterator[str]":
        """Yield the paths at which ld.so looks, in its order."""
        wanting = chain[0]
        for folder in self.folders(wanting, chain):
            yield posixpath.join(folder, name)
        yield from self.cache.get(name, ())
        for folder in DEFAULT_FOLDERS:
            yield posixpath.join(folder, name)

    def folders(self, wanting: Library, chain: "tuple[Library, ...]") -> "list[str]":
        """Return the folders that libraries and environment name."""
        found = []
        # RPATH is handed down from whoever loaded a library, RUNPATH is not, and hides RPATH.
        if not wanting.runpath:
            for each in [*chain, self.program]:
                if not each.runpath:
                    found += [expanded(entry, self.inside(each)) for entry in each.rpath]
        found += self.library_path
        found += [expanded(entry, self.inside(wanting)) for entry in wanting.runpath]
        return found

    def inside(self, library: Library) -> str:
        """Return the path of a library inside of the system."""
        return library.path[len(self.root) :] if self.root else library.path

    def tree(self, path: str) -> "dict[str, str | None]":
        """Return all names that a library and its dependencies need -> path, or None if not found.

        {} for a file that is not a library of this machine.

        """
        found: "dict[str, str | None]" = {}
        top = self.library(path)
        waiting: "list[tuple[Library, ...]]" = [(top,)] if top else []
        while waiting:
            chain = waiting.pop(0)
            for name in chain[0].needed:
                if name not in found:
                    file = found[name] = self.find(name, chain)
                    library = self.library(file) if file else None
                    if library:
                        waiting.append((library, *chain))
        return found


def expanded(entry: str, path: str) -> str:
    """Return an rpath entry with $ORIGIN, the folder of the library that has it."""
    origin = str(Path(path).absolute().parent)
    return entry.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)


def read_cache(path: str = CACHE) -> "dict[str, list[str]]":
    """Read the cache of ldconfig: name -> paths in its order; {} if there is no cache.

    Source of the layout: sysdeps/generic/dl-cache.h of glibc. Caches of before 2.32 have an older
    table in front; what the newer one points to counts from its own beginning.
    """
    try:
        with open_regular(path) as stream:
            data = stream.read(LARGEST_CACHE)
    except OSError:
        return {}
    start = data.find(MAGIC)
    return cached_paths(data[start:]) if start >= 0 else {}


def cached_paths(data: bytes) -> "dict[str, list[str]]":
    """Return name -> paths of the newer table of a cache."""
    for order in "<>":
        (count,) = struct.unpack_from(order + "I", data.ljust(HEADER), len(MAGIC))
        end = HEADER + count * struct.calcsize(order + ENTRY)
        # In the wrong byte order a number is far too large.
        if end <= len(data):
            break
    else:
        return {}
    found: "dict[str, list[str]]" = {}
    for entry in struct.iter_unpack(order + ENTRY, data[HEADER:end]):
        name, path = (os.fsdecode(data[at : data.find(b"\0", at)]) for at in entry[1:3])
        found.setdefault(name, []).append(path)
    return found
