"""Module trees of a few dozen modules, written the way that EasyBuild, Spack and people do.

One software stack, in every naming scheme and both languages. The names and texts follow what
EasyBuild 5.4 writes by ``--module-only`` (2022b) and what EasyBuild 4 wrote (2022a: guarded loads),
and Spack's own templates (``share/spack/templates/modules``) with its default prefix inspections.
The same releases appear twice where they do in the real toolchains: zlib 1.2.12 and Open MPI 4.1.4
are in 2022a and 2022b.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Language = Literal["lua", "tcl"]

# EasyBuild's default module classes (easybuild/tools/config.py); a categorised hierarchy opens a
# folder for each, whether it is there or not.
CLASSES = (
    *("base", "ai", "astro", "bio", "cae", "chem", "compiler", "data", "dataset", "debugger"),
    *("devel", "geo", "ide", "lang", "lib", "math", "mpi", "numlib", "perf", "quantum", "phys"),
    *("system", "toolchain", "tools", "vis"),
)


@dataclass(frozen=True)
class Software:
    """One installation. ``toolchain``: empty for the system's. ``needs``: names, of its own set."""

    name: str
    version: str
    toolchain: str = ""
    needs: tuple[str, ...] = ()
    kind: str = "lib"
    suffix: str = ""

    @property
    def flat_version(self) -> str:
        """The version of its module in EasyBuild's flat scheme."""
        toolchain = f"-{self.toolchain}" if self.toolchain else ""
        return f"{self.version}{toolchain}{self.suffix}"


def _generation(
    name: str, gcc: str, cuda: str, mpi: str, versions: Mapping[str, str]
) -> tuple[Software, ...]:
    """Return the software of one generation of toolchains."""
    core, compiler, whole = f"GCCcore-{gcc}", f"GCC-{gcc}", f"gompi-{name}"
    with_cuda = f"-CUDA-{cuda}"

    def of(component: str, toolchain: str, *needs: str, kind: str = "lib") -> Software:
        return Software(component, versions[component], toolchain, needs, kind)

    return (
        Software("GCCcore", gcc, kind="compiler"),
        of("zlib", core),
        of("binutils", core, "zlib", kind="tools"),
        Software("GCC", gcc, needs=("GCCcore", "binutils"), kind="compiler"),
        of("ncurses", core, kind="devel"),
        of("bzip2", core, kind="tools"),
        of("hwloc", core, kind="system"),
        of("UCX", core, "zlib"),
        Software("OpenMPI", mpi, compiler, ("zlib", "hwloc", "UCX"), "mpi"),
        Software("gompi", name, needs=("GCC", "OpenMPI"), kind="toolchain"),
        of("Python", core, "binutils", "bzip2", "zlib", "ncurses", kind="lang"),
        of("CMake", core, "ncurses", "bzip2", kind="devel"),
        Software("CUDA", cuda, kind="system"),
        Software("NCCL", versions["NCCL"], core, ("CUDA", "UCX"), "lib", with_cuda),
        of("OpenBLAS", compiler, kind="numlib"),
        of("FFTW", whole, kind="numlib"),
        of("SciPy-bundle", whole, "Python", "OpenBLAS", kind="lang"),
    )


OLDER = _generation(
    "2022a",
    "11.3.0",
    "11.7.0",
    "4.1.4",
    {
        "zlib": "1.2.12",
        "binutils": "2.38",
        "ncurses": "6.3",
        "bzip2": "1.0.8",
        "hwloc": "2.7.1",
        "UCX": "1.12.1",
        "Python": "3.10.4",
        "CMake": "3.23.1",
        "NCCL": "2.12.12",
        "OpenBLAS": "0.3.20",
        "FFTW": "3.3.10",
        "SciPy-bundle": "2022.05",
    },
)
NEWER = _generation(
    "2022b",
    "12.2.0",
    "12.0.0",
    "4.1.4",
    {
        "zlib": "1.2.12",
        "binutils": "2.39",
        "ncurses": "6.3",
        "bzip2": "1.0.8",
        "hwloc": "2.8.0",
        "UCX": "1.13.1",
        "Python": "3.10.8",
        "CMake": "3.24.3",
        "NCCL": "2.16.2",
        "OpenBLAS": "0.3.21",
        "FFTW": "3.3.10",
        "SciPy-bundle": "2023.02",
    },
)


@dataclass(frozen=True)
class Text:
    """What a modulefile does, in the order of its lines, before it is put into a language."""

    conflict: str | None = None
    family: str | None = None
    loads: tuple[str, ...] = ()
    opens: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[tuple[str, str], ...] = ()
    guarded: bool = False
    prereq: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forest:
    """The trees of a site, and the modules that a plan is to take.

    ``newest``: the final set of modules of a recipe that asks for Python, Open MPI, NCCL, CUDA and
    CMake. ``older``: of the older generation. ``homes``: where the software of each of the newest
    lies.
    """

    trees: tuple[Path, ...]
    newest: frozenset[str]
    homes: Mapping[str, Path]
    modules: int
    older: frozenset[str] = frozenset()


# How many folders of software there are, and what is in them.


def install(folder: Path, name: str, python: str) -> Path:
    """Make the folders of an installed software; Python's has an interpreter that runs."""
    for part in ("bin", "lib", "include"):
        (folder / part).mkdir(parents=True)
    if name.lower().startswith("python"):
        (folder / "bin" / "python3").symlink_to(python)
    return folder


def write(tree: Path, name: str, language: Language, text: str) -> None:
    """Write one modulefile by the name that it is loaded by."""
    path = tree / (f"{name}.lua" if language == "lua" else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    assert not path.exists(), path
    path.write_text(text, encoding="utf-8")


# EasyBuild.


def easybuild_text(text: Text, title: str, root: Path, language: Language) -> str:
    """Return a modulefile of EasyBuild's module_generator."""
    return _easybuild_lua(text, title, root) if language == "lua" else _easybuild_tcl(text, root)


def _easybuild_lua(text: Text, title: str, root: Path) -> str:
    lines = [
        f'help([==[\n\nDescription\n===========\n{title}: load("nothing/1") is no call\n]==])\n',
        f"whatis([==[Description: {title}]==])\n",
        f'local root = "{root}"\n',
        f'conflict("{text.conflict}")\n',
    ]
    for name in text.loads:
        guarded = f'if not ( isloaded("{name}") ) then\n    load("{name}")\nend\n'
        lines.append(guarded if text.guarded else f'depends_on("{name}")\n')
    lines += [f'prepend_path("MODULEPATH", "{folder}")' for folder in text.opens]
    for variable, folder in text.paths:
        parts = Path(folder).relative_to(root).parts
        place = f'pathJoin(root, "{"/".join(parts)}")' if parts else "root"
        lines.append(f'prepend_path("{variable}", {place})')
    for variable, value in text.variables.items():
        lines.append(f'setenv("{variable}", {"root" if value == str(root) else _quoted(value)})')
    return "\n".join([*lines, "-- Built with EasyBuild version 5.4.1", ""])


def _quoted(value: str) -> str:
    return f'"{value}"'


def _easybuild_tcl(text: Text, root: Path) -> str:
    lines = [
        "#%Module",
        "proc ModulesHelp { } {\n    puts stderr {\n\nDescription\n===========\n    }\n}\n",
        "module-whatis {Description: written by a test}\n",
        f"set root {root}\n",
        f"conflict {text.conflict}\n",
    ]
    for name in text.loads:
        guarded = f"if {{ ![ is-loaded {name} ] }} {{\n    module load {name}\n}}\n"
        lines.append(guarded if text.guarded else f"depends-on {name}\n")
    lines += [f'module use "{folder}"' for folder in text.opens]
    for variable, folder in text.paths:
        relative = str(Path(folder).relative_to(root))
        lines.append(
            f"prepend-path\t{variable}\t\t$root{'' if relative == '.' else '/' + relative}"
        )
    for variable, value in text.variables.items():
        shown = '"$root"' if value == str(root) else _quoted(value)
        lines.append(f"setenv\t{variable}\t\t{shown}")
    return "\n".join([*lines, "", "# Built with EasyBuild version 5.4.1", ""])


@dataclass(frozen=True)
class EasyBuildScheme:
    """One of EasyBuild's module naming schemes.

    ``name``: of a software's module. ``folder``: which tree it is in, below the top; a toolchain's
    module is not loaded where the tree says it already. ``opens``: the trees that it opens.
    """

    name: Callable[[Software], str]
    folder: Callable[[Software, Sequence[Software]], str]
    opens: Callable[[Software, Sequence[Software]], tuple[str, ...]]
    tops: tuple[str, ...] = ("",)
    hierarchical: bool = False


def _one(those: Sequence[Software], name: str) -> Software:
    return next(each for each in those if each.name == name)


def _level(software: Software, those: Sequence[Software]) -> str:
    """Return the tree of a software in EasyBuild's hierarchical scheme."""
    if not software.toolchain:
        return "Core"
    kind, _, version = software.toolchain.partition("-")
    if kind in ("GCC", "GCCcore"):
        return f"Compiler/{kind}/{version}"
    mpi = _one(those, "OpenMPI")
    return f"MPI/GCC/{_one(those, 'GCC').version}/OpenMPI/{mpi.version}"


def _opened(software: Software, those: Sequence[Software]) -> tuple[str, ...]:
    if software.name in ("GCC", "GCCcore"):
        return (f"Compiler/{software.name}/{software.version}",)
    if software.name == "OpenMPI":
        return (f"MPI/GCC/{_one(those, 'GCC').version}/OpenMPI/{software.version}",)
    return ()


def _short(software: Software) -> str:
    return f"{software.name}/{software.version}{software.suffix}"


EASYBUILD: Mapping[str, EasyBuildScheme] = {
    "flat": EasyBuildScheme(
        name=lambda one: f"{one.name}/{one.flat_version}",
        folder=lambda one, those: "",
        opens=lambda one, those: (),
    ),
    "categorised": EasyBuildScheme(
        name=lambda one: f"{one.kind}/{one.name}/{one.flat_version}",
        folder=lambda one, those: "",
        opens=lambda one, those: (),
    ),
    "hierarchical": EasyBuildScheme(
        name=_short, folder=_level, opens=_opened, tops=("Core",), hierarchical=True
    ),
    "categorised-hierarchical": EasyBuildScheme(
        name=_short,
        folder=lambda one, those: f"{_level(one, those)}/{one.kind}",
        opens=lambda one, those: tuple(
            f"{folder}/{kind}" for folder in _opened(one, those) for kind in CLASSES
        ),
        tops=tuple(f"Core/{kind}" for kind in ("compiler", "system", "toolchain")),
        hierarchical=True,
    ),
}


def easybuild(folder: Path, scheme: EasyBuildScheme, language: Language, python: str) -> Forest:
    """Write the trees of both generations in one of EasyBuild's schemes."""
    tree = folder / "modules" / "all"
    homes: dict[str, Path] = {}
    for those in (OLDER, NEWER):
        for each in those:
            root = folder / "software" / each.name / each.flat_version
            install(root, each.name, python)
            homes[f"{scheme.folder(each, those)}:{scheme.name(each)}"] = root
            text = _easybuild(each, those, scheme, tree, root)
            place = tree / scheme.folder(each, those)
            shown = easybuild_text(text, each.name, root, language)
            write(place, scheme.name(each), language, shown)
    taken = _taken(NEWER, scheme)
    return Forest(
        trees=tuple(tree / top for top in scheme.tops),
        newest=frozenset(scheme.name(each) for each in taken),
        older=frozenset(scheme.name(each) for each in _taken(OLDER, scheme)),
        homes={
            scheme.name(each): homes[f"{scheme.folder(each, NEWER)}:{scheme.name(each)}"]
            for each in taken
        },
        modules=len(homes),
    )


def _taken(those: Sequence[Software], scheme: EasyBuildScheme) -> set[Software]:
    wanted = ("Python", "OpenMPI", "NCCL", "CUDA", "CMake", "GCC")
    return {n for each in wanted for n in _with_needs(_one(those, each), those, scheme)}


def _needed(each: Software, those: Sequence[Software], scheme: EasyBuildScheme) -> list[Software]:
    """Return what the module of a software loads."""
    names = list(each.needs)
    if each.toolchain and not scheme.hierarchical:
        names.insert(0, each.toolchain.partition("-")[0])
    return [_one(those, name) for name in names]


def _with_needs(
    each: Software, those: Sequence[Software], scheme: EasyBuildScheme
) -> Iterator[Software]:
    yield each
    for need in _needed(each, those, scheme):
        yield from _with_needs(need, those, scheme)


def _easybuild(
    each: Software, those: Sequence[Software], scheme: EasyBuildScheme, tree: Path, root: Path
) -> Text:
    bare = each.name.upper().replace("-", "MIN")
    return Text(
        conflict=scheme.name(each).rpartition("/")[0],
        loads=tuple(scheme.name(need) for need in _needed(each, those, scheme)),
        opens=tuple(str(tree / folder) for folder in scheme.opens(each, those)),
        guarded=those is OLDER,
        paths=(
            ("CMAKE_PREFIX_PATH", str(root)),
            ("CPATH", str(root / "include")),
            ("LD_LIBRARY_PATH", str(root / "lib")),
            ("LIBRARY_PATH", str(root / "lib")),
            ("PATH", str(root / "bin")),
        )
        if each.kind != "toolchain"
        else (),
        variables={f"EBROOT{bare}": str(root), f"EBVERSION{bare}": each.version},
    )


# Spack.


@dataclass(frozen=True)
class Spec:
    """A package of Spack. ``needs``: other packages by their keys. ``key``: name, or its own."""

    name: str
    version: str
    needs: tuple[str, ...] = ()
    key: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    explicit: bool = True

    @property
    def id(self) -> str:
        return self.key or self.name


SPECS = (
    Spec("zlib", "1.2.13", explicit=False),
    Spec("ncurses", "6.4", explicit=False),
    Spec("libxml2", "2.10.3", ("zlib",), explicit=False),
    Spec("hwloc", "2.9.1", ("libxml2", "ncurses"), explicit=False),
    Spec("libevent", "2.1.12", explicit=False),
    Spec("pmix", "4.2.3", ("hwloc", "libevent"), explicit=False),
    Spec("numactl", "2.0.14", explicit=False),
    Spec("gcc", "12.2.0", ("zlib",), variables=(("CC", "bin/gcc"), ("CXX", "bin/g++"))),
    Spec("cuda", "12.0.0", ("libxml2",), variables=(("CUDA_HOME", ""),)),
    Spec("cuda", "11.8.0", ("libxml2",), "cuda-11", (("CUDA_HOME", ""),)),
    Spec(
        "openmpi",
        "4.1.5",
        ("hwloc", "numactl", "pmix"),
        variables=(("MPICC", "bin/mpicc"), ("MPICXX", "bin/mpic++")),
    ),
    Spec("openmpi", "4.1.5", ("hwloc", "numactl", "pmix", "cuda-11"), "openmpi-cuda"),
    Spec("nccl", "2.16.2-1", ("cuda",)),
    Spec("nccl", "2.15.5-1", ("cuda-11",), "nccl-11"),
    Spec("cudnn", "8.7.0.84-11.8", ("cuda-11",)),
    Spec("python", "3.10.8", ("ncurses", "zlib")),
    Spec("python", "3.9.15", ("ncurses", "zlib"), "python-3.9"),
    Spec("cmake", "3.25.1", ("ncurses", "zlib")),
    Spec("py-setuptools", "65.5.0", ("python",), explicit=False),
    Spec("py-numpy", "1.24.1", ("python", "py-setuptools")),
    Spec("fftw", "3.3.10", ("openmpi",)),
    Spec("hdf5", "1.14.0", ("openmpi", "zlib")),
)


def spack_hash(spec: Spec) -> str:
    """Return seven characters of the kind that Spack's hashes have."""
    digest = hashlib.sha1(f"{spec.id}@{spec.version}".encode()).digest()
    return base64.b32encode(digest).decode().lower()[:7]


Projection = Callable[[Spec], str]

PROJECTIONS: Mapping[str, Projection] = {
    # The default of Spack's Tcl modules up to 0.23, with hash_length 7.
    "hashes": lambda one: f"{one.name}/{one.version}-gcc-8.5.0-{spack_hash(one)}",
    # all: '{name}/{version}', cuda and mpi told apart: '{name}/{version}-cuda-{^cuda.version}'.
    "projections": lambda one: f"{one.name}/{one.version}{_flavour(one)}",
    # all: '{compiler.name}-{compiler.version}/{name}/{version}-{hash:7}'.
    "compiler-first": lambda one: f"gcc-8.5.0/{one.name}/{one.version}-{spack_hash(one)}",
}


def _flavour(one: Spec) -> str:
    return "-cuda-11.8.0" if "cuda-11" in one.needs else ""


def spack(folder: Path, projection: Projection, language: Language, python: str) -> Forest:
    """Write a tree as ``spack module tcl refresh`` and ``spack module lmod refresh`` do."""
    tree = folder / "share" / "spack" / "modules" / "linux-rocky8-zen2"
    by_id = {each.id: each for each in SPECS}
    names = {each.id: projection(each) for each in SPECS}
    roots = {
        each.id: folder / "opt" / "gcc-8.5.0" / f"{each.name}-{each.version}-{spack_hash(each)}"
        for each in SPECS
    }
    for each in SPECS:
        root = install(roots[each.id], each.name, python)
        text = Text(
            loads=tuple(names[need] for need in each.needs),
            variables={name: str(root / place) for name, place in each.variables},
            # ``./`` of its prefix inspections: the prefix with a dot behind it.
            paths=(("PATH", f"{root}/bin"), ("CMAKE_PREFIX_PATH", f"{root}/.")),
        )
        write(tree, names[each.id], language, spack_text(text, each, language))
        if not each.explicit:
            _hide(tree, names[each.id], language)
    taken = set(_closure(by_id, ("python", "openmpi", "nccl", "cuda", "cmake", "gcc")))
    return Forest(
        trees=(tree,),
        newest=frozenset(names[each] for each in taken),
        homes={names[each]: roots[each] for each in taken},
        modules=len(SPECS),
    )


def _closure(by_id: Mapping[str, Spec], ids: Sequence[str]) -> Iterator[str]:
    for each in ids:
        yield each
        yield from _closure(by_id, by_id[each].needs)


def spack_text(text: Text, spec: Spec, language: Language) -> str:
    """Return a modulefile of Spack's template."""
    if language == "lua":
        lines = [
            "-- -*- lua -*-",
            f"whatis([[Name : {spec.name}]])",
            f"whatis([[Version : {spec.version}]])",
            f"help([[Name   : {spec.name}]])",
            *(f'depends_on("{name}")' for name in text.loads),
            *(f'prepend_path("{name}", "{value}", ":")' for name, value in text.paths),
            *(f'setenv("{name}", "{value}")' for name, value in text.variables.items()),
            'append_path("MANPATH", "", ":")',
        ]
        return "\n".join([*lines, ""])
    lines = [
        "#%Module1.0",
        f"## {spec.name}@{spec.version}%gcc@8.5.0 arch=linux-rocky8-zen2",
        f"module-whatis {{A package {{of}} Spack: {spec.name}}}",
        "proc ModulesHelp { } {",
        f"    puts stderr {{Name   : {spec.name}}}",
        "}",
        "if {![llength [info commands depends-on]]} {",
        "    proc depends-on {args} {\n        module load {*}$args\n    }\n}",
        *(f"depends-on {name}" for name in text.loads),
        *(f"prepend-path -d {{:}} {name} {{{value}}}" for name, value in text.paths),
        *(f"setenv {name} {{{value}}}" for name, value in text.variables.items()),
        "append-path MANPATH {}",
    ]
    return "\n".join([*lines, ""])


def _hide(tree: Path, name: str, language: Language) -> None:
    """Hide a module as Spack's hide_implicits does."""
    file = tree / name.rpartition("/")[0] / (".modulerc.lua" if language == "lua" else ".modulerc")
    file.parent.mkdir(parents=True, exist_ok=True)
    head = "" if language == "lua" else "#%Module4.7\n"
    line = (
        f'hide_version("{name}")\n'
        if language == "lua"
        else f"module-hide --soft --hidden-loaded {name}\n"
    )
    before = file.read_text(encoding="utf-8") if file.exists() else head
    file.write_text(before + line, encoding="utf-8")


# People.

# As at sites whose staff write them: lower case, no toolchain, two-word names, categories that are
# names of software as well, loads by bare names, what only some modes do.
_BY_HAND: Mapping[str, tuple[str, str]] = {
    "gnu/12.2.0": (
        'family("compiler")\nlocal v = myModuleVersion()\n'
        'prepend_path("PATH", pathJoin("@", "bin"))\nsetenv("GNU_VERSION", v)\n',
        "set v [file tail [module-info name]]\nconflict intel\nprepend-path PATH @/bin\n"
        "setenv GNU_VERSION $v\n",
    ),
    "openmpi/4.1.4": (
        'family("mpi")\nprereq("gnu")\nsetenv("OPENMPI_ROOT", "@")\n'
        'prepend_path("PATH", "@/bin")\nprepend_path{"LD_LIBRARY_PATH", "@/lib", delim=":"}\n',
        "prereq gnu\nconflict mpich\nsetenv OPENMPI_ROOT @\n"
        "prepend-path PATH @/bin\nprepend-path LD_LIBRARY_PATH @/lib\n",
    ),
    "openmpi/gcc/3.1.6": (
        'family("mpi")\nsetenv("OPENMPI_ROOT", "@")\nprepend_path("PATH", "@/bin")\n',
        "conflict mpich\nsetenv OPENMPI_ROOT @\nprepend-path PATH @/bin\n",
    ),
    "mpich/4.0.2": (
        'family("mpi")\nprepend_path("PATH", "@/bin")\n',
        "conflict openmpi\nprepend-path PATH @/bin\n",
    ),
    "cuda/12.0": (
        'setenv("CUDA_HOME", "@")\nprepend_path("PATH", "@/bin")\n'
        'if (mode() == "load") then LmodMessage("CUDA 12 needs driver 525") end\n',
        "setenv CUDA_HOME @\nprepend-path PATH @/bin\n"
        'if { [module-info mode load] } {\n  puts stderr "CUDA 12 needs driver 525"\n}\n',
    ),
    "cuda/11.7": (
        'setenv("CUDA_HOME", "@")\nprepend_path("PATH", "@/bin")\n',
        "setenv CUDA_HOME @\nprepend-path PATH @/bin\n",
    ),
    "nccl/cuda-12.0/2.16.2": (
        'load("cuda/12.0")\nsetenv("NCCL_HOME", "@")\nappend_path("LD_LIBRARY_PATH", "@/lib")\n',
        "module load cuda/12.0\nsetenv NCCL_HOME @\nappend-path LD_LIBRARY_PATH @/lib\n",
    ),
    "python3/3.10.8": (
        'always_load("gnu")\nprepend_path("PATH", "@/bin")\nsetenv("PYTHON_HOME", "@")\n',
        "module load gnu\nprepend-path PATH @/bin\nsetenv PYTHON_HOME @\n",
    ),
    "python/3.8.2": (
        'prepend_path("PATH", "@/bin")\nsetenv("PYTHON_HOME", "@")\n',
        "prepend-path PATH @/bin\nsetenv PYTHON_HOME @\n",
    ),
    "tools/cmake/3.24.3": (
        'prepend_path("PATH", "@/bin")\nsetenv("CMAKE_HOME", "@")\n',
        "prepend-path PATH @/bin\nsetenv CMAKE_HOME @\n",
    ),
    # Built with Open MPI, with releases that are newer than Open MPI's own.
    "netcdf/openmpi/4.9.0": (
        'load("openmpi/4.1.4")\nsetenv("NETCDF_HOME", "@")\nprepend_path("PATH", "@/bin")\n',
        "module load openmpi/4.1.4\nsetenv NETCDF_HOME @\nprepend-path PATH @/bin\n",
    ),
    "fftw/3.3.10/openmpi/4.1.4": ('setenv("FFTW_HOME", "@")\n', "setenv FFTW_HOME @\n"),
    "matlab/R2022b": ('prepend_path("PATH", "@/bin")\n', "prepend-path PATH @/bin\n"),
    "default-environment": ('setenv("SITE", "here")\n', "setenv SITE here\n"),
}


def by_hand(folder: Path, language: Language, python: str) -> Forest:
    """Write a tree as people do."""
    tree = folder / "etc" / "modulefiles"
    homes = {}
    for name, texts in _BY_HAND.items():
        homes[name] = install(folder / "apps" / name, name, python)
        text = texts[language == "tcl"].replace("@", str(homes[name]))
        write(tree, name, language, text if language == "lua" else f"#%Module1.0\n{text}")
    taken = (
        *("gnu/12.2.0", "openmpi/4.1.4", "cuda/12.0", "nccl/cuda-12.0/2.16.2", "python3/3.10.8"),
        "tools/cmake/3.24.3",
    )
    return Forest(
        trees=(tree,),
        newest=frozenset(taken),
        homes={name: homes[name] for name in taken if name != "gnu/12.2.0"},
        modules=len(_BY_HAND),
    )


SCHEMES: Mapping[str, Callable[[Path, Language, str], Forest]] = {
    **{
        f"easybuild-{name}": lambda folder, language, python, scheme=scheme: easybuild(
            folder, scheme, language, python
        )
        for name, scheme in EASYBUILD.items()
    },
    **{
        f"spack-{name}": lambda folder, language, python, projection=projection: spack(
            folder, projection, language, python
        )
        for name, projection in PROJECTIONS.items()
    },
    "by-hand": by_hand,
}
