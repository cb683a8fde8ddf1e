"""The files of knowledge as they are written: what each may say. A plan of cached knowledge reads
none of them.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from ..base import Day, Document, Line, Name, VariableName
from .channels import Channel, SourceTrees
from .components import Component, CudaDriver, Existing, Release, WheelBuild
from .log_sources import LibraryName, LogSource
from .rows import STEMS, Advisory, Coupling, Flag, FlagRule, Generation, ToolchainKind
from .symptoms import Symptom
from .terms import PlainVersion


class _KnowledgeDocument(Document):
    schema_: Literal[1] = Field(alias="schema")


class Components(_KnowledgeDocument):
    components: dict[Name, Component]


class Versions(_KnowledgeDocument):
    """The known releases, as of *recorded*.

    ``releases``: releases on the Python package index, with the facts that an installer needs;
    ``existing``: releases of all other components. ``builds``: what wheels contain.
    """

    recorded: Day
    source: Line
    releases: dict[Name, tuple[Release, ...]] = Field(default_factory=dict)
    existing: dict[Name, Existing] = Field(default_factory=dict)
    builds: dict[Name, tuple[WheelBuild, ...]] = Field(default_factory=dict)
    cuda_drivers: dict[PlainVersion, CudaDriver] = Field(default_factory=dict)
    source_trees: dict[Name, SourceTrees] = Field(default_factory=dict)
    channels: dict[Name, Channel] = Field(
        default_factory=dict, description="The conda channels and their packages."
    )


class Symptoms(_KnowledgeDocument):
    symptoms: tuple[Symptom, ...]


class LogSources(_KnowledgeDocument):
    log_sources: tuple[LogSource, ...] = Field(alias="sources")


class Libraries(_KnowledgeDocument):
    library_names: tuple[LibraryName, ...] = Field(alias="libraries")


class Advisories(_KnowledgeDocument):
    advisories: tuple[Advisory, ...]


class Couplings(_KnowledgeDocument):
    couplings: tuple[Coupling, ...]


class Toolchains(_KnowledgeDocument):
    kinds: dict[Line, ToolchainKind]
    generations: dict[Line, Generation]


class Flags(_KnowledgeDocument):
    flags: dict[VariableName, Flag]
    flag_rules: tuple[FlagRule, ...] = Field(alias="rules")


_KINDS: tuple[type[Document], ...] = (
    *(Components, Versions, Symptoms, Advisories, Couplings, Toolchains, Flags),
    *(LogSources, Libraries),
)
FILES: Mapping[str, type[Document]] = dict(zip(STEMS, _KINDS, strict=True))
"""The kind of each file by its stem. A field that Knowledge has too is a section of it."""
