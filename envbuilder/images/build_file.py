"""A user's Dockerfile or definition file as the base of an image: read, and said for Apptainer.

A Dockerfile's instructions are read by spython, one at a time: over several it forgets where one
ends and in which order they came. What it would leave out or say otherwise is refused by name. The
sections of a definition file stay as they are; what it begins with is looked up as any base is.

https://docs.docker.com/reference/dockerfile/
https://apptainer.org/docs/user/latest/definition_files.html
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from ..errors import UsageError
from ..model.base_image import REGISTRY
from ..target_tools.files import parse_json
from .reference import BuildFile

if TYPE_CHECKING:
    from spython.main.parse.recipe import Recipe

# What is copied in lies there while the base is built, each source under its number.
STAGED = PurePosixPath("/.envbuild-files")
# Where a base leaves the variables that it sets, a line of NAME=VALUE each.
SET = PurePosixPath("/.envbuild-variables")
# A definition file's first keyword, and how --base names the same.
_BOOTSTRAPS: Mapping[str, str] = {
    "docker": REGISTRY,
    "localimage": "",
    "oci": "oci:",
    "oci-archive": "oci-archive:",
    "docker-archive": "docker-archive:",
}
_STAGE = re.compile(r"(?i)bootstrap\s*:")
_ONE_STAGE = "a second stage is not supported in a base"
_SECTION = re.compile(r"^%(\w+)(.*)$")
# Of a Dockerfile: what changes the base, and what says only how an image is started.
_BUILDS = ("FROM", "ARG", "ENV", "RUN", "COPY", "ADD", "WORKDIR")
_STARTS = (
    "CMD",
    "ENTRYPOINT",
    "EXPOSE",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "STOPSIGNAL",
    "VOLUME",
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARCHIVES = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|gz|bz2|xz|zst)$")
_HINT = "build it elsewhere and give the archive to --base: buildah build -t oci-archive:FILE.tar ."


class BuildSteps(NamedTuple):
    """What makes a base of another one.

    ``parent``: what it begins with, as ``--base`` names it, relative to the file. ``sections``: of
    a definition file, all behind its first lines. ``staged``: what is copied to STAGED, in order.
    ``files``: what else of this machine it takes.
    """

    parent: str
    sections: str
    staged: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()


def read_build_file(file: BuildFile) -> BuildSteps:
    """Return what a Dockerfile or a definition file does. Raises UsageError, with its line."""
    try:
        text = file.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            "base.build-file-unreadable", f"cannot read {file.path}: {error}"
        ) from error
    read = _Dockerfile(file.path, text).steps if file.kind == "containerfile" else None
    return read() if read else _definition(file.path, text)


def _refuse(problem_id: str, path: Path, number: int, message: str, *hints: str) -> NoReturn:
    raise UsageError(problem_id, f"{path}:{number}: {message}", *(hints or (_HINT,)))


def _is_list(text: str) -> bool:
    """Whether the words of an instruction are written as a list of JSON, as Docker decides it."""
    try:
        return isinstance(parse_json(text), list)
    except ValueError:
        return False


def _words(path: Path, number: int, text: str) -> list[str]:
    """Return words as a shell parts them."""
    try:
        return shlex.split(text)
    except ValueError as error:
        _refuse("base.malformed-line", path, number, f"cannot parse {text.strip()}: {error}")


def _definition(path: Path, text: str) -> BuildSteps:
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith("%")), len(lines))
    header = dict(_header(path, lines[:start]))
    bootstrap = header.get("bootstrap", "").lower()
    if bootstrap not in _BOOTSTRAPS or not header.get("from"):
        known = ", ".join(_BOOTSTRAPS)
        hint = f"apptainer build --sandbox DIR {path.name}, and --base DIR"
        message = f"Bootstrap must be one of {known}, with From"
        _refuse("base.unsupported-bootstrap", path, 1, message, hint)
    taken = tuple(_taken(path, lines[start:], start + 1))
    parent = _BOOTSTRAPS[bootstrap] + header["from"]
    return BuildSteps(parent, "\n".join([*lines[start:], ""]), files=taken)


def _header(path: Path, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()
        elif key.strip():
            message = f"not a KEYWORD: VALUE line: {line.strip()}"
            _refuse("base.malformed-line", path, number, message)


def _taken(path: Path, lines: Iterable[str], first: int) -> Iterator[Path]:
    """Yield what the sections copy from this machine. Raises UsageError for what is not done."""
    section = ""
    for number, line in enumerate(lines, start=first):
        if match := _SECTION.match(line):
            section = match[1].lower()
            if section == "setup":
                message = "%setup is not supported: it changes the build machine"
                _refuse("base.unsupported-section", path, number, message)
            if section == "files" and match[2].strip():
                message = "%files from another stage is not supported"
                _refuse("base.several-stages", path, number, message)
        elif _STAGE.match(line):
            _refuse("base.several-stages", path, number, _ONE_STAGE)
        elif section == "files" and line.strip() and not line.lstrip().startswith("#"):
            yield from _files_of(path, number, _words(path, number, line)[0])


def _files_of(path: Path, number: int, pattern: str) -> list[Path]:
    """Return what a source names, relative to the file; a pattern names several."""
    here = path.parent
    if ".." in Path(pattern).parts:
        message = f"{pattern} is outside of the folder of the file"
        _refuse("base.source-outside", path, number, message, "use an absolute path")
    wild = any(each in pattern for each in "*?[")
    found = sorted(here.glob(pattern)) if wild and not pattern.startswith("/") else [here / pattern]
    if not found or not all(each.exists() for each in found):
        message = f"cannot find {pattern}, which is copied into the base"
        _refuse("base.source-missing", path, number, message)
    return found


class _Instruction(NamedTuple):
    number: int
    keyword: str
    rest: str


def _instructions(text: str) -> Iterator[_Instruction]:
    """Yield each instruction, its lines joined as Docker joins them."""
    parts: list[str] = []
    begun = 0
    for number, line in enumerate(text.splitlines(), start=1):
        # Also between the lines of an instruction: comments and empty lines are left out.
        if line.lstrip().startswith("#") or (not line.strip()):
            continue
        begun = begun if parts else number
        goes_on = line.rstrip().endswith("\\")
        parts.append(line.rstrip().removesuffix("\\") if goes_on else line)
        if not goes_on:
            yield _instruction(begun, parts)
            parts = []
    if parts:
        yield _instruction(begun, parts)


def _instruction(number: int, parts: list[str]) -> _Instruction:
    keyword, _, rest = "".join(parts).strip().partition(" ")
    return _Instruction(number, keyword.upper(), rest.strip())


class _Dockerfile:
    """Reads one, instruction by instruction: a method for each that builds."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self.parent = ""
        self.post: list[str] = []
        self.names: dict[str, None] = {}
        self.staged: list[Path] = []
        self.said: list[str] = []
        """Each ARG before FROM: its value may be in it."""

    def steps(self) -> BuildSteps:
        """Return what it does. Raises UsageError."""
        if match := re.match(r"(?i)\s*#\s*escape\s*=", self.text):
            message = f"{match[0].strip()} is not supported"
            _refuse("base.unsupported-instruction", self.path, 1, message)
        for each in _instructions(self.text):
            self._read(each)
        if not self.parent:
            _refuse("base.no-parent", self.path, 1, "there is no FROM")
        # Evaluated here, where all that it refers to is set.
        values = [f"""printf '%s=%s\\n' {name} "${{{name}}}" >>{SET}""" for name in self.names]
        post = ["set -e", "cd /", *self.post, *values, f"rm -rf {STAGED}"]
        sections = ["%post -c /bin/bash", *(f"    {line}" for line in post), ""]
        return BuildSteps(REGISTRY + self.parent, "\n".join(sections), staged=tuple(self.staged))

    def _read(self, each: _Instruction) -> None:
        if each.keyword in _STARTS:
            return
        if each.keyword not in _BUILDS:
            self._refuse("base.unsupported-instruction", each, f"{each.keyword} is not supported")
        odd = each.rest.startswith("--") or _is_list(each.rest)
        if each.keyword in ("RUN", "COPY", "ADD") and odd:
            message = f"{each.keyword} {each.rest.split()[0]} is not supported"
            self._refuse("base.unsupported-instruction", each, message)
        if not self.parent and each.keyword not in ("FROM", "ARG"):
            self._refuse("base.no-parent", each, "FROM must come first")
        getattr(self, f"_{each.keyword.lower()}")(each)

    def _from(self, each: _Instruction) -> None:
        if self.parent:
            self._refuse("base.several-stages", each, _ONE_STAGE)
        if each.rest.startswith("--"):
            message = f"FROM {each.rest.split()[0]} is not supported"
            hint = "use --arch for the architecture"
            self._refuse("base.unsupported-instruction", each, message, hint)
        self.parent = (self._parsed(each).fromHeader or "").strip()
        if "$" in self.parent:
            message, hint = f"{self.parent} has no value", "write ARG NAME=VALUE before FROM"
            self._refuse("base.undefined-variable", each, message, hint)

    def _arg(self, each: _Instruction) -> None:
        if "=" not in each.rest:
            hint = "write its value: ARG NAME=VALUE"
            self._refuse("base.undefined-variable", each, f"{each.rest} has no value", hint)
        if self.parent:
            self.post += [f"export {one}" for one in self._parsed(each).install]
        else:
            self.said.append(f"ARG {each.rest}")

    def _env(self, each: _Instruction) -> None:
        for one in self._parsed(each).environ:
            name = one.partition("=")[0]
            if not _VARIABLE.fullmatch(name):
                self._refuse("base.malformed-variable", each, f"{name} is not a variable name")
            self.post.append(f"export {one}")
            self.names[name] = None

    def _run(self, each: _Instruction) -> None:
        if "<<" in each.rest:
            message = "RUN with a here-document is not supported"
            self._refuse("base.unsupported-instruction", each, message)
        # A shell of its own, as Docker starts one: what it sets ends with it.
        self.post.append(f"/bin/sh -c {shlex.quote(each.rest)}")

    def _workdir(self, each: _Instruction) -> None:
        self.post += self._parsed(each).install

    def _copy(self, each: _Instruction) -> None:
        words = _words(self.path, each.number, each.rest)
        *sources, target = words or [""]
        if not sources or "$" in target:
            message = f"{each.keyword} {each.rest} is not supported"
            self._refuse("base.unsupported-instruction", each, message)
        if len(sources) > 1 and not target.endswith("/"):
            message = f"{target} must end with / because it receives several files"
            self._refuse("base.target-not-folder", each, message)
        for source in sources:
            if any(one in source for one in "*?[$") or "://" in source:
                message = f"{each.keyword} {source} is not supported"
                self._refuse("base.unsupported-instruction", each, message)
            path = (self.path.parent / source.lstrip("/")).resolve()
            if not path.is_relative_to(self.path.parent.resolve()):
                message = f"{source} is outside of the folder of the Dockerfile"
                self._refuse("base.source-outside", each, message)
            if not path.exists():
                self._refuse("base.source-missing", each, f"cannot find {source}")
            self.post += _copied(STAGED / str(len(self.staged)), path, target)
            self.staged.append(path)

    def _add(self, each: _Instruction) -> None:
        if any(_ARCHIVES.search(one) for one in each.rest.split()[:-1]):
            message = "ADD with an archive is not supported"
            hint = "use COPY, then RUN tar -xf"
            self._refuse("base.unsupported-instruction", each, message, hint)
        self._copy(each)

    def _parsed(self, each: _Instruction) -> Recipe:
        """Return what spython reads of one instruction."""
        # lazy import: 30 ms, and a base is seldom built
        from spython.logger import bot
        from spython.main.parse.parsers import DockerParser

        bot.level = 0  # it says on standard error what is decided here
        with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as file:
            before = [] if self.parent else self.said
            file.write("\n".join([*before, f"{each.keyword} {each.rest}", ""]))
            file.flush()
            try:
                [recipe] = DockerParser(file.name).recipe.values()
            except Exception as error:  # whatever an odd line leads it to
                message = f"cannot parse {each.keyword} {each.rest}: {error}"
                self._refuse("base.malformed-line", each, message)
        return recipe

    def _refuse(self, problem_id: str, each: _Instruction, message: str, *hints: str) -> NoReturn:
        _refuse(problem_id, self.path, each.number, message, *hints)


def _copied(staged: PurePosixPath, source: Path, target: str) -> Iterator[str]:
    """Yield what puts a staged file, or the contents of a folder, where COPY does."""
    there, named = shlex.quote(target), shlex.quote(source.name)
    if source.is_dir() or target.endswith("/"):
        yield f"mkdir -p {there}"
        yield f"cp -a {staged}/. {there}" if source.is_dir() else f"cp -a {staged} {there}{named}"
    else:
        yield f'mkdir -p "$(dirname {there})"'
        yield f"if [ -d {there} ]; then to={there}/{named}; else to={there}; fi"
        yield f'cp -a {staged} "$to"'
