"""Knowledge: what is known of components, whatever recipe or site asks.

Every row has a source. Nothing of it is in code: the resolver knows only the shapes below.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..base import Document, Line, Name, VariableName, checked_once
from .channels import Channel, SourceTrees
from .conditions import parse
from .entries import RuntimeName
from .ranges import VersionRange
from .symptoms import Pattern, Symptom
from .terms import AdvisoryId, Api, Arch, Origin, PlainVersion, Severity

STEMS = ("components", "versions", "symptoms", "advisories", "couplings", "toolchains", "flags")
"""The files of a folder of knowledge, in the order of reading and hashing."""


class Need(Document):
    """What releases of a component need, by canonical name; ``range``: of the component itself."""

    range: VersionRange = "*"
    components: dict[Name, VersionRange] = Field(min_length=1)


class HorovodPart(Document):
    """The part of Horovod that works for a framework, and the smoke test that proves it."""

    name: Name = Field(description="torch of horovod.torch.")
    flag: VariableName = Field(
        description="Its name in Horovod's build variables: PYTORCH in HOROVOD_WITHOUT_PYTORCH."
    )
    proof: Api | None = Field(
        default=None,
        description="What the smoke test talks through; None: what is built is verified, not "
        "started.",
    )
    bundled: bool = Field(
        default=False, description="The bundled runtime has that part, under its alias horovod."
    )


class OwnLauncher(Document):
    """Releases of a framework that bring a launcher of their own, perhaps only beside others."""

    range: VersionRange
    beside: dict[Name, VersionRange] = Field(
        default_factory=dict, description="Releases of others that it works with, if not with all."
    )


class Collectives(Document):
    """Collectives of a framework's own, and the smoke test that proves them."""

    proof: Api
    package: RuntimeName = Field(description="The runtime that a recipe names for them.")
    launched: tuple[OwnLauncher, ...] = Field(
        description="Where its own launcher starts the ranks; else MPI's does."
    )


class Component(Document):
    """One canonical name and what the package worlds call it."""

    summary: Line
    modules: tuple[Line, ...] = Field(
        default=(),
        description="Names of modules whose version is the component's: NCCL in NCCL/2.3.7-...",
    )
    conda: Line | None = None
    pip: Line | None = None
    debian: Line | None = None
    fulfils: tuple[Name, ...] = Field(default=(), description="Virtuals such as mpi.")
    python_import: Line | None = Field(
        default=None, alias="import", description="What Python imports it as."
    )
    series: int | None = Field(
        default=None,
        ge=1,
        le=4,
        description="How many leading numbers of a version name an ABI, so that one release of it "
        "may stand in for another: 2 for Open MPI (3.1.1 and 3.1.4). None: no release may.",
    )
    build_only: bool = Field(
        default=False, description="Needed to build, never by what is built: cmake."
    )
    from_source: bool = Field(
        default=False, description="The index has its sources, and envbuild can build them."
    )
    needs: tuple[Need, ...] = Field(
        default=(), description="What it needs to run, where it is built from source."
    )
    build_needs: tuple[Need, ...] = Field(
        default=(),
        description="What building it from source needs beside the stack; the newest that fits.",
    )
    links: tuple[Name, ...] = Field(
        default=(), description="What its own libraries are linked with: mpi, nccl."
    )
    pip_home: Line | None = Field(
        default=None, description="Where its headers and libraries lie in site-packages."
    )
    pip_variants: tuple[Line, ...] = Field(
        default=(),
        description="Distributions that hold the same in the same releases: tensorflow-cpu.",
    )

    gpu: bool = Field(default=False, description="Whoever has it in a stack wants GPUs.")
    site_tuned: bool = Field(
        default=False,
        description="Sites build it for their network and GPUs: a plan that takes it from an index "
        "or a channel although the site has a module of it prints a warning.",
    )
    horovod: HorovodPart | None = None
    collectives: Collectives | None = None


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


class Existing(Document):
    """Releases that a component has had anywhere, oldest first; ranges are checked against them."""

    source: Line
    versions: tuple[PlainVersion, ...] = Field(min_length=1)
    announced: tuple[PlainVersion, ...] = Field(
        default=(), description="Not out yet, but a row may speak of them."
    )


ConditionText = Annotated[Line, checked_once(lambda text: parse(text).text)]

EvidenceKind = Literal["source-statement", "derived", "issue-report", "packager", "run"]
"""Who says so: the project itself, what follows from its code, a report in its tracker, a packager
(EasyBuild, Spack) by what it forbids or patches, or somebody who ran it."""


class Selector(Document):
    """Releases of a component, where its origin matters."""

    range: VersionRange
    origin: tuple[Origin, ...] = Field(default=(), description="Of these origins only; none: any.")


Selection = VersionRange | Selector
"""Which releases: ``>=1.2,<2``, or ``{range: ..., origin: [pip]}``."""

Ranges = VersionRange | tuple[VersionRange, ...]
"""One range, or several of which one must match."""

RemedyKind = Literal["patch", "variable", "pip-option", "flag", "component", "build-version"]


class Remedy(Document):
    """What lifts an advisory; it is shown, and it is no waiver.

    ``patch``: a file in recipes/patches, or one that the module's builder applied.
    ``variable``: *name* = *value* in the build's environment. ``pip-option``: *value* on pip's
    command line. ``flag``: *name* = *value* among the runtime's flags. ``component``: *name* is in
    the environment, in the range *value*. ``build-version``: *name* in the range *value*, if there
    is one, while building only.
    """

    id: Name
    kind: RemedyKind
    name: Line
    value: Line | None = None
    when: ConditionText | None = Field(
        default=None, description="Where it helps; where that is unknown or false it does not."
    )
    affected: Ranges | None = Field(
        default=None, description="The releases that it helps; none: all that are affected."
    )
    proved: bool = Field(
        default=False,
        description="It was run here, with the newest releases: it costs a choice nothing.",
    )
    source: Line


class Row(Document):
    """What all rows share: id, weight, who says so, condition, remedies."""

    id: AdvisoryId
    severity: Severity
    summary: Line = Field(description="What happens, in a few words.")
    fix: Line | None = Field(default=None, description="What to do, in a few words.")
    when: ConditionText = Field(default="true", description="Where it applies.")
    unknown: Literal["info", "warning", "error"] = Field(
        default="warning",
        description="What it weighs when a fact of *when* is not known; info: nothing is chosen "
        "otherwise for it.",
    )
    evidence: EvidenceKind
    sources: tuple[Line, ...] = Field(min_length=1)
    remedies: tuple[Remedy, ...] = ()
    symptom: Pattern | None = Field(
        default=None, description="Regular expression for its trace in a log."
    )
    note: Line | None = None
    demoted: Line | None = Field(
        default=None, description="Why it weighs less than its source says."
    )


class Advisory(Row):
    """Releases of a component that are known bad, perhaps only beside others (``beside``)."""

    component: Name
    affected: Ranges
    beside: dict[Name, Selection] = Field(
        default_factory=dict, description="All of these must be in the stack, in these releases."
    )


class Coupling(Row):
    """Where all of ``given`` are in the stack, each of ``needs`` must be there in its range.

    ``absent: fine``: it holds only for those that are there; ``absent: wrong``: they must be.
    ``mpi`` and other virtuals may be named in ``needs``, with ``*``.
    """

    given: dict[Name, Selection]
    needs: dict[Name, Selection] = Field(min_length=1)
    absent: Literal["fine", "wrong"] = "fine"


class ToolchainKind(Document):
    """A kind of toolchain, such as fosscuda, and those that it stands on."""

    on: tuple[Line, ...] = ()
    source: Line


class Generation(Document):
    """One generation of toolchains: 2018b. ``modules``: what its toolchains load, by their names.

    ``compilers`` name it as well: what is suffixed GCCcore-7.3.0 belongs to 2018b.
    """

    compilers: tuple[Line, ...] = Field(min_length=1, description="GCCcore-7.3.0, GCC-7.3.0-2.30")
    components: dict[Name, PlainVersion] = Field(
        default_factory=dict, description="What it holds: gcc, openmpi, cuda and their versions."
    )
    source: Line


class FlagValues(Document):
    """Which values a range of releases takes."""

    range: VersionRange
    values: tuple[Line, ...] = Field(min_length=1)


class Flag(Document):
    """A build variable of a runtime, by its own name.

    Before ``since`` and after ``until`` (releases, both included) it is not read: setting it has
    no effect, silently. ``home-of``: it must be the folder of that component's chosen provider.
    """

    summary: Line
    runtime: Name = "horovod"
    since: PlainVersion | None = None
    until: PlainVersion | None = None
    kind: Literal["choice", "one", "path", "text", "integers", "command"]
    values: tuple[FlagValues, ...] = Field(default=(), description="For kind choice.")
    any_text_until: PlainVersion | None = Field(
        default=None,
        description="For kind one: up to this release any text counts as 1, also 0.",
    )
    home_of: Name | None = None
    derived: ConditionText | None = Field(
        default=None,
        description="Where this holds and the recipe does not set it, it is set to that folder.",
    )
    default: dict[Arch, Line] = Field(
        default_factory=dict,
        description="What it is set to on an architecture where the recipe does not set it.",
    )
    run_time: bool = Field(default=False, description="Read when programs run, not by the build.")
    sources: tuple[Line, ...] = Field(min_length=1)
    note: Line | None = None

    @model_validator(mode="after")
    def _choices_are_named(self) -> "Flag":
        if (self.kind == "choice") != bool(self.values):
            raise ValueError("kind: choice has values, any other kind has none")
        return self


class FlagRule(Row):
    """What a runtime's flags must not say together, in the releases of ``range``."""

    runtime: Name = "horovod"
    range: Ranges = "*"


class Knowledge(Document):
    """All of it, merged over the folders that were searched."""

    components: dict[Name, Component] = Field(default_factory=dict)
    releases: dict[Name, tuple[Release, ...]] = Field(default_factory=dict)
    existing: dict[Name, Existing] = Field(default_factory=dict)
    source_trees: dict[Name, SourceTrees] = Field(default_factory=dict)
    channels: dict[Name, Channel] = Field(default_factory=dict)
    symptoms: tuple[Symptom, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    kinds: dict[Line, ToolchainKind] = Field(default_factory=dict)
    generations: dict[Line, Generation] = Field(default_factory=dict)
    flags: dict[VariableName, Flag] = Field(default_factory=dict)
    flag_rules: tuple[FlagRule, ...] = ()

    def fulfilling(self, virtual: str) -> tuple[str, ...]:
        """Return the components that fulfil a virtual such as mpi, sorted."""
        return tuple(
            sorted(n for n, component in self.components.items() if virtual in component.fulfils)
        )
