"""The host's MPI in the place of an image's: whether it can be, and which files that takes.

The ranks then load the library that the host's network was set up for. What e4s-cl and the MPI hook
of Sarus take from lists is read from the libraries here: the number of the interface that SONAME
ends with, the symbols that the image's programs take of their MPI, the versions of symbols that the
host's libraries want of what stays the image's. Nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from elftools.common.exceptions import ELFError

from ..model.base_image import Bind
from ..model.host_contract import ContractRow, Fit, HostLibraries, Subject
from ..target_tools.elf import ElfError, Library, dynamic_symbols, read_library
from ..target_tools.files import real_in
from ..target_tools.ld_so import Search
from ..target_tools.library_facts import defined_versions, symbols

# Where the host's libraries are in the image: no system has such a folder.
FOLDER = PurePosixPath("/opt/envbuild.host")
# Where a system has its libraries, for a pattern of shells.
SYSTEM_FOLDERS = ("lib", "lib64", "usr/lib", "usr/lib64", "lib/*", "usr/lib/*")
_INTERFACE = re.compile(r"\.so\.(\d+)")
# Every MPI has it; what wraps it for another language has not.
_OF_ANY_MPI = "MPI_Init_thread"
_C_LIBRARY = "libc.so.6"
_MOST_NAMES = 5


@dataclass(frozen=True)
class ImageMpi:
    """An image's MPI.

    ``root``: the folder that holds the files of the image, those that matter here. ``library``: the
    file that its ranks loaded, ``users``: what may be linked with it; absolute paths in the image.
    """

    root: Path
    library: PurePosixPath
    users: tuple[PurePosixPath, ...]


@dataclass(frozen=True)
class HostMpiFiles:
    """Whether the host's MPI can take the place, and what each container then binds in."""

    rows: tuple[ContractRow, ...]
    binds: tuple[Bind, ...] = ()

    @property
    def places(self) -> tuple[PurePosixPath, ...]:
        """Where in a container its MPI itself is: as which of these it is loaded, ld.so decides."""
        return tuple(each.target for each in self.binds if each.source == self.binds[0].source)


@dataclass(frozen=True)
class HostSearch:
    """Where the host's MPI may lie, and what it has beside its libraries.

    ``candidates``: libraries. ``folders``: of its plug-ins and texts, which it looks for where they
    are on the host. ``environ``: of the shell, whose LD_LIBRARY_PATH counts.
    """

    candidates: tuple[Path, ...]
    folders: tuple[Path, ...]
    environ: Mapping[str, str]


def replace_mpi(image: ImageMpi, host: HostSearch, known: HostLibraries) -> HostMpiFiles:
    """Say whether the host's MPI can take the place of an image's, and by which files.

    Raises ElfError or OSError where the image's is no library.
    """
    own = read_library(real_in(str(image.root), str(image.library)))
    found = _same_interface(own, host.candidates)
    if found is None:
        there = ", ".join(sorted(each.name for each in host.candidates)[:_MOST_NAMES])
        why = "the host's MPI does not provide the interface that the programs of the image link to"
        row = _row("mpi library", _called(own), there or "none", why)
        return HostMpiFiles((row,))
    closure = _closure(found, host, known)
    taken, wanting = _shared(found, closure, image, known)
    rows = (
        _row("mpi library", _called(own), f"{_called(found)} ({found.path})"),
        _symbols(own, found, image),
        _system(wanting, image),
    )
    return HostMpiFiles(rows, tuple(_binds(own, found, image, taken, host, known)))


def _row(subject: Subject, image: str, host: str, why: str | None = None) -> ContractRow:
    fit: Fit = "broken" if why else "fits"
    return ContractRow(subject=subject, image=image, host=host[:400], fit=fit, why=why)


def _called(library: Library) -> str:
    return library.soname or PurePosixPath(library.path).name


def _interface(library: Library) -> str | None:
    """Return the number that changes with the ABI: 12 of libmpi.so.12 and of libmpich.so.12."""
    found = _INTERFACE.search(_called(library))
    return found[1] if found else None


def _same_interface(own: Library, candidates: Iterable[Path]) -> Library | None:
    for path in candidates:
        try:
            each: Library = read_library(str(path))
        except (ElfError, OSError):
            continue
        same = (each.machine, _interface(each)) == (own.machine, _interface(own))
        if same and _OF_ANY_MPI in symbols(path)[0]:
            return each
    return None


def _symbols(own: Library, found: Library, image: ImageMpi) -> ContractRow:
    """Return the row of what the image's programs call: all of it must be there.

    Unknown if a program cannot be read, or if none is known.
    """
    offered, there = symbols(own.path)[0], symbols(found.path)[0]
    used: set[str] = set()
    unread = [] if image.users else ["the programs of the image: its manifest lists none"]
    for path in image.users:
        place = real_in(str(image.root), str(path))
        try:
            needs, required = read_library(place).needed, dynamic_symbols(place)[1]
        except (ElfError, OSError):
            unread.append(str(path))
            continue
        if own.soname in needs or image.library.name in needs:
            used |= required & offered
    missing = sorted(used - there)
    names = ", ".join(missing[:_MOST_NAMES]) + (", ..." if len(missing) > _MOST_NAMES else "")
    row = _row(
        "mpi symbols",
        f"its programs call {len(used)} symbols",
        f"{len(used) - len(missing)} of these",
        f"the host's MPI has no {names}" if missing else None,
    )
    if missing or not unread:
        return row
    return row.model_copy(update={"fit": "unknown", "why": f"cannot read {unread[0]}"})


def _closure(found: Library, host: HostSearch, known: HostLibraries) -> dict[str, str]:
    """Return every library that the host's MPI and its plug-ins need: name -> path."""
    search = Search(found, host.environ)
    paths = [found.path]
    names: dict[str, str] = {}
    for path in paths:
        if search.library(path) is None:
            continue
        # A plug-in whose own libraries the host has not is one that it does not use either.
        tree = {name: where for name, where in search.tree(path).items() if where}
        new = {name: where for name, where in tree.items() if name not in names}
        names |= new
        folders = [*host.folders] if path == found.path else []
        folders += [
            folder
            for name, where in new.items()
            for folder, _ in plug_ins(name, Path(where), known)
        ]
        paths += [str(each) for folder in folders for each in sorted(folder.glob("*.so*"))]
    return names


def plug_ins(
    name: str, path: Path, known: HostLibraries
) -> Iterator[tuple[Path, PurePosixPath | None]]:
    """Yield the folders of a library's plug-ins, and where in the image; None: as on the host."""
    stem = name.partition(".so")[0]
    for folder in known.plug_ins.get(stem, ()):
        there = path.resolve().parent / folder
        if there.is_dir():
            yield there, FOLDER / folder
    for folder in known.compiled_in.get(stem, ()):
        # An absolute one replaces what it is joined to.
        there = path.resolve().parent / folder
        if there.is_dir():
            yield there, None


def _shared(
    found: Library, closure: Mapping[str, str], image: ImageMpi, known: HostLibraries
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Return what is taken from the host, and what that wants of what stays the image's.

    The second: library -> version of its symbols -> one that wants it.
    """
    stems = {name: name.partition(".so")[0] for name in closure}
    of_c = {name for name, stem in stems.items() if stem in known.c_library}
    wanted: dict[str, dict[str, str]] = {}
    for name, path in ((_called(found), found.path), *closure.items()):
        if name not in of_c:
            for library, version in read_library(path).versions:
                wanted.setdefault(library, {}).setdefault(version, name)
    kept = {
        name
        for name, stem in stems.items()
        if stem in known.newer and wanted.get(name, {}).keys() <= _offered(image.root, name)
    }
    taken = {name: path for name, path in closure.items() if name not in of_c | kept}
    return taken, {name: wanted.get(name, {}) for name in sorted(of_c)}


def _system(wanting: Mapping[str, Mapping[str, str]], image: ImageMpi) -> ContractRow:
    """Return the row of the C library, which is the image's for all in it."""
    missing, newest = [], ""
    for name, versions in wanting.items():
        offered = _offered(image.root, name)
        lacking = sorted(versions.keys() - offered, key=_numbers)
        missing += [f"{versions[each]} requires {each} of {name}" for each in lacking[-1:]]
        newest = max([newest, *versions], key=_numbers)
    own = max(_offered(image.root, _C_LIBRARY), key=_numbers, default="none found")
    return _row("glibc", own, f"up to {newest or 'none'}", "; ".join(missing) or None)


def _numbers(version: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", version)]


def _offered(root: Path, name: str) -> set[str]:
    """Return the versions of symbols that a library of the image's system defines."""
    for folder in SYSTEM_FOLDERS:
        for path in sorted(root.glob(f"{folder}/{name}")):
            place = real_in(str(root), "/" + str(path.relative_to(root)))
            try:
                # The first is the library's own name.
                return {each for each in defined_versions(place) if each != name}
            except (ELFError, OSError):
                continue
    return set()


def _binds(
    own: Library,
    found: Library,
    image: ImageMpi,
    taken: Mapping[str, str],
    host: HostSearch,
    known: HostLibraries,
) -> Iterator[Bind]:
    """Yield what is bound in: over the image's own file, and where LD_LIBRARY_PATH leads."""
    library = Path(found.path)
    yield Bind(library, image.library)
    for name in dict.fromkeys(filter(None, (own.soname, found.soname))):
        yield Bind(library, FOLDER / name)
    places: dict[PurePosixPath, Path] = {FOLDER / name: Path(path) for name, path in taken.items()}
    for name, path in taken.items():
        for folder, place in plug_ins(name, Path(path), known):
            places[place or PurePosixPath(folder)] = folder
    places |= {PurePosixPath(folder): folder for folder in host.folders}
    places.pop(FOLDER / str(own.soname), None)
    for place in sorted(places):
        yield Bind(places[place], place)


def wanted_files(image_files: Sequence[PurePosixPath], known: HostLibraries) -> tuple[str, ...]:
    """Return the patterns, in a system, of what ``replace_mpi`` looks at."""
    names = (*known.c_library, *known.newer)
    system = [f"{folder}/{name}.so*" for folder in SYSTEM_FOLDERS for name in names]
    return (*system, *(str(each).lstrip("/") for each in image_files))
