"""What a user's Dockerfile or definition file does to a base, and everything that it may not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ..errors import DocumentError, Problem
from .dockerfile import Instruction, bash_word, quote, read_pieces
from .reference import BuildFile

# A here-document with an interpreter of its own is run from this file.
SCRIPT = "/.envbuild-script"


def run(script: DockerfileScript, instruction: Instruction) -> None:
    for flag in instruction.flags:
        _check_flag(script, instruction, flag)
    words, documents = instruction.words(), instruction.documents
    if words:
        script.post.append(f"envbuild_run {' '.join(map(quote, words))}")
    elif len(documents) == 1 and instruction.rest.split() == [documents[0].word]:
        _run_script(script, documents[0].text)
    else:
        _run_command(script, "\n".join([instruction.rest, *instruction.lines]))


def _run_command(script: DockerfileScript, command: str) -> None:
    # A process of its own, as in Docker: variables that it sets end with it.
    script.post.append(f"envbuild_run {' '.join(map(quote, [*script.shell, command]))}")


def _run_script(script: DockerfileScript, text: str) -> None:
    """Run a here-document: its first line may name the interpreter."""
    if not text.startswith("#!"):
        _run_command(script, text)
        return
    script.post += [
        f"printf %s {quote(text)} >{SCRIPT}",
        f"chmod 755 {SCRIPT}",
        f"envbuild_run {SCRIPT}",
    ]


def _check_flag(script: DockerfileScript, instruction: Instruction, flag: str) -> None:
    name, _, value = flag.partition("=")
    options = dict(word.partition("=")[::2] for word in value.split(","))
    kind = options.get("type", "bind") if name == "--mount" else ""
    if kind == "cache" and "from" not in options:
        target = options.get("target") or options.get("dst") or options.get("destination", "")
        script.notes.append(
            f"{script.path.name}:{instruction.number}: RUN {flag} has no effect: {target} stays "
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
    script.refuse("base.unsupported-instruction", instruction, message)


class DockerfileScript:
    """The lines so far, and the state that later instructions depend on.

    ``shell``: runs the commands of RUN. ``post``: the lines. ``staged``: the files of the context
    that they copy. ``notes``: parts of the file that have no effect.
    """

    def __init__(self, file: BuildFile) -> None:
        self.path, self.context = file.path, file.folder
        self.refusals = Refusals(file.path)
        self.shell: Sequence[str] = ("/bin/sh", "-c")
        self.post: list[str] = []
        self.staged: list[Path] = []
        self.notes: list[str] = []

    def refuse(self, problem_id: str, instruction: Instruction, message: str, *hints: str) -> None:
        """Add a problem in the line of an instruction."""
        self.refusals.add(problem_id, instruction.number, message, *hints)

    def word(self, instruction: Instruction, text: str, *, raw: bool = False) -> str:
        """Return a word of bash for a word of Docker; empty if it is refused."""
        try:
            return bash_word(read_pieces(text, raw=raw))
        except ValueError as error:
            message = f"{instruction.keyword}: {error}"
            self.refuse("base.malformed-line", instruction, message)
        return ""


# The build has the copied files here, each source under its number.
STAGED = PurePosixPath("/.envbuild-files")
# The build writes the variables that the file sets here, a line of NAME=VALUE each.
SET = PurePosixPath("/.envbuild-variables")
ONE_STAGE = "a second stage is not supported in a base"
HINT = "install buildah or podman, which read every instruction, or build it elsewhere: "
HINT += "buildah build -t oci-archive:FILE.tar ."


class BuildSteps(NamedTuple):
    """The steps that turn one base into another.

    ``parent``: the base that it begins with, as ``--base`` names it, relative to the file.
    ``sections``: of a definition file, all behind its first lines. ``staged``: the files that are
    copied to STAGED, in order. ``files``: other files of this machine that it copies. ``notes``:
    parts of the file that have no effect, with their lines.
    """

    parent: str
    sections: str
    staged: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


class Refusals:
    """Collects the problems of a build file, so that one run reports all of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def add(self, problem_id: str, number: int, message: str, *hints: str) -> None:
        """Add the problem of a line, which the message begins with."""
        text = f"{self.path}:{number}: {message}"
        self.problems.append(Problem(problem_id, text, None, hints or (HINT,)))

    def check(self) -> None:
        """Raise DocumentError with all problems, in the order of the lines."""
        if self.problems:
            raise DocumentError(tuple(self.problems))
