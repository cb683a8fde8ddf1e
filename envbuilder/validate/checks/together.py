"""What comes together in one process: libraries of one kind, MPIs and what starts their ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from ...inspect.facts import Environment, InstalledDistribution
from ...inspect.loaded import Loaded, first_launcher, loaded, loaded_mpis
from ...inspect.observation import seen
from .protocol import NOT_SEARCHED, Outcome, Undecided, Violation, checks

_NCCL = re.compile(r"libnccl\.so\b")
_CUDA = re.compile(r"libcudart(-[0-9a-f]+)?\.so\.\d")
# LLVM's OpenMP and Intel's, which is made of it; wheels put a hash behind the name of theirs. GNU's
# libgomp does not mind others.
_LLVM_OPENMP = re.compile(r"lib(iomp5|omp)(-[0-9a-f]+)?\.so\b")


def two(environment: Environment, modules: Mapping[str, Sequence[Loaded]]) -> Iterator[Outcome]:
    """Yield the first two libraries that come together: in one module, or in two."""
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    for those in modules.values():
        for one, other in combinations(those, 2):
            if one.native is other.native and one.real != other.real:
                name = environment.name(one.native.path)
                yield Violation(
                    f"{name} alone loads {one.words} and {other.words}",
                    (one.evidence(environment), other.evidence(environment)),
                )
                return
    for first, second in combinations(sorted(modules), 2):
        ones, others = modules[first], modules[second]
        if {each.real for each in ones}.isdisjoint(each.real for each in others):
            yield from _of_two_modules(environment, ones[0], others[0])
            return


def _of_two_modules(environment: Environment, one: Loaded, other: Loaded) -> Iterator[Violation]:
    names = (environment.name(each.native.path) for each in (one, other))
    same = one.words == other.words
    parts = [f"{name} loads {each.words}" for name, each in zip(names, (one, other), strict=True)]
    yield Violation(
        ", ".join(parts) + (" of another place" if same else ""),
        (one.evidence(environment), other.evidence(environment)),
        confidence="likely",
    )


def loaded_nccls(environment: Environment) -> dict[str, list[Loaded]]:
    """Return the NCCLs that its modules load, by the modules."""
    return loaded(environment, _NCCL)


def _two_cudas(environment: Environment) -> Iterator[Outcome]:
    """Compare the series in sonames, libcudart.so.12, and in names of NVIDIA's packages."""
    packages: dict[str, InstalledDistribution] = {}
    for package in environment.distributions:
        if found := re.fullmatch(r"nvidia-[a-z-]+-cu(\d\d)", package.key):
            packages.setdefault(found[1], package)
    if len(packages) > 1:
        first, second, *_ = (packages[key] for key in sorted(packages))
        yield Violation(
            f"{first} and {second} are of two series of CUDA",
            tuple(
                seen(environment.short(each.path), "Name", each.name) for each in (first, second)
            ),
            confidence="possible",
        )
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    series: dict[str, Loaded] = {}
    for modules in loaded(environment, _CUDA).values():
        for each in modules:
            series.setdefault(each.name.partition(".so.")[2].partition(".")[0], each)
    if len(series) > 1:
        one, other, *_ = (series[key] for key in sorted(series))
        yield from _of_two_modules(environment, one, other)


def _other_launcher(environment: Environment) -> Iterator[Outcome]:
    if not environment.native:
        yield Undecided(NOT_SEARCHED)
        return
    launcher, mpis = first_launcher(environment), loaded_mpis(environment)
    if launcher is None:
        if mpis:
            yield Undecided("no launcher of an MPI is on PATH")
        return
    for those in mpis.values():
        if launcher.kin not in {each.mpi.kin for each in those}:
            one = those[0]
            what, where = environment.name(one.native.path), environment.short(launcher.path)
            yield Violation(
                f"{what} loads {one.mpi}, {where} starts ranks of {launcher}",
                (one.evidence(environment), seen(where, "belongs to", launcher)),
                confidence="likely",
            )


CHECKS = checks(
    {
        "mpi.two-in-process": lambda environment: two(environment, loaded_mpis(environment)),
        "mpi.other-launcher": _other_launcher,
        "nccl.two-in-process": lambda environment: two(environment, loaded_nccls(environment)),
        "cuda.two-in-process": _two_cudas,
        "openmp.two-in-process": lambda environment: two(
            environment, loaded(environment, _LLVM_OPENMP)
        ),
    }
)
