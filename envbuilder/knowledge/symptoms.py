"""Symptoms: text in logs, with what it means and what to do."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, model_validator

from ..base import CHECKED, Document, Line, Name, checked_once
from ..text import shown
from .conditions import ConditionText


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


Pattern = Annotated[Line, checked_once(_compiles)]

Confidence = Literal["certain", "likely", "possible"]
"""``certain``: it follows from what was read. ``likely``: from what usually happens then.
``possible``: it depends on what a program does, or on what was not read."""

SymptomTells = Literal["cause", "failure", "wait", "effect"]
"""What a line says: why something fails; that it fails, and not why; that others did not come; that
something else failed."""

_FIELD = re.compile(r"\{([a-z_]+)\}")
# What is left of a sentence where a group matched nothing.
_GAP = re.compile(r" +(?=[ ,:;]|$)|[: ]+$")


class Symptom(Document):
    """A text in logs whose cause is not obvious.

    ``cause``, ``hint`` and ``settle`` may name groups of the pattern: ``{library} is not found``.
    """

    id: Name
    pattern: Pattern = Field(description="Regular expression to search for in logs.")
    cause: Line | None = Field(default=None, description="The cause (default: stated in the hint).")
    hint: Line = Field(description="What to do.")
    settle: Line | None = Field(
        default=None, description="The fact that shows whether this is the cause."
    )
    confidence: Confidence = Field(default="likely", description="How certain the cause is.")
    tells: SymptomTells = Field(
        default="cause", description="What the line reports; causes are listed before effects."
    )
    severity: Literal["error", "warning"] = "error"
    checks: tuple[Line, ...] = Field(
        default=(), description="Findings of validate that confirm it."
    )
    context: Pattern | None = Field(
        default=None,
        description="Regular expression that must match elsewhere in the log; it is a second fact.",
    )
    confirmed_by: Pattern | None = Field(
        default=None, description="Regular expression of another line that confirms it."
    )
    refuted_by: Pattern | None = Field(
        default=None, description="Regular expression of another line that refutes it."
    )
    when: ConditionText | None = Field(
        default=None,
        description="Condition over facts in the log, such as nccl.version < '2.15'. If it is "
        "false, this is not the cause; if it is true, it is a second fact.",
    )
    refutes: tuple[Line, ...] = Field(
        default=(),
        description="Symptoms and advisories that do not count in a log that contains this one.",
    )
    sources: tuple[Line, ...] = Field(default=(), description="Pages that state it.")
    repeated: int = Field(default=1, ge=1, description="How often the log must contain it.")

    @model_validator(mode="after")
    def _fields_are_groups(self, info: ValidationInfo) -> "Symptom":
        if info.context == CHECKED:
            return self
        groups = re.compile(self.pattern).groupindex
        for text in (self.cause, self.hint, self.settle):
            for name in _FIELD.findall(text or ""):
                if name not in groups:
                    raise ValueError(f"the pattern has no group {name!r}")
        return self

    def explain(self, groups: Mapping[str, str]) -> "Symptom":
        """Return it with what a match's groups were, in the place of their names."""

        def said(text: str | None) -> str | None:
            if text is None or "{" not in text:
                return text
            filled = _FIELD.sub(lambda found: shown(groups.get(found[1], ""), 120), text)
            return shown(_GAP.sub("", filled), 480)

        return self.model_copy(
            update={name: said(getattr(self, name)) for name in ("cause", "hint", "settle")}
        )

    @property
    def advice(self) -> str:
        """What it means and what to do, in one line."""
        return f"{self.cause}: {self.hint}" if self.cause else self.hint
