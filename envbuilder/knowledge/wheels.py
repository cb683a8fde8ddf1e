"""What wheels contain: the CUDA or ROCm of a build, the GPUs that it has code for, its driver."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .conditions import Value
from .names import cuda_series
from .ranges import matches
from .rows import Knowledge
from .terms import GpuVendor

_TAG = re.compile(r"(cu|rocm)(\d[\d.]*)")
_GPU = re.compile(r"(sm|compute)_(\d+)(\d)[a-z]?")
_VENDORS: dict[str, GpuVendor] = {"sm_": "nvidia", "gfx": "amd"}


class WheelFacts(NamedTuple):
    """Facts of a build. ``cuda`` and ``rocm``: series, '' for none; None: not recorded.

    ``gpus``: what it has code for, () if that is not recorded. ``tag``: the build tag, None for
    the build of the index. ``unknown``: the facts of the machine on which the others depend.
    ``loads``: it loads the CUDA of the stack.
    """

    cuda: str | None = None
    rocm: str | None = None
    gpus: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    tag: str | None = None
    loads: bool = False

    @property
    def vendor(self) -> GpuVendor | None:
        """The vendor of the GPUs that it is for; None: for CPUs, or not recorded."""
        if self.rocm:
            return "amd"
        return "nvidia" if self.cuda else None

    def values(self) -> dict[str, Value]:
        """Return them as facts of a provider, for conditions."""
        if self.unknown:
            return {}
        stated = {"cuda": self.cuda, "rocm": self.rocm}
        return {name: value for name, value in stated.items() if value is not None}


def wheel_facts(
    knowledge: Knowledge,
    component: str,
    version: str,
    distribution: str | None = None,
    tag: str | None = None,
    arch: str | None = None,
) -> WheelFacts:
    """Return the facts of a wheel.

    *tag*: of the index that it is from (default: the local version of *version*). *arch* None: not
    known; if the facts depend on it they are those of x86_64, and ``unknown``.
    """
    release, _, local = version.partition("+")
    tag = local or tag
    for build in knowledge.builds.get(component, ()):
        # The names of some distributions state the CUDA, whatever the index.
        if (build.tag != tag and not build.pip) or (build.pip or distribution) != distribution:
            continue
        if build.arch and (arch or "x86_64") not in build.arch:
            continue
        if matches(release, build.releases):
            rocm = _of_tag(tag).rocm if tag else ""
            unknown = ("arch",) if build.arch and arch is None else ()
            return WheelFacts(
                build.cuda or "", rocm, build.gpus, build.sources, unknown, tag, build.loads
            )
    return _of_tag(tag) if tag else WheelFacts()


def index_tag(indexes: Sequence[str]) -> str | None:
    """Return the build tag of the first index or page, if all its wheels have one: PyTorch's own.

    ``.../whl/cu118`` and ``.../whl/cu118/torch_stable.html``, whose wheels are later versions
    than those of an index without local versions.
    """
    parts = indexes[0].removesuffix("/").removesuffix("/torch_stable.html") if indexes else ""
    last = parts.rpartition("/")[2]
    return last if is_build_tag(last) else None


def is_build_tag(local: str) -> bool:
    """Whether a local version names a build: cpu, cu121, rocm6.1."""
    return local == "cpu" or _TAG.fullmatch(local) is not None


def _of_tag(tag: str) -> WheelFacts:
    """Return what a tag says by itself: cu121 is CUDA 12.1, and cu12 some CUDA 12."""
    source = (f"the local version {tag}",)
    found = _TAG.match(tag)
    if tag.startswith("cpu"):
        return WheelFacts("", "", (), source, tag=tag)
    if found is None:
        return WheelFacts(tag=tag)
    if found[1] == "rocm":
        return WheelFacts("", found[2].rstrip("."), (), source, tag=tag)
    return WheelFacts(cuda_series(found[2].replace(".", "")), "", (), source, tag=tag)


def needed_driver(knowledge: Knowledge, cuda: str) -> str | None:
    """Return the oldest driver for a series of CUDA; None: not recorded.

    From 11 on any driver of a major release runs all its minor ones.
    """
    recorded = knowledge.cuda_drivers
    parts = cuda.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((recorded[name].driver for name in names if name in recorded), None)


def vendor_of(gpu: str) -> GpuVendor | None:
    """Return the vendor of a GPU such as sm_90 or gfx90a; None: not known."""
    return next((vendor for start, vendor in _VENDORS.items() if gpu.startswith(start)), None)


def has_code_for(gpus: Sequence[str], gpu: str) -> bool:
    """Whether a build runs on a GPU: machine code of the same generation, or PTX that is no newer.

    ``sm_80`` also runs on sm_86 and sm_89, ``compute_90`` on all later ones (CUDA C++ Programming
    Guide, binary and PTX compatibility). Of other vendors the names must be equal.
    """
    here = _GPU.fullmatch(gpu)
    if here is None:
        return gpu in gpus
    major, minor = int(here[2]), int(here[3])
    for built in filter(None, map(_GPU.fullmatch, gpus)):
        other = int(built[2]), int(built[3])
        if built[1] == "compute" and other <= (major, minor):
            return True
        if built[1] == "sm" and other[0] == major and other[1] <= minor:
            return True
    return False
