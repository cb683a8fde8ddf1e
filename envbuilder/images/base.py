"""The base of an image: a folder with a Linux system, and what that system holds.

Nothing of it is run: its architecture may be another, and a plan must not depend on what a foreign
program says. What is installed is in the records of its package manager.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast, get_args

from ..base import fits
from ..errors import UsageError
from ..knowledge.components import Component
from ..knowledge.terms import Arch, PlainVersion
from ..model.base_image import BaseImage, VendorPackage
from ..model.site import DEBIAN_ARCHES, Interpreter, Site, SiteFacts, Snapshot, SystemComponent

# Of every Debian, and of what is made of it.
STATUS = Path("var/lib/dpkg/status")
_RELEASE = Path("etc/os-release")
# What says which system it is and what is installed.
RECORDS = (STATUS, _RELEASE)
PYTHON = "/usr/bin/python3"
# They come with every virtualenv: a system's own are not in the way, and of no use.
_OWN = frozenset({"pip", "setuptools", "wheel", "packaging"})


def read_base(
    folder: Path,
    components: Mapping[str, Component],
    programs: Mapping[str, str],
    vendors: Mapping[str, VendorPackage],
) -> BaseImage:
    """Return what the system in *folder* is, and what of the components it holds.

    *programs*: by which program a component that is no Python package is known. *vendors*:
    components in packages that are no Debian's. Raises UsageError for a folder that holds no system
    of which this can be said.
    """
    release, installed = _release(folder), tuple(_installed(folder))
    # There may be packages of other architectures beside the system's own.
    own = next((each.arch for each in installed if each.name == "dpkg"), None)
    if own is None or "ID" not in release:
        raise UsageError(
            "base.not-a-system",
            f"{folder} is not a base for an image: it has no {STATUS if own is None else _RELEASE}",
            "use a folder with a Debian or Ubuntu system, for example one from mmdebstrap",
        )
    versions = {each.name: each.version for each in installed if each.arch in (own, "all")}
    arch = next((name for name, debians in DEBIAN_ARCHES.items() if debians == own), own)
    if arch not in get_args(Arch):
        raise UsageError(
            "base.unknown-architecture",
            f"{folder} is a system for {arch}, which no recipe supports",
        )
    python = versions.get("python3")
    if python is None or "libc6" not in versions:
        what = "python3" if python is None else "libc6"
        raise UsageError(
            "base.missing-package",
            f"{folder} is not a base for an image: its package {what} is not installed",
            "add the package, for example with mmdebstrap --include=python3,python3-venv,...",
        )
    venv = f"python{'.'.join(python.split('.')[:2])}-venv"
    system = f"{release['ID']} {release.get('VERSION_ID', '')}".strip()
    site = Site(
        schema_=1,
        name=re.sub(r"[^a-z0-9]+", "-", system.lower()).strip("-"),
        summary=f"{release.get('PRETTY_NAME', system)}, the base of an image",
        arch=(cast("Arch", arch),),
        origins=("system", "pip", "build"),
        # GPUs and network are those of the machine that it will run on.
        facts=SiteFacts(os=system, glibc=versions["libc6"]),
    )
    snapshot = Snapshot(
        system=(*_components(versions, components, programs), *_of_vendors(versions, vendors)),
        interpreters=(
            Interpreter(path=PYTHON, version=python, arch=arch, can_make_venv=venv in versions),
        ),
    )
    return BaseImage(folder, site, snapshot)


class _Package(NamedTuple):
    """An installed package, its version that of its upstream."""

    name: str
    version: str
    arch: str


def _text(path: Path) -> str:
    """Return a file's text, nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _release(folder: Path) -> dict[str, str]:
    """Return what os-release(5) says."""
    pairs = (line.partition("=") for line in _text(folder / _RELEASE).splitlines() if "=" in line)
    return {name: value.strip("\"'") for name, _, value in pairs}


def _installed(folder: Path) -> Iterator[_Package]:
    """Yield what dpkg has recorded as installed."""
    for record in _text(folder / STATUS).split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): *(.*)$", record, re.MULTILINE))
        version = _upstream(fields.get("Version", ""))
        if fields.get("Status", "").endswith(" installed") and fits(PlainVersion, version):
            yield _Package(fields.get("Package", ""), version, fields.get("Architecture", ""))


def _upstream(version: str) -> str:
    """Return the upstream part of a Debian version: 1.24.2 of 1:1.24.2-1+deb12u1."""
    without_epoch = version.rpartition(":")[2]
    return re.split(r"[+~]", without_epoch.rpartition("-")[0] or without_epoch)[0]


def _components(
    versions: Mapping[str, str], components: Mapping[str, Component], programs: Mapping[str, str]
) -> Iterator[SystemComponent]:
    for name, component in components.items():
        if component.debian not in versions or name in _OWN or name == "python":
            continue
        locator = programs.get(name, PYTHON if component.python_import else None)
        if locator:
            version = versions[str(component.debian)]
            yield SystemComponent(component=name, version=version, locator=locator)


def _of_vendors(
    versions: Mapping[str, str], vendors: Mapping[str, VendorPackage]
) -> Iterator[SystemComponent]:
    """Yield the components of other packages than Debian's; of several releases the newest."""
    for component, each in vendors.items():
        found = [versions[name] for name in versions if re.fullmatch(each.package, name)]
        if found:
            facts = {"home": each.home}
            version = max(found, key=lambda text: [int(n) for n in re.findall(r"\d+", text)])
            yield SystemComponent(
                component=component, version=version, locator=each.locator, facts=facts
            )
