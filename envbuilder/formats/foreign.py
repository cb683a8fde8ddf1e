"""Files of other tools by what is in them: which form one has, and its packages or what it asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..documents.source import Source, read
from ..errors import DocumentError, Place, UsageError
from ..knowledge.channels import SUBDIRS
from ..text import shown
from . import (
    conda_lock,
    conda_recipe,
    container_file,
    easyconfig,
    environment_yml,
    explicit,
    listing,
    module_list,
    open_ce,
    pixi_lock,
    project_toml,
    python_lock,
    requirements_txt,
    spack_json,
    spack_yaml,
)
from .environment_yml import EnvironmentFile
from .package_rows import channel_losses
from .packages import PackageList
from .recipe import selectors
from .requirements_txt import Beside

# A lock of several platforms has many lines.
MAX_BYTES = 64 * 1024 * 1024
_ReadLock = Callable[[Source, str], tuple[PackageList, tuple[str, ...]]]
_Read = Callable[[Source, Beside], tuple[EnvironmentFile, tuple[str, ...]]]
# What says for which platform a file is that does not state one.
_CONDA_SPEC = re.compile(r"[\w./:-]+::[\w.-]+")
_PLATFORM = re.compile(
    r"(?:ld_impl|sysroot)_(linux-\w+)|^# platform: (linux-\w+)|_(x86_64|aarch64|ppc64le)\.whl"
    r"|target['\"]?[=:]\s*[\[\"]?(x86_64|aarch64|ppc64le)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class ForeignFile:
    """What a file says. ``packages``: of a lock, None of other files. ``notes``: lines.

    ``form``: what it is, in words. ``platform``: the subdir that it is read for.
    """

    form: str
    platform: str
    asked: EnvironmentFile
    packages: PackageList | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Form:
    """A form of files. ``is_one``: whether a text has it. ``read_lock``: reads one with URLs.

    ``read_for``: reads what depends on the platform.
    """

    what: str
    is_one: Callable[[str], bool]
    read: _Read = requirements_txt.read
    read_lock: _ReadLock | None = None
    read_for: Callable[[Source, str], tuple[EnvironmentFile, tuple[str, ...]]] | None = None


def _marked(*marks: str) -> Callable[[str], bool]:
    """Return whether each mark is in a text."""
    return lambda text: all(re.search(mark, text, re.MULTILINE) for mark in marks)


def _alone(read: Callable[[Source], tuple[EnvironmentFile, tuple[str, ...]]]) -> _Read:
    """Return the reader of a file that includes no others."""
    return lambda source, _: read(source)


_ENVIRONMENT = _Form("conda environment file", _marked("^dependencies:"))
_FORMS = (
    _Form(
        "explicit list",
        _marked(rf"^{explicit.MARK}[ \t\r]*$"),
        read_lock=lambda source, _: explicit.read(source),
    ),
    _Form("lock of pixi", _marked("^environments:", "^packages:"), read_lock=pixi_lock.read),
    _Form("lock of conda-lock", _marked("^metadata:", "^package:"), read_lock=conda_lock.read),
    _Form(
        "list of Spack",
        _marked(r'\A\s*(\[\s*\{|\{\s*"_meta")', r'"arch"\s*:', r'"hash"\s*:'),
        _alone(spack_json.read),
    ),
    _Form("spack.yaml", _marked(r"^spack:\s*(#.*)?$"), _alone(spack_yaml.read)),
    _Form(
        "environment file of Open-CE",
        _marked(r"^(imported_envs|packages)\s*:", r"feedstock\s*:"),
        read_for=open_ce.read,
    ),
    _ENVIRONMENT,
    _Form(
        "recipe of conda-build",
        _marked(r"^package:\s*$", r"^(build|requirements|outputs):\s*$"),
        read_for=conda_recipe.read,
    ),
    _Form(
        "pylock.toml",
        _marked("^lock-version", r"^\[\[packages\]\]"),
        _alone(python_lock.read_pylock),
    ),
    _Form("uv.lock", _marked("^version =", r"^\[\[package\]\]"), _alone(python_lock.read_uv)),
    _Form(
        "pixi.toml",
        _marked(r"^\[(?:workspace|project)\][^\n]*\n(?:(?!\[)[^\n]*\n)*?channels\s*="),
        _alone(project_toml.read_pixi),
    ),
    _Form(
        "pyproject.toml",
        _marked(r"^\[(project|build-system|tool\.(conda-lock|flit|pdm|pixi|poetry|uv))\b"),
        _alone(project_toml.read_project),
    ),
    _Form(
        "easyconfig",
        _marked(r"^name\s*=", r"^version\s*=", r"^toolchain\s*="),
        _alone(easyconfig.read),
    ),
    _Form("definition file", container_file.is_definition, container_file.read),
    _Form("Dockerfile", container_file.is_dockerfile, container_file.read),
    _Form("list of conda", listing.is_conda, _alone(listing.read)),
    _Form("list of pip", listing.is_pip, _alone(listing.read)),
    _Form("requirements file of pip", requirements_txt.is_one),
    _Form("list of modules", module_list.is_one, _alone(module_list.read)),
)


def read_foreign(path: Path, called: str, platform: str | None, own: str) -> ForeignFile:
    """Read a file of another tool. Raises DocumentError or UsageError.

    *called*: the file in messages. *platform*: the subdir of which packages are taken; None: of an
    explicit list its own, else *own*, that of this machine.
    """
    source = read(path, MAX_BYTES)._replace(file=called)
    return read_text(source, platform, own, partial(_beside, path.parent, Path(called).parent))


def read_text(source: Source, platform: str | None, own: str, beside: Beside) -> ForeignFile:
    """Read the text of such a file. *beside*: reads the files that it includes."""
    form = _form_of(source)
    if form.read_lock is not None:
        return _of_lock(form.what, form.read_lock(source, platform or own), source, platform)
    if form is _ENVIRONMENT:
        platform = platform or environment_yml.platform_of(source) or _platform_in(source) or own
        asked, notes = environment_yml.read(source, platform)
        notes += tuple(selectors(source.text, source.file))
    else:
        platform = platform or _platform_in(source) or own
        read_for = form.read_for
        asked, notes = read_for(source, platform) if read_for else form.read(source, beside)
    asked, further = _with_included(asked, beside)
    return ForeignFile(form.what, platform, asked, None, notes + further)


def _beside(folder: Path, called: Path, name: str) -> Source | None:
    try:
        return read(folder / name)._replace(file=str(called / name))
    except (UsageError, DocumentError):
        return None


def _platform_in(source: Source) -> str | None:
    """Return the one platform that a file names in passing, or in its own name."""
    words = {word for found in _PLATFORM.findall(source.text) for word in found if word}
    words |= {"aarch64"} if "craype-arm" in source.text else set()
    words |= {arch for arch in SUBDIRS if arch in Path(source.file).name}
    found = {SUBDIRS.get(word, word) for word in words}
    return found.pop() if len(found) == 1 else None


def _with_included(
    asked: EnvironmentFile, beside: Beside
) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what a file asks for with the requirements files that its lines for pip include."""
    pip: dict[str, Place] = {}
    notes: tuple[str, ...] = ()
    for line in asked.pip:
        place = asked.places.get(line, Place(""))
        found = requirements_txt.included(line, beside)
        if found is None:
            pip.setdefault(line, place)
            continue
        pip |= {each: found[0].places[each] for each in found[0].pip if each not in pip}
        notes += found[1]
    return replace(asked, pip=tuple(pip), places={**asked.places, **pip}), notes


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


def losses_of_lock(packages: PackageList) -> tuple[str, ...]:
    """Return what a recipe lacks of a lock: hashes, the channel of a package, unused indexes."""
    losses: list[tuple[Place, str]] = []
    conda = sorted(packages.conda, key=lambda package: package.place)
    hashed = [package.place for package in conda if package.sha256 or package.md5]
    hashed += [package.place for package in packages.pip if package.sha256]
    if hashed:
        text = "the hashes are left out; envbuild lock --from FILE compares them"
        losses.append((min(hashed), text))
    first = packages.channels[0].rstrip("/") if packages.channels else ""
    losses += channel_losses(((each.channel, each.name, each.place) for each in conda), first)
    lines = [f"{place}: {text}" for place, text in losses]
    if not packages.pip:
        lines += [
            f"the index {shown(index)} is left out: no package is from it"
            for index in packages.indexes
        ]
    return tuple(lines)


def _form_of(source: Source) -> _Form:
    """Return the form, by what only it has. Raises UsageError for a file of none of them."""
    for form in _FORMS:
        if form.is_one(source.text):
            return form
    known = ", ".join(form.what for form in _FORMS)
    number, line = requirements_txt.first_other(source.text) or (1, "")
    hints = [f"envbuild reads: {known}"]
    if _CONDA_SPEC.match(line):
        hints.insert(0, "write specs of conda under dependencies of an environment.yml")
    raise UsageError(
        "package-list.unknown-format",
        f"unknown file format; the first line that does not fit is {shown(line) or 'empty'}",
        *hints,
        place=Place(source.file, number, 1),
    )
