"""What a module's name says: the component, its release, and what it was built with.

Besides the names of EasyBuild and Spack those that sites choose: ``nccl/cuda-11.4_2.11.4``,
``mpi/openmpi/4.1.1/gnu-4.9.2``, ``openmpi-geib-cuda10.2-gcc/3.1.4`` (Bright Cluster Manager),
``libs/cudnn/8.2.1.32/binary-cuda-11.3.0`` (Sheffield), ``gnu8/8.3.0`` (OpenHPC).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..target_tools.names import normalize
from .components import Component

# Words that sort modules and name no software: EasyBuild's module classes (easybuild/tools/
# config.py), those of sites, systems and architectures (Spack's {architecture}).
CATEGORY = re.compile(
    r"^(base|ai|astro|bio|cae|chem|comp|compilers?|data|dataset|debuggers?|dev|devel|geo|ide|lang|languages?"
    r"|lib|libs|librar(y|ies)|math|mpi|numlib|perf|quantum|phys|system|toolchains?|tools?|utils?"
    r"|utilities|vis|apps?|applications?|software|core|gpu|nvidia|parallel|python-packages"
    r"|(linux|rhel|el|centos|rocky|alma|sles|ubuntu|debian|x86_64|aarch64|ppc64le)[^/]*)$"
)
_COMPILERS = {
    "gcc": "gcc",
    "gcccore": "gcc",
    "gnu": "gcc",
    "icc": "intel-compilers",
    "iccifort": "intel-compilers",
    # Intel Cluster Studio, as Bright writes it.
    "ics": "intel-compilers",
    "intel": "intel-compilers",
    "oneapi": "intel-compilers",
    "pgi": "pgi",
    "nvhpc": "nvhpc",
    "clang": "llvm",
    "llvm": "llvm",
    "aocc": "aocc",
}
# What else software is built with: the words of names, and the fact that states its version.
_LIBRARIES = {
    "cuda": "cuda",
    "cu": "cuda",
    "rocm": "rocm",
    "anaconda": "anaconda",
    "miniconda": "anaconda",
    "python": "python",
    "py": "python",
}
_TOOLS = {**dict.fromkeys(_COMPILERS, "compiler_version"), **_LIBRARIES}
_MPI = re.compile(r"[a-z]*mpi|mpich|mvapich2")
# Each is built with those before it; of several in one name, the last one is the software.
_ORDER = ("gcc", "llvm", "aocc", "cuda", "rocm", "python")
# Words that say how a module was made or for which network, and name no other software. geib is
# Bright's word for Ethernet and InfiniBand, mlnx the build of NVIDIA's (Mellanox's) drivers, which
# are called ofed and mofed too. gcc-native and cray-mpich-ucx are of Cray.
_NEUTRAL = re.compile(
    r"64|bin|binary|compilers?|cpu|default|ge|geib|gpu|ib|latest|mlnx|m?ofed\d*|native|nogpu|ofi"
    r"|opa|opt|opx|release|roce|shared|static|toolkit|ucx"
)
# Modules of EasyBuild beside those of the components that their names begin with.
_OTHERS = frozenset({"cuda-python", "ucc-cuda", "ucx-cuda", "ucx-rocm"})
# Year and month are the release of NVIDIA's SDK, of a container or of a distribution, not of what
# the name begins with: cudatoolkit/21.9, pytorch/23.10-py3, python3/2022.01.
_DATED = frozenset({"cuda", "python", "pytorch", "tensorflow"})
_DATE = re.compile(r"(20)?(19|2\d)(\.(0?[1-9]|1[0-2]))?(?![\d])")
_FRAMEWORKS = frozenset({"tensorflow", "pytorch", "mxnet", "keras"})
_WORD = re.compile(r"[-_]")
# py37, cuda10.2 and gcc.9: a word and its release with at most a dot between them.
_GLUED = re.compile(r"([a-z]+|mvapich2)\.?(\d[\d.]*)")
# A commit is no release: 17d41cb.
_RELEASE = re.compile(r"v?(?!(?=\d*[a-f])[0-9a-f]{7,40}$)(\d[a-z0-9.]*)")
_GENERATION = re.compile(r"20\d\d[ab]")
# What EasyBuild calls a toolchain without a generation.
_TOOLCHAIN = re.compile(
    r"-(GCC(?:core)?|iccifort|intel-compilers)-(\d[\d.]*(?:-2\.\d+(?:\.\d+)?)?)(?=-|$)"
)
# CUDA/8.0.61_375.26: its installer is named after a driver too, which is of release 300 or later.
_TWO_RELEASES = re.compile(r"^[^/a-z]*\d_(?![3-9]\d\d\.)\d")


# Intel's tools as Bright names them, behind the bits and the year of their suite.
_INTEL = (
    (re.compile(r"^intel/compiler/(?:32|64)/20\d\d/"), "intel-compilers/"),
    (re.compile(r"^intel/mpi/(?:32|64)/(20\d\d)/"), r"intel-mpi/\1."),
)


def package_names(components: Mapping[str, Component]) -> dict[str, str]:
    """Return the component of each name that packages, tools and people have for one."""
    others = {
        normalize(name): component
        for component, known in components.items()
        for name in (known.conda, known.debian, known.pip, *known.pip_variants, *known.aliases)
        if name
    }
    return {**others, **{component: component for component in components}}


@dataclass(frozen=True)
class NameReading:
    """What a name says. ``facts``: toolchain, compiler, cuda, python, framework and others."""

    component: str
    release: str
    facts: Mapping[str, str] = field(default_factory=dict)


def read_name(name: str, aliases: Mapping[str, str]) -> NameReading | None:
    """Return what a name says; None: it does not say one release of one component for certain.

    *aliases*: components by the words that mean them, in lower case. Each word before the release
    has to be understood: ``tensorflow-probability/0.12`` is not TensorFlow.
    """
    for pattern, text in _INTEL:
        name = pattern.sub(text, name)
    parts = name.lower().split("/")
    if _TWO_RELEASES.search(parts[-1]):
        return None
    readings = [
        reading
        for place, part in enumerate(parts)
        if (branch := _branch(parts[:place])) is not None
        for reading in _readings(part, parts[place + 1 :], branch, aliases)
    ]
    last = max((_order(reading) for reading in readings), default=0)
    best = [reading for reading in readings if _order(reading) == last]
    if len({(reading.component, reading.release) for reading in best}) != 1:
        return None
    toolchain = _TOOLCHAIN.search(name)
    if toolchain is None:
        return best[0]
    stated = {"toolchain": toolchain[1], "toolchain_version": toolchain[2]}
    return NameReading(best[0].component, best[0].release, {**best[0].facts, **stated})


def _order(reading: NameReading) -> int:
    return _ORDER.index(reading.component) if reading.component in _ORDER else len(_ORDER)


def _branch(parts: Sequence[str]) -> Mapping[str, str] | None:
    """Return what the parts before the software say of its compiler; None: they are something else.

    ``gcc/12.2.0`` or ``cuda/11.1`` before a module is a branch of a hierarchy; where it lies does
    not matter.
    """
    words = _Words()
    left = list(parts)
    while left:
        part = left.pop()
        fact = _fact(left[-1]) if left and _RELEASE.fullmatch(part) else None
        if fact:
            tool = left.pop()
            words.facts[fact] = part
            if tool not in _COMPILERS:
                continue
            return {**words.facts, "compiler": _COMPILERS[tool]}
        is_tool = words.read(part) and not words.releases and words.facts
        if not CATEGORY.match(part) and not _NEUTRAL.fullmatch(part) and not is_tool:
            return None
    return words.facts


def _readings(
    part: str, later: Sequence[str], branch: Mapping[str, str], aliases: Mapping[str, str]
) -> Iterator[NameReading]:
    """Yield the reading of a name whose software is named at the beginning of *part*."""
    for component, digits, rest in _software(part, aliases):
        words = _Words(_FRAMEWORKS - {component})
        if not all(words.read(each) for each in (rest, *later) if each):
            return
        facts = {**branch, **words.facts}
        own = "compiler_version" if component in _COMPILERS.values() else component
        if not words.releases and own in facts:
            words.releases.append(facts.pop(own))
            facts.pop("compiler" if own == "compiler_version" else own, None)
        elif facts.get("compiler") == component:
            # aocc/aocc-compiler-2.1.0
            del facts["compiler"]
        if component == "cudnn" and "-" in words.suffix:
            # cudnn/9.2.0.82-12 of Spack's wheels.
            facts.setdefault("cuda", words.suffix[1:])
        elif len(words.suffix) == 2 and words.releases:
            words.releases[-1] += words.suffix
        is_own = len(words.releases) == 1 and _is_release(component, words.releases[0])
        if is_own and words.releases[0].replace(".", "").startswith(digits):
            yield NameReading(component, words.releases[0], dict(sorted(facts.items())))


def _is_release(component: str, release: str) -> bool:
    # intel/2019b is a toolchain, nvhpc_2022_221 of another numbering.
    if _GENERATION.fullmatch(release) or (component == "nvhpc" and "." not in release):
        return False
    return component not in _DATED or _DATE.match(release) is None


def _software(part: str, aliases: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the component that a part begins with, digits of its release, and what follows.

    Of ``cudnn8-cuda11`` that is cudnn, 8 and ``cuda11``; of ``cuda10.2`` cuda, 102 and nothing.
    """
    words = _WORD.split(part)
    if "-".join(words[:2]) in _OTHERS:
        return
    for count in range(len(words), 0, -1):
        head, rest = "-".join(words[:count]), "-".join(words[count:])
        glued = _GLUED.fullmatch(head)
        if head in aliases:
            yield aliases[head], "", rest
            return
        if glued and glued[1] in aliases:
            yield aliases[glued[1]], glued[2].replace(".", ""), rest
            return


class _Words:
    """The words of a name that are not the software's own, read one part after the other.

    ``suffix``: a whole number behind the release, with its hyphen.
    """

    def __init__(self, frameworks: frozenset[str] = frozenset()) -> None:
        self.releases: list[str] = []
        self.facts: dict[str, str] = {}
        self.suffix = ""
        self._frameworks = frameworks
        self._tool: str | None = None

    def read(self, part: str) -> bool:
        """Read one part; return whether every word before the release is known."""
        released = False
        # gcc/8.3.0 behind a release is what it was built with; openmpi/gcc/3.1.4 is Open MPI 3.1.4.
        before = self._tool if self.releases else None
        self._tool = part if _fact(part) else None
        for word in _WORD.split(part):
            number = _RELEASE.fullmatch(word)
            if word in self._frameworks:
                self.facts["framework"] = word
            elif _NEUTRAL.fullmatch(word):
                continue
            elif _GENERATION.fullmatch(word) and before:
                self.facts |= {"toolchain": before, "toolchain_version": word}
                self.facts.pop("compiler", None)
            elif number and before and (fact := _fact(before)):
                self.facts[fact] = number[1]
            elif number and released and word.startswith("v"):
                # cudnn/10.1-v7.5.1: which of both is the release?
                return False
            elif number and released and part.endswith(f"{self.releases[-1]}-{word}"):
                self.suffix = f"-{word}" if word.isdigit() else ""
            elif number and not released:
                self.releases.append(number[1])
                released = True
            elif not self._read_tool(word) and not released:
                return False
            before = "anaconda" if word.startswith(("anaconda", "miniconda")) else word
        return True

    def _read_tool(self, word: str) -> bool:
        """Read the name of a compiler or library, with its version where that is glued to it."""
        glued = _GLUED.fullmatch(word)
        tool, digits = (glued[1], glued[2]) if glued else (word, "")
        if tool in _COMPILERS:
            self.facts["compiler"] = _COMPILERS[tool]
        fact = _fact(tool)
        if fact and digits:
            self.facts[fact] = _dotted(fact, digits)
        return fact is not None


def _fact(word: str) -> str | None:
    """Return the fact that states the version of a compiler or library; None: it is neither."""
    return _TOOLS.get(word) or ("mpi" if _MPI.fullmatch(word) else None)


def _dotted(fact: str, digits: str) -> str:
    """Return 3.7 of py37 and 10.2 of cu102."""
    if "." in digits:
        return digits
    if fact == "python" and len(digits) > 1:
        return f"{digits[0]}.{digits[1:]}"
    return cuda_series(digits) if fact == "cuda" else digits


def cuda_series(digits: str) -> str:
    """Return 12.1 of the digits in cu121 and 9.2 of cu92; 12 of cu12, which states no minor one."""
    if len(digits) < 2 or (len(digits) == 2 and digits.startswith("1")):
        return digits
    return f"{digits[:-1]}.{digits[-1]}"
