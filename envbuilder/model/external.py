"""What a root remembers of an environment that others built: where it lies, what was found."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line, Name
from .validation import Validation


class ExternalEnvironment(Document):
    """An environment that is listed and never changed."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    name: Name
    path: Line  # Absolute path of a folder or image.
    imported: Line  # Time of the import, ISO 8601 in UTC.
    validation: Validation
