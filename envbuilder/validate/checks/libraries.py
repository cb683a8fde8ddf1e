"""Extension modules and libraries: whether they can be loaded at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...inspect.facts import Environment, NativeLibrary, arch_of
from ...inspect.mpi import holds
from ...inspect.observation import seen
from ...machine.host import is_folder
from ...target_tools.elf import ElfError, dynamic_symbols, machine_words
from ...target_tools.files import is_below
from ...target_tools.ld_so import Search
from .owners import foreign
from .protocol import NOT_SEARCHED, Outcome, Undecided, Violation, checks

# The driver's libraries are on machines with a GPU alone; login nodes have none.
_DRIVER = re.compile(r"lib(cuda|nvidia-ml|nvcuvid|nvidia-encode)\.so\b")
# Modules that their packages import where they can, and do without elsewhere; with why. Sources:
# https://numba.readthedocs.io/en/stable/user/threading-layer.html (the layers tbb and omp),
# https://docs.pytorch.org/audio/2.5.0/installation.html (FFmpeg and SoX are optional),
# https://github.com/pytorch/vision/blob/main/torchvision/io/_video_opt.py (video_reader),
# https://docs.cupy.dev/en/v13.2.0/install.html, "Additional CUDA Libraries".
_OPTIONAL = {
    "numba/np/ufunc/tbbpool": "numba uses this threading layer where TBB is installed",
    "numba/np/ufunc/omppool": "numba uses this threading layer where OpenMP is installed",
    "torio/lib/_torio_ffmpeg": "of one for each FFmpeg torchaudio takes what can be loaded",
    "torchaudio/lib/_torchaudio_sox": "torchaudio uses SoX where it is installed",
    "torchvision/video_reader": "torchvision uses FFmpeg where it is installed",
    "cupy_backends/cuda/libs/cutensor": "CuPy uses cuTENSOR where it is installed",
    "cupy_backends/cuda/libs/cusparselt": "CuPy uses cuSPARSELt where it is installed",
    "cupy_backends/cuda/libs/cudnn": "CuPy uses cuDNN where it is installed",
    "cupy_backends/cuda/libs/nccl": "CuPy uses NCCL where it is installed",
}
# What conda-forge's packages for one level of the processor need; its version is the level.
_MICROARCH = "_x86_64-microarch-level"
_RELEASED = re.compile(r"lib(mpi|mpich|mpi_ibm|nccl|cudart|cublas|cudnn|cufft)\b")
_NO_MACHINE = "the architecture of the Python is unknown"


def _missing(environment: Environment) -> Iterator[Outcome]:
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    for each in environment.libraries:
        if each.variant and each.stem in environment.usable:
            continue
        absent = (name for name in each.tree if environment.loaded(each, name) is None)
        lacking = [name for name in absent if not _DRIVER.match(name)]
        where = environment.short(each.path)
        what = environment.name(each.path)
        optional = next((why for start, why in _OPTIONAL.items() if what.startswith(start)), None)
        needed = each.module and optional is None
        for name in lacking:
            direct = name in each.library.needed
            yield Violation(
                f"{what} needs {name}"
                + ("" if direct else " (through another library)")
                + (f"; {optional}" if optional else ""),
                (seen(where, "NEEDED" if direct else "NEEDED of what it needs", name),),
                confidence="certain" if needed else "possible",
                severity=None if needed else "info" if optional else "warning",
            )


def _other_machine(environment: Environment) -> Iterator[Outcome]:
    machine = environment.interpreter.machine
    if machine is None:
        yield Undecided(_NO_MACHINE)
        return
    for each in environment.libraries:
        if each.module and each.library.machine != machine:
            what, where = environment.name(each.path), environment.short(each.path)
            words = machine_words(each.library.machine)
            yield Violation(
                f"{what} is for {words}, its Python for {machine_words(machine)}",
                (seen(where, "e_machine", words),),
            )


def _other_site(environment: Environment) -> Iterator[Outcome]:
    site, arch = environment.target, arch_of(environment.interpreter.machine)
    if site is not None and arch is None:
        yield Undecided(_NO_MACHINE)
    if site is not None and arch is not None and arch not in site.archs:
        where = environment.short(environment.interpreter.path)
        yield Violation(
            f"it is for {arch}, site {site.name} has {', '.join(site.archs)}",
            (seen(where, "e_machine", arch),),
        )


def _damaged(environment: Environment) -> Iterator[Violation]:
    for path, why in sorted(environment.damaged.items()):
        where = environment.short(path)
        yield Violation(
            f"{environment.name(path)} is no library: {why}", (seen(where, "ELF header", why),)
        )


def _newer_glibc(environment: Environment) -> Iterator[Outcome]:
    site = environment.target
    here = _release((site.glibc if site else environment.glibc) or "")
    own = "the image" if environment.root else "this machine"
    who = f"site {site.name}" if site else own
    if here is None and any(_glibc_of(each) for each in environment.libraries):
        yield Undecided(f"the glibc of {who} is unknown")
    for each in environment.libraries if here else ():
        wanted = _glibc_of(each)
        if wanted is not None and here is not None and wanted > here:
            what, where = environment.name(each.path), environment.short(each.path)
            text, has = (".".join(map(str, each)) for each in (wanted, here))
            yield Violation(
                f"{what} needs glibc {text}, {who} has {has}",
                (seen(where, "version needed", f"GLIBC_{text}"),),
            )


def _newer_processor(environment: Environment) -> Iterator[Outcome]:
    """Compare with this machine's processor. Only x86-64 has levels."""
    has = environment.isa
    if has is None or environment.target is not None:
        if arch_of(environment.interpreter.machine) == "x86_64":
            who = f"of site {environment.target.name}" if environment.target else "here"
            yield Undecided(f"the level of the processors {who} is unknown")
        return
    for each in environment.libraries:
        lacking = each.library.isa_needed & ~has
        # Below this folder ld.so looks where the processor has the level.
        if lacking and "/glibc-hwcaps/" not in each.path:
            needs, level = _x86_64(lacking.bit_length()), _x86_64(has.bit_length())
            yield Violation(
                f"{environment.name(each.path)} needs {needs}, this machine is {level}",
                (seen(environment.short(each.path), "x86 ISA needed", needs),),
                severity=None if each.module else "warning",
            )
    for package in environment.conda:
        if package.name == _MICROARCH and package.version.isdecimal():
            needs = _x86_64(int(package.version))
            if int(package.version) > has.bit_length():
                level = _x86_64(has.bit_length())
                yield Violation(
                    f"its conda packages are for {needs}, this machine is {level}",
                    (seen(environment.short(package.path), "version", package.version),),
                )


def _x86_64(level: int) -> str:
    return f"x86-64-v{level}" if level > 1 else "x86-64"


def _version_missing(environment: Environment) -> Iterator[Outcome]:
    """Look at versions of symbols but those of glibc: GLIBCXX_3.4.29, GOMP_5.0, libcudart.so.12."""
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    has: dict[tuple[str, str], bool] = {}
    for each in environment.libraries:
        for name, version in each.library.versions:
            path = environment.loaded(each, name)
            if path is None or version.startswith("GLIBC_"):
                continue
            if (path, version) not in has:
                # The name of each version that a library defines stands in its table of strings.
                has[path, version] = holds(path, version.encode("utf-8", "replace") + b"\0")
            if not has[path, version]:
                yield Violation(
                    f"{environment.name(each.path)} needs {version}, which {path} lacks",
                    (
                        seen(environment.short(each.path), "version needed", version),
                        seen(environment.short(path), "version defined", "not this one"),
                    ),
                    confidence="certain" if each.module else "possible",
                    severity=None if each.module else "warning",
                )


def _symbol_missing(environment: Environment) -> Iterator[Outcome]:
    """Look for what a module requires of no library: Python loads it with all that it calls.

    A library among the packages may have been loaded before, with RTLD_GLOBAL.
    """
    python = environment.interpreter
    if not environment.native or python.library is None or python.real is None:
        yield Undecided(NOT_SEARCHED)
        return
    search = Search(python.library, environment.environ, environment.root)
    preload = re.split(r"[:\s]", environment.environ.get("LD_PRELOAD", ""))
    base = [str(python.real), *search.tree(str(python.real)).values(), *preload]
    tables = [_symbols(environment.real(p)) for p in base if p]
    always = frozenset().union(*(table[0] for table in tables if table))
    if "PyObject_Str" not in always:
        yield Undecided("the symbols of the interpreter cannot be read")
        return
    for each in environment.libraries:
        name = environment.name(each.path)
        own = _symbols(environment.real(each.path)) if each.module else None
        paths = [environment.loaded(each, needed) for needed in each.tree]
        # library.missing, or a check of Horovod's, reports the others.
        if own is None or f"PyInit_{Path(each.stem).name}" not in own[0] or None in paths:
            continue
        missing = own[1] - always
        others = (e.path for e in environment.libraries if e.library.soname not in each.tree)
        unread = False
        for path in (*filter(None, paths), *others):
            table = _symbols(environment.real(path)) if missing else None
            missing = missing - table[0] if table else missing
            unread = unread or (bool(missing) and table is None)
        if missing and unread:
            yield Undecided("a library that may have its symbols cannot be read", name)
        elif missing and not name.startswith((*_OPTIONAL, "horovod/")):
            yield _lacking(environment, each, sorted(missing))


def _lacking(environment: Environment, native: NativeLibrary, names: list[str]) -> Violation:
    """Return that no library has symbols, with the needed ones that are not the system's."""
    where = environment.short(native.path)
    used = (p for n in native.library.needed if (p := environment.loaded(native, n)))
    own = [environment.short(p) for p in used if not p.startswith(("/lib/", "/lib64/", "/usr/"))]
    return Violation(
        f"{environment.name(native.path)} needs the symbol {names[0]}"
        + (f", which {' and '.join(own)} lacks" if own else ", which no library that it loads has"),
        (
            *(seen(where, "undefined symbol", name) for name in names[:3]),
            *(seen(path, "loaded") for path in own),
        ),
    )


@lru_cache(maxsize=4096)
def _symbols(path: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return what a library defines and requires; None: it cannot be read."""
    try:
        defined, required = dynamic_symbols(path)
    except (ElfError, OSError):
        return None
    return frozenset(defined), frozenset(required)


def _overruled(environment: Environment) -> Iterator[Outcome]:
    """Tell of each library that is overruled once, with the first that needs it."""
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    told: set[str] = set()
    for each in environment.libraries:
        for name, own in each.overruled.items():
            if own not in told:
                told.add(own)
                there = each.tree[name] or ""
                yield Violation(
                    f"{environment.name(each.path)} loads {there}, not {environment.short(own)}",
                    (
                        seen(environment.short(each.path), "RUNPATH", own),
                        seen(there, "LD_LIBRARY_PATH", name),
                    ),
                )


def _other_owner(environment: Environment) -> Iterator[Violation]:
    """Look at what the modules load from outside of the environment, each file once."""
    paths = {p: n for n in environment.libraries for p in n.tree.values() if p}
    for path, native in paths.items():
        name = environment.name(native.path)
        yield from foreign(environment, path, f"{name} loads", "owner")


def _runpath_gone(environment: Environment) -> Iterator[Violation]:
    """Look for libraries of a kind with an ABI per release that come from another folder now."""
    for native in environment.libraries:
        folders = [*native.library.rpath, *native.library.runpath]
        gone = [each for each in folders if each.startswith("/") and not is_folder(Path(each))]
        for name in native.library.needed if gone else ():
            path = native.tree.get(name)
            inside = path and is_below(os.path.realpath(path), os.path.realpath(environment.prefix))
            if (
                path
                and not inside
                and _RELEASED.match(name)
                and os.path.dirname(path) not in map(os.path.normpath, folders)  # noqa: PTH120
            ):
                yield Violation(
                    f"{environment.name(native.path)} loads {path}; its RUNPATH {gone[0]} is gone",
                    (seen(environment.short(native.path), "RUNPATH", gone[0]),),
                )


def _glibc_of(native: NativeLibrary) -> tuple[int, ...] | None:
    """Return the newest glibc whose symbols a library needs."""
    names = (version for _, version in native.library.versions)
    return max(
        filter(None, (_release(n[6:]) for n in names if n.startswith("GLIBC_"))), default=None
    )


def _release(text: str) -> tuple[int, ...] | None:
    return (
        tuple(map(int, text.split("."))) if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", text) else None
    )


CHECKS = checks(
    {
        "library.other-owner": _other_owner,
        "library.runpath-gone": _runpath_gone,
        "library.missing": _missing,
        "library.other-machine": _other_machine,
        "site.other-arch": _other_site,
        "library.damaged": _damaged,
        "library.newer-glibc": _newer_glibc,
        "library.newer-processor": _newer_processor,
        "library.version-missing": _version_missing,
        "library.symbol-missing": _symbol_missing,
        "library.overruled": _overruled,
    }
)
