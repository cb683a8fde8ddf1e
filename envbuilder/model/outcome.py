"""What the verbs hand back: shown as text, or as JSON with ``--json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..base import Document, Line, ModuleName, Name, Sha256
from ..knowledge.matching import Verdict
from ..knowledge.terms import AdvisoryId, Api, Arch, Severity
from .evidence import Evidence, Tier
from .host_contract import ContractRow
from .places import AttestationForm, ImageFormat
from .plan import Lock


class CreateResult(Document):
    """An environment that is published and is the default."""

    environment: Name
    number: int
    id: Line
    lock_sha256: Sha256
    root: Line
    prefix: Line
    enter: Line = Field(description="What a shell does where there is no module system.")
    modulefiles: Line = Field(description="Folder for ``module use``.")
    loads: tuple[Line, ...] = Field(default=(), description="Modules of the site that it loads.")
    launch: tuple[Line, ...] = Field(description="What starts a program on two ranks.")
    evidence: Evidence = Field(description="What was proved of the recipe's own runtime.")
    proofs: tuple[Evidence, ...] = Field(
        default=(), description="The newest proof of each runtime and way of talking."
    )


class BundleResult(Document):
    """A bundle for a machine that this one is not. Nothing of it was built."""

    environment: Name
    id: Line
    lock_sha256: Sha256
    site: Name
    arch: Line
    tier: Tier = "rendered"
    folder: Line
    archive: Line
    bytes: int = Field(description="Size of the archive in bytes.")
    files: int = Field(description="Files that the lock names, all of them inside.")
    builds: tuple[Line, ...] = Field(default=(), description="What will be compiled there.")
    can_emulate: bool = Field(
        default=False, description="Whether ``create --emulate`` can build it on this machine."
    )


class ModuleTree(Document):
    """Modulefiles that were written. ``published``: NAME/NUMBER of those that can be loaded."""

    folder: Line
    written: tuple[Line, ...]
    published: tuple[Line, ...] = ()


class ImageResult(Document):
    """An image that was built, proved in it and, packed, tested again.

    A candidate is one of which a part is still to be proved: see ``unproved``.
    """

    environment: Name
    id: Line
    lock_sha256: Sha256
    base: Line = Field(description="What the system in it is: debian 12.")
    arch: Line
    format: ImageFormat
    image: Line = Field(description="Its file, or of a sandbox its folder.")
    bytes: int = Field(description="Size of its files in bytes.")
    beside: Line = Field(description="Folder of its lock, manifest and records.")
    binds: tuple[Line, ...] = Field(
        default=(), description="Folders that it takes from the machine, as --bind has them."
    )
    gpus: bool = Field(default=False, description="Whether it was proved on the machine's GPUs.")
    evidence: Evidence = Field(description="What was proved of the recipe's own runtime.")
    proofs: tuple[Evidence, ...]
    unproved: tuple[Evidence, ...] = Field(
        default=(), description="What wants a GPU where there was none: it was imported."
    )


class BundleCheck(Document):
    """Whether a bundle is as it was packed. Nothing of it was run.

    Of one that was changed nothing else is believed: what it is for is None.
    """

    file: Line
    files: int = Field(description="Files in it, SHA256SUMS aside.")
    changed: tuple[str, ...] = Field(description="Files that are not as they were packed.")
    contradictions: tuple[str, ...] = Field(
        default=(), description="What in it cannot be so, though every file is as it was packed."
    )
    environment: Name | None = None
    id: Line | None = None
    lock_sha256: Sha256 | None = None
    site: Name | None = None
    arch: Line | None = None


class EnvironmentEntry(Document):
    """One published number."""

    environment: Name
    number: int
    default: bool
    id: Line
    summary: str
    site: Name | None = Field(default=None, description="Its lock's; None: that cannot be read.")
    tier: Tier | None = Field(description="The highest tier ever proved; None: no proof left.")
    proved: str | None = Field(description="When it was last proved, ISO 8601 in UTC.")
    execution: Literal["native", "emulated"] | None = Field(
        default=None, description="How what was proved last ran; None: no proof left."
    )
    stand_ins: tuple[str, ...] = Field(
        default=(), description="What only stood in: it is no proof of the recipe itself."
    )
    last_failed: bool = Field(description="Whether the newest smoke test failed.")
    waived: tuple[AdvisoryId, ...] = Field(default=(), description="Risks that were taken.")
    warnings: int = Field(default=0, description="Known problems, and those not ruled out.")
    damaged: tuple[str, ...] = Field(default=(), description="Records of it that cannot be read.")
    claimed: tuple[str, ...] = Field(
        default=(), description="Evidence that does not count, each with the reason."
    )
    unbound: bool = Field(
        default=False, description="Whether what counts was recorded before evidence was bound."
    )
    by: Api | None = Field(
        default=None, description="What was proved, if that is not the recipe's runtime."
    )


class UnfinishedBuild(Document):
    """A prefix that was never published: a build that failed, or still runs."""

    environment: Name
    id: Line


class ExternalEntry(Document):
    """An environment that others built: listed, and never changed, mended or removed."""

    name: Name
    path: Line
    imported: Line = Field(description="When it was looked at, ISO 8601 in UTC.")
    kind: Line
    python: Line | None = None
    arch: Line | None = None
    errors: int = Field(description="Of the findings at that time.")
    warnings: int
    there: bool = Field(description="Whether something lies at its path now.")


class Listing(Document):
    """Everything in a root."""

    root: Line
    site: Name
    arch: Line
    shared: Line | None = Field(default=None, description="The group whose members share it.")
    misfits: tuple[str, ...] = Field(
        default=(), description="Folders whose group or modes are not those of a shared root."
    )
    environments: tuple[EnvironmentEntry, ...]
    unfinished: tuple[UnfinishedBuild, ...] = ()
    damaged: tuple[str, ...] = Field(default=(), description="Registries that cannot be read.")
    external: tuple[ExternalEntry, ...] = Field(
        default=(), description="Environments of others, with what was found of them."
    )


class ImageFacts(Document):
    """What an image says of itself."""

    file: Line = Field(description="As it was named.")
    format: ImageFormat
    arch: Line | None = Field(description="None: one that no recipe is for.")
    bytes: int | None = Field(default=None, description="Size of its file; None of a folder.")
    binds: tuple[Line, ...] = Field(
        default=(), description="Folders of the site's modules that it takes from the machine."
    )


class Info(Document):
    """All that is known of one published environment."""

    image: ImageFacts | None = Field(
        default=None, description="What it was read from; None: a root on this machine."
    )

    environment: Name
    number: int
    default: bool
    id: Line
    shared: Line | None = Field(
        default=None, description="The group that shares the root: its members trust one another."
    )
    misfits: tuple[str, ...] = Field(
        default=(), description="Folders whose group or modes are not those of a shared root."
    )
    prefix: Line
    modulefile: Line
    lock: Lock
    evidence: tuple[Evidence, ...]
    contract: tuple[ContractRow, ...] = Field(
        default=(), description="Of an image, where a site is named: whether the two fit."
    )
    on_site: tuple[Evidence, ...] = Field(
        default=(),
        description="Of an image, where a site is named: smoke tests there, kept beside the image.",
    )
    manifest: Literal["published", "later"] | None = Field(
        default=None, description="When its files were recorded; None: they were not."
    )
    damaged: tuple[str, ...] = Field(
        default=(),
        description="Records of smoke tests that cannot be read: they count for nothing.",
    )
    claimed: tuple[str, ...] = Field(
        default=(), description="Evidence that does not count, each with the reason."
    )
    changed: tuple[str, ...] | None = Field(
        default=None, description="Files that are not as recorded; None: not compared."
    )


class Attestation(Document):
    """What one published environment is made of, or how it was made.

    ``recorded``: with its build; else it follows from its lock.
    """

    environment: Name
    number: int
    form: AttestationForm
    recorded: bool
    text: str = Field(description="The document, as it is: CycloneDX, or in-toto.")


class DefaultChange(Document):
    """The default after a rollback."""

    environment: Name
    before: int | None
    now: int


class LaunchLine(Document):
    """What starts a program on all ranks of an environment."""

    environment: Name
    number: int | None = Field(description="None: nothing of it is published.")
    contract: tuple[ContractRow, ...] = Field(
        default=(), description="Of an image: what it and the site agree on."
    )
    launcher: Line = Field(description="Its kind: openmpi, srun, ...")
    ranks: int | None = Field(
        description="None: one for every GPU, and how many a node has is not known."
    )
    hosts: tuple[Line, ...] = Field(description="host:slots; none: this machine alone.")
    hosts_from: Line = Field(description="Who named them.")
    words: tuple[str, ...] = Field(
        description="The line, the program and its words last. It begins with a check that ends it "
        "where the environment is not loaded."
    )


class RemoveResult(Document):
    """What ``remove`` took away."""

    environment: Name
    removed: tuple[Line, ...]


class DocumentEntry(Document):
    """A recipe or site that was found; ``summary`` of a broken one says what is wrong."""

    name: Name
    summary: str
    file: Line


class UnreadModule(Document):
    """A module whose name contains that of a component, and that provides nothing."""

    module: ModuleName
    component: Name


class DocumentCheck(Document):
    """Recipes or sites without an error. By their files: what should be known of them, and the
    modules of sites that are unread.
    """

    good: tuple[Line, ...]
    warnings: dict[Line, tuple[str, ...]] = Field(default_factory=dict)
    unread: dict[Line, tuple[UnreadModule, ...]] = Field(default_factory=dict)


class RecipeDraft(Document):
    """A recipe that would make an environment again: its text, and what that leaves open."""

    name: Name
    recipe: str
    site: tuple[Line, ...] = Field(description="What the site's document has to state.")
    unknown: tuple[Line, ...] = Field(description="Not in the recipe: nothing says it.")
    differs: tuple[Line, ...] = Field(description="What create makes otherwise.")
    file: Line | None = Field(default=None, description="Where it was written.")


class RowMatch(Document):
    """What a row of knowledge says of versions that were asked about."""

    id: AdvisoryId
    kind: Line
    verdict: Verdict
    severity: Severity = Field(description="What it weighs here.")
    summary: Line
    about: tuple[Line, ...] = Field(description="component@version")
    open: tuple[Line, ...] = Field(
        default=(), description="Facts, or components beside it, that it depends on."
    )
    remedy: Line | None = Field(default=None, description="What lifts it, where it is lifted.")
    fix: Line | None = None
    link: Line


class CheckResult(Document):
    """What is known of versions together.

    ``bad``: a row holds that is an error, or one may hold that says it counts all the same.
    """

    asked: tuple[Line, ...]
    rows: tuple[RowMatch, ...]
    bad: bool


class ImportResult(Document):
    """A recipe that was made of another tool's file."""

    name: Name
    form: Line = Field(description="What the file is, such as a lock of pixi.")
    arch: Arch
    file: Line | None = Field(description="Where it was written.")
    recipe: str
    left_out: tuple[str, ...] = Field(description="What the file says and the recipe does not.")


class LockCheck(Document):
    """Whether a lock is still made of what is there now."""

    file: Line
    id: Line
    changed: tuple[Line, ...] = Field(description="Inputs that are not what they were.")
