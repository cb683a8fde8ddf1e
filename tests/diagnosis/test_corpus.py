"""The right cause first, in logs that programs really wrote; no error in harmless ones."""

from __future__ import annotations

import re

import pytest
from corpus import LOGS, MARK, PAGE, diagnosed, index, known, outcomes, page, signs
from field_cases import table

from envbuilder.diagnosis.signs import Sign
from tests import goldens

# What is wrong today, each with why. Whoever mends one takes it out.
MISSED = {
    "ompi4-badrank": "Open MPI 4.1.4 lost its own message: Data unpack would read past end",
    "ompi4-iface": "that an interface is left out is a warning; the error after it is told first",
}


def test_the_logs_are_those_of_the_index() -> None:
    assert {f"{log.name}.log" for log in index()} == {path.name for path in LOGS.glob("*.log")}
    assert sum(log.first is not None for log in index()) >= 80
    assert sum(log.first is None for log in index()) >= 40


def test_the_right_cause_is_first() -> None:
    wrong = {each.log.name: each.ids for each in outcomes() if each.log.first and not each.right}
    assert set(wrong) == set(MISSED), wrong


def test_no_error_is_invented() -> None:
    assert not [each for each in outcomes() if not each.log.first and each.errors]


def test_the_table_in_docs_is_this_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before = text.partition(MARK)[0]
    goldens.compare(PAGE, before + MARK + "\n".join([*table(), "", page()]))


def test_no_finding_depends_on_what_stands_before_it() -> None:
    """All broken logs in one, as the output of one long job: each has its finding."""
    everything = b"\n\n".join(log.data for log in index() if log.first)
    found = {each.id for each in diagnosed(everything).findings}
    alone = {each.log.first for each in outcomes() if each.right and each.log.first}
    # Other lines refute these: another log states a release of Horovod, NCCL's reason, an isolated
    # build, a crash of the compiler, aarch64, a PMIx that does not load, a start on another node,
    # no MODULEPATH.
    refuted = {"HVD-036", "horovodrun-unknown-mpi", "nccl-error", "no-module", "slurm-pmi"}
    assert alone - found <= {
        *refuted,
        "library-not-found",
        "module-unknown",
        "source-does-not-compile",
        "torch-cpu-build",
    }


def test_each_symptom_has_a_source_or_a_log() -> None:
    logs = {name for each in outcomes() for name in each.ids}
    assert not [
        each.id
        for each in known()
        if not (each.advisories or each.symptom.sources or each.symptom.id in logs)
    ]


def test_quick_search_for_plain_text_finds_what_the_expressions_find() -> None:
    text = "\n".join(log.data.decode("utf-8", "replace") for log in index())
    seen = 0
    for sign in signs():
        for match in sign.expression.finditer(text):
            found = match[0].lower()
            assert sign.needles is None or any(each in found for each in sign.needles), sign
            seen += 1
    assert seen > len(index())


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        ("No space left|Errno 28\\b", ("no space left", "errno 28")),
        ("cannot find -l(?P<name>\\w+)", ("cannot find -l",)),
        ("(abcdef)?ghijk", ("ghijk",)),
        ("abcdefg?", ("abcdef",)),
        ("abcd{2}efgh", ("efgh",)),
        ("(one two|three four) x", ("one two", "three four")),
        ("(?!never)x.y", None),
        ("a[bcd]+e", None),
        ("(?i)Need C\\+\\+17", ("need c++17",)),
        ("[|]alternative(x|)", ("alternative",)),
    ],
)
def test_the_plain_text_of_an_expression(pattern: str, needles: tuple[str, ...] | None) -> None:
    assert Sign("x", pattern).needles == needles


def test_no_expression_reads_on_without_an_end() -> None:
    """``[\\s\\S]*`` would read the rest of the log at each place where it may begin."""
    for sign in signs():
        assert not re.search(r"\[\\s\\S\][*+]", sign.pattern), sign


def test_all_that_is_said_fits_and_is_filled_in() -> None:
    for each in (finding for log in index() for finding in diagnosed(log.data).findings):
        for text in (each.cause, each.hint, each.settle):
            assert text is None or not re.search(r"\{[a-z_]+\}|  ", text), each
    for known_one in known():
        assert known_one.symptom.cause or known_one.symptom.hint
