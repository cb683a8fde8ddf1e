"""spack.yaml: the specs of an environment, and the versions that its packages are bound to.

https://spack.readthedocs.io, "Environments (spack.yaml)" and "Spec syntax". spack_matrix.py
expands definitions and matrices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ..documents.source import Source
from ..documents.tree import Node, Pairs, Scalar
from ..documents.yaml_nodes import parse
from ..errors import Place
from ..knowledge.ranges import ANY_VERSION
from ..text import shown
from .environment_yml import EnvironmentFile
from .reading import Reading, leaves, pairs_at
from .spack_matrix import expand

_SPEC = re.compile(
    r"(?P<name>[A-Za-z0-9_][\w-]*)?(?P<version>@=?[\w.,:=-]+)?(?P<variants>.*)", re.DOTALL
)
_DEPENDENCY = re.compile(r"\^([A-Za-z0-9_][\w-]*)(@=?[\w.,:=-]+)?")
_COMPILER = re.compile(r"(?<![\w^])%([A-Za-z0-9_][\w-]*)(@=?[\w.,:=-]+)?")
# The packages that provide mpi in spack-packages at 1e8cf059, and intel-mpi, which it had before.
_MPIS = frozenset(
    {"cray-mpich", "cray-mvapich2", "fujitsu-mpi", "hpcx-mpi", "intel-mpi", "intel-oneapi-mpi"}
    | {"mpi-serial", "mpich", "mpilander", "mpitrampoline", "mpt", "msmpi", "mvapich", "mvapich2"}
    | {"mvapich-plus", "nmad", "openmpi", "spectrum-mpi"}
)
_PLAIN = re.compile(r"\d[\w.]*")
# NCCL 2.22.3-1 and cuDNN 8.9.7.29-12: the number of a build, or a CUDA.
_BUILD = re.compile(r"(?<=\d)-\d+$")
_READ = frozenset({"specs", "definitions", "packages"})


class _Spec(NamedTuple):
    name: str
    bounds: str
    rest: str


@dataclass(frozen=True)
class _Software:
    """The software that specs ask for, with its bounds and place; ``bound``: asked by none."""

    reading: Reading
    bounds: dict[str, str] = field(default_factory=dict)
    bound: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def add(self, text: str, place: Place) -> None:
        """Add a spec with its dependencies and compiler; note what is not version or name."""
        spec = _parsed(text)
        if spec is None:
            self.reading.note(place, f"{shown(text)} is left out: not a package by its name")
            return
        if spec.name in self.bounds:
            self.reading.note(place, f"{shown(text, 240)} is left out: {spec.name} is listed twice")
            return
        self.bounds[spec.name], self.places[spec.name] = spec.bounds, place
        for name, version in _DEPENDENCY.findall(spec.rest) + _COMPILER.findall(spec.rest):
            self.bounds.setdefault(name, spec_bounds(version) or ANY_VERSION)
            self.places.setdefault(name, place)
        if spec.rest.strip() or (spec.bounds == ANY_VERSION and "@" in text):
            self.reading.note(place, f"{shown(text, 240)} becomes {spec.name} {spec.bounds}")

    def bind(self, package: Scalar, settings: Node) -> None:
        """Bind a package by its version, requirements and externals; note its other settings."""
        name = package.text.rstrip(":")
        if not isinstance(settings, Pairs):
            self.reading.leave_out(name, settings, package.place)
            return
        for key, value in settings.pairs:
            if name == "mpi" and key.text == "require" and self._provide_mpi(value):
                continue
            if key.text in ("version", "require"):
                self._bind_by(name, value)
            elif key.text == "externals":
                for external in self.reading.mappings(value, "externals"):
                    self._external(external)
            elif key.text == "providers":
                self._provide(value)
            else:
                self.reading.leave_out(f"{name}: {key.text}", value, key.place)

    def _bind_by(self, name: str, value: Node) -> None:
        if isinstance(value, Pairs) or any(
            isinstance(item, Pairs) for item in getattr(value, "items", ())
        ):
            self.reading.leave_out(f"conditions of {name}", value, value.place)
            return
        for leaf in leaves(value):
            # 1.2 of version, @1.2+mpi of require.
            text = f"@{leaf.text}" if leaf.text[:1].isdigit() else leaf.text
            spec = _SPEC.fullmatch(text)
            bounds = spec_bounds(spec["version"] or "") if spec else None
            if not bounds or self.bounds.get(name, ANY_VERSION) != ANY_VERSION:
                self.reading.note(leaf.place, f"{name}: {shown(leaf.text)} is left out")
                continue
            if name in self.bounds:
                self.bounds[name] = bounds
            else:
                self.bound[name], self.places[name] = bounds, leaf.place
                text = f"{name} {shown(leaf.text)} binds no spec of the file"
                self.reading.note(leaf.place, text)
            if spec and spec["variants"].strip():
                rest = shown(spec["variants"].strip(), 240)
                self.reading.note(leaf.place, f"{name}: {rest} is left out")

    def _provide(self, providers: Node) -> None:
        """Add the first provider of MPI where no spec is one; note every other provider."""
        for virtual, names in self.reading.pairs(providers, "providers"):
            if virtual.text.rstrip(":") != "mpi" or not self._provide_mpi(names):
                self.reading.leave_out(f"provider of {virtual.text}", names, virtual.place)

    def _provide_mpi(self, names: Node) -> bool:
        """Add the first provider, and note the others; return whether there is none before."""
        found = list(leaves(names))
        spec = _parsed(found[0].text) if found else None
        if spec is None or spec.name not in _MPIS or _MPIS & self.bounds.keys():
            return False
        first, *others = found
        self.reading.note(first.place, f"mpi is provided by {shown(first.text)}: added")
        self.add(first.text, first.place)
        for each in others:
            self.reading.note(each.place, f"provider of mpi is left out: {shown(each.text)}")
        return True

    def _external(self, external: Pairs) -> None:
        text = self.reading.text(external, "spec") or ""
        spec = _parsed(text)
        if spec and self.bounds.get(spec.name) in (ANY_VERSION, spec.bounds):
            self.bounds[spec.name] = spec.bounds
        else:
            self.reading.note(external.place, f"the external {shown(text)} is left out")
        for key, value in external.pairs:
            if key.text != "spec":
                self.reading.leave_out(f"{shown(text)}: {key.text}", value, key.place)


def read(source: Source) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what the specs ask for, and notes on what was left out. Raises DocumentError."""
    root, problems = parse(source)
    reading = Reading("spack env activate and spack add write such a file")
    # A key that is there twice is a problem for our documents; Spack takes the last one.
    for each in problems:
        if each.place:
            reading.note(each.place, f"{each.message}: {'; '.join(each.hints) or 'not read'}")
    environment = pairs_at(root, "spack") or root
    packages = pairs_at(environment, "packages")
    software = _Software(reading)
    reading.others(root, ("spack",) if environment is not root else root.index)
    reading.others(environment, _READ)
    for spec, place in expand(reading, environment):
        software.add(spec, place)
    for key, value in packages.pairs if packages else ():
        software.bind(key, value)
    reading.check()
    asked = EnvironmentFile(
        software=tuple(software.bounds.items()),
        bound=tuple(software.bound.items()),
        only_pip=True,
        places=software.places,
    )
    return asked, tuple(reading.notes)


def _parsed(text: str) -> _Spec | None:
    found = _SPEC.fullmatch(re.sub(r"\s+(?=@)", "", text))
    if not found or not found["name"]:
        return None
    return _Spec(
        found["name"], spec_bounds(found["version"] or "") or ANY_VERSION, found["variants"]
    )


def _next(version: str) -> str | None:
    """Return the first release behind a series: :12.2 includes every 12.2.x."""
    begin, dot, last = version.rpartition(".")
    return f"{begin}{dot}{int(last) + 1}" if last.isdecimal() and len(last) < 9 else None


def spec_bounds(version: str) -> str | None:
    """Return a version of Spack as bounds: 1.2 is the series, =1.2 the release, 1.2: from it on."""
    text = version.removeprefix("@")
    begin, colon, end = text.partition(":")
    begin, end = _BUILD.sub("", begin), _BUILD.sub("", end)
    plain = [each for each in (begin.removeprefix("="), end) if each]
    if not plain or "," in text or not all(_PLAIN.fullmatch(each) for each in plain):
        return None
    if end and _next(end) is None:
        return None
    if not colon:
        # Spack takes a whole release (4.1.6) for itself too.
        exact = begin.startswith("=") or begin.count(".") > 1
        return f"=={plain[0]}" if exact else f"=={plain[0]}.*"
    lower = f">={begin}" if begin else ""
    upper = f"<{_next(end)}" if end else ""
    return ",".join(filter(None, (lower, upper)))
