"""A Dockerfile as the steps of a definition file, where no container engine can build it.

Every construct that has no exact equivalent is refused, all of them at once, with their lines.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..model.places import REGISTRY
from .build_steps import ONE_STAGE, SCRIPT, SET, STAGED, BuildSteps, DockerfileScript, run
from .dockerfile import (
    Instruction,
    evaluate,
    quote,
    read_instructions,
    read_pieces,
    shell_words,
)
from .dockerfile_copy import add, copy
from .reference import BuildFile

if TYPE_CHECKING:
    from spython.main.parse.recipe import Recipe

# Each instruction that is read, and its reader: spython where it reads the words of an instruction
# as Docker does, otherwise this module. docs/decisions.md states what spython reads differently.
# Instructions without a reader only state how a container is started.
READERS: Mapping[str, str | None] = MappingProxyType(
    {
        "ADD": "envbuild",
        "ARG": "spython",
        "COPY": "envbuild",
        "ENV": "spython",
        "FROM": "envbuild",
        "RUN": "envbuild",
        "SHELL": "envbuild",
        "USER": "envbuild",
        "WORKDIR": "envbuild",
        "CMD": None,
        "ENTRYPOINT": None,
        "EXPOSE": None,
        "HEALTHCHECK": None,
        "LABEL": None,
        "MAINTAINER": None,
        "STOPSIGNAL": None,
        "VOLUME": None,
    }
)
# Those that read an instruction without the variables of the file.
_READERS: Mapping[str, Callable[[DockerfileScript, Instruction], None]] = MappingProxyType(
    {"ADD": add, "COPY": copy, "RUN": run}
)
# Docker accepts values for these without an ARG.
_PROXIES = frozenset(
    spelling
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for spelling in (name, name.upper())
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALIAS = re.compile(r"(?i)\s+as\s+(\S+)$")
_SCRATCH = "scratch"

# chroot(1) of coreutils changes the user in every Debian. A user without a group has the group
# root, and a stated group is the only one: https://docs.docker.com/reference/dockerfile/#user
_FUNCTIONS = """\
envbuild_arg() {
    case " $envbuild_base_variables " in *" $1 "*) ;; *) export "$1=$2" ;; esac
}
envbuild_run() {
    if [ -z "$envbuild_user" ]; then "$@"; return; fi
    local user="${envbuild_user%%:*}" group="" entry="" home="$HOME"
    case "$envbuild_user" in *:*) group="${envbuild_user#*:}" ;; esac
    entry="$(getent passwd "$user" || true)"
    [ -n "$envbuild_home" ] || home="$(echo "${entry:-::::/}" | cut -d: -f6)"
    [ -n "$entry" ] || group="${group:-0}"
    HOME="${home:-/}" chroot --skip-chdir --userspec="$user${group:+:$group}" \\
        ${group:+--groups="$group"} / "$@"
}"""


def prologue(settings: Mapping[str, Any]) -> list[str]:
    """Return the lines that begin the steps: the state that a base's *settings* hand down.

    *settings*: the ``config`` of an image of OCI.
    """
    names = [str(pair).partition("=")[0] for pair in settings.get("Env") or ()]
    directory = str(settings.get("WorkingDir") or "/")
    return [
        "set -e",
        "umask 022",
        f"envbuild_user={quote(str(settings.get('User') or ''))}",
        f"envbuild_home={'base' if 'HOME' in names else ''}",
        f"envbuild_base_variables={quote(' '.join(names))}",
        *_FUNCTIONS.splitlines(),
        f"mkdir -p {quote(directory)}",
        f"cd {quote(directory)}",
    ]


def section(lines: Sequence[str]) -> str:
    """Return the section of a definition file that runs *lines*."""
    return "\n".join(["%post -c /bin/bash", *(f"    {line}" for line in lines), ""])


def read_dockerfile(file: BuildFile, text: str) -> BuildSteps:
    """Return the steps of a Dockerfile. Raises DocumentError with every line that is refused."""
    return _Reader(file, text).steps()


def read_parents(file: BuildFile, text: str) -> dict[str, str]:
    """Return the images of a registry that the stages begin with, by their words after FROM.

    Raises DocumentError with every FROM that has no value.
    """
    return _Reader(file, text).parents()


def declared_arguments(text: str) -> frozenset[str]:
    """Return the names of all ARG instructions, and those that need none."""
    words = (
        word.partition("=")[0]
        for instruction in read_instructions(text)
        if instruction.keyword == "ARG"
        for word in instruction.rest.split()
    )
    return _PROXIES | frozenset(words)


class _Reader:
    """Reads a Dockerfile, instruction by instruction, into a script."""

    def __init__(self, file: BuildFile, text: str) -> None:
        self.text, self.script = text, DockerfileScript(file)
        self.arguments = dict(file.arguments)
        self.parent: str | None = None
        self.defaults: dict[str, str] = {}
        """The values of each ARG before FROM."""
        self.script.post += [
            f"export {name}={quote(value)}"
            for name, value in self.arguments.items()
            if name in _PROXIES
        ]
        self.names: dict[str, None] = {}

    def steps(self) -> BuildSteps:
        if match := re.match(r"(?i)\s*#\s*escape\s*=", self.text):
            message = f"{match[0].strip()} is not supported"
            self.script.refusals.add("base.unsupported-instruction", 1, message)
        for instruction in read_instructions(self.text):
            self._read(instruction)
        if self.parent is None and not self.script.refusals.problems:
            self.script.refusals.add("base.no-parent", 1, "there is no FROM")
        self.script.refusals.check()
        # Evaluated at the end, where every variable in a value is set.
        values = [f"""printf '%s=%s\\n' {name} "${{{name}}}" >>{SET}""" for name in self.names]
        post = [*self.script.post, *values, f"rm -rf {STAGED} {SCRIPT}"]
        parent = REGISTRY + str(self.parent)
        return BuildSteps(
            parent,
            "\n".join(post),
            staged=tuple(self.script.staged),
            notes=tuple(self.script.notes),
        )

    def parents(self) -> dict[str, str]:
        images = {}
        stages = {_SCRATCH}
        for instruction in read_instructions(self.text):
            if instruction.keyword == "ARG" and self.parent is None:
                self._arg(instruction)
            elif instruction.keyword == "FROM":
                self.parent = self._image(instruction)
                if self.parent.lower() not in stages:
                    images[_ALIAS.sub("", instruction.rest)] = self.parent
                if alias := _ALIAS.search(instruction.rest):
                    stages.add(alias[1].lower())
        if self.parent is None:
            self.script.refusals.add("base.no-parent", 1, "there is no FROM")
        self.script.refusals.check()
        return images

    def _read(self, instruction: Instruction) -> None:
        keyword = instruction.keyword
        if keyword not in READERS:
            message = f"{keyword} is not supported"
            self.script.refuse("base.unsupported-instruction", instruction, message)
        elif not instruction.complete:
            message = f"{keyword} {instruction.rest} begins a here-document that does not end"
            self.script.refuse("base.malformed-line", instruction, message)
        elif READERS[keyword] and not instruction.rest:
            message = f"{keyword} has no words"
            self.script.refuse("base.malformed-line", instruction, message)
        elif self.parent is None and keyword not in ("FROM", "ARG"):
            self.script.refuse("base.no-parent", instruction, f"{keyword} comes before FROM")
        elif reader := _READERS.get(keyword):
            reader(self.script, instruction)
        elif READERS[keyword]:
            own: Callable[[Instruction], None] = getattr(self, f"_{keyword.lower()}")
            own(instruction)

    def _from(self, instruction: Instruction) -> None:
        if self.parent is not None:
            self.script.refuse("base.several-stages", instruction, f"FROM: {ONE_STAGE}")
            return
        for flag in instruction.flags:
            hint = "use --arch for the architecture"
            message = f"FROM {flag} is not supported"
            self.script.refuse("base.unsupported-instruction", instruction, message, hint)
        self.parent = self._image(instruction)
        if self.parent == _SCRATCH:
            message = "FROM scratch is not supported: it has no shell for the steps"
            self.script.refuse("base.unsupported-instruction", instruction, message)

    def _image(self, instruction: Instruction) -> str:
        """Return the name of the image of FROM; empty if it is refused."""
        name = _ALIAS.sub("", instruction.rest)
        try:
            return evaluate(read_pieces(name), self.defaults)
        except KeyError as error:
            message = f"FROM {name}: {error.args[0]} has no value"
            hint = f"write ARG {error.args[0]}=VALUE before FROM, or use --build-arg"
            self.script.refuse("base.undefined-variable", instruction, message, hint)
        except ValueError as error:
            self.script.refuse("base.malformed-line", instruction, f"FROM: {error}")
        return ""

    def _arg(self, instruction: Instruction) -> None:
        names = [word for word in instruction.rest.split() if "=" not in word]
        if names and len(instruction.rest.split()) == 1:
            self._declare(names[0], None, instruction)
            return
        pairs = self._assignments(instruction)
        if len(pairs) > 1 and "$" in instruction.rest:
            message = f"ARG {instruction.rest}: a value refers to a variable"
            hint = "write an ARG for each name"
            self.script.refuse("base.unsupported-instruction", instruction, message, hint)
            return
        for name, value in pairs:
            self._declare(name, value, instruction)

    def _declare(self, name: str, value: str | None, instruction: Instruction) -> None:
        """Set an ARG: to the value of --build-arg, to its own, or to that before FROM."""
        if not _VARIABLE.fullmatch(name):
            message = f"ARG {name} is not a variable name"
            self.script.refuse("base.malformed-variable", instruction, message)
        elif self.parent is None:
            self._declare_default(name, value, instruction)
        elif name in self.names:
            pass  # a variable of ENV has precedence
        elif name in self.arguments:
            self.script.post.append(f"envbuild_arg {name} {quote(self.arguments[name])}")
        elif value is not None:
            self.script.post.append(f"envbuild_arg {name} {self.script.word(instruction, value)}")
        elif name in self.defaults:
            self.script.post.append(f"envbuild_arg {name} {quote(self.defaults[name])}")

    def _declare_default(self, name: str, value: str | None, instruction: Instruction) -> None:
        if name in self.arguments:
            self.defaults[name] = self.arguments[name]
        elif value is not None:
            # Docker replaces a variable without a value by nothing.
            values = _Values(self.defaults)
            try:
                self.defaults[name] = evaluate(read_pieces(value), values)
            except ValueError as error:
                self.script.refuse("base.malformed-line", instruction, f"ARG {name}: {error}")

    def _env(self, instruction: Instruction) -> None:
        words = []
        for name, value in self._assignments(instruction):
            if not _VARIABLE.fullmatch(name):
                message = f"ENV {name} is not a variable name"
                self.script.refuse("base.malformed-variable", instruction, message)
                continue
            words.append(f"{name}={self.script.word(instruction, value)}")
            self.names[name] = None
        if words:
            # One command: the values do not depend on each other.
            self.script.post.append(" ".join(["export", *words]))
        if "HOME" in self.names:
            self.script.post.append("envbuild_home=file")

    def _shell(self, instruction: Instruction) -> None:
        words = instruction.words()
        if words is None:
            message = f'SHELL {instruction.rest} is not a list: ["PROGRAM", "OPTION"]'
            self.script.refuse("base.malformed-line", instruction, message)
        else:
            self.script.shell = words

    def _user(self, instruction: Instruction) -> None:
        self.script.post.append(f"envbuild_user={self.script.word(instruction, instruction.rest)}")

    def _workdir(self, instruction: Instruction) -> None:
        folder = self.script.word(instruction, instruction.rest)
        self.script.post += [f"mkdir -p {folder}", f"cd {folder}"]

    def _assignments(self, instruction: Instruction) -> list[tuple[str, str]]:
        """Return the names and the quoted values of ARG or ENV; none if they are refused."""
        keyword, rest = instruction.keyword, instruction.rest
        name, *value = rest.split(maxsplit=1)
        if keyword == "ENV" and "=" not in name and value:
            return [(name, value[0])]
        recipe = _parse(instruction)
        pairs = [*recipe.environ] if recipe and keyword == "ENV" else []
        pairs = [*recipe.install] if recipe and keyword == "ARG" else pairs
        # spython divides some words at a quote, and joins some.
        if not pairs or pairs != shell_words(rest):
            message = f'cannot parse {keyword} {rest}: quote each value: NAME="VALUE"'
            self.script.refuse("base.malformed-line", instruction, message)
            return []
        return [(name, value) for name, _, value in (pair.partition("=") for pair in pairs)]


class _Values(dict[str, str]):
    """Variables; those without a value are empty."""

    def __missing__(self, name: str) -> str:
        return ""


def _parse(instruction: Instruction) -> Recipe | None:
    """Return how spython reads one instruction; None if it cannot."""
    # lazy import: 30 ms, and few bases are built
    from spython.logger import bot
    from spython.main.parse.parsers import DockerParser

    bot.level = 0  # it would print warnings about parts that this module refuses
    with tempfile.NamedTemporaryFile("w", suffix=".Dockerfile") as file:
        file.write(f"{instruction.keyword} {instruction.rest}\n")
        file.flush()
        try:
            [recipe] = DockerParser(file.name).recipe.values()
        except Exception:  # an odd line raises anything
            return None
    return recipe
