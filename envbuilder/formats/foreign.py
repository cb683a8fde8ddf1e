"""Files of other tools by what is in them: which form one has, and its packages or what it asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..documents.source import Source, read
from ..errors import Place, UsageError
from . import conda_lock, environment_yml, explicit, pixi_lock, requirements_txt
from .environment_yml import EnvironmentFile
from .packages import PackageList
from .recipe import selectors

# A lock of several platforms has many lines.
MAX_BYTES = 64 * 1024 * 1024
_Read = Callable[[Source, str], tuple[PackageList, tuple[str, ...]]]


@dataclass(frozen=True)
class ForeignFile:
    """What a file says. ``packages``: of a lock, None of an environment.yml. ``notes``: lines.

    ``form``: what it is, in words. ``platform``: the subdir that it is read for.
    """

    form: str
    platform: str
    asked: EnvironmentFile
    packages: PackageList | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Form:
    """A form of files. ``marks``: every one of them is in each such file, and not in the others'.

    ``read``: reads the packages for a platform; None: it names none.
    """

    what: str
    marks: tuple[str, ...]
    read: _Read | None


_FORMS = (
    _Form(
        "explicit list",
        (rf"^{explicit.MARK}[ \t\r]*$",),
        lambda source, _: explicit.read(source),
    ),
    _Form("lock of pixi", ("^environments:", "^packages:"), pixi_lock.read),
    _Form("lock of conda-lock", ("^metadata:", "^package:"), conda_lock.read),
    _Form("conda environment file", ("^dependencies:",), None),
)
_REQUIREMENTS = _Form("requirements file of pip", (), None)


def read_foreign(path: Path, called: str, platform: str | None, own: str) -> ForeignFile:
    """Read a file of another tool. Raises DocumentError or UsageError.

    *called*: the file in messages. *platform*: the subdir of which packages are taken; None: of an
    explicit list its own, else *own*, that of this machine.
    """
    source = read(path, MAX_BYTES)._replace(file=called)
    form = _form_of(source)
    if form.read is not None:
        return _of_lock(form.what, form.read(source, platform or own), source, platform)
    if form is _REQUIREMENTS:
        asked, notes = requirements_txt.read(source)
        return ForeignFile(form.what, platform or own, asked, None, notes)
    platform = platform or environment_yml.platform_of(source) or own
    asked, notes = environment_yml.read(source, platform)
    notes += tuple(selectors(source.text, source.file))
    return ForeignFile(form.what, platform, asked, None, notes)


def _of_lock(
    what: str, read: tuple[PackageList, tuple[str, ...]], source: Source, platform: str | None
) -> ForeignFile:
    packages, notes = read
    if platform and packages.platform != platform:
        raise UsageError(
            "package-list.other-platform",
            f"the packages are for {packages.platform}, not for {platform}",
            place=Place(source.file),
        )
    asked = environment_yml.pinned(packages)
    return ForeignFile(what, packages.platform, asked, packages, notes)


def _form_of(source: Source) -> _Form:
    """Return the form, by what only it has. Raises UsageError for a file of none of them."""
    for form in _FORMS:
        if all(re.search(mark, source.text, re.MULTILINE) for mark in form.marks):
            return form
    if requirements_txt.is_one(source.text):
        return _REQUIREMENTS
    known = ", ".join(form.what for form in (*_FORMS, _REQUIREMENTS))
    raise UsageError(
        "package-list.unknown-format",
        f"unknown file format; envbuild reads: {known}",
        place=Place(source.file),
    )
