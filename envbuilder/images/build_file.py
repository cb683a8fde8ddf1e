"""A user's Dockerfile or definition file as the base of an image, as steps for Apptainer.

The sections of a definition file stay as they are; its base is looked up as any base is.

https://apptainer.org/docs/user/latest/definition_files.html
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..errors import UsageError
from ..model.places import REGISTRY
from ..target_tools.files import read_regular
from .build_steps import ONE_STAGE, BuildSteps, Refusals
from .dockerfile_steps import read_dockerfile
from .reference import BuildFile

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
