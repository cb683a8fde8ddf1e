"""Dockerfiles and definition files of Apptainer: what pip and conda install in them.

https://docs.docker.com/reference/dockerfile and https://apptainer.org/docs/user/main/definition_files.html.
Nothing is executed: arguments have their defaults, and every other command is noted with its line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..documents.source import Source
from ..errors import Place
from ..text import shown
from . import environment_yml
from .environment_yml import EnvironmentFile
from .packages import DEFAULTS
from .reading import Reading
from .requirements_txt import Beside

_INSTRUCTION = re.compile(r"([A-Za-z]+)\s+(.*)", re.DOTALL)
_RUN_OPTION = re.compile(r"--[a-z]+=\S+\s+")
_KEYWORD = re.compile(r"(?:then|else|do|\{|\(|sudo(?:\s+-\w+)*)\s+")
_SECTION = re.compile(r"%(\w+)")
_HEADER = re.compile(r"(bootstrap|from)\s*:\s*(\S+)\s*", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_PAIR = re.compile(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)")
_HERE = re.compile(r"<<-?[\"']?(\w+)[\"']?")
# A command of the shell, up to the next separator outside of quotes.
_COMMAND = re.compile(
    r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^;&|"'\\]|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|["'\\])+""",
    re.DOTALL,
)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(\$\([^)]*\)|\"[^\"]*\"|'[^']*'|\S*)\s+")
_NESTED = re.compile(r"(?:ba)?sh\s+-l?c\s+(['\"])(.*)\1", re.DOTALL)
_PIP = re.compile(
    r"(?:\S*python[\d.]*\s+-m\s+|uv\s+)?(?:\S*/)?pip[\d.]*\s+install\s+(.*)", re.DOTALL
)
_CONDA = re.compile(r"(?:\S*/)?(?:conda|mamba|micromamba)\s+(?:install|create)\s+(.*)", re.DOTALL)
_CONDA_FILE = re.compile(
    r"(?:\S*/)?(?:conda|mamba|micromamba)\s+env\s+(?:create|update)\s.*?(?:-f|--file)[\s=](\S+).*",
    re.DOTALL,
)
_RUN_IN = re.compile(r"(?:\S*/)?conda\s+run\s+(?:-[np]|--name|--prefix)\s+(\S+)\s+(.*)", re.DOTALL)
_SYSTEM = re.compile(r"(?:apt-get|apt|yum|dnf|zypper|apk)\s.*?\b(?:install|add)\s+(.*)", re.DOTALL)
# Options of pip that say what to install from where.
_OF_PIP = frozenset(
    {"-f", "--find-links", "-i", "--index-url", "--extra-index-url", "-e", "--editable"}
)
_REQUIREMENTS = frozenset({"-r", "--requirement"})
_CHANNEL = frozenset({"-c", "--channel"})
_WITH_VALUE = (
    _OF_PIP | _REQUIREMENTS | _CHANNEL | {"-n", "--name", "-p", "--prefix", "--file", "-t"}
)
# Options that change nothing of what is installed.
_QUIET = frozenset(
    {"-y", "--yes", "-q", "--quiet", "-v", "--verbose", "--no-cache-dir", "--no-cache"}
)
# Installers whose conda has another configuration than that of Anaconda and Miniconda.
_FORGE = re.compile(r"miniforge|mamba", re.IGNORECASE)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(\[[\w,.-]*\])?([<>=!~].*)?")
# Instructions of the image, which install nothing, and sections that describe it.
_OF_THE_IMAGE = frozenset({"maintainer", "label", "cmd", "expose", "workdir", "user"})
_ABOUT = frozenset({"labels", "help"})


@dataclass(frozen=True)
class _Container:
    """What is gathered from a container file. ``copied``: names of files by their targets.

    ``conda``: each installation by conda with its own channels.
    """

    reading: Reading
    beside: Beside
    variables: dict[str, str] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    specs: dict[str, Place] = field(default_factory=dict)
    pip: dict[str, Place] = field(default_factory=dict)
    channels: dict[str, Place] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    conda: list[tuple[Place, list[str]]] = field(default_factory=list)


def read(source: Source, beside: Beside) -> tuple[EnvironmentFile, tuple[str, ...]]:
    """Return what pip and conda install, and a note for each other command."""
    container = _Container(Reading("a Dockerfile or a definition file"), beside)
    if is_definition(source.text):
        _read_definition(container, source)
    else:
        _read_dockerfile(container, source)
    for place, channels in container.conda if len(container.conda) > 1 else ():
        words = f"; its channels {', '.join(channels)} are of all packages" if channels else ""
        container.reading.note(place, f"this command of conda is solved with the others{words}")
    _add_defaults(container, source.text)
    container.reading.check()
    return EnvironmentFile(
        channels=tuple(container.channels),
        specs=tuple(container.specs),
        pip=tuple(container.pip),
        variables=tuple(container.flags.items()),
        only_pip=not container.specs,
        places={**container.specs, **container.pip},
    ), tuple(container.reading.notes)


def _add_defaults(container: _Container, text: str) -> None:
    """Add conda's default channels behind those of ``conda install -c``, which adds to them."""
    place = next((place for place, channels in container.conda if channels), None)
    if place is None or re.search(r"--override-channels|nodefaults", text):
        return
    if _FORGE.search(text):
        container.reading.note(place, "the channels of conda's configuration are left out")
    elif DEFAULTS not in container.channels:
        container.channels[DEFAULTS] = place
        container.reading.note(place, f"conda also uses its default, {DEFAULTS}: added as the last")


def is_dockerfile(text: str) -> bool:
    """Return whether a text has the instruction FROM, and is no definition file."""
    found = re.search(r"^FROM\s+\S+", text, re.MULTILINE | re.IGNORECASE)
    return found is not None and not is_definition(text)


def is_definition(text: str) -> bool:
    """Return whether a text has the header of a definition file."""
    return re.search(r"^bootstrap\s*:", text, re.MULTILINE | re.IGNORECASE) is not None


def _read_dockerfile(container: _Container, source: Source) -> None:
    for number, text in _logical_lines(source.text):
        found = _INSTRUCTION.fullmatch(text)
        place = Place(source.file, number, 1)
        name, rest = (found[1].lower(), found[2].strip()) if found else ("", text)
        if name == "run":
            line = number + text[: text.index(rest)].count("\n")
            _commands(container, *_without_options(container, rest, place._replace(line=line)))
        elif name in ("arg", "env"):
            _set(container, name, rest, place)
        elif name == "from":
            image = _substituted(container, rest.split()[0])
            container.reading.note(place, f"the base image {shown(image)} is left out: use --base")
        elif name not in _OF_THE_IMAGE:
            if name in ("copy", "add"):
                _copy(container, rest)
            container.reading.note(place, f"{_short(text)} is left out")


def _without_options(container: _Container, text: str, place: Place) -> tuple[str, Place]:
    """Return the commands of RUN behind its options, and their place; note the options."""
    while found := _RUN_OPTION.match(text):
        container.reading.note(place, f"{shown(found[0].strip())} is left out")
        place = place._replace(line=place.line + found[0].count("\n"))
        text = text[found.end() :]
    return text, place


def _set(container: _Container, name: str, text: str, place: Place) -> None:
    """Set variables: KEY=VALUE ..., KEY VALUE, or KEY alone."""
    pairs = _PAIR.findall(text) or [text.partition(" ")[::2]]
    for key, value in pairs:
        if value.strip():
            container.variables[key] = _substituted(container, value.strip().strip("\"'"))
        container.reading.note(place, f"{name.upper()} {shown(key)} has the value of the file")


def _copy(container: _Container, text: str) -> None:
    """Keep which file of the folder is where in the image."""
    words = [word for word in text.split() if not word.startswith("--")]
    if "--from" in text or not words:
        return
    names, target = (words[:-1], words[-1]) if len(words) > 1 else (words, words[0])
    for name in names:
        last = name.rpartition("/")[2]
        container.copied[target.rstrip("/")] = name
        container.copied[f"{target.rstrip('/')}/{last}"] = name
        container.copied[last] = name


def _read_definition(container: _Container, source: Source) -> None:
    section = ""
    for number, text in _logical_lines(source.text):
        place = Place(source.file, number, 1)
        found = _SECTION.match(text)
        header = _HEADER.fullmatch(text)
        if found:
            section = found[1].lower()
        elif section == "post":
            _commands(container, text, place)
        elif header and not section:
            container.reading.note(place, f"{shown(text)} is left out: use --base")
        elif section not in _ABOUT:
            if section == "files":
                _copy(container, text)
            container.reading.note(place, f"{_short(text)} is left out")


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line; a backslash joins it with the next one.

    A line break stays in the text for each joined line, also for comments between them. The lines
    of a here-document follow their command as further ones.
    """
    begin, end, parts = 0, "", list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if end:
            parts.append("" if stripped == end else f"; {stripped}")
            if stripped == end:
                yield begin, "\n".join(parts)
                end, parts = "", []
        elif stripped.startswith("#") or not stripped:
            parts += [""] if parts else []
        else:
            begin = begin if parts else number
            parts.append(stripped.removesuffix("\\").strip())
            here = _HERE.search(stripped)
            if here:
                end = here[1]
            elif not stripped.endswith("\\"):
                yield begin, "\n".join(parts)
                parts = []
    if parts:
        yield begin, "\n".join(parts)


def _substituted(container: _Container, text: str) -> str:
    """Return a text with the variables that have a value."""

    def value(found: re.Match[str]) -> str:
        return container.variables.get(found[1] or found[3], found[2] or found[0])

    return _VARIABLE.sub(value, text)


def _commands(container: _Container, text: str, begin: Place) -> None:
    """Read the commands of a line of the shell."""
    for found in _COMMAND.finditer(text):
        command = found[0].strip()
        if command:
            line = begin.line + text.count("\n", 0, found.start() + found[0].index(command))
            _command(container, command, begin._replace(line=line))


def _command(container: _Container, command: str, place: Place) -> None:
    """Read one command: an installation by pip or conda; note every other one."""
    keyword = _KEYWORD.match(command)
    if keyword:
        line = place.line + keyword[0].count("\n")
        _command(container, command[keyword.end() :], place._replace(line=line))
    elif assigned := _ASSIGNED.match(command):
        rest = command[assigned.end() :]
        _command(container, rest, place._replace(line=place.line + assigned[0].count("\n")))
        _flag(container, assigned[1], assigned[2], place)
    elif nested := _NESTED.fullmatch(command):
        _commands(container, nested[2], place)
    elif run := _RUN_IN.fullmatch(command):
        if run[1] == "base":
            container.reading.note(place, f"{_short(command)} is of the environment base")
        _command(container, run[2], place)
    else:
        _installation(container, command, place)


def _flag(container: _Container, name: str, value: str, place: Place) -> None:
    """Keep a variable of an installed package, such as HOROVOD_WITH_MPI; note every other one."""
    packages = {re.split(r"[\s=<>!~\[]", line)[0].upper() for line in container.pip}
    if name.partition("_")[0] in packages:
        container.flags[name] = value
    else:
        container.reading.note(place, f"the variable {shown(name)} is left out")


def _installation(container: _Container, command: str, place: Place) -> None:
    if file := _CONDA_FILE.fullmatch(command):
        _environment(container, file[1], place)
    elif pip := _PIP.fullmatch(command):
        _words(container, pip[1], place, is_pip=True)
    elif conda := _CONDA.fullmatch(command):
        _words(container, conda[1], place, is_pip=False)
    elif system := _SYSTEM.fullmatch(command):
        for word, its_place in _shell_words(system[1], place):
            if not word.startswith("-"):
                why = "a package of the distribution"
                container.reading.note(its_place, f"{shown(word)} is left out: {why}")
    else:
        container.reading.note(place, f"{_short(command)} is left out")


def _short(command: str) -> str:
    return shown(" ".join(command.split()), 60)


def _environment(container: _Container, name: str, place: Place) -> None:
    """Add what an environment.yml beside the file says."""
    source = container.beside(container.copied.get(name, name.lstrip("/")))
    if source is None:
        container.reading.note(place, f"{shown(name)} is left out: the file cannot be read")
        return
    container.reading.note(place, f"{shown(name)} is read")
    asked, notes = environment_yml.read(source)
    container.reading.notes.extend(notes)
    container.channels.update(dict.fromkeys(asked.channels, place))
    container.specs.update({spec: asked.places[spec] for spec in asked.specs})
    container.pip.update({line: asked.places[line] for line in asked.pip})


def _shell_words(text: str, begin: Place) -> Iterator[tuple[str, Place]]:
    """Yield the words of a command, each with its place; none if a quote is not closed."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    offset = 0
    for word in words:
        offset = max(text.find(word, offset), offset)
        yield word, begin._replace(line=begin.line + text.count("\n", 0, offset))


def _words(container: _Container, text: str, begin: Place, *, is_pip: bool) -> None:
    """Read the words behind ``pip install`` or ``conda install``."""
    option = ""
    if not is_pip:
        container.conda.append((begin, []))
    for raw, place in _shell_words(text, begin):
        word = _substituted(container, raw)
        if option:
            _option(container, option, word, place, is_pip=is_pip)
            option = ""
        elif word in _WITH_VALUE:
            option = word
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            if equals and name in _WITH_VALUE:
                _option(container, name, value, place, is_pip=is_pip)
            elif name not in _QUIET:
                container.reading.note(place, f"the option {shown(word)} is left out")
        elif _REQUIREMENT.fullmatch(word) and "$" not in word:
            packages = container.pip if is_pip else container.specs
            packages.setdefault(word, place)
        else:
            container.reading.note(place, f"{shown(word)} is left out: not a package of an index")


def _option(container: _Container, name: str, value: str, place: Place, *, is_pip: bool) -> None:
    if not is_pip and name in _CHANNEL:
        container.channels.setdefault(value, place)
        container.conda[-1][1].append(value)
    elif is_pip and name in _REQUIREMENTS:
        file = container.copied.get(value, value)
        if file.startswith("/") or container.beside(file) is None:
            container.reading.note(place, f"{shown(value)} is left out: the file cannot be read")
        else:
            container.reading.note(place, f"{shown(value)} is read")
            container.pip.setdefault(f"-r {file}", place)
    elif is_pip and name in _OF_PIP and "$" not in value:
        container.pip.setdefault(f"{name} {value}", place)
    else:
        container.reading.note(place, f"{name} {shown(value)} is left out")
