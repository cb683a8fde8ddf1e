"""Bases: what is fetched, and what a user's Dockerfile or definition file makes of that.

buildah or podman builds a Dockerfile, if one is on PATH; otherwise Apptainer builds its steps. The
result is cached under the hash of its inputs: the file, everything that it copies, and the base
that it begins with. Whatever the steps download is as of that day.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ..errors import UsageError
from ..model.base_image import BaseSource
from ..model.places import REGISTRY
from ..target_tools.files import canonical_json, read_regular, sha256_of
from .apptainer import find_builder
from .base import RECORDS
from .build_steps import ONE_STAGE, SET, STAGED, BuildSteps, Refusals
from .container_engine import ContainerEngine, context_paths, find_engine
from .dockerfile_steps import declared_arguments, prologue, read_dockerfile, read_parents, section
from .obtain import (
    ROOT,
    SETTINGS,
    BaseRequest,
    Say,
    UnpackedBase,
    bases_folder,
    fetch_base,
    fetch_layout,
    find_digest,
    make_once,
    pin_image,
    settings_of,
    unpack_layout,
    variables_of,
)
from .reference import BuildFile, parse_base, parse_registry_image

# The sections of a definition file stay as they are; its base is looked up as any base is.
# Source: https://apptainer.org/docs/user/latest/definition_files.html

# The keyword Bootstrap of a definition file, and how --base names the same.
_BOOTSTRAPS: Mapping[str, str] = {
    "docker": REGISTRY,
    "localimage": "",
    "oci": "oci:",
    "oci-archive": "oci-archive:",
    "docker-archive": "docker-archive:",
}
_STAGE = re.compile(r"(?i)bootstrap\s*:")
_SECTION = re.compile(r"^%(\w+)(.*)$")


def read_text(file: BuildFile) -> str:
    """Return the text of a build file. Raises UsageError if it cannot be read."""
    try:
        text = read_regular(file.path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "base.build-file-unreadable", f"cannot read {file.path}: {error}"
        ) from error
    before, nul, _ = text.partition("\0")
    if nul:
        line = before.count("\n") + 1
        raise UsageError(
            "base.build-file-unreadable", f"cannot read {file.path}: line {line} has a NUL byte"
        )
    return text


def read_build_file(file: BuildFile) -> BuildSteps:
    """Return the steps of a Dockerfile or a definition file.

    Raises DocumentError with every line that is refused, UsageError for an unreadable file.
    """
    text = read_text(file)
    if file.kind == "containerfile":
        return read_dockerfile(file, text)
    return _definition(file.path, text)


def _definition(path: Path, text: str) -> BuildSteps:
    lines, refusals = text.splitlines(), Refusals(path)
    start = next((at for at, line in enumerate(lines) if line.startswith("%")), len(lines))
    header = dict(_header(refusals, lines[:start]))
    bootstrap = header.get("bootstrap", "").lower()
    if bootstrap not in _BOOTSTRAPS or not header.get("from"):
        known = ", ".join(_BOOTSTRAPS)
        hint = f"apptainer build --sandbox DIR {path.name}, and --base DIR"
        message = f"Bootstrap must be one of {known}, with From"
        refusals.add("base.unsupported-bootstrap", 1, message, hint)
    copied = tuple(_copied(refusals, lines[start:], start + 1))
    refusals.check()
    parent = _BOOTSTRAPS[bootstrap] + header["from"]
    return BuildSteps(parent, "\n".join([*lines[start:], ""]), files=copied)


def _header(refusals: Refusals, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()
        elif key.strip():
            message = f"not a KEYWORD: VALUE line: {line.strip()}"
            refusals.add("base.malformed-line", number, message)


def _copied(refusals: Refusals, lines: Iterable[str], start: int) -> Iterator[Path]:
    """Yield the files of this machine that the sections copy; add the lines that are refused."""
    section = ""
    for number, line in enumerate(lines, start=start):
        if match := _SECTION.match(line):
            section = match[1].lower()
            if section == "setup":
                message = "%setup is not supported: it changes the build machine"
                refusals.add("base.unsupported-section", number, message)
            if section == "files" and match[2].strip():
                message = "%files from another stage is not supported"
                refusals.add("base.several-stages", number, message)
        elif _STAGE.match(line):
            refusals.add("base.several-stages", number, f"Bootstrap: {ONE_STAGE}")
        elif section == "files" and line.strip() and not line.lstrip().startswith("#"):
            try:
                yield from _files_of(refusals, number, shlex.split(line)[0])
            except ValueError as error:
                message = f"cannot parse {line.strip()}: {error}"
                refusals.add("base.malformed-line", number, message)


def _files_of(refusals: Refusals, number: int, pattern: str) -> list[Path]:
    """Return what a source names, relative to the file; a pattern names several."""
    folder = refusals.path.parent
    if ".." in Path(pattern).parts:
        message = f"{pattern} is outside of the folder of the file"
        refusals.add("base.source-outside", number, message, "use an absolute path")
        return []
    wild = any(character in pattern for character in "*?[")
    paths = (
        sorted(folder.glob(pattern)) if wild and not pattern.startswith("/") else [folder / pattern]
    )
    if not paths or not all(path.exists() for path in paths):
        message = f"cannot find {pattern}, which is copied into the base"
        refusals.add("base.source-missing", number, message)
    return paths


# Beside the definition file: the base, and what is copied. No name of a user's is like them.
_DEFINITION, _BASE, _STAGED = ".envbuild.def", ".envbuild-base", ".envbuild-files"
# Scripts that a container runs as it starts, in the order of their names. An image that begins with
# the base writes the second one anew.
_SCRIPTS = Path(".singularity.d/env")
_OF_BASE, _OF_IMAGE = "50-base.sh", "90-environment.sh"


def obtain_base(request: BaseRequest, say: Say, warn: Say) -> UnpackedBase:
    """Return a base, fetched or built and unpacked where it is not kept yet; may use the network.

    *warn*: receives a message about build arguments that a Dockerfile does not declare.

    Raises what ``fetch_base`` does; DocumentError for a file with lines that are not supported,
    BuildError for one whose steps fail, with a log.
    """
    if not isinstance(request.image, BuildFile):
        return fetch_base(request.image, request, say)
    file = request.image
    if file.kind == "containerfile":
        text = read_text(file)
        unused = sorted({name for name, _ in file.arguments} - declared_arguments(text))
        if unused:
            warn(f"--build-arg {', '.join(unused)}: {file} does not use it")
        engine, reason = find_engine(request.host, text)
        if engine:
            return _build_by_engine(file, text, engine, request, say)
        if reason:
            say(f"{reason}; Apptainer builds {file}")
    return _build_by_apptainer(file, request, say)


def _build_by_apptainer(file: BuildFile, request: BaseRequest, say: Say) -> UnpackedBase:
    steps = read_build_file(file)
    for note in steps.notes:
        say(note)
    begun = _parent(file, steps, request, say)
    builder = find_builder(request.host)
    name = file.name
    if file.kind == "containerfile":
        lines = [*prologue(settings_of(begun.folder.parent)), *steps.sections.splitlines()]
        steps = steps._replace(sections=section(lines))
        name = f"{file.name} ({Path(builder.program).name})"
    key = _key(steps, begun.source.sha256)
    kept = bases_folder(request.host) / f"{key}-{request.arch}"

    def make(made: Path, scratch: Path) -> None:
        definition = _write(file, steps, begun.folder, scratch / "build")
        log = kept.with_name(f"{kept.name}.log")
        log.unlink(missing_ok=True)
        builder.build_root(definition, made / ROOT, log, None)
        log.unlink()
        _settle(made, begun.source.variables)

    what = f"building {name} on {begun.source.name} for {request.arch}, once"
    make_once(kept, what, make, say)
    return UnpackedBase(kept / ROOT, BaseSource(name, key, variables_of(kept)))


def _build_by_engine(
    file: BuildFile, text: str, engine: ContainerEngine, request: BaseRequest, say: Say
) -> UnpackedBase:
    """Build a Dockerfile on pinned images, which skopeo fetches as it does every base."""
    caches = bases_folder(request.host)
    names = read_parents(file, text)
    images = {name: parse_registry_image(name) for name in names.values()}
    requests = {name: replace(request, image=image) for name, image in images.items()}
    origins = {name: find_digest(images[name], requests[name], caches, say) for name in images}
    digests = {name: digest for name, (digest, _) in origins.items()}
    copied = [list(_content(path)) for path in context_paths(file, text)]
    key = _sha256([engine.name, text, list(file.arguments), digests, copied])
    kept = caches / f"{key}-{request.arch}"
    name = f"{file.name} ({engine.name})"

    def make(made: Path, scratch: Path) -> None:
        layouts = {}
        for parent, image in images.items():
            digest, place = origins[parent]
            # The engine keeps an image under the path of its layout.
            folder = scratch / f"sha256-{digest}-{request.arch}"
            folder.mkdir(exist_ok=True)
            pinned = pin_image(image, digest)
            layouts[parent] = fetch_layout(pinned, place, requests[parent], folder)
        # buildah 1.28 compares the words after FROM before it replaces variables.
        layouts |= {spelling: layouts[parent] for spelling, parent in names.items()}
        log = kept.with_name(f"{kept.name}.log")
        log.unlink(missing_ok=True)
        layout = scratch / "built"
        engine.build(file, layouts, layout, log, request.arch)
        unpack_layout(layout, made, request, log)

    on = ", ".join(names.values()) or "nothing"
    make_once(kept, f"building {name} on {on} for {request.arch}, once", make, say)
    return UnpackedBase(kept / ROOT, BaseSource(name, key, variables_of(kept)))


def _parent(file: BuildFile, steps: BuildSteps, request: BaseRequest, say: Say) -> UnpackedBase:
    image = parse_base(steps.parent, file.path.parent)
    if isinstance(image, BuildFile):
        raise UsageError(
            "base.parent-not-an-image",
            f"{file.path} begins with {image.name}, which is not an image",
        )
    if not isinstance(image, Path):
        return fetch_base(image, replace(request, image=image), say)
    if not image.is_dir():
        raise UsageError(
            "base.parent-missing", f"{file.path} begins with {image}, which does not exist"
        )
    # A folder has no digest; that of its packages' records.
    records = [sha256_of(image / each) for each in RECORDS if (image / each).is_file()]
    return UnpackedBase(image, BaseSource(image.name, _sha256(records)))


def _key(steps: BuildSteps, parent: str) -> str:
    copied = [[list(_content(path)) for path in each] for each in (steps.staged, steps.files)]
    return _sha256([parent, steps.sections, copied])


def _sha256(value: object) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def _content(path: Path) -> Iterator[list[object]]:
    """Yield what is copied of a file or folder: names, modes and hashes."""
    for each in [path, *sorted(path.rglob("*"))] if path.is_dir() else [path]:
        name = each.relative_to(path).as_posix()
        if each.is_symlink() and each != path:
            yield [name, str(each.readlink())]
        elif each.is_file():
            yield [name, each.stat().st_mode & 0o777, sha256_of(each)]
        else:
            yield [name]


def _write(file: BuildFile, steps: BuildSteps, base: Path, folder: Path) -> Path:
    """Write what Apptainer builds from into a new folder; return the definition file."""
    (folder / _STAGED).mkdir(parents=True)
    (folder / _BASE).symlink_to(base)
    lines = ["Bootstrap: localimage", f"From: {_BASE}", ""]
    if steps.staged:
        lines.append("%files")
    for number, path in enumerate(steps.staged):
        (folder / _STAGED / str(number)).symlink_to(path)
        lines.append(f"    {_STAGED}/{number} {STAGED}/{number}")
    here = file.folder.resolve()
    inside = (each.resolve() for each in steps.files if each.resolve().is_relative_to(here))
    for first in {each.relative_to(here).parts[0] for each in inside}:
        (folder / first).symlink_to(here / first)
    definition = folder / _DEFINITION
    definition.write_text("\n".join([*lines, steps.sections]), encoding="utf-8")
    return definition


def _settle(made: Path, inherited: Iterable[str]) -> None:
    """Have the variables of a base that was built be those of every image that begins with it."""
    root = made / ROOT
    scripts, file = root / _SCRIPTS, root / SET.relative_to("/")
    own = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    if own:
        exports = (_export(each) for each in own)
        scripts.mkdir(parents=True, exist_ok=True)
        (scripts / _OF_BASE).write_text("\n".join(["#!/bin/sh", *exports, ""]), encoding="utf-8")
    elif (scripts / _OF_IMAGE).exists():
        (scripts / _OF_IMAGE).rename(scripts / _OF_BASE)
        # It stays: Apptainer has a link to it.
        (scripts / _OF_IMAGE).write_text("#!/bin/sh\n", encoding="utf-8")
    values = dict(each.split("=", 1) for each in (*inherited, *own))
    said = {"Env": [f"{name}={value}" for name, value in values.items()]}
    (made / SETTINGS).write_text(json.dumps(said), encoding="utf-8")


def _export(pair: str) -> str:
    name, _, value = pair.partition("=")
    return f"export {name}={shlex.quote(value)}"
