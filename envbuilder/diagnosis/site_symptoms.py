"""Symptoms of a site: written from a line of a log, and checked by the logs that show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import NamedTuple

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
from .search import Hit, search
from .values import AddedSymptom, Symptomatic
from .words import line_pattern, search_words

SYMPTOMS = Path("knowledge") / "symptoms.yaml"
CASES = Path("knowledge") / "cases"
"""A case is a log ID.log, or ID--ANYTHING.log, whose first finding is the symptom ID."""
_AROUND = 2
_LEAST_LETTERS = 8
_ID_WORDS = 4
_LIST = re.compile(r"^symptoms:[ \t]*(?:#.*)?\n(?P<indent> *)(?=- )", re.MULTILINE)


class SymptomText(NamedTuple):
    """What a person says of a line: why it comes, what to do, the page or ticket that states it."""

    cause: str
    fix: str
    source: str


def add_symptom(place: str, text: SymptomText, context: Context) -> AddedSymptom:
    """Write a symptom for the line LOG:LINE, and its case, into the site's folder.

    Errors that counted at this line are refuted by it. Raises UsageError if there is no such line
    or folder, or if the symptom would not be the first finding of its case.
    """
    folder = _site_folder(context)
    before, line, after = _excerpt(place, context)
    path = folder / SYMPTOMS
    pattern = line_pattern(line)
    if len(re.sub(r"[^A-Za-z]", "", pattern)) < _LEAST_LETTERS:
        raise UsageError("symptom.no-words", f"line {shown(line, 80)} has too few words to search")
    symptom = Symptom(
        id=_new_id(line, context.knowledge),
        pattern=pattern,
        cause=text.cause,
        hint=text.fix,
        refutes=_errors_at(line, context.knowledge),
        sources=(text.source,) if text.source else (),
    )
    case = _case(symptom, [[*before, line, *after], [line]], context.knowledge)
    case_path = folder / CASES / f"{symptom.id}.log"
    case_path.parent.mkdir(parents=True, exist_ok=True)
    written = path.read_text(encoding="utf-8") if path.exists() else "schema: 1\nsymptoms:\n"
    new_text = _with_row(written, symptom, path)
    write_atomically(case_path, case, is_new=True)
    write_atomically(path, new_text)
    return AddedSymptom(id=symptom.id, file=str(path), case=str(case_path), refutes=symptom.refutes)


def check_cases(folder: Path, context: Context) -> tuple[Path, ...]:
    """Return the cases of a site's folder, whose knowledge *context* has. Raises DocumentError."""
    cases = tuple(sorted((folder / CASES).glob("*.log")))
    symptoms = {symptom.id for symptom in context.knowledge.symptoms}
    problems = []
    for path in cases:
        name = path.stem.partition("--")[0]
        first = _first_finding(path.read_bytes(), context.knowledge)
        message = None
        if name not in symptoms:
            message = "symptom.unknown", f"there is no symptom {shown(name)}"
        elif first is None or first.id != name:
            other = f"'{first.id}'" if first else "nothing"
            message = "symptom.case-differs", f"the first finding is {other}, not '{name}'"
        if message:
            problems.append(Problem(*message, Place(str(path), 1, 1)))
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
    texts = [_plain(line, context) for line in lines]
    return texts[:index], texts[index], texts[index + 1 :]


def _plain(line: bytes, context: Context) -> str:
    text = "".join(each.text for each in LogLines(BytesIO(line)).read())
    return redact(text, context.environ).text


def _new_id(line: str, knowledge: Knowledge) -> str:
    hit = Hit(1, 1, None, (line,), (), (), {})
    words = re.findall(r"[a-z0-9]+", search_words(hit).lower())[:_ID_WORDS]
    name = "-".join(words)[:60]
    ids = {symptom.id for symptom in knowledge.symptoms}
    names = (name, *(f"{name}-{number}" for number in range(2, len(ids) + 3)))
    return next(each for each in names if each not in ids)


def _errors_at(line: str, knowledge: Knowledge) -> tuple[str, ...]:
    """Return the known errors that a line has."""
    index = SymptomIndex(knowledge)
    found = conclude(["log"], [search(BytesIO(line.encode()), index.signs)], index)
    return tuple(
        finding.id
        for finding in found.findings
        if finding.severity == "error" and finding.id != UNEXPLAINED
    )


def _first_finding(log: bytes, knowledge: Knowledge) -> Symptomatic | None:
    index = SymptomIndex(knowledge)
    return next(iter(conclude(["log"], [search(BytesIO(log), index.signs)], index).findings), None)


def _case(symptom: Symptom, excerpts: Sequence[Sequence[str]], knowledge: Knowledge) -> str:
    """Return the first of some excerpts whose first finding is the symptom."""
    new = knowledge.model_copy(update={"symptoms": (symptom, *knowledge.symptoms)})
    first = None
    for lines in excerpts:
        case = "\n".join(lines) + "\n"
        first = _first_finding(case.encode(), new)
        if first and first.id == symptom.id:
            return case
    other = f"'{first.id}' is" if first else "there is no finding"
    raise UsageError("symptom.not-first", f"{other} first in this line, not the new symptom")


def _with_row(text: str, symptom: Symptom, path: Path) -> str:
    """Return a file of symptoms with another one, which stands first."""
    plain = symptom.plain()
    kept = ("id", "pattern", "cause", "hint", "refutes", "sources")
    row = yaml_text([{name: plain[name] for name in kept if plain.get(name)}])
    if text.endswith("symptoms:\n"):
        return text + "".join(f"  {line}\n" for line in row.splitlines())
    place = _LIST.search(text)
    if place is None:
        raise UsageError(
            "symptom.cannot-insert", f"{shown(str(path), 200)} has no list 'symptoms:' of rows"
        )
    indented = "".join(f"{place['indent']}{line}\n" for line in row.splitlines())
    start = place.start("indent")
    return text[:start] + indented + text[start:]
