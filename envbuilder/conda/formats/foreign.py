"""Files of other tools by what is in them: which form one has, and its packages or what it asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...documents.source import Source, read
from ...errors import Place, UsageError
from . import conda_lock, environment_yml, explicit, pixi_lock
from .environment_yml import EnvironmentFile
from .packages import PackageList
from .recipe import selectors

# A lock of several platforms has many lines.
MAX_BYTES = 64 * 1024 * 1024
_Read = Callable[[Source, str], tuple[PackageList, tuple[str, ...]]]


@dataclass(frozen=True)
class ForeignFile:
    """What a file says. ``packages``: of a lock, None of an environment.yml. ``notes``: lines.

    ``form``: what it is, in words.
    """

    form: str
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


def read_foreign(path: Path, called: str, platform: str | None, own: str) -> ForeignFile:
    """Read a file of another tool. Raises DocumentError or UsageError.

    *called*: the file in messages. *platform*: the subdir of which packages are taken; None: of an
    explicit list its own, else *own*, that of this machine.
    """
    source = read(path, MAX_BYTES)._replace(file=called)
    form = _form_of(source)
    if form.read is None:
        asked, notes = environment_yml.read(source, platform or own)
        notes += tuple(selectors(source.text, source.file))
        return ForeignFile(form.what, asked, None, notes)
    packages, notes = form.read(source, platform or own)
    if platform and packages.platform != platform:
        raise UsageError(
            "package-list.other-platform",
            f"the packages are for {packages.platform}, not for {platform}",
            place=Place(source.file),
        )
    return ForeignFile(form.what, environment_yml.pinned(packages), packages, notes)


def _form_of(source: Source) -> _Form:
    """Return the form, by what only it has. Raises UsageError for a file of none of them."""
    for form in _FORMS:
        if all(re.search(mark, source.text, re.MULTILINE) for mark in form.marks):
            return form
    known = ", ".join(form.what for form in _FORMS)
    raise UsageError(
        "package-list.unknown-format",
        f"unknown file format; envbuild reads: {known}",
        place=Place(source.file),
    )
