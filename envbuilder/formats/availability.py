"""Packages of a file that a plan for a cluster may not find, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import Place
from ..text import shown
from .environment_yml import EnvironmentFile
from .match_spec import MatchSpec, parse

Loss = tuple[Place | None, str]

# Packages that indexes and channels have for Windows or macOS alone.
_WINDOWS = re.compile(r"pywin32|pypiwin32|pywinpty|vs20\d\d_runtime|vc|m2w64-.*|msys2-.*|win\w+")
_MACOS = re.compile(r"appnope|libcxx|pyobjc.*")
# Distributions whose wheels are on a page of their own, not on the index.
_ELSEWHERE = {
    "torch-scatter": "https://data.pyg.org/whl/",
    "torch-sparse": "https://data.pyg.org/whl/",
    "torch-cluster": "https://data.pyg.org/whl/",
    "torch-spline-conv": "https://data.pyg.org/whl/",
    "pyg-lib": "https://data.pyg.org/whl/",
}
_CUDA = frozenset({"cudatoolkit", "pytorch-cuda", "cuda-version", "cudatoolkit-dev"})
_FOR_CUDA = re.compile(r".*[-_]cu(?:da)?(\d{2,3})")
_LOCAL = re.compile(r"==\s*[^\s,;]+\+\w")
_PRERELEASE = re.compile(r"==\s*\d[\d.]*(a|b|rc|\.?dev)\d*\b")


def unavailable(asked: EnvironmentFile, *, has_index: bool) -> Iterator[Loss]:
    """Yield the packages of other systems, of another CUDA, and those that an index may lack.

    *has_index*: whether the file names indexes or pages of its own.
    """
    specs = [(asked.places.get(each), parse(each), each) for each in asked.specs]
    exported_on = _system(asked)
    release = _cuda(spec for _, spec, _ in specs if spec)
    for place, spec, text in specs:
        name = spec.name if spec else ""
        if exported_on and spec and (spec.build or spec.version.startswith("=")):
            yield place, f"{shown(text)} is pinned on {exported_on}"
        yield from _of_cuda(place, name, release)
    for line in asked.pip:
        place, name = asked.places.get(line), re.split(r"[\s=<>!~;\[@]", line)[0].lower()
        if _WINDOWS.fullmatch(name) or _MACOS.fullmatch(name):
            yield place, f"{shown(name)} is a package for another system"
        if _LOCAL.search(line) and not has_index:
            yield place, f"{shown(line)} has a local version, and the file names no index of it"
        if _PRERELEASE.search(line):
            yield place, f"{shown(line)} is a pre-release: an index may not have it"
        if name in _ELSEWHERE and not has_index:
            yield place, f"the wheels of {name} are not on the index but below {_ELSEWHERE[name]}"
        yield from _of_cuda(place, name, release)


def _system(asked: EnvironmentFile) -> str | None:
    """Return the other system that a list of conda was exported on; None: none is known."""
    names = [re.split(r"[\s=<>!~]", spec)[0] for spec in asked.specs]
    names += [re.split(r"[\s=<>!~;]", line)[0] for line in asked.pip]
    for system, pattern in (("Windows", _WINDOWS), ("macOS", _MACOS)):
        if any(pattern.fullmatch(name) for name in names):
            return system
    return None


def _cuda(specs: Iterator[MatchSpec]) -> str | None:
    """Return the digits of the CUDA that an environment has: 111 of cudatoolkit=11.1."""
    found = {spec.version for spec in specs if spec.name in _CUDA and "=" in spec.version}
    digits = {"".join(re.findall(r"\d+", each)[:2]) for each in found}
    return digits.pop() if len(digits) == 1 else None


def _of_cuda(place: Place | None, name: str, release: str | None) -> Iterator[Loss]:
    built = _FOR_CUDA.fullmatch(name)
    if built and release and not release.startswith(built[1]):
        yield place, f"{shown(name)} is for another CUDA than that of the file, {release}"
