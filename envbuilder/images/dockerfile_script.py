"""A script that grows while a Dockerfile is read, instruction by instruction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .build_steps import Refusals
from .dockerfile import Instruction, bash_word, read_pieces
from .reference import BuildFile


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
