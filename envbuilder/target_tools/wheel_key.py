"""Everything that goes into a wheel that is built from its sources, as facts with a key.

Nothing is imported that takes its time: frameworks are known by the files that pip recorded. Paths
in the prefix and in the build folder are written with <prefix> and <build>, so that the same recipe
in another prefix has the same key.
"""

import hashlib
import json
import mmap
import os
import posixpath
import re
import shlex
import shutil
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path

from .distributions import PATH, listed, records, version_of
from .files import entries, sha256_of
from .mpi_wrapper import mpi_libraries, mpicxx_words
from .processes import output_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Mapping, Optional, Sequence, TypedDict

    PlannedPin = TypedDict(
        "PlannedPin", {"component": str, "version": str, "origin": str, "locator": str}
    )
    # An entry of builds.json. *module*: the one that provides a build of the site. *parts*: what
    # is compiled in, None for what is no Horovod.
    PlannedBuild = TypedDict(
        "PlannedBuild",
        {
            "component": str,
            "version": str,
            "sdist": Optional[str],
            "sha256": Optional[str],
            "flags": Dict[str, str],
            "environment": Dict[str, str],
            "pip_options": List[str],
            "patches": List[Dict[str, str]],
            "frameworks": List[str],
            "homes": Dict[str, str],
            "mpi": Optional[PlannedPin],
            "nccl": Optional[PlannedPin],
            "parts": Optional[Dict[str, bool]],
            "cpu_operations": Optional[str],
        },
    )

    class Build(PlannedBuild, total=False):
        """An entry of builds.json. *module*: the one that provides a build of the site."""

        module: str


SCHEMA = 1
PREFIX_WORD = "<prefix>"
BUILD_WORD = "<build>"
# Variables that compilers, wrappers, CMake and the setup.py of builds read.
READ_BY_BUILDS = re.compile(
    r"(HOROVOD|CMAKE|SCOREP|CCL|MPI4PY)_\w+"
    r"|(OMPI|MPICH|I_MPI)_(CC|CXX|FC|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|LIBS)"
    r"|MPI(CC|CXX|CFG|_HOME)|(CUDA|NCCL|ROCM|MKL)_?(HOME|ROOT|PATH)"
    # What find_package looks in, by the packages that CMake finds there.
    r"|(MPI|CUDAToolkit|Python3?|Pytorch|Tensorflow|Mxnet)_ROOT"
    r"|CUDA(CXX|HOSTCXX|ARCHS)|NVCC_CCBIN|TORCH_CUDA_ARCH_LIST"
    r"|CC|CXX|AR|LD|LDSHARED|SOURCE_DATE_EPOCH"
    r"|(C|CXX|CPP|CUDA|LD|NVCC_APPEND_|NVCC_PREPEND_)FLAGS"
    r"|CPATH|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|LIBRARY_PATH|LD_RUN_PATH"
)
# How many jobs there were does not go into a wheel.
JOBS = ("MAKEFLAGS", "CMAKE_BUILD_PARALLEL_LEVEL", "MAX_JOBS")
BUILD_TOOLS: "tuple[str, ...]" = ("cffi", "cmake", "cython", "ninja", "numpy", "packaging")
BUILD_TOOLS += ("pybind11", "setuptools", "wheel")
# What the build of Horovod asks gcc for, and then sets, unless the flag is given.
HOST_FLAGS = ("-mf16c", "-mavx", "-mfma", "-mcpu=native")


def canonical(value: object) -> str:
    """Return a value as the one JSON text that it has."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def key_of(facts: object) -> str:
    """Return the key of facts: 64 hex digits."""
    return hashlib.sha256(canonical(facts).encode("ascii")).hexdigest()


def prefixes_of(prefix: "str | Path") -> "tuple[str, ...]":
    """Return the ways in which paths of the prefix are written: as given, and links resolved."""
    return tuple(dict.fromkeys((str(Path(prefix).absolute()), str(Path(prefix).resolve()))))


def without_folders(value: "Any", places: "Sequence[tuple[str, str]]") -> "Any":
    """Return a JSON value with paths replaced by words in its texts. *places*: (path, word)."""
    if isinstance(value, dict):
        pairs = ((name, without_folders(each, places)) for name, each in value.items())
        return {without_folders(name, places): each for name, each in pairs}
    if isinstance(value, (list, tuple)):
        return [without_folders(each, places) for each in value]
    if isinstance(value, str):
        for path, word in places:
            # Not a folder beside it whose name begins the same.
            value = re.sub(re.escape(path) + r"(?![\w.-])", word, value)
    return value


def places_of(prefix: "str | Path", folder: "str | Path") -> "list[tuple[str, str]]":
    """Return (path, word) for the prefix and the build folder."""
    places = [(path, PREFIX_WORD) for path in prefixes_of(prefix)]
    return places + [(path, BUILD_WORD) for path in prefixes_of(folder)]


def facts_of(
    build: "Build", prefix: str, folder: "str | Path", source: "str | None" = None
) -> "dict[str, Any]":
    """Return the inputs of the wheel of one entry of builds.json, in this process's environment.

    *folder*: the build folder. *source*: the sha256 of the source archive, if it differs from that
    of the entry.
    """
    flags = build["flags"]
    facts = {
        "schema": SCHEMA,
        "component": build["component"],
        "version": build["version"],
        "sdist": source or build["sha256"],
        "patches": {each["name"]: each["sha256"] for each in build["patches"]},
        "flags": flags,
        "environment": {n: v for n, v in build["environment"].items() if n not in JOBS},
        "pip-options": build["pip_options"],
        "variables": variables(os.environ),
        "python": python_facts(prefix),
        "compilers": compiler_facts(flags),
        "cmake": program_facts([os.environ.get("HOROVOD_CMAKE") or "cmake"]),
        "build-tools": {name: version_of(name) for name in BUILD_TOOLS},
        "mpi": mpi_facts(build),
        "homes": {name: home_facts(path) for name, path in homes(build, prefix)},
        "frameworks": {name: framework_facts(name) for name in build["frameworks"]},
    }
    # An empty value is none for CMake.
    if build["parts"] is not None and not os.environ.get("HOROVOD_BUILD_ARCH_FLAGS"):
        facts["host-flags"] = host_flags()
    return dict(without_folders(facts, places_of(prefix, folder)))


def variables(environ: "Mapping[str, str]") -> "dict[str, str]":
    """Return the environment variables that builds read."""
    names = [name for name in environ if READ_BY_BUILDS.fullmatch(name) and name not in JOBS]
    return {name: environ[name] for name in names}


def python_facts(prefix: str) -> "dict[str, Any]":
    """Return the facts of this Python that affect extension modules and their location."""
    names = ("SOABI", "EXT_SUFFIX", "CC", "CXX", "CFLAGS", "LDSHARED", "LDCXXSHARED")
    found = {name: sysconfig.get_config_var(name) for name in names}
    found["version"] = sysconfig.get_python_version()
    found["platform"] = sysconfig.get_platform()
    found["libc"] = os.confstr("CS_GNU_LIBC_VERSION")
    found["site-packages"] = site_packages(prefix)
    return found


def site_packages(prefix: str) -> str:
    """Return the folder of packages, relative to the prefix."""
    base = {"platbase": prefix, "base": prefix}
    return posixpath.relpath(sysconfig.get_path("platlib", vars=base), prefix)


def compiler_facts(flags: "Mapping[str, str]") -> "dict[str, Any]":
    """Return the facts of the compilers that a build may call."""
    words = {
        "CC": os.environ.get("CC") or "cc",
        "CXX": os.environ.get("CXX") or "c++",
        "python's CC": sysconfig.get_config_var("CC") or "cc",
    }
    cuda = flags.get("HOROVOD_CUDA_HOME")
    if any(name.startswith("HOROVOD_GPU") for name in flags):
        words["nvcc"] = cuda + "/bin/nvcc" if cuda else "nvcc"
    return {name: program_facts(shlex.split(each)) for name, each in words.items()}


def program_facts(words: "list[str]") -> "dict[str, Any] | None":
    """Return path, version and target of a compiler or CMake; None if it is missing."""
    path = shutil.which(words[0])
    if path is None:
        return None
    # A wrapper's answer is that of the compiler behind it. nvcc says its release last.
    version = (output_of([path, *words[1:], "--version"]) or "").splitlines() or [""]
    release = [line for line in version if "release" in line]
    return {
        "path": str(Path(path).resolve()),
        "words": words[1:],
        "version": release[-1] if release else version[0],
        "target": output_of([path, "-dumpmachine"]),
    }


def mpi_facts(build: "Build") -> "dict[str, Any]":
    """Return the facts of the planned MPI and of mpicxx, with the sha256 of its libraries."""
    found: "dict[str, Any]" = {"plan": build["mpi"]}
    asked = mpicxx_words()
    if asked:
        program, words = asked
        files = {path: sha256_of(path) for path in mpi_libraries(words)}
        compiler = program_facts(words[:1])
        found.update(mpicxx=program, shows=words, compiler=compiler, libraries=files)
    return found


def homes(build: "Build", prefix: "str | Path") -> "list[tuple[str, str]]":
    """Return (name, folder) of each component that a flag gives the place of."""
    flags = build["flags"]
    names = [name for name in flags if re.search(r"_(HOME|INCLUDE|LIB|ROOT)$", name)]
    found = [(name, os.environ.get(name) or flags[name]) for name in sorted(names)]
    return found + homes_inside(build, prefix)


def homes_inside(build: "Build", prefix: "str | Path") -> "list[tuple[str, str]]":
    """Return (name, folder) of each component that a build takes from a package in the prefix."""
    return [(name, str(Path(prefix, folder))) for name, folder in sorted(build["homes"].items())]


def home_facts(path: str) -> "dict[str, Any]":
    """Return facts that identify the release of CUDA or NCCL in a folder: hashes and sizes.

    A static NCCL has hundreds of megabytes, and its header states the release to the last digit.
    """
    texts = ("nccl.h", "include/nccl.h", "version.json", "version.txt")
    found: "dict[str, str | int]" = {
        name: sha256_of(Path(path, name)) for name in texts if Path(path, name).is_file()
    }
    for folder in (Path(path), Path(path, "lib"), Path(path, "lib64")):
        for file in entries(folder):
            if re.match(r"lib(nccl|cudart)\w*\.(a|so)", file.name):
                found[str(file.relative_to(path))] = file.stat().st_size
    return {"path": path, "files": found}


def host_flags() -> "list[str]":
    """Return the instruction sets of this machine that a build for the host would use."""
    words = ["sh", "-c", "gcc -march=native -E -v - </dev/null 2>&1 | grep cc1"]
    return sorted(set((output_of(words) or "").split()) & set(HOST_FLAGS))


# ---------------------------------------------------------------- frameworks


def owner(
    package: str, folder: Path
) -> "tuple[str | None, str | None, dict[str, tuple[str, str]]]":
    """Return (distribution, version, hashed rows of RECORD) of an importable package."""
    # The name of a distribution mostly begins as the package does: those first.
    found = sorted(listed(folder), key=lambda each: not each.name.startswith(package))
    for each in found:
        rows = {path: row for path, row in records(each.path).items() if row[0]}
        if package + "/__init__.py" in rows:
            return each.name, each.version, rows
    return None, None, {}


def framework_facts(package: str) -> "dict[str, Any] | None":
    """Return distribution, version, C++ ABI and files of a framework; None if it is missing.

    Importing it or hashing its libraries takes seconds, so the hashes are those that pip recorded.
    A library is hashed only if its size differs from the recorded one.
    """
    spec = PathFinder.find_spec(package, PATH)
    if spec is None or not spec.submodule_search_locations:
        return None
    location = Path(next(iter(spec.submodule_search_locations)))
    folder = location.parent
    name, version, rows = owner(package, folder)
    inner = {path: row for path, row in rows.items() if not skipped(path)}
    natives = [path for path in inner if ".so" in path] if inner else natives_below(location)
    for path in natives:
        file = folder / path
        size = inner.get(path, ("", ""))[1]
        if file.is_file() and str(file.stat().st_size) != size:
            inner[path] = ("read:" + sha256_of(file), "")
    return {
        "distribution": name,
        "version": version,
        "path": str(location),
        "files": key_of(inner),
        "cxx11-abi": cxx11_abi(package, location),
    }


def skipped(path: str) -> bool:
    """Return whether a file is not part of the package: metadata, bytecode or a script."""
    return path.startswith(("..", "/")) or ".dist-info/" in path or path.endswith(".pyc")


def natives_below(location: Path) -> "list[str]":
    """Return the libraries of a package without RECORD, relative to the folder it lies in."""
    files = (file for file in location.rglob("*.so*") if file.is_file())
    return sorted(str(file.relative_to(location.parent)) for file in files)


def cxx11_abi(package: str, location: Path) -> "bool | None":
    """Return whether std::string in a framework's interface is that of C++11; None: unknown."""
    # A function of each framework that takes a std::string, in either ABI's spelling.
    known = {
        "torch": ("lib/libc10.so", rb"_ZN3c10\w{0,200}NSt7__cxx1112basic_string"),
        "tensorflow": ("libtensorflow_framework.so", rb"_ZN10tensorflow\w{0,200}NSt7__cxx1112"),
    }
    name, pattern = known.get(package, ("", b""))
    for file in location.glob(name + "*") if name else ():
        with file.open("rb") as stream:
            data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            return re.search(pattern, data) is not None
    return None
