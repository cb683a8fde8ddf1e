"""Knowledge: what is known of components, whatever recipe or site asks."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from .base import Document, Line, Name
from .recipe import Arch
from .site import PlainVersion


class Component(Document):
    """One canonical name and what the package worlds call it."""

    summary: Line
    modules: tuple[Line, ...] = ()
    conda: Line | None = None
    pip: Line | None = None
    debian: Line | None = None
    fulfils: tuple[Name, ...] = Field(default=(), description="Virtuals such as mpi.")
    python_import: Line | None = Field(
        default=None, alias="import", description="What Python imports it as."
    )


class Release(Document):
    """One release of a component on the Python package index."""

    version: PlainVersion
    requires_python: Line | None = None
    arch: tuple[Arch, ...] = Field(
        default=(), description="Architectures with binary wheels; none: pure Python, fits all."
    )
    wheels: bool = Field(default=True, description="False: only sources, which need a compiler.")
    pythons: tuple[PlainVersion, ...] = Field(
        default=(),
        description="CPython series with binary wheels, such as 3.12; none: every Python that "
        "requires-python admits.",
    )
    glibc: PlainVersion | None = Field(
        default=None, description="The oldest glibc on which all its binary wheels run."
    )


class Components(Document):
    schema_: Literal[1] = Field(alias="schema")
    components: dict[Name, Component]


class Versions(Document):
    """The recorded index: releases that exist, as of *recorded*."""

    schema_: Literal[1] = Field(alias="schema")
    recorded: Line
    source: Line
    releases: dict[Name, tuple[Release, ...]]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return pattern


class Symptom(Document):
    """Text in the log of a failed step whose cause a reader would not guess from it."""

    id: Name
    pattern: Annotated[Line, AfterValidator(_compiles)] = Field(
        description="Regular expression, searched for in the log."
    )
    hint: Line


class Symptoms(Document):
    schema_: Literal[1] = Field(alias="schema")
    symptoms: tuple[Symptom, ...]


class Knowledge(Document):
    """All of it, merged over the folders that were searched."""

    components: dict[Name, Component]
    releases: dict[Name, tuple[Release, ...]]
    symptoms: tuple[Symptom, ...] = ()
