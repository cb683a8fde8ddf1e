"""``envbuild diagnose``: what logs mean, which rank failed first. A build's own search as well."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import UsageError
from ..knowledge.rows import Knowledge
from ..model.validation import Validation
from ..target_tools.files import IrregularFileError, open_regular
from ..text import shown
from ..workflow.context import Context
from .conclusion import conclude
from .index import KnownSymptom, SymptomIndex
from .places import UNEXPLAINED
from .search import Findings, search
from .values import Diagnosis, Symptomatic

PIPE = "-"
# A folder of logs: so many ranks have one each.
MOST_LOGS = 4096
# So many causes are hints of a build that failed.
_HINTS = 3
_CORE = b"\x7fELF"


def diagnose(
    names: Sequence[str], pipe: BinaryIO, validation: Validation | None, context: Context
) -> Diagnosis:
    """Return what these logs say. *names*: files, folders of files, or ``-`` for *pipe*.

    *validation*: of the environment that the logs are of: what agrees with it is told as such.
    Raises UsageError for what cannot be read or is no log.
    """
    index = SymptomIndex(context.knowledge)
    logs: dict[str, Findings] = {}
    for name, path in log_files(names, context):
        with open_log(name, path, pipe) as stream:
            logs[name] = search(stream, index.signs)
    found = conclude(list(logs), list(logs.values()), index)
    return found if validation is None else _confirmed(found, validation, index.symptoms)


def build_hints(log: Path, knowledge: Knowledge) -> tuple[str, ...]:
    """Return what the log of a step that failed means, and what to do: causes, else the failure."""
    index = SymptomIndex(knowledge)
    try:
        with open_regular(log) as stream:
            findings = search(stream, index.signs)
    except IrregularFileError:
        return ()  # the step put it there; the message of its failure says so
    errors = [
        each
        for each in conclude([log.name], [findings], index).findings
        if each.severity == "error" and each.tells != "effect" and each.id != UNEXPLAINED
    ]
    causes = [each for each in errors if each.tells == "cause"]
    return tuple(map(_hint, (causes or errors)[:_HINTS]))


def _hint(found: Symptomatic) -> str:
    said = f"{found.cause}: {found.hint}" if found.cause else found.hint
    return f"{said} ({', '.join(found.advisories)})" if found.advisories else said


def _confirmed(
    found: Diagnosis, validation: Validation, known: Sequence[KnownSymptom]
) -> Diagnosis:
    """Return it with the findings of validate that agree with a symptom, or are its very row."""
    checks: Mapping[str, tuple[str, ...]] = {each.id: each.symptom.checks for each in known}
    findings = []
    for each in found.findings:
        ids = {*checks.get(each.id, ()), *each.advisories}
        agree = tuple(
            f"{one.id}: {one.summary}"[:480] for one in validation.findings if one.id in ids
        )
        findings.append(
            each.model_copy(
                update={"confirmed": (*each.confirmed, *agree), "confidence": "certain"}
            )
            if agree
            else each
        )
    return found.model_copy(update={"findings": tuple(findings)})


def log_files(names: Sequence[str], context: Context) -> Iterator[tuple[str, Path | None]]:
    """Yield each log once, in order, by the name that it is shown by."""
    seen: set[str] = set()
    those: Mapping[str, Path | None]
    for name in names:
        path = None if name == PIPE else context.path(name)
        if path is not None and path.is_dir():
            files = _below(path)
            if not files:
                raise UsageError(
                    "log.folder-empty", f"the folder {shown(name, 200)} contains no file"
                )
            those = {str(Path(name) / each.relative_to(path)): each for each in files}
        else:
            those = {name: path}
        for each, file in those.items():
            if each not in seen:
                seen.add(each)
                yield each, file


def _below(folder: Path) -> list[Path]:
    """Return the regular files of a folder of logs: ``mpiexec --output-filename`` makes such."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        paths = (Path(place) / name for name in sorted(files))
        found += [each for each in paths if stat.S_ISREG(each.lstat().st_mode)]
        if len(found) > MOST_LOGS:
            raise UsageError(
                "log.too-many-files",
                f"the folder {shown(str(folder), 200)} contains more than {MOST_LOGS} files",
            )
    return found


@contextmanager
def open_log(name: str, path: Path | None, pipe: BinaryIO) -> Iterator[BinaryIO]:
    """Open a log, or *pipe*. Raises UsageError for what cannot be read or is no log."""
    if path is None:
        yield pipe
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise UsageError(
            "log.not-readable", f"cannot read {shown(name, 200)}: {error.strerror}"
        ) from error
    with stream:
        if stream.peek(len(_CORE))[: len(_CORE)] == _CORE:
            raise UsageError(
                "log.not-text",
                f"{shown(name, 200)} is a program or a core file, not a log",
                f"gdb -batch -ex 'thread apply all bt' PROGRAM {shown(name, 200)} | "
                "envbuild diagnose -",
            )
        yield stream
