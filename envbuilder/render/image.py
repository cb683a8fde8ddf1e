"""A plan as it is inside an image: there are no site modules there, and another system.

What the site's modules bring must come from somewhere else: the base image, its package system, or
the package index. What can be had nowhere in the same series is named, and then there is no image.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import Field

from .. import data
from ..errors import UsageError
from ..model.backend import PrefixParts
from ..model.base import Document, Line, Name
from ..model.knowledge import Component, Knowledge
from ..model.plan import Modules, Pin, Plan, SourceBuild
from ..model.ranges import matches, series
from ..model.recipe import Arch
from ..model.releases import glibc_suffices, runs
from ..model.site import AbsolutePath, PlainVersion

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
    cuda: dict[PlainVersion, PlainVersion] = Field(
        default_factory=dict, description="Tags of the CUDA image on it, by series of CUDA."
    )


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
    host_mpi: dict[Name, Line]
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
    from_index: tuple[str, ...]
    cuda: bool


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
    all_bases = bases()
    if prefix.image.base is not None:
        return _own_image(plan, all_bases.own_bases[prefix.image.base], prefix)
    base = _base(plan, all_bases)
    wanted = next((pin for pin in (*plan.pins, *plan.brought) if pin.component == "cuda"), None)
    cuda = wanted if wanted and _has_cuda(plan, all_bases, base, wanted) else None
    image_sources = _ImageSources(plan, knowledge, all_bases, base, cuda)
    if wanted and not cuda:
        image_sources.problems.append(_no_cuda(plan, all_bases, wanted))
    pins = [image_sources.pin(pin) for pin in plan.pins]
    build_pins = [image_sources.pin(pin) for pin in plan.build_pins]
    builds = tuple(image_sources.build(each) for each in plan.builds)
    if image_sources.problems:
        raise UsageError(
            "\n".join(
                [f"{plan.recipe} cannot be an image on {base.image}:"]
                + [f"  {each}" for each in image_sources.problems]
            ),
            "an image takes components from the package index and its own system, not from the "
            "site's modules: plan the recipe for a site without modules (--site local)",
        )
    inside = _inside(plan).model_copy(
        update={
            "python": PYTHON,
            "pins": tuple(pins),
            "build_pins": tuple(build_pins),
            "builds": builds,
        }
    )
    build_base, run_base = _names(plan, all_bases, base, cuda)
    # What is compiled needs a compiler, whether or not the plan had to name one.
    compiler = ("g++", *all_bases.development["gcc"], "python3-dev") if builds else ()
    return Image(
        plan=inside,
        build_base=build_base,
        run_base=run_base,
        build_packages=tuple(
            sorted({*_BUILD, *compiler, *image_sources.run, *image_sources.development})
        ),
        run_packages=tuple(sorted({*_RUN, *image_sources.run})),
        from_index=tuple(image_sources.from_index),
        cuda=cuda is not None,
    )


def _own_image(plan: Plan, base: str, prefix: PrefixParts) -> Image:
    """Return the image of a plan whose backend brings the same packages everywhere."""
    elsewhere = [pin for pin in plan.pins if pin.origin in ("module", "system")]
    if elsewhere:
        raise UsageError(
            "\n".join(
                [f"{plan.recipe} cannot be an image on {base}:"]
                + [f"  {pin}: only the site has it" for pin in elsewhere]
            ),
            f"an image of a {prefix.environment} holds what {plan.backend}, pip and the build "
            "bring",
        )
    return Image(
        plan=_inside(plan),
        build_base=base,
        run_base=base,
        build_packages=prefix.image.build_packages,
        run_packages=prefix.image.run_packages,
        from_index=(),
        cuda=False,
    )


def _inside(plan: Plan) -> Plan:
    """Return the plan where there are no modules."""
    return plan.model_copy(
        update={
            "brought": (),
            "modules": Modules(),
            "steps": tuple(step for step in plan.steps if step.id != "modules"),
        }
    )


def _base(plan: Plan, all_bases: Bases) -> Base:
    """Return the base whose Python is of the plan's series."""
    python = plan.pin("python")
    if python is None:
        raise UsageError(f"the plan of {plan.recipe} has no python, so no image fits it")
    wanted = _series(python.version)
    base = next((each for each in all_bases.bases if each.python == wanted), None)
    if base is None:
        raise UsageError(
            f"no base image has python {wanted}",
            f"there is one for each of {', '.join(each.python for each in all_bases.bases)}: "
            "let the recipe ask for one of these",
        )
    return base


def _no_cuda(plan: Plan, all_bases: Bases, cuda: Pin) -> str:
    fitting = [each.python for each in all_bases.bases if _has_cuda(plan, all_bases, each, cuda)]
    where = f"is for python {', '.join(fitting)}" if fitting else "has it"
    return (
        f"cuda {cuda.version} ({cuda.origin} {cuda.locator}): "
        f"{'the' if fitting else 'no'} CUDA image that is known for {plan.arch} {where}"
    )


def _has_cuda(plan: Plan, all_bases: Bases, base: Base, cuda: Pin) -> bool:
    where = all_bases.cuda_images.get(plan.arch)
    wanted = _series(cuda.version)
    return where is not None and matches(wanted, where.series) and wanted in base.cuda


def _names(plan: Plan, all_bases: Bases, base: Base, cuda: Pin | None) -> tuple[str, str]:
    """Return the images to build on and to run on."""
    if cuda is None:
        name = f"{all_bases.namespaces[plan.arch]}/{base.image}"
        return name, name
    start = f"{all_bases.cuda_images[plan.arch].image}:{base.cuda[_series(cuda.version)]}"
    system = base.image.replace(":", "")
    return f"{start}-devel-{system}", f"{start}-runtime-{system}"


class _ImageSources:
    """Where the components of one plan come from in an image; gathers what can be had nowhere."""

    def __init__(
        self, plan: Plan, knowledge: Knowledge, known: Bases, base: Base, cuda: Pin | None
    ) -> None:
        self.plan = plan
        self.knowledge = knowledge
        self.known = known
        self.base = base
        self.cuda = cuda
        self.problems: list[str] = []
        self.run: set[str] = set()
        self.development: set[str] = set()
        self.from_index: list[str] = []
        # Components that have their problem already.
        self.missing: set[str] = {"cuda"} - {pin.component for pin in (cuda,) if pin}
        self.homes: dict[str, str] = {} if cuda is None else {"cuda": CUDA_HOME}

    def pin(self, pin: Pin) -> Pin:
        """Return the pin as it is in the image; itself, and a problem, where it cannot be there."""
        if pin.component == "python":
            return _of_system(pin, self.base.python, PYTHON)
        if pin.origin in ("pip", "build"):
            self._check_glibc(pin)
            return pin
        if pin.component == "cuda" and self.cuda is not None:
            return _of_system(pin, self.cuda.version, CUDA_HOME)
        if self.cuda is not None and pin.component in self.known.cuda_packages:
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
                f"{name}={value}: {flag.home_of} has no place of its own in the image"
            )
        return self.homes.get(flag.home_of, value)

    def _from_nvidia(self, pin: Pin, cuda: Pin) -> Pin:
        packages = self.known.cuda_packages[pin.component]
        which = f"={pin.version}-1+cuda{_series(cuda.version)}"
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
        if not _same_series(pin.version, version, component):
            return None
        # A compiler or a build tool is no part of what runs.
        (self.development if _builds_only(pin, component) else self.run).add(component.debian)
        self.development |= set(self.known.development.get(pin.component, ()))
        self.homes[pin.component] = SYSTEM_HOME
        return _of_system(pin, version, self.known.programs[pin.component])

    def _indexed(self, pin: Pin) -> Pin | None:
        """Return it as a wheel of just this version, if the index has one for the image."""
        component = self.knowledge.components.get(pin.component)
        if component is None or component.pip is None:
            return None
        arch, base = self.plan.arch, self.base
        releases = self.knowledge.releases.get(pin.component, ())
        those = (each for each in releases if each.version == pin.version)
        if not any(runs(each, arch, base.glibc, f"{base.python}.0") for each in those):
            return None
        self.from_index.append(pin.component)
        return pin.model_copy(update={"origin": "pip", "locator": component.pip})

    def _check_glibc(self, pin: Pin) -> None:
        releases = self.knowledge.releases.get(pin.component, ())
        for each in releases:
            if pin.origin != "pip" or each.version != pin.version:
                continue
            if not glibc_suffices(each, self.base.glibc):
                self.problems.append(
                    f"{pin.component} {pin.version} (pip): its wheels need glibc {each.glibc}, "
                    f"the image has {self.base.glibc}"
                )

    def _nowhere(self, pin: Pin) -> Pin:
        if pin.component in self.missing:
            return pin
        self.missing.add(pin.component)
        version = self.base.versions.get(pin.component)
        packaged = f"the image's system has {version}" if version else "no package of its system"
        self.problems.append(
            f"{pin.component} {pin.version} ({pin.origin} {pin.locator}): {packaged}, and no "
            f"wheel of it is known for {self.plan.arch} and python {self.base.python}"
        )
        return pin


def _of_system(pin: Pin, version: str, locator: str) -> Pin:
    return pin.model_copy(update={"version": version, "origin": "system", "locator": locator})


def _builds_only(pin: Pin, component: Component) -> bool:
    return component.build_only or pin.component == "gcc"


def _same_series(one: str, other: str, component: Component) -> bool:
    """Whether one release may stand in for the other; without a series none may."""
    if component.series is None:
        return matches(one, f"=={other}")
    return series(one, component.series) == series(other, component.series)


def _series(version: str) -> str:
    return ".".join(str(number) for number in series(version, CUDA_SERIES))
