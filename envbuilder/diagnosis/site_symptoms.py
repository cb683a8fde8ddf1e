"""Symptoms of a site: written from a line of a log, and checked by the logs that show them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from itertools import islice
from pathlib import Path

from .. import data
from ..errors import DocumentError, Place, Problem, UsageError
from ..formats.writing import yaml_text
from ..knowledge.rows import Knowledge
from ..knowledge.symptoms import Symptom
from ..redaction.redact import redact
from ..target_tools.files import write_atomically
from ..text import shown
from ..workflow.context import Context
from .command import open_log
from .conclusion import conclude
from .index import SymptomIndex
from .places import UNEXPLAINED
from .reading import LogLines
from .search import search
from .words import line_pattern

CASES = Path("knowledge") / "cases"
"""A case is a log ID.log, or ID--ANYTHING.log, whose first finding is the symptom ID."""
_AROUND = 2
_LEAST_LETTERS = 8
_LIST = re.compile(r"^symptoms:[ \t]*\n(?=(?P<indent> *))", re.MULTILINE)


def add_symptom(place: str, cause: str, fix: str, source: str, context: Context) -> dict[str, str]:
    """Write a symptom for the line LOG:LINE, and its case, into the site's folder.

    Known errors of this line are refuted by it. Returns the id and the files. Raises UsageError if
    there is no such line or folder, or if the symptom would not be the first finding of its case.
    """
    folder, knowledge = _site_folder(context), context.knowledge
    path = folder / "knowledge" / "symptoms.yaml"
    before, line, after = _excerpt(place, context)
    pattern = line_pattern(line)
    if len(re.findall("[A-Za-z]", pattern)) < _LEAST_LETTERS:
        raise UsageError("symptom.no-words", f"line {shown(line, 80)} has too few words to search")
    row = {
        "id": _new_id(line, {symptom.id for symptom in knowledge.symptoms}),
        "pattern": pattern,
        "cause": cause,
        "hint": fix,
        "refutes": [name for name in _ids([line], knowledge) if name != UNEXPLAINED],
        "sources": [source] if source else [],
    }
    symptom = Symptom(**row)
    new = knowledge.model_copy(update={"symptoms": (symptom, *knowledge.symptoms)})
    cases = ([*before, line, *after], [line])
    case = next((case for case in cases if _ids(case, new)[:1] == [symptom.id]), None)
    text = path.read_text(encoding="utf-8") if path.exists() else "schema: 1\nsymptoms:\n"
    rows = _LIST.search(text)
    if case is None or rows is None:
        reason = "another finding is first in this line" if rows else f"{path} has no list of rows"
        raise UsageError("symptom.not-written", reason)
    added = yaml_text([{name: value for name, value in row.items() if value}])
    indented = "".join(f"{rows['indent']}{each}\n" for each in added.splitlines())
    case_path = folder / CASES / f"{symptom.id}.log"
    case_path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(case_path, "\n".join([*case, ""]), is_new=True)
    write_atomically(path, text[: rows.end()] + indented + text[rows.end() :])
    refuted = ", ".join(symptom.refutes)
    return {"id": symptom.id, "row": str(path), "case": str(case_path), "refutes": refuted}


def check_cases(folder: Path, context: Context) -> tuple[Path, ...]:
    """Return the cases of a site's folder, whose knowledge *context* has. Raises DocumentError."""
    cases = tuple(sorted((folder / CASES).glob("*.log")))
    problems = []
    for path in cases:
        name = path.stem.partition("--")[0]
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        first = next(iter(_ids(lines, context.knowledge)), "nothing")
        if first != name:
            message = f"the first finding is '{first}', not '{shown(name)}'"
            problems.append(Problem("symptom.case-differs", message, Place(str(path), 1, 1)))
    known = context.knowledge
    ids = {row.id for row in known.symptoms} | {row.id for row in known.advisories}
    for symptom in known.symptoms:
        for name in set(symptom.refutes) - ids:
            message = f"{symptom.id} refutes '{shown(name)}', which does not exist"
            problems.append(Problem("symptom.unknown", message))
    if problems:
        raise DocumentError(tuple(problems))
    return cases


def _site_folder(context: Context) -> Path:
    folder = context.path(context.folders[0])
    if folder == data.RECIPES or (context.feed and folder == context.feed[1]):
        raise UsageError(
            "symptom.no-folder",
            "there is no folder for symptoms of your own",
            "name one: --recipes DIR, or ENVBUILD_PATH=DIR",
        )
    return folder


def _excerpt(place: str, context: Context) -> tuple[list[str], str, list[str]]:
    """Return the lines before LOG:LINE, that line and those after it, without secrets."""
    name, _, number = place.rpartition(":")
    if not name or not number.isdecimal() or not int(number):
        raise UsageError("symptom.malformed-place", f"{shown(place, 200)} is not LOG:LINE")
    first = max(0, int(number) - 1 - _AROUND)
    with open_log(name, context.path(name), BytesIO()) as stream:
        lines = list(islice(stream, first, int(number) + _AROUND))
    index = int(number) - 1 - first
    if index >= len(lines):
        raise UsageError("symptom.no-line", f"{shown(name, 200)} has no line {number}")
    plain = ("".join(part.text for part in LogLines(BytesIO(line)).read()) for line in lines)
    texts = [redact(text, context.environ).text for text in plain]
    return texts[:index], texts[index], texts[index + 1 :]


def _new_id(line: str, ids: set[str]) -> str:
    name = "-".join(re.findall(r"[a-z]{2,}", line.lower())[:4])[:60]
    names = (name, *(f"{name}-{number}" for number in range(2, len(ids) + 3)))
    return next(each for each in names if each not in ids)


def _ids(lines: Iterable[str], knowledge: Knowledge) -> list[str]:
    """Return the findings of a log, the first one first."""
    index = SymptomIndex(knowledge)
    log = search(BytesIO("\n".join(lines).encode()), index.signs)
    return [finding.id for finding in conclude(["log"], [log], index).findings]
