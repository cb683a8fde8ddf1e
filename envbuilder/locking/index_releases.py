"""New releases of components on a package index: their Pythons, architectures, glibc, requirements.

Names of wheels (PEP 425, 600), the index's pages (PEP 691) and metadata (PEP 658).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from ..knowledge.names import package_names
from ..knowledge.ranges import ANY_VERSION, check_range
from ..knowledge.rows import Knowledge
from .connection import Connection

if TYPE_CHECKING:
    from pypi_simple import DistributionPackage

_PLATFORM = re.compile(r"(manylinux1|manylinux2010|manylinux2014|manylinux_2_(\d+))_(\w+)")
_OLD_NAMES = {"manylinux1": 5, "manylinux2010": 12, "manylinux2014": 17}
_ARCHES = frozenset({"x86_64", "aarch64", "ppc64le"})
_CPYTHON = re.compile(r"cp3(\d+)")
# Those of the machines that plans are for; others are not of interest.
_ENVIRONMENT = {"platform_system": "Linux", "sys_platform": "linux", "extra": ""}


def new_releases(
    connection: Connection, index: str, knowledge: Knowledge, known: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield component and release, as versions.yaml has it, for each one that is not *known*.

    Final and not withdrawn ones of the components that have releases, later than the first known
    one. Raises Unreachable.
    """
    distributions = package_names(knowledge.components)
    for component, recorded in knowledge.releases.items():
        own = knowledge.components[component].pip or component
        names = dict.fromkeys([own, *(each.pip for each in recorded if each.pip)])
        first = min(Version(each.version) for each in recorded)
        for name in names:
            page = connection.project_page(index, name)
            found: dict[Version, list[DistributionPackage]] = {}
            for package in page.packages if page else ():
                release = _final(package)
                if release is not None and release > first:
                    found.setdefault(release, []).append(package)
            numbers = {Version(each) for each in known.get(component, ())}
            for release in sorted(found.keys() - numbers):
                plain = _release(release, found[release], connection, distributions)
                yield component, {**plain, **({"pip": name} if name != own else {})}


def _final(package: DistributionPackage) -> Version | None:
    """Return the version of a file; None: a pre-release, withdrawn, or for another system."""
    try:
        version = Version(package.version or "")
    except InvalidVersion:
        return None
    if package.is_yanked or version.is_prerelease or version.local:
        return None
    return version


def _release(
    version: Version,
    packages: Sequence[DistributionPackage],
    connection: Connection,
    distributions: Mapping[str, str],
) -> dict[str, Any]:
    arches: set[str] = set()
    pythons: set[int] = set()
    glibc: list[int] = []
    wheels = []
    for package in packages:
        facts = _wheel_facts(package.filename)
        if facts is not None:
            wheels.append(package)
            arches |= facts[0]
            pythons |= facts[1]
            glibc += facts[2]
    plain: dict[str, Any] = {"version": str(version)}
    python = next((each.requires_python for each in packages if each.requires_python), None)
    if python:
        plain["requires-python"] = python
    if arches:
        plain["arch"] = sorted(arches)
    if not wheels:
        plain["wheels"] = False
    if pythons:
        plain["pythons"] = [f"3.{minor}" for minor in sorted(pythons)]
    if glibc:
        plain["glibc"] = f"2.{max(glibc)}"
    requires = dict(_requirements(wheels, connection, distributions))
    return {**plain, "requires": requires} if requires else plain


def _wheel_facts(filename: str) -> tuple[set[str], set[int], list[int]] | None:
    """Return architectures, CPython series and glibc of a wheel; None: none for Linux."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except (InvalidWheelFilename, InvalidVersion):
        return None
    arches: set[str] = set()
    oldest: list[int] = []
    pythons = {
        int(found[1])
        for tag in tags
        if tag.abi != "abi3" and (found := _CPYTHON.fullmatch(tag.interpreter))
    }
    for platform in {tag.platform for tag in tags}:
        found = _PLATFORM.fullmatch(platform)
        if found and found[3] in _ARCHES:
            arches.add(found[3])
            oldest.append(int(found[2]) if found[2] else _OLD_NAMES[found[1]])
    if not arches and all(tag.platform != "any" for tag in tags):
        return None
    return arches, pythons, [min(oldest)] if oldest else []


def _requirements(
    wheels: Sequence[DistributionPackage],
    connection: Connection,
    distributions: Mapping[str, str],
) -> Iterator[tuple[str, str]]:
    """Yield what the metadata of a wheel requires of other components, without extras."""
    wheel = next((each for each in wheels if each.has_metadata), None)
    if wheel is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "METADATA"
        connection.fetch(wheel.metadata_url, path)
        metadata = Metadata.from_email(path.read_bytes(), validate=False)
    for requirement in metadata.requires_dist or ():
        name = canonicalize_name(requirement.name)
        if name in distributions and _is_always_there(requirement):
            text = ",".join(sorted(map(str, requirement.specifier))) or ANY_VERSION
            yield name, check_range(text)


def _is_always_there(requirement: Requirement) -> bool:
    """Whether a requirement does not depend on an extra, a Python or another system."""
    marker = requirement.marker
    if marker is None:
        return True
    return "python" not in str(marker) and marker.evaluate({**_ENVIRONMENT})
