"""Knowledge: what is known of components, whatever recipe or site asks.

Every row has a source. Nothing of it is in code: the resolver knows only the shapes below.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from ..base import Day, Document, Line, Name, VariableName
from .channels import Channel, SourceTrees
from .components import Component, CudaDriver, Existing, Release, WheelBuild
from .conditions import Condition, ConditionText
from .log_sources import LibraryName, LogSource
from .ranges import VersionRange
from .symptoms import Pattern, Symptom
from .terms import AdvisoryId, Arch, Origin, PlainVersion, Severity

STEMS = (
    *("components", "versions", "symptoms", "advisories", "couplings", "toolchains", "flags"),
    *("log-sources", "libraries"),
)
"""The files of a folder of knowledge, in the order of reading and hashing."""


EvidenceKind = Literal["source-statement", "derived", "issue-report", "packager", "run"]
"""Who says so: the project itself, what follows from its code, a report in its tracker, a packager
(EasyBuild, Spack) by what it forbids or patches, or somebody who ran it."""


class Selector(Document):
    """Releases of a component from certain origins."""

    range: VersionRange
    origin: tuple[Origin, ...] = Field(default=(), description="Only these origins (default: any).")


Selection = VersionRange | Selector
"""Which releases: ``>=1.2,<2``, or ``{range: ..., origin: [pip]}``."""

Ranges = VersionRange | tuple[VersionRange, ...]
"""One range, or several of which one must match."""

RemedyKind = Literal["patch", "variable", "pip-option", "flag", "component", "build-version"]


class Remedy(Document):
    """A change that lifts an advisory. Plans show it; it is not a waiver.

    ``patch``: a file in recipes/patches, or one that the module's builder applied.
    ``variable``: *name* = *value* in the build's environment. ``pip-option``: *value* on pip's
    command line. ``flag``: *name* = *value* among the runtime's flags. ``component``: *name* is in
    the environment, in the range *value*. ``build-version``: *name* in the optional
    range *value*, only during the build.
    """

    id: Name
    kind: RemedyKind
    name: Line
    value: Line | None = None
    when: ConditionText | None = Field(
        default=None,
        description="Condition under which the remedy works; it must be known to be true.",
    )
    affected: Ranges | None = Field(
        default=None, description="Releases that the remedy works for (default: all affected ones)."
    )
    proved: bool = Field(
        default=False,
        description="Whether the remedy was tested with the newest releases; the resolver then "
        "accepts it without a penalty.",
    )
    source: Line


class Row(Document):
    """What all rows share: id, weight, who says so, condition, remedies."""

    id: AdvisoryId
    severity: Severity
    summary: Line = Field(description="The effect, in a few words.")
    fix: Line | None = Field(default=None, description="The solution, in a few words.")
    when: ConditionText = Field(default="true", description="Condition under which it applies.")
    unknown: Literal["info", "warning", "error"] = Field(
        default="warning",
        description="Severity if a fact of *when* is unknown; info: the resolver ignores it.",
    )
    evidence: EvidenceKind
    sources: tuple[Line, ...] = Field(min_length=1)
    remedies: tuple[Remedy, ...] = ()
    symptom: Pattern | None = Field(
        default=None, description="Regular expression that matches its trace in a log."
    )
    note: Line | None = None
    replaced_by: AdvisoryId | None = Field(
        default=None,
        description="The rule that says the same for all releases. The row itself no longer "
        "counts; its id stays valid, and waives the rule for these releases.",
    )
    demoted: Line | None = Field(
        default=None, description="Why its severity is lower than its source states."
    )
    confirmed_to: PlainVersion | dict[Name, PlainVersion] | None = Field(
        default=None,
        description="For ranges without an upper end: the last release that the source is known to "
        "hold for, of the component of the row, or of each one. 13.3 includes 13.3.1. For later "
        "releases an error counts as a warning.",
    )
    confirmed: Day | None = Field(default=None, description="The day of confirmed-to.")
    holds: Literal["until-fixed"] | None = Field(
        default=None,
        description="Whether the row keeps its severity for later releases: its cause is a missing "
        "feature, a removed interface or an ABI.",
    )
    reason: Line | None = Field(default=None, description="The cause, for holds.")

    @model_validator(mode="after")
    def _confirmation_is_complete(self) -> "Row":
        if (self.confirmed_to is None) != (self.confirmed is None):
            raise ValueError("confirmed-to and confirmed (its day) go together")
        if (self.holds is None) != (self.reason is None):
            raise ValueError("holds: until-fixed and its reason go together")
        return self


class Advisory(Row):
    """Releases of a component with a known problem (``beside``: only with these others)."""

    component: Name
    affected: Ranges
    beside: dict[Name, Selection] = Field(
        default_factory=dict, description="All of these must be in the stack, in these releases."
    )


class Coupling(Row):
    """If a stack contains all of ``given``, it must contain each of ``needs`` in its range.

    ``absent: fine``: components that are missing are allowed; ``absent: wrong``: they are not.
    ``mpi`` and other virtuals may be named in ``needs``, with ``*``.
    """

    given: dict[Name, Selection]
    needs: dict[Name, Selection] = Field(min_length=1)
    absent: Literal["fine", "wrong"] = "fine"


class ToolchainKind(Document):
    """A kind of toolchain, such as fosscuda, and those that it is based on."""

    on: tuple[Line, ...] = ()
    mpi: Name | None = Field(default=None, description="The component that is its MPI.")
    source: Line


class Generation(Document):
    """A generation of toolchains: 2018b. ``components``: what its toolchains load.

    ``compilers``: further suffixes of its modules: GCCcore-7.3.0 belongs to 2018b.
    """

    compilers: tuple[Line, ...] = Field(min_length=1, description="GCCcore-7.3.0, GCC-7.3.0-2.30")
    components: dict[Name, PlainVersion] = Field(
        default_factory=dict, description="Its components and their versions: gcc, openmpi, cuda."
    )
    source: Line


class FlagValues(Document):
    """The valid values for a range of releases."""

    range: VersionRange
    values: tuple[Line, ...] = Field(min_length=1)


class Flag(Document):
    """A build variable of a runtime, by its own name.

    Releases before ``since`` and after ``until`` ignore it. ``home-of``: its value must be the
    folder of the chosen provider of that component.
    """

    summary: Line
    runtime: Name = "horovod"
    since: PlainVersion | None = None
    until: PlainVersion | None = None
    kind: Literal["choice", "one", "path", "text", "integers", "command"]
    values: tuple[FlagValues, ...] = Field(default=(), description="Valid values for kind: choice.")
    any_text_until: PlainVersion | None = Field(
        default=None,
        description="For kind: one: up to this release any text counts as 1, even 0.",
    )
    home_of: Name | None = None
    derived: ConditionText | None = Field(
        default=None,
        description="Condition under which envbuild sets it to that folder if the recipe does not "
        "set it.",
    )
    default: dict[Arch, Line] = Field(
        default_factory=dict,
        description="Value for an architecture if the recipe does not set it.",
    )
    run_time: bool = Field(
        default=False, description="Whether programs read it at run time instead of the build."
    )
    sources: tuple[Line, ...] = Field(min_length=1)
    note: Line | None = None

    @model_validator(mode="after")
    def _choices_are_named(self) -> "Flag":
        if (self.kind == "choice") != bool(self.values):
            raise ValueError("kind: choice has values, any other kind has none")
        return self


class FlagRule(Row):
    """A wrong combination of flags of a runtime, in the releases of ``range``."""

    runtime: Name = "horovod"
    range: Ranges = "*"


ProviderFactType = Literal["bool", "text"]

# Sites have these, and no condition asks for them.
_OTHER_NETWORKS = frozenset({"ethernet", "slingshot"})


class Knowledge(Document):
    """All of it, merged over the folders that were searched."""

    recorded: Day | None = Field(default=None, description="The day of the recorded releases.")
    components: dict[Name, Component] = Field(default_factory=dict)
    releases: dict[Name, tuple[Release, ...]] = Field(default_factory=dict)
    existing: dict[Name, Existing] = Field(default_factory=dict)
    builds: dict[Name, tuple[WheelBuild, ...]] = Field(default_factory=dict)
    cuda_drivers: dict[PlainVersion, CudaDriver] = Field(default_factory=dict)
    source_trees: dict[Name, SourceTrees] = Field(default_factory=dict)
    channels: dict[Name, Channel] = Field(default_factory=dict)
    symptoms: tuple[Symptom, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    kinds: dict[Line, ToolchainKind] = Field(default_factory=dict)
    generations: dict[Line, Generation] = Field(default_factory=dict)
    flags: dict[VariableName, Flag] = Field(default_factory=dict)
    flag_rules: tuple[FlagRule, ...] = ()
    log_sources: tuple[LogSource, ...] = ()
    library_names: tuple[LibraryName, ...] = ()

    def fulfilling(self, virtual: str) -> tuple[str, ...]:
        """Return the components that fulfil a virtual such as mpi, sorted."""
        return tuple(
            sorted(n for n, component in self.components.items() if virtual in component.fulfils)
        )

    @cached_property
    def provider_facts(self) -> Mapping[str, ProviderFactType]:
        """What conditions ask of providers, by name: ``cuda_aware``; text: what they compare."""
        types: dict[str, ProviderFactType] = {}
        for condition in self._conditions():
            for full in condition.names():
                owner, dot, name = full.partition(".")
                if dot and owner not in ("flags", "ops"):
                    text = bool(condition.compared_with(full)) or types.get(name) == "text"
                    types[name] = "text" if text else "bool"
        return types

    @cached_property
    def networks(self) -> tuple[str, ...]:
        """The networks that conditions ask for, and others that sites have; sorted."""
        compared = (condition.compared_with("network") for condition in self._conditions())
        return tuple(sorted(_OTHER_NETWORKS.union(*compared)))

    def _conditions(self) -> Iterator[Condition]:
        rows: tuple[Row, ...] = (*self.advisories, *self.couplings, *self.flag_rules)
        for row in sorted(rows, key=lambda row: row.id):
            yield Condition(row.when)
            yield from (Condition(remedy.when) for remedy in row.remedies if remedy.when)
        yield from (Condition(flag.derived) for flag in self.flags.values() if flag.derived)
