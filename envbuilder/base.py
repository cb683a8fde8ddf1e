"""The base of every document and every value that is kept as JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    GetPydanticSchema,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core.core_schema import no_info_after_validator_function, str_schema

from .target_tools.files import canonical_json as canonical_json  # noqa: PLC0414


def kebab(name: str) -> str:
    """Spell a field the way documents do: ``system_site_packages`` -> ``system-site-packages``."""
    return name.rstrip("_").replace("_", "-")


class Document(BaseModel):
    """A frozen value that refuses unknown keys and is written with hyphens in its keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=kebab,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
        defer_build=True,
    )

    def plain(self) -> dict[str, Any]:
        """Return the value as JSON types, keys spelt as in documents."""
        return self.model_dump(mode="json", by_alias=True)


def sha256_text(text: str) -> str:
    """Return the sha256 of *text* in UTF-8 as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


_adapter = cache(TypeAdapter[str])


def fits(kind: Any, text: str) -> bool:
    """Whether a document may hold *text* as a type such as Line: what a machine says need not."""
    try:
        _adapter(kind).validate_python(text)
    except ValidationError:
        return False
    return True


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of printable characters")
    return text


# Everything a document says ends up in scripts, modulefiles or tables: a line break or a control
# character has no honest use there, so no field but a Text admits one.
def _text(**limits: Any) -> GetPydanticSchema:
    """Return the constraint of one line of text within *limits*, those of ``str_schema``.

    A schema: pydantic would derive it from its own constraints for each of 300 fields anew. Within
    another one of these it is the only one that counts.
    """
    return GetPydanticSchema(
        lambda *_: no_info_after_validator_function(_one_line, str_schema(**limits))
    )


Line = Annotated[str, _text(min_length=1, max_length=500)]

LONGEST_COMMAND = 4000
Command = Annotated[str, _text(min_length=1, max_length=LONGEST_COMMAND)]
"""A line that may hold a whole command, with its paths."""

WANTED: dict[str, str] = {}
"""What a text that fails a pattern should have been, by the pattern."""


def spelt(pattern: str, wanted: str, max_length: int | None = None) -> GetPydanticSchema:
    """Return the constraint of a line that has a pattern; *wanted* says so in words.

    A pattern without ``[^...]`` admits printable ASCII only: nothing else is checked then.
    """
    WANTED[pattern] = f"must be {wanted}"
    if "[^" in pattern:
        return _text(pattern=pattern, max_length=max_length)
    return GetPydanticSchema(lambda *_: str_schema(pattern=pattern, max_length=max_length))


Name = Annotated[
    str,
    spelt(
        r"^[a-z0-9]+(?:[._+-][a-z0-9]+)*$",
        "lower-case letters and digits with single '.', '_', '+' or '-' between them",
        64,
    ),
]
"""A recipe, site, environment or component name: lower case, digits, single ``. _ + -`` between."""

VariableName = Annotated[
    str, spelt(r"^[A-Za-z_][A-Za-z0-9_]*$", "a variable name: letters, digits and '_'", 200)
]

GitCommit = Annotated[str, spelt(r"^[0-9a-f]{40}$", "a git commit: 40 hex digits")]
Sha256 = Annotated[str, spelt(r"^[0-9a-f]{64}$", "a sha256: 64 hex digits")]

ModuleName = Annotated[
    str,
    spelt(
        r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/\.?[A-Za-z0-9][A-Za-z0-9._+-]*)*$",
        "a module name such as OpenMPI/3.1.4-gcccuda-2018b",
        200,
    ),
]
"""``Name/version`` as it is given to ``module load``; a hidden one is ``Name/.version``."""

CHECKED = "checked"
"""A validation context: what is read was checked when it was compiled, and its sources are those
of then. Parsing its ranges, conditions and patterns once more would cost a plan a tenth of its
time."""


def checked_once(check: Callable[[str], str]) -> AfterValidator:
    """Return the validator that makes a check of text but where everything was checked before."""

    def validate(text: str, info: ValidationInfo) -> str:
        return text if info.context == CHECKED else check(text)

    return AfterValidator(validate)


Day = Annotated[str, spelt(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "a date such as 2021-12-01")]
