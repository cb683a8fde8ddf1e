"""What the step verify found in the libraries of a build, read and checked where it comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from ..errors import BuildError
from ..model.base import Document
from ..model.evidence import BuildFact
from ..model.plan import Plan
from ..text import shown

FILE = "verified.json"


class _Report(Document):
    schema_: Literal[1] = Field(alias="schema")
    passed: Literal[True]
    facts: tuple[BuildFact, ...]


def read_build_facts(plan: Plan, build: Path) -> tuple[BuildFact, ...]:
    """Return what was found in the libraries that *plan* builds or takes from a module.

    *build*: the build folder. Nothing where it holds no record, as before there was that step.
    Raises BuildError for a record that is damaged, about something else, or of a build that is
    not as planned.
    """
    path = build / FILE
    try:
        report = _Report.model_validate_json(path.read_text(encoding="utf-8"), strict=True)
    except FileNotFoundError:
        return ()
    except ValidationError as error:
        raise _refusal(path, error.errors(include_input=False)[0]["msg"]) from error
    except ValueError as error:  # not UTF-8
        raise _refusal(path, str(error)) from error
    planned = {each.component for each in (*plan.builds, *plan.verified)}
    strangers = sorted({each.component for each in report.facts} - planned)
    if strangers:
        raise _refusal(path, f"the plan has no build of {strangers[0]}")
    return report.facts


def _refusal(path: Path, reason: str) -> BuildError:
    return BuildError(
        f"what was found in the built libraries cannot be read: {path}: {shown(reason)}",
        f"bash '{path.with_name('build.sh')}' verify looks at them again",
    )
