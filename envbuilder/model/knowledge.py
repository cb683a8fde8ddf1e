"""Knowledge: what is known of components, whatever recipe or site asks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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


class Components(Document):
    schema_: Literal[1] = Field(alias="schema")
    components: dict[Name, Component]


class Versions(Document):
    """The recorded index: releases that exist, as of *recorded*."""

    schema_: Literal[1] = Field(alias="schema")
    recorded: Line
    source: Line
    releases: dict[Name, tuple[Release, ...]]


class Knowledge(Document):
    """All of it, merged over the folders that were searched."""

    components: dict[Name, Component]
    releases: dict[Name, tuple[Release, ...]]
