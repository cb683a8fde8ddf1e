"""Where ld.so(8) finds the libraries that a program or another library needs."""

import posixpath
import re
from pathlib import Path

from elftools.common.exceptions import ELFError

from .elf import read_library
from .files import is_elf
from .processes import output_of

# Where it looks last of all, in the order of glibc; folders that are absent do no harm.
DEFAULT_FOLDERS = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
LDCONFIG = ("ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig")


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
