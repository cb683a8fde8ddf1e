"""A plan as it is inside an image: there are no site modules there, and another system.

What the site's modules bring must come from somewhere else: the base image, its package system, or
the package index. What can be had nowhere in the same series is named, and then there is no image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from pydantic import Field

from .. import data
from ..base import Document, Line, Name
from ..errors import UsageError
from ..knowledge.components import Release
from ..knowledge.ranges import matches, series, series_text
from ..knowledge.releases import glibc_suffices, runs
from ..knowledge.rows import Knowledge
from ..knowledge.terms import Arch, PlainVersion
from ..model.backend import PrefixParts
from ..model.base_image import VendorPackage
from ..model.host_contract import HostLibraries, HostMpi
from ..model.plan import Modules, Pin, Plan, SourceBuild
from ..model.site import AbsolutePath

PYTHON = "/usr/bin/python3"
CUDA_HOME = "/usr/local/cuda"
SYSTEM_HOME = "/usr"
# CUDA releases bear three numbers, but tags and packages go by two.
CUDA_SERIES = 2

# In every image: an interpreter to run with; to build with, venv and what checks https.
_RUN = ("python3",)
_BUILD = ("ca-certificates", "python3", "python3-venv")


class Base(Document):
    """One base image, and which components its package system holds in which release."""

    image: Line
    python: PlainVersion
    glibc: PlainVersion
    versions: dict[Name, PlainVersion]
    # Tags of the CUDA image on it, by series of CUDA.
    cuda: dict[PlainVersion, PlainVersion] = Field(default_factory=dict)


class CudaImage(Document):
    """The repository that holds the CUDA images of an architecture, and for which series."""

    image: Line
    series: Line


class CudaPackages(Document):
    """A component in the package system of the CUDA images: to run with, and to build with."""

    run: tuple[Line, ...]
    build: tuple[Line, ...]


class Bases(Document):
    """templates/container/bases.yaml."""

    schema_: Literal[1] = Field(alias="schema")
    namespaces: dict[Arch, Line]
    cuda_images: dict[Arch, CudaImage]
    development: dict[Name, tuple[Line, ...]]
    programs: dict[Name, AbsolutePath]
    cuda_packages: dict[Name, CudaPackages]
    nvidia_packages: dict[Name, VendorPackage]
    host_mpi: dict[Name, HostMpi]
    host_libraries: HostLibraries
    own_bases: dict[Name, Line]
    bases: tuple[Base, ...]


@dataclass(frozen=True)
class Image:
    """What an image is made of.

    ``build_base`` and ``run_base``: image names; they differ where CUDA has an image with compilers
    and one without. ``build_packages`` and ``run_packages``: what is installed there with apt.
    ``from_index``: components that the site has as modules and the image takes from the index.
    """

    plan: Plan
    build_base: str
    run_base: str
    build_packages: tuple[str, ...]
    run_packages: tuple[str, ...]
    from_index: tuple[str, ...] = ()
    cuda: bool = False


@cache
def bases() -> Bases:
    """Return the base images that are known."""
    # lazy import: 16 ms
    import yaml

    path = data.TEMPLATES / "container" / "bases.yaml"
    return Bases.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def make_image(plan: Plan, knowledge: Knowledge, prefix: PrefixParts) -> Image:
    """Return the image of a plan; *prefix*: what its backend makes of it.

    Raises UsageError that names every component which no image can hold as planned.
    """
    known = bases()
    if prefix.image.base is not None:
        return _own_image(plan, known.own_bases[prefix.image.base], prefix)
    base = _base(plan, known)
    wanted = next((pin for pin in (*plan.pins, *plan.brought) if pin.component == "cuda"), None)
    cuda = wanted if wanted and _has_cuda(plan, base, wanted) else None
    inside = _ImageSources(plan, knowledge, base, cuda)
    if wanted and not cuda:
        inside.problems.append(_no_cuda(plan, wanted))
    update = {
        "python": PYTHON,
        "pins": tuple(inside.pin(pin) for pin in plan.pins),
        "build_pins": tuple(inside.pin(pin) for pin in plan.build_pins),
        "builds": tuple(inside.build(each) for each in plan.builds),
    }
    if inside.problems:
        raise _refusal(
            plan,
            base.image,
            inside.problems,
            "an image uses components of the package index and of its own system, not modules: "
            "plan the recipe for a site without modules (--site local)",
        )
    build_base = run_base = f"{known.namespaces[plan.arch]}/{base.image}"
    if cuda:
        tag = base.cuda[series_text(cuda.version, CUDA_SERIES)]
        start, system = f"{known.cuda_images[plan.arch].image}:{tag}", base.image.replace(":", "")
        build_base, run_base = f"{start}-devel-{system}", f"{start}-runtime-{system}"
    # What is compiled needs a compiler, whether or not the plan had to name one.
    compiler = ("g++", *known.development["gcc"], "python3-dev") if plan.builds else ()
    git = ("git",) if any(each.tree for each in plan.builds) else ()
    return Image(
        plan=_without_modules(plan).model_copy(update=update),
        build_base=build_base,
        run_base=run_base,
        build_packages=tuple(sorted({*_BUILD, *compiler, *git, *inside.run, *inside.development})),
        run_packages=tuple(sorted({*_RUN, *inside.run})),
        from_index=tuple(inside.from_index),
        cuda=cuda is not None,
    )


def _own_image(plan: Plan, base: str, prefix: PrefixParts) -> Image:
    """Return the image of a plan whose backend brings the same packages everywhere."""
    elsewhere = [pin for pin in plan.pins if pin.origin in ("module", "system")]
    if elsewhere:
        raise _refusal(
            plan,
            base,
            [f"{pin}: only the site has it" for pin in elsewhere],
            f"an image of a {prefix.environment} contains only packages of {plan.backend}, pip "
            "and the build",
        )
    parts = prefix.image
    return Image(_without_modules(plan), base, base, parts.build_packages, parts.run_packages)


def _refusal(plan: Plan, base: str, problems: Iterable[str], hint: str) -> UsageError:
    lines = (f"cannot make an image of {plan.recipe} on {base}:", *(f"  {p}" for p in problems))
    return UsageError("image.components-missing", "\n".join(lines), hint)


def _without_modules(plan: Plan) -> Plan:
    steps = tuple(step for step in plan.steps if step.id != "modules")
    return plan.model_copy(update={"brought": (), "modules": Modules(), "steps": steps})


def _base(plan: Plan, known: Bases) -> Base:
    """Return the base whose Python is of the plan's series."""
    python = plan.pin("python")
    if python is None:
        raise UsageError(
            "image.no-python", f"the plan of {plan.recipe} has no python to choose an image for"
        )
    by_series = {each.python: each for each in known.bases}
    wanted = series_text(python.version, 2)
    if wanted not in by_series:
        raise UsageError(
            "image.no-base",
            f"no base image has python {wanted}",
            f"use one of these in the recipe: {', '.join(by_series)}",
        )
    return by_series[wanted]


def _has_cuda(plan: Plan, base: Base, cuda: Pin) -> bool:
    where, wanted = bases().cuda_images.get(plan.arch), series_text(cuda.version, CUDA_SERIES)
    return where is not None and matches(wanted, where.series) and wanted in base.cuda


def _no_cuda(plan: Plan, cuda: Pin) -> str:
    fitting = [each.python for each in bases().bases if _has_cuda(plan, each, cuda)]
    where = f"is for python {', '.join(fitting)}" if fitting else "has it"
    return (
        f"cuda {cuda.version} ({cuda.origin} {cuda.locator}): "
        f"{'the' if fitting else 'no'} CUDA image that is known for {plan.arch} {where}"
    )


@dataclass
class _ImageSources:
    """Where the components of one plan come from in an image; gathers what can be had nowhere.

    ``missing``: components that have their problem already.
    """

    plan: Plan
    knowledge: Knowledge
    base: Base
    cuda: Pin | None
    problems: list[str] = field(default_factory=list)
    run: set[str] = field(default_factory=set)
    development: set[str] = field(default_factory=set)
    from_index: list[str] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)
    homes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cuda:
            self.homes["cuda"] = CUDA_HOME
        else:
            self.missing.add("cuda")

    def pin(self, pin: Pin) -> Pin:
        """Return the pin as it is in the image; itself, and a problem, where it cannot be there."""
        if pin.component == "python":
            return _of_system(pin, self.base.python, PYTHON)
        if pin.origin in ("pip", "build"):
            self._check_glibc(pin)
            return pin
        if self.cuda and pin.component == "cuda":
            return _of_system(pin, self.cuda.version, CUDA_HOME)
        if self.cuda and pin.component in bases().cuda_packages:
            return self._from_nvidia(pin, self.cuda)
        return self._packaged(pin) or self._indexed(pin) or self._nowhere(pin)

    def build(self, build: SourceBuild) -> SourceBuild:
        """Return the build with the homes that its components have in the image."""
        flags = {name: self._flag(name, value) for name, value in build.flags.items()}
        return build.model_copy(update={"flags": flags})

    def _flag(self, name: str, value: str) -> str:
        flag = self.knowledge.flags.get(name)
        if flag is None or flag.home_of is None:
            return value
        if flag.home_of not in self.homes and flag.home_of not in self.missing:
            self.problems.append(
                f"{name}={value}: {flag.home_of} has no separate folder in the image"
            )
        return self.homes.get(flag.home_of, value)

    def _from_nvidia(self, pin: Pin, cuda: Pin) -> Pin:
        packages = bases().cuda_packages[pin.component]
        which = f"={pin.version}-1+cuda{series_text(cuda.version, CUDA_SERIES)}"
        self.run |= {f"{name}{which}" for name in packages.run}
        self.development |= {f"{name}{which}" for name in packages.build}
        self.homes[pin.component] = SYSTEM_HOME
        return _of_system(pin, pin.version, SYSTEM_HOME)

    def _packaged(self, pin: Pin) -> Pin | None:
        """Return it as a package of the base, if that is of the same series."""
        component = self.knowledge.components.get(pin.component)
        version = self.base.versions.get(pin.component)
        if component is None or component.debian is None or version is None:
            return None
        if not _same_series(pin.version, version, component.series):
            return None
        # A compiler or a build tool is no part of what runs.
        builds_only = component.build_only or pin.component == "gcc"
        (self.development if builds_only else self.run).add(component.debian)
        self.development |= {*bases().development.get(pin.component, ())}
        self.homes[pin.component] = SYSTEM_HOME
        return _of_system(pin, version, bases().programs[pin.component])

    def _indexed(self, pin: Pin) -> Pin | None:
        """Return it as a wheel of just this version, if the index has one for the image."""
        component = self.knowledge.components.get(pin.component)
        if component is None or component.pip is None:
            return None
        place = (self.plan.arch, self.base.glibc, f"{self.base.python}.0")
        if not any(runs(each, *place) for each in self._releases(pin)):
            return None
        self.from_index.append(pin.component)
        return pin.model_copy(update={"origin": "pip", "locator": component.pip})

    def _releases(self, pin: Pin) -> Iterator[Release]:
        every = self.knowledge.releases.get(pin.component, ())
        return (each for each in every if each.version == pin.version)

    def _check_glibc(self, pin: Pin) -> None:
        for each in self._releases(pin) if pin.origin == "pip" else ():
            if not glibc_suffices(each, self.base.glibc):
                self.problems.append(
                    f"{pin.component} {pin.version} (pip): its wheels need glibc {each.glibc}, "
                    f"the image has {self.base.glibc}"
                )

    def _nowhere(self, pin: Pin) -> Pin:
        if pin.component not in self.missing:
            self.missing.add(pin.component)
            version = self.base.versions.get(pin.component)
            has = f"the image's system has {version}" if version else "no package of its system"
            self.problems.append(
                f"{pin.component} {pin.version} ({pin.origin} {pin.locator}): {has}, and it has no "
                f"known wheel for {self.plan.arch} and python {self.base.python}"
            )
        return pin


def _of_system(pin: Pin, version: str, locator: str) -> Pin:
    return pin.model_copy(update={"version": version, "origin": "system", "locator": locator})


def _same_series(one: str, other: str, parts: int | None) -> bool:
    """Whether one release may stand in for the other; without a series none may."""
    if parts is None:
        return matches(one, f"=={other}")
    return series(one, parts) == series(other, parts)
