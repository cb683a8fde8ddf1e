"""Random software of four EasyBuild generations, as a flat and as a hierarchical module tree.

The generations share releases of libraries, and often of Open MPI, NCCL and PyTorch. A flat tree
has ``zlib/1.2.13-GCCcore-12.3.0``, a hierarchical one ``zlib/1.2.13`` below GCCcore/12.3.0:
EasyBuild's EasyBuildMNS and HierarchicalMNS. In some generations CUDA is a part of the toolchain
(gcccuda, fosscuda: up to 2020b), in the others it stands beside it, in a suffix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from .naming_schemes import Text, easybuild_text, write

Scheme = Literal["flat", "hierarchical"]
SCHEMES: tuple[Scheme, ...] = ("flat", "hierarchical")
# What a software is built with: its toolchain.
Level = Literal["system", "GCCcore", "GCC", "gompi", "foss", "gcccuda", "gompic", "fosscuda"]

GCC_RELEASES = {
    "2021b": "11.2.0",
    "2022a": "11.3.0",
    "2022b": "12.2.0",
    "2023a": "12.3.0",
    "2023b": "13.2.0",
    "2024a": "13.3.0",
}
# Built with GCCcore, each with some of those before it. Of two releases mostly all generations have
# the same.
LIBRARIES: Mapping[str, tuple[str, str]] = {
    "zlib": ("1.2.13", "1.3.1"),
    "binutils": ("2.40", "2.42"),
    "bzip2": ("1.0.8", "1.0.9"),
    "ncurses": ("6.4", "6.5"),
    "libffi": ("3.4.4", "3.4.5"),
    "OpenSSL": ("1.1", "3"),
    "libevent": ("2.1.12", "2.1.13"),
    "hwloc": ("2.9.1", "2.10.0"),
    "UCX": ("1.14.1", "1.15.0"),
    "PMIx": ("4.2.4", "4.2.6"),
}
SHARED = ("zlib", "binutils", "bzip2", "libevent")
OPENMPI = ("4.1.4", "4.1.5", "4.1.6")
PYTHONS = ("3.10.4", "3.10.8", "3.11.3", "3.11.5", "3.12.3")
PYTORCH = ("1.13.1", "2.1.2", "2.1.0", "2.3.0")
CMAKE = ("3.24.3", "3.26.3", "3.27.6")
NCCL = ("2.14.3", "2.18.3", "2.20.5")
CUDA = ("11.7.0", "12.1.1", "12.4.0")


PATHS: Mapping[Level, tuple[tuple[str, Level], ...]] = {
    "system": (),
    "GCCcore": (("GCCcore", "system"),),
    "GCC": (("GCC", "system"),),
    "gompi": (("GCC", "system"), ("OpenMPI", "GCC")),
    "foss": (("GCC", "system"), ("OpenMPI", "GCC")),
    "gcccuda": (("GCC", "system"), ("CUDA", "GCC")),
    "gompic": (("GCC", "system"), ("CUDA", "GCC"), ("OpenMPI", "gcccuda")),
    "fosscuda": (("GCC", "system"), ("CUDA", "GCC"), ("OpenMPI", "gcccuda")),
}
TOOLCHAINS = ("gompi", "foss", "gcccuda", "gompic", "fosscuda")


@dataclass(frozen=True)
class Software:
    """One installation. ``generation``: the one it belongs to; None: the system's."""

    name: str
    version: str
    level: Level = "system"
    generation: Generation | None = field(default=None, repr=False)
    needs: tuple[Software, ...] = field(default=(), repr=False)
    suffix: str = ""


@dataclass(eq=False)
class Generation:
    """One generation of toolchains. ``cuda_inside``: gcccuda and fosscuda exist.

    ``modules``: what they are made of, by name and level.
    """

    name: str
    gcc: str
    cuda_inside: bool = False
    modules: dict[tuple[str, Level], Software] = field(default_factory=dict)

    def add(
        self, name: str, version: str, level: Level, *needs: Software, suffix: str = ""
    ) -> Software:
        software = Software(name, version, level, self, needs, suffix)
        self.modules[name + suffix, level] = software
        return software

    def of(self, name: str, level: Level) -> Software:
        return self.modules[name, level]

    def path(self, level: Level) -> tuple[Software, ...]:
        """Return what opens the tree of a level, in the order in which it is loaded."""
        return tuple(self.of(*each) for each in PATHS[level])

    def toolchain(self, level: Level) -> Software | None:
        """Return the module of a level's toolchain."""
        return self.of(level, "system") if level != "system" else None


@dataclass(frozen=True)
class Stock:
    """The software of a site. ``names_toolchains``: its modules load the toolchain that opened
    their tree once more, as those of some hierarchical sites do.
    """

    generations: tuple[Generation, ...]
    software: tuple[Software, ...]
    names_toolchains: bool


def random_stock(random: Random) -> Stock:
    """Return the software of a site with four generations."""
    names = sorted(random.sample(sorted(GCC_RELEASES), 4))
    same = {name: random.choice(releases) for name, releases in LIBRARIES.items()}
    generations = tuple(
        _generation(random, name, same, pythons)
        for name, pythons in zip(names, _pythons(random), strict=True)
    )
    found = {flat_name(each): each for one in generations for each in one.modules.values()}
    if random.random() < 0.5:
        # What EasyBuild builds GCCcore with lies beside it.
        for name in ("zlib", "binutils", "ncurses"):
            bare = Software(name, same[name])
            found[flat_name(bare)] = bare
    return Stock(generations, tuple(found.values()), random.random() < 0.5)


def _pythons(random: Random) -> list[str]:
    chosen = sorted(random.choices(PYTHONS, k=4), key=PYTHONS.index)
    return sorted(set(chosen), key=PYTHONS.index) if len(set(chosen)) == 4 else chosen


def _generation(random: Random, name: str, same: Mapping[str, str], python: str) -> Generation:
    made = Generation(name, GCC_RELEASES[name], random.random() < 0.4)
    made.add("GCCcore", made.gcc, "system")
    for library, releases in LIBRARIES.items():
        version = same[library] if random.random() < 0.8 else random.choice(releases)
        needed = _some(random, [one for one in made.modules.values() if one.level == "GCCcore"])
        made.add(library, same[library] if library in SHARED else version, "GCCcore", *needed)
    core = [one for one in made.modules.values() if one.level == "GCCcore"]
    binutils = made.of("binutils", "GCCcore")
    made.add("GCC", made.gcc, "system", made.of("GCCcore", "system"), binutils)
    made.add("Python", python, "GCCcore", *core[:3], *_some(random, core[3:]))
    made.add("CMake", random.choice(CMAKE), "GCCcore", *_some(random, core))
    mpi_needs = (made.of("zlib", "GCCcore"), made.of("libevent", "GCCcore"))
    more = _some(random, [one for one in core if one not in mpi_needs])
    mpi = made.add("OpenMPI", random.choice(OPENMPI), "GCC", *mpi_needs, *more)
    blas = made.add("OpenBLAS", "0.3.23", "GCC")
    gcc = made.of("GCC", "system")
    made.add("gompi", name, "system", gcc, mpi)
    fftw = made.add("FFTW", "3.3.10", "gompi")
    made.add("foss", name, "system", gcc, mpi, blas, fftw)
    if random.random() < 0.4:
        # Beside the one with MPI; nothing of foss needs it.
        made.add("FFTW", "3.3.10", "GCC")
        made.add("Serial", "1.0", "GCC", made.of("FFTW", "GCC"))
    _with_cuda(random, made, (*mpi_needs, *more))
    _pytorch(random, made)
    return made


def _with_cuda(random: Random, made: Generation, mpi_needs: tuple[Software, ...]) -> None:
    version = random.choice(CUDA)
    nccl = random.choice(NCCL)
    if not made.cuda_inside:
        cuda = made.add("CUDA", version, "system")
        suffix = f"-CUDA-{version}"
        made.add("NCCL", nccl, "GCCcore", cuda, made.of("UCX", "GCCcore"), suffix=suffix)
        made.add("cuDNN", "8.9.2.26", "system", cuda, suffix=suffix)
        return
    gcc, blas = made.of("GCC", "system"), made.of("OpenBLAS", "GCC")
    cuda = made.add("CUDA", version, "GCC")
    made.add("gcccuda", made.name, "system", gcc, cuda)
    # Often the release of the one without CUDA, and never an older one: a flat tree would put the
    # newer one in its place, which in a hierarchy closes the tree of what is built with the older.
    plain = made.of("OpenMPI", "GCC").version
    release = plain if random.random() < 0.7 else OPENMPI[-1]
    mpi = made.add("OpenMPI", release, "gcccuda", *mpi_needs)
    made.add("NCCL", nccl, "gcccuda", made.of("UCX", "GCCcore"))
    made.add("cuDNN", "8.9.2.26", "gcccuda")
    made.add("gompic", made.name, "system", gcc, cuda, mpi)
    fftw = made.add("FFTW", "3.3.10", "gompic")
    made.add("fosscuda", made.name, "system", gcc, cuda, mpi, blas, fftw)


def _pytorch(random: Random, made: Generation) -> None:
    needs = [made.of("Python", "GCCcore"), *_some(random, [made.of("libffi", "GCCcore")])]
    # Beside NCCL of gcccuda a hierarchy hides the Open MPI of foss; a flat tree loads both.
    plain = not made.cuda_inside and random.random() < 0.4
    if plain:
        made.add("PyTorch", random.choice(PYTORCH), "foss", *needs)
    if plain and random.random() < 0.5:
        return
    if made.cuda_inside:
        own = [made.of("NCCL", "gcccuda"), made.of("cuDNN", "gcccuda")]
        made.add("PyTorch", random.choice(PYTORCH), "fosscuda", *needs, *own)
        return
    suffix = f"-CUDA-{made.of('CUDA', 'system').version}"
    own = [
        made.of("CUDA", "system"),
        made.of(f"NCCL{suffix}", "GCCcore"),
        made.of(f"cuDNN{suffix}", "system"),
    ]
    made.add("PyTorch", random.choice(PYTORCH), "foss", *needs, *own, suffix=suffix)


def _some(random: Random, those: list[Software]) -> list[Software]:
    return [one for one in those if random.random() < 0.4]


# --- As module trees -----------------------------------------------------------------------------


def flat_name(one: Software) -> str:
    made = one.generation
    if made is None or one.level == "system":
        return f"{one.name}/{one.version}{one.suffix}"
    release = made.gcc if one.level in ("GCCcore", "GCC") else made.name
    return f"{one.name}/{one.version}-{one.level}-{release}{one.suffix}"


def short_name(one: Software) -> str:
    return f"{one.name}/{one.version}{one.suffix}"


def module_name(one: Software, scheme: Scheme) -> str:
    return flat_name(one) if scheme == "flat" else short_name(one)


def module_loads(one: Software, stock: Stock, scheme: Scheme) -> Iterator[Software]:
    """Yield what a module loads itself, in order."""
    made = one.generation
    if made is None:
        return
    toolchain, path = made.toolchain(one.level), made.path(one.level)
    if toolchain is not None and scheme == "flat":
        yield toolchain
    elif toolchain is not None:
        if stock.names_toolchains:
            yield from path
        if toolchain.name in TOOLCHAINS:
            # EasyBuild loads what the toolchain is made of in its place.
            yield from (each for each in toolchain.needs if each not in path)
    yield from one.needs


def folder(one: Software) -> str:
    """Return the folder of a module in the hierarchy."""
    made = one.generation
    if made is None or one.level == "system":
        return "Core"
    return "-".join(["below", *(short_name(each) for each in made.path(one.level))]).replace(
        "/", "-"
    )


def opened(one: Software) -> str | None:
    """Return the folder that a module opens in the hierarchy."""
    made = one.generation
    openings: dict[tuple[str, Level], Level] = {
        ("GCCcore", "system"): "GCCcore",
        ("GCC", "system"): "GCC",
        ("CUDA", "GCC"): "gcccuda",
        ("OpenMPI", "GCC"): "gompi",
        ("OpenMPI", "gcccuda"): "gompic",
    }
    level = openings.get((one.name, one.level))
    if made is None or level is None:
        return None
    return folder(Software("x", "1", level, made))


def stated(one: Software, stock: Stock, scheme: Scheme) -> dict[str, Any]:
    """Return a module as a snapshot has it."""
    made = one.generation
    path = made.path(one.level) if made is not None and scheme == "hierarchical" else ()
    loads = (module_name(each, scheme) for each in module_loads(one, stock, scheme))
    return {
        "name": module_name(one, scheme),
        "home": home(one),
        "loads": list(dict.fromkeys(loads)),
        "parents": [[short_name(each) for each in path]] if path else [],
        "conflicts": [one.name],
    }


def home(one: Software) -> str:
    """Return the folder of a software: the same in both trees."""
    return f"/apps/{flat_name(one)}"


def snapshot(stock: Stock, scheme: Scheme) -> dict[str, Any]:
    modules = [stated(one, stock, scheme) for one in stock.software]
    modules.sort(key=lambda module: (module["name"], module["parents"]))
    return {"schema": 1, "kind": "live", "taken": "2026-11-21", "modules": modules}


def write_trees(top: Path, stock: Stock, scheme: Scheme) -> Path:
    """Write the modulefiles as EasyBuild does; return the tree that a user starts with."""
    for one in stock.software:
        opens = opened(one) if scheme == "hierarchical" else None
        module = stated(one, stock, scheme)
        text = Text(
            conflict=one.name,
            loads=tuple(module["loads"]),
            opens=(str(top / opens),) if opens else (),
            variables={root_variable(one): home(one)},
        )
        tree = top / (folder(one) if scheme == "hierarchical" else "Core")
        write(tree, module["name"], "lua", easybuild_text(text, one.name, Path(home(one)), "lua"))
    return top / "Core"


def root_variable(one: Software) -> str:
    return f"EBROOT{one.name.upper()}"
