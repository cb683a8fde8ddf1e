"""What is wrong with an environment, for other programs: JUnit's XML, SARIF, and a baseline.

Sources: SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), and JUnit's XML as Jenkins
reads it (junit-10.xsd of its xUnit plugin, https://github.com/jenkinsci/xunit-plugin).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import yaml

from .. import __version__
from ..base import canonical_json, sha256_text
from ..errors import UsageError
from ..knowledge.entries import check_choice
from ..knowledge.terms import Severity
from ..model.validation import CheckInfo, Finding, Observation, Validation

_LEVELS: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_SARIF = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_HEAD = """\
# Findings that envbuild validate accepts, each with a reason. In a summary, * matches any text;
# without a summary, all findings of the id are accepted.
"""


def check_form(form: str | None, *, as_json: bool) -> None:
    """Raise UsageError for a form that there is not, or beside --json."""
    check_choice("form", form, REPORTS)
    if form and as_json:
        raise UsageError(
            "option.conflict",
            "--as and --json cannot be combined",
            "leave one of them out",
        )


def junit(value: Validation, table: Sequence[CheckInfo]) -> str:
    """Return a test for each finding, and one that passed for each check that found nothing.

    Errors fail. Warnings do not, as they do not count for the exit code: they are what a test that
    passed printed. What the baseline accepts, and what nobody can decide, is skipped.
    """
    cases = [_case(each) for each in value.findings]
    cases += [
        _skipped(row.id, row.summary, f"undecided: {', '.join(row.open)}")
        for row in value.undecided
    ]
    cases += [
        _skipped(each.id, ", ".join(each.examples) or "all", f"unchecked: {each.reason}")
        for each in value.unchecked
    ]
    found = {each.id for each in value.findings} | {each.id for each in value.unchecked}
    cases += [_test(each.id, each.title) for each in table if each.id not in found]
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    numbers = {"tests": str(len(cases)), "failures": str(failed), "errors": "0"}
    suites = ElementTree.Element("testsuites", {"name": "envbuild validate", **numbers})
    about = {"name": value.path, **numbers, "skipped": str(skipped)}
    ElementTree.SubElement(suites, "testsuite", about).extend(cases)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _test(id_: str, name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"classname": id_, "name": name})


def _skipped(id_: str, name: str, why: str) -> ElementTree.Element:
    case = _test(id_, name)
    ElementTree.SubElement(case, "skipped", {"message": why})
    return case


def _case(found: Finding) -> ElementTree.Element:
    if found.accepted is not None:
        return _skipped(found.id, found.summary, f"accepted: {found.accepted}")
    case = _test(found.id, found.summary)
    lines = [f"in {_place(each)}" for each in found.evidence]
    text = "\n".join([*lines, f"why: {found.why}", f"fix: {found.fix}", f"source: {found.source}"])
    if found.severity == "error":
        said = {"type": "error", "message": found.summary}
        ElementTree.SubElement(case, "failure", said).text = text
    else:
        ElementTree.SubElement(case, "system-out").text = f"{found.severity}\n{text}"
    return case


def _place(each: Observation) -> str:
    return each.file + (f" {_said(each)}" if each.field else "")


def _said(each: Observation) -> str:
    return f"{each.field}: {each.value}" if each.value else each.field or "-"


def sarif(value: Validation, table: Sequence[CheckInfo]) -> str:
    """Return a run: each check is a rule, each finding a result; the baseline suppresses.

    What a check or an advisory cannot decide is a notification of the run.
    """
    rules = {each.id: _rule(each, each.title) for each in table}
    for each in value.findings:
        rules.setdefault(each.id, _rule(each, each.summary))
    names = list(rules)
    base = f"file://{quote(value.path.rstrip('/'))}/"
    run = {
        "tool": {
            "driver": {"name": "envbuild", "version": __version__, "rules": list(rules.values())}
        },
        "originalUriBaseIds": {"ENVIRONMENT": {"uri": base}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, names.index(each.id)) for each in value.findings],
        "invocations": [
            {"executionSuccessful": True, "toolExecutionNotifications": [*_undecided(value)]}
        ],
    }
    return canonical_json({"$schema": _SARIF, "version": "2.1.0", "runs": [run]})


def _undecided(value: Validation) -> Iterator[dict[str, Any]]:
    """Yield a notification for each check and each advisory that lacks a fact."""
    texts = [(row.id, f"undecided: {', '.join(row.open)}") for row in value.undecided]
    texts += [(each.id, f"unchecked: {each.reason}") for each in value.unchecked]
    for id_, text in texts:
        yield {"descriptor": {"id": id_}, "level": "note", "message": {"text": text}}


def _rule(each: CheckInfo | Finding, title: str) -> dict[str, Any]:
    return {
        "id": each.id,
        "shortDescription": {"text": title},
        "fullDescription": {"text": each.why},
        "help": {"text": each.fix},
        "helpUri": each.source,
        "defaultConfiguration": {"level": _LEVELS[each.severity]},
    }


def _result(found: Finding, rule: int) -> dict[str, Any]:
    accepted = [] if found.accepted is None else [found.accepted]
    return {
        "ruleId": found.id,
        "ruleIndex": rule,
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.summary}\nfix: {found.fix}"},
        "locations": list(_locations(found)),
        "partialFingerprints": {"finding/v1": sha256_text(f"{found.id}\n{found.summary}")},
        # With an empty list a viewer knows that none of them is suppressed.
        "suppressions": [{"kind": "external", "justification": each} for each in accepted],
        "properties": {"confidence": found.confidence},
    }


def _locations(found: Finding) -> Iterator[dict[str, Any]]:
    for each in found.evidence:
        if each.file == "...":  # of many more their number alone
            continue
        inside = not each.file.startswith("/")
        where = quote(each.file) if inside else f"file://{quote(each.file)}"
        place: dict[str, Any] = {"uri": where, **({"uriBaseId": "ENVIRONMENT"} if inside else {})}
        said = {"message": {"text": _said(each)}} if each.field else {}
        yield {"physicalLocation": {"artifactLocation": place}, **said}


def baseline(value: Validation, _: Sequence[CheckInfo]) -> str:
    """Return the baseline that accepts what is found; its reasons are to be written."""
    rows = [
        {"id": each.id, "summary": each.summary, "reason": each.accepted or ""}
        for each in value.findings
    ]
    text: str = yaml.safe_dump(
        {"schema": 1, "accepted": rows}, sort_keys=False, width=1000, allow_unicode=True
    )
    return _HEAD + text


REPORTS: Mapping[str, Callable[[Validation, Sequence[CheckInfo]], str]] = {
    "junit": junit,
    "sarif": sarif,
    "baseline": baseline,
}
