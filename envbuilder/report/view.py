"""The report for a support desk, as one text; and what is said when it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..diagnosis.values import Diagnosis
from ..diagnosis.view import diagnosis as diagnosis_text
from ..doctor.view import doctor as doctor_text
from ..machine.item_values import DoctorReport
from ..model.validation import Validation
from ..text import counted, filled
from ..validate.view import validation as validation_text
from ..views.layout import joined
from .values import SupportReport


@joined
def report(
    head: Mapping[str, str],
    machine: DoctorReport,
    validation: Validation | None,
    diagnosis: Diagnosis | None,
    variables: Mapping[str, str],
    tails: Mapping[str, str],
) -> Iterator[str]:
    """Return the whole text. *head*: lines of names and values. *tails*: the ends of logs."""
    yield "envbuild report for the support desk"
    yield ""
    for name, value in head.items():
        yield from filled(f"{name + ':':<13}", value)
    if diagnosis is not None:
        yield from _part("Diagnosis of the logs", diagnosis_text(diagnosis, everything=True))
    if validation is not None:
        title = "Findings in the environment"
        yield from _part(title, validation_text(validation, everything=True))
    yield from _part("The machine", doctor_text(machine))
    listed = "\n".join(f"{name}={value}" for name, value in sorted(variables.items()))
    yield from _part("Variables", listed or "no relevant variable is set")
    for name, text in tails.items():
        yield from _part(f"The end of {name}", text or "it is empty")


def _part(title: str, text: str) -> Iterator[str]:
    yield ""
    yield f"== {title} =="
    yield ""
    yield from text.splitlines()


@joined
def written(value: SupportReport) -> Iterator[str]:
    """Return where it is and what was left out of it."""
    yield f"{value.file}: {counted(value.lines, 'line')}"
    left = ", ".join(f"{each.what} ({each.count})" for each in value.left_out)
    yield from filled("removed: ", left or "nothing that looks like a secret")
    yield "Read the file before you send it: some secrets may not look like secrets."
