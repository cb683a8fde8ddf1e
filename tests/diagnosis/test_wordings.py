"""Messages with their forms by release: the same symptom, whatever the letter case and numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from corpus import diagnosed

FORMS = yaml.safe_load((Path(__file__).parent / "wordings.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("form", FORMS, ids=[f"{f['symptom']}-{f['since']}" for f in FORMS])
def test_a_form_of_a_message(form: dict[str, str]) -> None:
    for text in (form["text"], form["text"].replace("7", "9")):
        findings = diagnosed(text.encode() + b"\n").findings
        assert [finding.id for finding in findings][:1] == [form["symptom"]]


def test_letter_case_does_not_matter() -> None:
    for form in FORMS:
        ids = [finding.id for finding in diagnosed(form["text"].upper().encode()).findings]
        assert form["symptom"] in ids, form


def test_several_programs_have_several_forms() -> None:
    programs = {form["program"] for form in FORMS}
    assert len(programs) >= 15
    assert len(FORMS) >= 45
