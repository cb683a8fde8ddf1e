"""``envbuild diagnose``: what logs mean, which rank failed first. A build's own search as well."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import UsageError
from ..knowledge.matching import rows
from ..knowledge.rows import Knowledge, Row
from ..knowledge.symptoms import Symptom
from ..model.validation import Validation
from ..target_tools.files import IrregularFileError, open_regular
from ..text import counted, shown
from ..workflow.context import Context
from .conclusion import KnownSymptom, conclude
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
    known = known_symptoms(context.knowledge)
    signs = [each.sign for each in known]
    logs: dict[str, Findings] = {}
    for name, path in _logs(names, context):
        with _opened(name, path, pipe) as stream:
            logs[name] = search(stream, signs)
    found = conclude(list(logs), list(logs.values()), known)
    return found if validation is None else _confirmed(found, validation, known)


def build_hints(log: Path, knowledge: Knowledge) -> tuple[str, ...]:
    """Return what the log of a step that failed means, and what to do: causes, else the failure."""
    known = known_symptoms(knowledge)
    try:
        with open_regular(log) as stream:
            findings = search(stream, [each.sign for each in known])
    except IrregularFileError:
        return ()  # the step put it there; the message of its failure says so
    errors = [
        each
        for each in conclude([log.name], [findings], known).findings
        if each.severity == "error" and each.tells != "effect"
    ]
    causes = [each for each in errors if each.tells == "cause"]
    return tuple(map(_hint, (causes or errors)[:_HINTS]))


def _hint(found: Symptomatic) -> str:
    said = f"{found.cause}: {found.hint}" if found.cause else found.hint
    return f"{said} ({', '.join(found.advisories)})" if found.advisories else said


def known_symptoms(knowledge: Knowledge) -> tuple[KnownSymptom, ...]:
    """Return all that a log may show: symptoms, and the rows that have one, once for each.

    In the order in which they count at one place: causes, rows, then what says no cause.
    """
    by_pattern: dict[str, list[Row]] = {}
    for row in rows(knowledge):
        if row.symptom:
            by_pattern.setdefault(row.symptom, []).append(row)
    own = [KnownSymptom(symptom) for symptom in knowledge.symptoms]
    return (
        *(each for each in own if each.symptom.tells == "cause"),
        *(_of_rows(pattern, those) for pattern, those in by_pattern.items()),
        *(each for each in own if each.symptom.tells != "cause"),
    )


def _of_rows(pattern: str, those: Sequence[Row]) -> KnownSymptom:
    first = those[0]
    alone = len(those) == 1
    ids = tuple(row.id for row in those)
    return KnownSymptom(
        Symptom(
            id=first.id.lower(),
            pattern=pattern,
            cause=first.summary
            if alone
            else f"{counted(len(ids), 'advisory', 'advisories')} "
            f"have this symptom, such as: {first.summary}"[:400],
            hint=(alone and first.fix) or f"envbuild advisories show {first.id}",
            settle="the installed versions: envbuild advisories check COMPONENT==VERSION...",
            confidence="likely" if alone else "possible",
            severity="error" if any(row.severity == "error" for row in those) else "warning",
        ),
        ids,
    )


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
            each.model_copy(update={"confirmed": agree, "confidence": "certain"}) if agree else each
        )
    return found.model_copy(update={"findings": tuple(findings)})


def _logs(names: Sequence[str], context: Context) -> Iterator[tuple[str, Path | None]]:
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
def _opened(name: str, path: Path | None, pipe: BinaryIO) -> Iterator[BinaryIO]:
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
