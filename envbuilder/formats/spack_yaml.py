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
from .reading import Reading, pairs_at
from .spack_matrix import expand, leaves, note_leaves

_SPEC = re.compile(
    r"(?P<name>[A-Za-z0-9_][\w-]*)?(?P<version>@=?[\w.,:=-]+)?(?P<variants>.*)", re.DOTALL
)
_DEPENDENCY = re.compile(r"\^([A-Za-z0-9_][\w-]*)(@=?[\w.,:=-]+)?")
_COMPILER = re.compile(r"(?<![\w^])%([A-Za-z0-9_][\w-]*)(@=?[\w.,:=-]+)?")
_PLAIN = re.compile(r"\d[\w.]*")
_READ = frozenset({"specs", "definitions", "packages"})
# What configures an installation of Spack, and says nothing of the environment.
_SETTINGS = frozenset({"config", "view", "concretizer", "modules", "ci", "cdash", "env_vars"})


class _Spec(NamedTuple):
    name: str
    bounds: str
    rest: str


@dataclass(frozen=True)
class _Software:
    """The software that specs ask for, with its bounds and place."""

    reading: Reading
    bounds: dict[str, str] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)

    def add(self, text: str, place: Place) -> None:
        """Add a spec with its dependencies and compiler; note what is not version or name."""
        spec = _parsed(text)
        if spec is None:
            self.reading.note(place, f"{shown(text)} is left out: not a package by its name")
            return
        if spec.name in self.bounds:
            self.reading.note(place, f"{shown(text)} is left out: {spec.name} is listed twice")
            return
        self.bounds[spec.name], self.places[spec.name] = spec.bounds, place
        for name, version in _DEPENDENCY.findall(spec.rest) + _COMPILER.findall(spec.rest):
            self.bounds.setdefault(name, spec_bounds(version) or ANY_VERSION)
            self.places.setdefault(name, place)
        if spec.rest.strip() or (spec.bounds == ANY_VERSION and "@" in text):
            self.reading.note(place, f"{shown(text)} becomes {spec.name} {spec.bounds}")

    def bind(self, package: Scalar, settings: Node) -> None:
        """Bind a package by its version, requirements and externals; note its other settings."""
        name = package.text.rstrip(":")
        if not isinstance(settings, Pairs):
            note_leaves(self.reading, name, settings, package.place)
            return
        for key, value in settings.pairs:
            if key.text in ("version", "require"):
                self._bind_by(name, value)
            elif key.text == "externals":
                for external in self.reading.mappings(value, "externals"):
                    self._external(external)
            elif key.text != "buildable":
                note_leaves(self.reading, f"{name}: {key.text}", value, key.place)

    def _bind_by(self, name: str, value: Node) -> None:
        if isinstance(value, Pairs) or any(
            isinstance(item, Pairs) for item in getattr(value, "items", ())
        ):
            note_leaves(self.reading, f"conditions of {name}", value, value.place)
            return
        for leaf in leaves(value):
            bounds = spec_bounds(f"@{leaf.text.removeprefix('@')}")
            if bounds and self.bounds.get(name) == ANY_VERSION:
                self.bounds[name] = bounds
            else:
                self.reading.note(leaf.place, f"{name}: {shown(leaf.text)} is left out")

    def _external(self, external: Pairs) -> None:
        text = self.reading.text(external, "spec") or ""
        spec = _parsed(text)
        if spec and self.bounds.get(spec.name) == ANY_VERSION:
            self.bounds[spec.name] = spec.bounds
        else:
            self.reading.note(external.place, f"the external {shown(text)} is left out")
        for key, value in external.pairs:
            if key.text != "spec":
                note_leaves(self.reading, f"{shown(text)}: {key.text}", value, key.place)


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
    for key, value in environment.pairs:
        if key.text not in _READ | _SETTINGS:
            note_leaves(reading, key.text, value, key.place)
    for spec, place in expand(reading, environment):
        software.add(spec, place)
    for key, value in packages.pairs if packages else ():
        software.bind(key, value)
    reading.check()
    asked = EnvironmentFile(
        software=tuple(software.bounds.items()), only_pip=True, places=software.places
    )
    return asked, tuple(reading.notes)


def _parsed(text: str) -> _Spec | None:
    found = _SPEC.fullmatch(text)
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
