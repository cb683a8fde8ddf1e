"""Where the content of a file can be had again: the package that brought it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import EnvbuildError
from ..model.mending import Package, Wanted
from ..target_tools.conda_packages import placed
from ..target_tools.files import file_name, open_regular, parse_json
from ..target_tools.names import normalize
from .contents import CondaFile, Member, UnfitError, Wheel, unpacked_file
from .written import written

# Of one release so many wheels are looked into: there is one for each Python and machine.
_MOST_WHEELS = 4
_LARGEST_RECORD = 64 * 1024 * 1024
_BYTECODE = (".pyc", ".pyo")

Offer = tuple[str, str | None]
"""URL and sha256 of a file; the latter is None where nobody says it."""


@dataclass(frozen=True)
class Places:
    """Where packages lie, as ``commands`` knows it.

    ``prefix``: which is mended. ``wheels``: of a distribution by its name, what is offered.
    ``fetch``: returns where a file of an offer lies. ``unpack``: returns the folder that a conda
    package was unpacked into. Both raise an EnvbuildError.
    """

    prefix: Path
    wheels: Callable[[str], Sequence[Offer]]
    fetch: Callable[[str, str | None], Path]
    unpack: Callable[[Path], Path]


@dataclass(frozen=True)
class Sources:
    """Finds files in packages; each package is looked for once, whatever comes of it."""

    places: Places
    _opened: dict[Package, list[Wheel] | UnfitError] = field(default_factory=dict)
    _conda: dict[Package, Mapping[str, Any]] = field(default_factory=dict)
    _folders: dict[Package, list[Path] | UnfitError] = field(default_factory=dict)

    def find(self, wanted: Wanted) -> Member:
        """Return what a file has to hold. Raises UnfitError where it cannot be had."""
        if wanted.package is None and wanted.path.endswith(_BYTECODE):
            raise UnfitError("it is bytecode, which no package holds: Python compiles it")
        if wanted.package is None:
            raise UnfitError("no package that is there recorded it")
        if wanted.package.kind == "conda package":
            return self._in_conda_package(wanted, wanted.package)
        return written(wanted, wanted.package, self.places.prefix) or self._in_wheel(
            wanted, wanted.package
        )

    def _in_wheel(self, wanted: Wanted, package: Package) -> Member:
        if package not in self._opened:
            self._opened[package] = _kept(lambda: [*self._wheels(package)])
        wheels: list[Wheel] = _given(self._opened[package])
        why = UnfitError(f"no wheel of {package} is to be had")
        for each in wheels:
            try:
                return each.find(wanted.path, wanted.digest)
            except UnfitError as error:
                why = error
        raise why

    def _wheels(self, package: Package) -> Iterator[Wheel]:
        """Yield the wheels of a release that fit its tags, those that can be opened."""
        offers = [each for each in self.places.wheels(package.name) if _is_of(each[0], package)]
        if not offers:
            raise UnfitError(f"no wheel of {package} is to be had where pip looks for them")
        why: UnfitError | None = None
        opened = 0
        for url, sha256 in offers[:_MOST_WHEELS]:
            try:
                yield Wheel(self.places.fetch(url, sha256))
                opened += 1
            except UnfitError as error:
                why = error
            except EnvbuildError as error:
                why = UnfitError(str(error))
        if not opened and why:
            raise why

    def _in_conda_package(self, wanted: Wanted, package: Package) -> Member:
        record = self._record(package)
        entry = record["files"].get(wanted.path)
        if entry is None:
            raise UnfitError("its package does not say what it was")
        file = CondaFile.of(entry)
        if package not in self._folders:
            self._folders[package] = []
        why = UnfitError(f"{package} is not to be had")
        for folder in self._unpacked(package, record["said"]):
            try:
                return unpacked_file(folder, file, self.places.prefix)
            except UnfitError as error:
                why = error
        raise why

    def _record(self, package: Package) -> Mapping[str, Any]:
        """Return what conda recorded of a package, and its files by their paths."""
        if package not in self._conda:
            try:
                with open_regular(package.record) as stream:
                    said = parse_json(stream.read(_LARGEST_RECORD).decode("utf-8", "replace"))
                prefix = str(self.places.prefix)
                files = {os.path.normpath(f"{prefix}/{name}"): each for name, each in placed(said)}
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise UnfitError(f"{package.record} cannot be read") from error
            self._conda[package] = {"said": said, "files": files}
        return self._conda[package]

    def _unpacked(self, package: Package, said: Mapping[str, Any]) -> Iterator[Path]:
        """Yield folders that hold a conda package: conda's own first, then one fetched by hash."""
        folder = said.get("extracted_package_dir")
        if isinstance(folder, str) and folder and Path(folder).is_dir():
            yield Path(folder)
        known = self._folders[package]
        if known == []:
            known = self._folders[package] = _kept(lambda: [self._fetched(package, said)])
        yield from _given(known)

    def _fetched(self, package: Package, said: Mapping[str, Any]) -> Path:
        url, sha256 = said.get("url"), said.get("sha256")
        if not (isinstance(url, str) and isinstance(sha256, str) and url and sha256):
            raise UnfitError(f"conda's record of {package} does not say its address and sha256")
        archive = said.get("package_tarball_full_path")
        if isinstance(archive, str) and Path(archive).is_file():
            with suppress(EnvbuildError):
                return self.places.unpack(self.places.fetch(Path(archive).as_uri(), sha256))
        try:
            return self.places.unpack(self.places.fetch(url, sha256))
        except EnvbuildError as error:
            raise UnfitError(str(error)) from error


def _kept(look: Callable[[], list[Any]]) -> list[Any] | UnfitError:
    try:
        return look()
    except UnfitError as error:
        return error
    except EnvbuildError as error:
        return UnfitError(str(error))


def _given(found: list[Any] | UnfitError) -> list[Any]:
    if isinstance(found, UnfitError):
        raise found
    return found


def _is_of(url: str, package: Package) -> bool:
    """Whether a file is a wheel of a release, for what its WHEEL says, if that is known."""
    # lazy import: few need it
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename
    from packaging.version import InvalidVersion, Version

    try:
        name, version, _, tags = parse_wheel_filename(file_name(url))
        same = normalize(name) == normalize(package.name) and version == Version(package.version)
    except (InvalidWheelFilename, InvalidVersion):
        return False
    return same and (not package.tags or bool({str(each) for each in tags} & {*package.tags}))
