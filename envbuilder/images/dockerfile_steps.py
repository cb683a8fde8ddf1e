"""A Dockerfile as the steps of a definition file, where no container engine can build it.

Every construct that has no exact equivalent is refused, all of them at once, with their lines.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..model.places import REGISTRY
from .build_steps import ONE_STAGE, SET, STAGED, BuildSteps, Refusals
from .dockerfile import (
    HereDocument,
    Instruction,
    bash_word,
    evaluate,
    quote,
    read_instructions,
    read_pieces,
    shell_words,
)
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
# Docker accepts values for these without an ARG.
_PROXIES = frozenset(
    spelling
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")
    for spelling in (name, name.upper())
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALIAS = re.compile(r"(?i)\s+as\s+(\S+)$")
_SCRATCH = "scratch"
_ARCHIVES = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2?|txz|gz|bz2|xz|zst)$")
_SCRIPT = "/.envbuild-script"
_IGNORE_FILE = ".dockerignore"

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
    """Reads a Dockerfile, instruction by instruction: a method for each in READERS."""

    def __init__(self, file: BuildFile, text: str) -> None:
        self.path, self.text = file.path, text
        self.context = file.folder
        self.arguments = dict(file.arguments)
        self.refusals = Refusals(file.path)
        self.parent: str | None = None
        self.defaults: dict[str, str] = {}
        """The values of each ARG before FROM."""
        self.shell: Sequence[str] = ("/bin/sh", "-c")
        self.post: list[str] = [
            f"export {name}={quote(value)}"
            for name, value in self.arguments.items()
            if name in _PROXIES
        ]
        self.names: dict[str, None] = {}
        self.staged: list[Path] = []
        self.notes: list[str] = []

    def steps(self) -> BuildSteps:
        if match := re.match(r"(?i)\s*#\s*escape\s*=", self.text):
            message = f"{match[0].strip()} is not supported"
            self.refusals.add("base.unsupported-instruction", 1, message)
        for instruction in read_instructions(self.text):
            self._read(instruction)
        if self.parent is None and not self.refusals.problems:
            self.refusals.add("base.no-parent", 1, "there is no FROM")
        self.refusals.check()
        # Evaluated at the end, where every variable in a value is set.
        values = [f"""printf '%s=%s\\n' {name} "${{{name}}}" >>{SET}""" for name in self.names]
        post = [*self.post, *values, f"rm -rf {STAGED} {_SCRIPT}"]
        parent = REGISTRY + str(self.parent)
        return BuildSteps(
            parent, "\n".join(post), staged=tuple(self.staged), notes=tuple(self.notes)
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
            self.refusals.add("base.no-parent", 1, "there is no FROM")
        self.refusals.check()
        return images

    def _refuse(self, problem_id: str, instruction: Instruction, message: str, *hints: str) -> None:
        self.refusals.add(problem_id, instruction.number, message, *hints)

    def _read(self, instruction: Instruction) -> None:
        keyword = instruction.keyword
        if keyword not in READERS:
            message = f"{keyword} is not supported"
            self._refuse("base.unsupported-instruction", instruction, message)
        elif not instruction.complete:
            message = f"{keyword} {instruction.rest} begins a here-document that does not end"
            self._refuse("base.malformed-line", instruction, message)
        elif READERS[keyword] and not instruction.rest:
            message = f"{keyword} has no words"
            self._refuse("base.malformed-line", instruction, message)
        elif self.parent is None and keyword not in ("FROM", "ARG"):
            self._refuse("base.no-parent", instruction, f"{keyword} comes before FROM")
        elif READERS[keyword]:
            reader: Callable[[Instruction], None] = getattr(self, f"_{keyword.lower()}")
            reader(instruction)

    def _word(self, instruction: Instruction, text: str, *, raw: bool = False) -> str:
        """Return a word of bash for a word of Docker; empty if it is refused."""
        try:
            return bash_word(read_pieces(text, raw=raw))
        except ValueError as error:
            message = f"{instruction.keyword}: {error}"
            self._refuse("base.malformed-line", instruction, message)
        return ""

    def _from(self, instruction: Instruction) -> None:
        if self.parent is not None:
            self._refuse("base.several-stages", instruction, f"FROM: {ONE_STAGE}")
            return
        for flag in instruction.flags:
            hint = "use --arch for the architecture"
            message = f"FROM {flag} is not supported"
            self._refuse("base.unsupported-instruction", instruction, message, hint)
        self.parent = self._image(instruction)
        if self.parent == _SCRATCH:
            message = "FROM scratch is not supported: it has no shell for the steps"
            self._refuse("base.unsupported-instruction", instruction, message)

    def _image(self, instruction: Instruction) -> str:
        """Return the name of the image of FROM; empty if it is refused."""
        name = _ALIAS.sub("", instruction.rest)
        try:
            return evaluate(read_pieces(name), self.defaults)
        except KeyError as error:
            message = f"FROM {name}: {error.args[0]} has no value"
            hint = f"write ARG {error.args[0]}=VALUE before FROM, or use --build-arg"
            self._refuse("base.undefined-variable", instruction, message, hint)
        except ValueError as error:
            self._refuse("base.malformed-line", instruction, f"FROM: {error}")
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
            self._refuse("base.unsupported-instruction", instruction, message, hint)
            return
        for name, value in pairs:
            self._declare(name, value, instruction)

    def _declare(self, name: str, value: str | None, instruction: Instruction) -> None:
        """Set an ARG: to the value of --build-arg, to its own, or to that before FROM."""
        if not _VARIABLE.fullmatch(name):
            message = f"ARG {name} is not a variable name"
            self._refuse("base.malformed-variable", instruction, message)
        elif self.parent is None:
            self._declare_default(name, value, instruction)
        elif name in self.names:
            pass  # a variable of ENV has precedence
        elif name in self.arguments:
            self.post.append(f"envbuild_arg {name} {quote(self.arguments[name])}")
        elif value is not None:
            self.post.append(f"envbuild_arg {name} {self._word(instruction, value)}")
        elif name in self.defaults:
            self.post.append(f"envbuild_arg {name} {quote(self.defaults[name])}")

    def _declare_default(self, name: str, value: str | None, instruction: Instruction) -> None:
        if name in self.arguments:
            self.defaults[name] = self.arguments[name]
        elif value is not None:
            # Docker replaces a variable without a value by nothing.
            values = _Values(self.defaults)
            try:
                self.defaults[name] = evaluate(read_pieces(value), values)
            except ValueError as error:
                self._refuse("base.malformed-line", instruction, f"ARG {name}: {error}")

    def _env(self, instruction: Instruction) -> None:
        words = []
        for name, value in self._assignments(instruction):
            if not _VARIABLE.fullmatch(name):
                message = f"ENV {name} is not a variable name"
                self._refuse("base.malformed-variable", instruction, message)
                continue
            words.append(f"{name}={self._word(instruction, value)}")
            self.names[name] = None
        if words:
            # One command: the values do not depend on each other.
            self.post.append(" ".join(["export", *words]))
        if "HOME" in self.names:
            self.post.append("envbuild_home=file")

    def _shell(self, instruction: Instruction) -> None:
        words = instruction.words()
        if words is None:
            message = f'SHELL {instruction.rest} is not a list: ["PROGRAM", "OPTION"]'
            self._refuse("base.malformed-line", instruction, message)
        else:
            self.shell = words

    def _user(self, instruction: Instruction) -> None:
        self.post.append(f"envbuild_user={self._word(instruction, instruction.rest)}")

    def _workdir(self, instruction: Instruction) -> None:
        folder = self._word(instruction, instruction.rest)
        self.post += [f"mkdir -p {folder}", f"cd {folder}"]

    def _run(self, instruction: Instruction) -> None:
        for flag in instruction.flags:
            self._flag_of_run(instruction, flag)
        words, documents = instruction.words(), instruction.documents
        if words:
            self.post.append(f"envbuild_run {' '.join(map(quote, words))}")
        elif len(documents) == 1 and instruction.rest.split() == [documents[0].word]:
            self._run_script(documents[0].text)
        else:
            self._run_command("\n".join([instruction.rest, *instruction.lines]))

    def _run_command(self, command: str) -> None:
        # A process of its own, as in Docker: variables that it sets end with it.
        self.post.append(f"envbuild_run {' '.join(map(quote, [*self.shell, command]))}")

    def _run_script(self, text: str) -> None:
        """Run a here-document: its first line may name the interpreter."""
        if not text.startswith("#!"):
            self._run_command(text)
            return
        self.post += [
            f"printf %s {quote(text)} >{_SCRIPT}",
            f"chmod 755 {_SCRIPT}",
            f"envbuild_run {_SCRIPT}",
        ]

    def _flag_of_run(self, instruction: Instruction, flag: str) -> None:
        name, _, value = flag.partition("=")
        options = dict(word.partition("=")[::2] for word in value.split(","))
        kind = options.get("type", "bind") if name == "--mount" else ""
        if kind == "cache" and "from" not in options:
            target = options.get("target") or options.get("dst") or options.get("destination", "")
            self.notes.append(
                f"{self.path.name}:{instruction.number}: RUN {flag} has no effect: {target} stays "
                "in the base"
            )
            return
        reasons = {
            "bind": "use COPY: files of the context cannot be mounted",
            "cache": "a cache cannot begin with files of another stage",
            "secret": "the base would be built without the secret",
            "ssh": "the base would be built without the keys",
            "tmpfs": "files in it would stay in the base",
        }
        reason = f": {reasons[kind]}" if kind in reasons else ""
        message = f"RUN {flag} is not supported{reason}"
        self._refuse("base.unsupported-instruction", instruction, message)

    def _add(self, instruction: Instruction) -> None:
        words = instruction.words() or instruction.rest.split()
        if any(_ARCHIVES.search(word) for word in words[:-1]):
            message = f"ADD {instruction.rest} is not supported: it unpacks an archive"
            hint = "use COPY, then RUN tar -xf"
            self._refuse("base.unsupported-instruction", instruction, message, hint)
            return
        self._copy(instruction)

    def _copy(self, instruction: Instruction) -> None:
        owner = self._owner(instruction)
        words = self._paths(instruction) if owner else []
        if len(words) < 2:
            if words:
                message = f"{instruction.keyword} {instruction.rest} needs a source and a target"
                self._refuse("base.malformed-line", instruction, message)
            return
        *sources, target = words
        if len(sources) > 1 and not target.endswith("/"):
            message = (
                f"{instruction.keyword}: {target} must end with / because it receives several files"
            )
            self._refuse("base.target-not-folder", instruction, message)
        documents = {"".join(shlex.split(each.word)): each for each in instruction.documents}
        for source in sources:
            if source in documents:
                self._copy_document(instruction, documents[source], target, owner)
            else:
                self._copy_path(instruction, source, target, owner)

    def _owner(self, instruction: Instruction) -> str:
        """Return the word of bash for --chown, by default root; empty if a flag is refused."""
        owner = "0:0"
        refused = len(self.refusals.problems)
        for flag in instruction.flags:
            name, _, value = flag.partition("=")
            if name == "--chown":
                owner = self._word(instruction, value)
            else:
                message = f"{instruction.keyword} {flag} is not supported"
                self._refuse("base.unsupported-instruction", instruction, message)
        return owner if len(self.refusals.problems) == refused else ""

    def _paths(self, instruction: Instruction) -> list[str]:
        """Return sources and target, with quotes only if they may contain variables."""
        if words := instruction.words():
            return words
        try:
            return shlex.split(instruction.rest)
        except ValueError as error:
            message = f"cannot parse {instruction.keyword} {instruction.rest}: {error}"
            self._refuse("base.malformed-line", instruction, message)
        return []

    def _copy_document(
        self, instruction: Instruction, document: HereDocument, target: str, owner: str
    ) -> None:
        text = quote(document.text)
        if "/" in document.name:
            message = f"{instruction.keyword} {document.word}: a file cannot have this name"
            self._refuse("base.malformed-line", instruction, message)
            return
        if document.expands and "\\" in document.text:
            message = f"{instruction.keyword} {document.word} with a backslash is not supported"
            hint = f"quote its name, so that variables are not replaced: <<'{document.name}'"
            self._refuse("base.unsupported-instruction", instruction, message, hint)
        elif document.expands:
            text = self._word(instruction, document.text, raw=True)
        staged = STAGED / document.name
        folder = self._word(instruction, target, raw=True)
        self.post += [f"mkdir -p {STAGED}", f"printf %s {text} >{quote(str(staged))}"]
        self.post += _copied(staged, document.name, folder, target.endswith("/"), owner)

    def _copy_path(self, instruction: Instruction, source: str, target: str, owner: str) -> None:
        keyword = instruction.keyword
        if any(character in source for character in "*?[$") or "://" in source:
            message = f"{keyword} {source} is not supported: name each file"
            self._refuse("base.unsupported-instruction", instruction, message)
            return
        path = (self.context / source.lstrip("/")).resolve()
        if not path.is_relative_to(self.context.resolve()):
            message = f"{keyword} {source} is outside of the context {self.context}"
            self._refuse("base.source-outside", instruction, message)
        elif not path.exists():
            message = f"{keyword}: cannot find {source} in {self.context}"
            self._refuse("base.source-missing", instruction, message, "name the folder: --context")
        elif path.is_dir() and self._ignore_file():
            message = f"{keyword} {source} is not supported: {self._ignore_file()} excludes files"
            self._refuse("base.unsupported-instruction", instruction, message)
        else:
            staged = STAGED / str(len(self.staged))
            self.staged.append(path)
            folder = self._word(instruction, target, raw=True)
            whole = path.is_dir()
            self.post += _copied(staged, path.name, folder, target.endswith("/"), owner, whole)

    def _ignore_file(self) -> str | None:
        """Return the name of the file that excludes files of the context."""
        own = self.path.with_name(self.path.name + _IGNORE_FILE)
        return next(
            (path.name for path in (own, self.context / _IGNORE_FILE) if path.is_file()), None
        )

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
            self._refuse("base.malformed-line", instruction, message)
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


def _copied(
    staged: PurePosixPath, name: str, target: str, is_folder: bool, owner: str, whole: bool = False
) -> Iterator[str]:
    """Yield the lines that copy a staged file, or the contents of a folder, as COPY does.

    *target*: a word of bash; *is_folder*: it ends with a slash. *whole*: a folder is staged.
    """
    source, file = quote(str(staged)), quote(name)
    yield f"chown -hR {owner} {source}"
    if whole or is_folder:
        yield f"[ -d {target} ] || {{ mkdir -p {target}; chown {owner} {target}; }}"
    if whole:
        # The target keeps its mode and owner.
        yield f"find {source} -mindepth 1 -maxdepth 1 -exec cp -a -t {target} {{}} +"
    elif is_folder:
        yield f"cp -a {source} {target}{file}"
    else:
        yield f'mkdir -p "$(dirname {target})"'
        copy = f"cp -a {source} {target}"
        yield f"if [ -d {target} ]; then {copy}/{file}; else {copy}; fi"
