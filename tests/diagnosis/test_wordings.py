"""Messages with their forms by release: the same symptom, whatever the letter case and numbers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from corpus import diagnosed, symptom_index

LINES = yaml.safe_load((Path(__file__).parent / "source_lines.yaml").read_text(encoding="utf-8"))
FORMS = yaml.safe_load((Path(__file__).parent / "wordings.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", FORMS, ids=[f"{f['symptom']}-{f['since']}" for f in FORMS])
def test_a_form_of_a_message(form: dict[str, str]) -> None:
    for text in (form["text"], re.sub("(?<!12)7", "9", form["text"])):
        findings = diagnosed(text.encode() + b"\n").findings
        assert [finding.id for finding in findings][:1] == [form["symptom"]]


def test_letter_case_does_not_matter() -> None:
    for form in FORMS:
        ids = [finding.id for finding in diagnosed(form["text"].upper().encode()).findings]
        assert form["symptom"] in ids, form


def test_several_programs_have_several_forms(capsys: pytest.CaptureFixture[str]) -> None:
    """Print the count of forms by program: ``pytest -s``."""
    programs = Counter(form["program"] for form in FORMS)
    with capsys.disabled():
        print("\nforms:", ", ".join(f"{name} {count}" for name, count in programs.most_common()))
    assert len({form["symptom"] for form in FORMS}) >= 75
    several = {
        "NCCL",
        "UCX",
        "Open MPI",
        "PRRTE",
        "MPICH",
        "Slurm",
        "Gloo",
        "PyTorch",
        "pip",
        "conda",
        "Apptainer",
    }
    assert all(programs[name] >= 4 for name in several), programs


@pytest.mark.parametrize(("source", "line"), [row[:2] for row in LINES])
def test_an_error_in_a_form_of_a_program_is_quoted_with_the_program(source: str, line: str) -> None:
    titles = {each.id: each.title for each in symptom_index().sources}
    (finding,) = diagnosed(line.encode()).findings
    assert (finding.id, finding.source) == ("unexplained", titles[source])
