"""Facts about one native library: its machine, the MPI and NCCL it finds, what is compiled in."""

import functools
import re
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple

from elftools.elf.elffile import ELFFile

from . import horovod_build
from .elf import ElfError, machine_words, read_library
from .files import is_below, real
from .ld_so import Search
from .mpi_wrapper import mpi_libraries, mpicxx_words, option_values
from .names import release
from .processes import output_of
from .wheel_key import homes_inside, prefixes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .wheel_key import Build, PlannedPin

# libmpi.so.40, libmpi_cxx.so.40, libmpich.so.12, libmpi_ibm.so.3: what holds an MPI.
MPI_NAME = re.compile(r"lib(mpi|mpich|mpichcxx|mpi_\w+|mpicxx|pmpi)\.so\b")
NCCL_NAME = re.compile(r"libnccl\.so\b")
# Where it lies in its folder, which may be the folder of libraries itself.
NCCL_FOLDERS = ("", "lib/", "lib64/", "lib/*-linux-gnu*/", "targets/*/lib/")
FRAMEWORK_NAME = re.compile(r"tensorflow|torch|c10|mxnet")
# NCCL says its release in its log, with or without the CUDA behind it: the text is in its code.
NCCL_SAYS = re.compile(rb"NCCL version (\d+(?:\.\d+)+)")
# The driver's libraries are on machines with a GPU alone; login nodes have none.
DRIVER_NAME = re.compile(r"lib(cuda|nvidia-ml)\.so\b")


class Fact(NamedTuple):
    """The result of one check. ``passed`` is None if it could not be judged.

    topic: installation, linkage, mpi, nccl or flags.
    """

    passed: "bool | None"
    text: str
    topic: str = "installation"


def about(topic: str) -> "Callable[[Callable[..., Iterator[Fact]]], Callable[..., Iterator[Fact]]]":
    """Return a decorator that sets the topic of a generator's facts."""

    def decorate(facts: "Callable[..., Iterator[Fact]]") -> "Callable[..., Iterator[Fact]]":
        @functools.wraps(facts)
        def of_topic(*arguments: Any) -> "Iterator[Fact]":
            for fact in facts(*arguments):
                yield fact._replace(topic=topic)

        return of_topic

    return decorate


def right(text: str) -> Fact:
    """Return a fact that is as it must be."""
    return Fact(passed=True, text=text)


def wrong(text: str) -> Fact:
    """Return a fact that is a problem."""
    return Fact(passed=False, text=text)


def unknown(text: str) -> Fact:
    """Return a fact that cannot be judged here."""
    return Fact(passed=None, text=text)


class SearchEnvironment(NamedTuple):
    """The environment as Python and ld.so see it. ``mpi``: real path -> the MPI of mpicxx.

    names: modules to import along with frameworks; imported: where those lie, filled as they are.
    """

    prefix: str
    search: Search
    mpicxx: "str | None"
    mpi: "dict[str, str]"
    names: "list[str]"
    imported: "dict[str, str]"


class Native(NamedTuple):
    """A native library: its dependencies, all that they load, and its answers once loaded."""

    name: str
    path: str
    needed: "tuple[str, ...]"
    tree: "dict[str, str | None]"
    loaded: "dict[str, Any]"


# ---------------------------------------------------------------- MPI


def mpi_of_mpicxx(program: str) -> "tuple[str | None, dict[str, str]]":
    """Return (mpicxx, real path -> name) of the MPI's libraries and what they load.

    Found in the folders that mpicxx names, because LD_LIBRARY_PATH is checked against them.
    *program*: the program that loads them, this Python.
    """
    mpicxx, words = mpicxx_words() or (None, [])
    path = ":".join(option_values(words, "-L"))
    search = Search(read_library(real(program)), {"LD_LIBRARY_PATH": path})
    found = {}
    for path in mpi_libraries(words) if words else ():
        found[path] = Path(path).name
        tree = search.tree(path) if search.library(path) else {}
        found.update({real(each): name for name, each in tree.items() if each})
    return mpicxx, found


@about("mpi")
def mpicxx_facts(plan: "PlannedPin", place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about whether mpicxx belongs to the planned MPI."""
    label = f"{plan['component']} {plan['version']}"
    if place.mpicxx is None:
        yield wrong(f"mpicxx of {label} is not on PATH")
        return
    if not place.mpi:
        yield wrong(f"{place.mpicxx} -show lists no existing MPI library")
        return
    inside = any(is_below(place.mpicxx, each) for each in prefixes_of(place.prefix))
    where = "in the prefix" if inside else "not in the prefix"
    fits = inside == (plan["origin"] not in ("module", "system"))
    yield Fact(fits, f"{place.mpicxx} is {where}; the plan has {label} from {plan['origin']}")
    # Only the wrapper of Open MPI states its release.
    said = output_of([place.mpicxx, "--showme:version"]) or ""
    version = re.search(r"Open MPI (\d[\w.]*)", said)
    if plan["component"] == "openmpi" and version:
        fits = version.group(1) == plan["version"]
        yield Fact(fits, f"{place.mpicxx} is of Open MPI {version.group(1)}; planned: {label}")
    else:
        yield unknown(f"{place.mpicxx} does not state its release; planned: {label}")


@about("mpi")
def mpi_facts(native: Native, wanted: "bool | None", place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about the MPI that a library finds. *wanted*: None if it is not stated."""
    direct = [name for name in native.needed if MPI_NAME.match(name)]
    if wanted is None and not (direct and place.mpi):
        yield unknown(f"{native.name} links {', '.join(direct) or 'no MPI'}; not stated")
        return
    if wanted is False:
        for name in direct:
            yield wrong(f"{native.name} links {name}, but the plan has no MPI for it")
        if not direct:
            yield right(f"{native.name} links no MPI")
        return
    if not direct:
        yield wrong(f"{native.name} links no MPI")
    planned = ", ".join(sorted(path for path, name in place.mpi.items() if MPI_NAME.match(name)))
    found = {path for name, path in native.tree.items() if path and MPI_NAME.match(name)}
    mapped = {p for p in native.loaded.get("mapped", ()) if MPI_NAME.match(Path(p).name)}
    for how, paths in (("finds", found), ("loads", mapped - set(map(real, found)))):
        for path in sorted(paths):
            if real(path) in place.mpi:
                yield right(f"{native.name} {how} {plain(path)}, as mpicxx does")
            else:
                why = reason(path, place)
                text = f"{native.name} {how} {plain(path)}{why}; mpicxx uses {planned}"
                yield wrong(text)


def plain(path: str) -> str:
    """Return a path for messages: with resolved links if it contains ``..``."""
    return real(path) if "/../" in path else path


def reason(path: str, place: SearchEnvironment) -> str:
    """Return why ld.so takes this path, if it is for LD_LIBRARY_PATH."""
    folder = str(Path(path).parent)
    named = [each.rstrip("/") for each in place.search.library_path]
    return " (its folder is in LD_LIBRARY_PATH)" if folder in named else ""


# ---------------------------------------------------------------- NCCL, and what is compiled in


@about("nccl")
def nccl_facts(build: "Build", native: Native, place: SearchEnvironment) -> "Iterator[Fact]":
    """Yield facts about the NCCL of a Horovod library."""
    shared = [name for name in native.needed if NCCL_NAME.match(name)]
    wanted = horovod_build.parts(build).get("nccl")
    if wanted is None:
        yield unknown(f"{native.name} links {', '.join(shared) or 'no NCCL'}; not stated")
        return
    if not wanted:
        fits = not shared
        yield Fact(fits, f"{native.name} links {', '.join(shared) or 'no NCCL'}; planned: none")
        return
    link = build["flags"].get("HOROVOD_NCCL_LINK", "").upper()
    if not shared:
        # horovod.lds makes them local: they are in .symtab, which strip takes away.
        names, _ = symbols(native.path, ".symtab")
        inside = "ncclAllReduce" in names
        text = "contains NCCL" if inside else "neither links libnccl nor contains ncclAllReduce"
        passed = None if not names else inside
        passed = False if link == "SHARED" else passed
        yield Fact(passed, f"{native.name} {text}; planned: {link.lower() or 'either'}")
        if inside:
            yield nccl_release(build, native.path, native.name)
        return
    fits = link != "STATIC"
    yield Fact(fits, f"{native.name} links {shared[0]}; planned: {link.lower() or 'either'}")
    flags = build["flags"]
    known = dict(homes_inside(build, place.prefix), **flags)
    folders = [known[name] for name in ("HOROVOD_NCCL_LIB", "HOROVOD_NCCL_HOME") if name in known]
    mapped = [p for p in native.loaded.get("mapped", ()) if NCCL_NAME.match(Path(p).name)]
    found = native.tree.get(shared[0])
    for path in filter(None, dict.fromkeys([found, *mapped])):
        fits = not folders or any(holds_nccl(folder, path) for folder in folders)
        where = f"; planned: {' or '.join(folders)}" if folders else ""
        # One name is loaded once: what the framework has of NCCL's name comes first.
        first = ", which was loaded first" if found and real(path) != real(found) else ""
        yield Fact(fits, f"{native.name} finds {path}{first}{where}")
        yield nccl_release(build, path, path)


def nccl_release(build: "Build", path: str, name: str) -> Fact:
    """Return a fact about the release of the NCCL in a library, by its own code.

    The version that Horovod was compiled with is that of nccl.h: CMake searches the library
    separately, and may find another NCCL.
    """
    wanted = build["nccl"]["version"] if build["nccl"] else None
    with Path(path).open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as whole:
        said = {match.group(1).decode() for match in NCCL_SAYS.finditer(whole)}
    text = f"{name} is NCCL {' or '.join(sorted(said)) or 'of an unknown release'}"
    if not said or wanted is None:
        return unknown(text)
    fits = release(wanted) in map(release, said)
    return Fact(fits, f"{text}; planned: {wanted}")


def holds_nccl(folder: str, path: str) -> bool:
    """Return whether a library lies in NCCL's folder, or a link there leads to it."""
    if is_below(real(path), real(folder)):
        return True
    patterns = [each + "libnccl.so*" for each in NCCL_FOLDERS]
    return real(path) in {real(each) for name in patterns for each in Path(folder).glob(name)}


@about("flags")
def content_facts(build: "Build", native: Native) -> "Iterator[Fact]":
    """Yield facts about the operations that are compiled into a Horovod library."""
    defined, _ = symbols(native.path)
    inside = horovod_build.compiled_in(defined)
    for name, wanted in sorted(horovod_build.parts(build).items()):
        has = "has" if inside[name] else "has no"
        text = f"{native.name} {has} {horovod_build.CLASSES[name]}"
        says = (
            "" if inside[name] == wanted else f", but the plan {horovod_build.words(name, wanted)}"
        )
        yield Fact(inside[name] == wanted, text + says)


def symbols(path: "str | Path", table: str = ".dynsym") -> "tuple[set[str], set[str]]":
    """Return the names of the symbols that a library defines, and of those it lacks."""
    with Path(path).open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(table)
        defined: "set[str]" = set()
        lacking: "set[str]" = set()
        for symbol in section.iter_symbols() if section else ():
            (lacking if symbol["st_shndx"] == "SHN_UNDEF" else defined).add(symbol.name)
    return defined, lacking


def defined_versions(path: "str | Path") -> "list[str]":
    """Return the versions of symbols that a library has: GLIBC_2.34, ..."""
    with Path(path).open("rb") as stream:
        section = ELFFile(stream).get_section_by_name(".gnu.version_d")
        found = section.iter_versions() if section else ()
        return [next(names).name for _, names in found]


# ---------------------------------------------------------------- a library at all


def native_of(
    path: "str | Path", name: str, said: "dict[str, Any]", place: SearchEnvironment
) -> "tuple[Native | None, list[Fact]]":
    """Return (Native, facts); (None, facts) for a file that is not a library of this machine."""
    try:
        library = read_library(str(path))
    except (ElfError, OSError) as error:
        return None, [wrong(f"{name} is not an ELF file: {error}")]
    here = place.search.program.machine
    if library.machine != here:
        text = (
            f"{name} is for {machine_words(library.machine)}, this machine is {machine_words(here)}"
        )
        return None, [wrong(text)]
    tree = place.search.tree(str(path))
    facts = [right(f"{name} is for {machine_words(here)}")]
    return Native(name, str(path), library.needed, tree, said), facts


@about("linkage")
def resolving_facts(native: Native, location: "Path | None") -> "Iterator[Fact]":
    """Yield facts about names that nothing provides. *location*: the framework's package."""
    mapped = {Path(path).name for path in native.loaded.get("mapped", ())}
    brought = {file.name for file in location.rglob("*.so*")} if location else set()
    lacking = [name for name, path in native.tree.items() if path is None]
    lacking = sorted(set(lacking) - mapped - brought)
    for name in lacking:
        if DRIVER_NAME.match(name):
            yield unknown(
                f"{native.name} needs {name} of the GPU driver, which is not on this machine"
            )
        elif location or not FRAMEWORK_NAME.search(name):
            yield wrong(f"{native.name} needs {name}, which is not found")
    if not lacking:
        yield right(f"{native.name}: all {len(native.tree)} libraries that it needs exist")


@about("linkage")
def loading_facts(what: str, said: "dict[str, Any]") -> "Iterator[Fact]":
    """Yield facts about whether a framework and its libraries can be loaded."""
    if "error" in said:
        yield wrong(f"cannot load {what}: " + " | ".join(said["error"]))
    else:
        yield right(f"{what} can be loaded")
