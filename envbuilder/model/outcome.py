"""What the verbs hand back: shown as text, or as JSON with ``--json``."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from ..base import Document, Line, ModuleName, Name, Sha256
from ..knowledge.matching import Verdict
from ..knowledge.terms import AdvisoryId, Api, Arch, Severity
from .evidence import Evidence, Tier
from .host_contract import ContractRow
from .places import DocumentForm, ImageFormat
from .plan import Lock
from .workspace import Workspace


class CreateResult(Document):
    """An environment that is published and is the default."""

    environment: Name
    number: int
    id: Line
    lock_sha256: Sha256
    root: Line
    prefix: Line
    enter: Line  # Command that enters the environment without a module system.
    modulefiles: Line  # Folder for ``module use``.
    loads: tuple[Line, ...] = ()  # Modules of the site that the environment loads.
    launch: tuple[Line, ...]  # Command that starts a program on two ranks.
    evidence: Evidence  # Evidence for the runtime of the recipe.
    proofs: tuple[Evidence, ...] = ()  # The newest proof of each runtime and transport.


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
    bytes: int  # Size of the archive in bytes.
    files: int  # Number of locked files in the bundle.
    builds: tuple[Line, ...] = ()  # Components that the installer compiles.
    can_emulate: bool = False  # Whether ``create --emulate`` can build it on this machine.


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
    base: Line  # The base system: debian 12.
    arch: Line
    format: ImageFormat
    image: Line  # File of the image, or folder of a sandbox.
    bytes: int  # Size of its files in bytes.
    beside: Line  # Folder of its lock, manifest and records.
    number: int | None = None  # The number that it is published as.
    modulefiles: Line | None = None  # Folder for module use that contains its module.
    binds: tuple[Line, ...] = ()  # Folders that it binds from the machine, in the form of --bind.
    gpus: bool = False  # Whether it was proved on the machine's GPUs.
    evidence: Evidence  # Evidence for the runtime of the recipe.
    proofs: tuple[Evidence, ...]
    # Runtimes that need a GPU on a machine without one; they were only imported.
    unproved: tuple[Evidence, ...] = ()


class BundleCheck(Document):
    """Whether a bundle is as it was packed. Nothing of it was run.

    Of one that was changed nothing else is believed: what it is for is None.
    """

    file: Line
    files: int  # Number of files without SHA256SUMS.
    changed: tuple[str, ...]  # Files that changed after packing.
    contradictions: tuple[str, ...] = ()  # Contradictions between files that are unchanged.
    # What could not be compared with the lock, each with the reason.
    unchecked: tuple[str, ...] = ()
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
    site: Name | None = None  # Site of the lock; None: the lock cannot be read.
    tier: Tier | None  # The highest tier ever proved; None: no proof left.
    proved: str | None  # Time of the last proof, ISO 8601 in UTC.
    # Execution of the last proof; None: no proof left.
    execution: Literal["native", "emulated"] | None = None
    # Stand-ins. With them, the smoke test does not prove the recipe.
    stand_ins: tuple[str, ...] = ()
    last_failed: bool  # Whether the newest smoke test failed.
    waived: tuple[AdvisoryId, ...] = ()  # Waived advisories.
    warnings: int = 0  # Number of known and undecided problems.
    damaged: tuple[str, ...] = ()  # Records that cannot be read.
    claimed: tuple[str, ...] = ()  # Evidence that does not count, each with the reason.
    unbound: bool = False  # Whether the evidence was recorded before evidence was bound.
    by: Api | None = None  # API of the proof, if it is not that of the recipe's runtime.


class UnfinishedBuild(Document):
    """A prefix that was never published: a build that failed, or still runs."""

    environment: Name
    id: Line


class ExternalEntry(Document):
    """An environment that others built: listed, and never changed, mended or removed."""

    name: Name
    path: Line
    imported: Line  # Time of the import, ISO 8601 in UTC.
    kind: Line
    python: Line | None = None
    arch: Line | None = None
    errors: int  # Number of errors found by the import.
    warnings: int
    there: bool  # Whether its path exists now.


class Listing(Document):
    """Everything in a root."""

    root: Line
    site: Name
    arch: Line
    shared: Line | None = None  # The group whose members share it.
    workspace: Workspace | None = None  # The workspace that the root is in.
    misfits: tuple[str, ...] = ()  # Folders with a wrong group or mode for a shared root.
    environments: tuple[EnvironmentEntry, ...]
    unfinished: tuple[UnfinishedBuild, ...] = ()
    damaged: tuple[str, ...] = ()  # Registries that cannot be read.
    external: tuple[ExternalEntry, ...] = ()  # External environments with their findings.


class ImageFacts(Document):
    """What an image says of itself."""

    file: Line  # File name as given by the user.
    format: ImageFormat
    arch: Line | None  # None: an architecture that no recipe supports.
    bytes: int | None = None  # Size of the file; None for a folder.
    binds: tuple[Line, ...] = ()  # Folders with modules of the site that it binds from the machine.


class Info(Document):
    """All that is known of one published environment."""

    image: ImageFacts | None = None  # The image that was read; None: an environment of a root.

    environment: Name
    number: int
    default: bool
    id: Line
    shared: Line | None = None  # The group that shares the root: its members trust one another.
    misfits: tuple[str, ...] = ()  # Folders with a wrong group or mode for a shared root.
    workspace: Workspace | None = None  # The workspace that the root is in.
    prefix: Line
    modulefile: Line
    lock: Lock
    evidence: tuple[Evidence, ...]
    contract: tuple[ContractRow, ...] = ()  # For an image and a site: whether they fit together.
    # For an image and a site: smoke tests at this site, stored next to the image.
    on_site: tuple[Evidence, ...] = ()
    # When the files were recorded; None: not recorded.
    manifest: Literal["published", "later"] | None = None
    damaged: tuple[str, ...] = ()  # Records of smoke tests that cannot be read; they are ignored.
    claimed: tuple[str, ...] = ()  # Evidence that does not count, each with the reason.
    # Files that differ from the manifest; None: not compared.
    changed: tuple[str, ...] | None = None


class Attestation(Document):
    """What one published environment is made of, or how it was made.

    ``recorded``: with its build; else it follows from its lock.
    """

    environment: Name
    number: int
    form: DocumentForm
    recorded: bool
    text: str  # The document: CycloneDX or in-toto.


class DefaultChange(Document):
    """The default after a rollback."""

    environment: Name
    before: int | None
    now: int


class LaunchLine(Document):
    """What starts a program on all ranks of an environment."""

    environment: Name
    number: int | None  # None: not published.
    contract: tuple[ContractRow, ...] = ()  # For an image: whether it fits the site.
    launcher: Line  # Its kind: openmpi, srun, ...
    ranks: int | None  # None: one for each GPU; the number of GPUs per node is unknown.
    hosts: tuple[Line, ...]  # host:slots; empty: only this machine.
    hosts_from: Line  # Source of the hosts.
    # The command line, the program and its arguments last. It begins with a check that fails if the
    # environment is not loaded.
    words: tuple[str, ...]


class ShellLine(Document):
    """What opens a shell with an environment in a job of its own."""

    environment: Line | None  # NAME/N; None: not published.
    scheduler: Line
    words: tuple[str, ...]  # The command line.


class RemoveResult(Document):
    """What ``remove`` took away."""

    environment: Name
    removed: tuple[Line, ...]


class DocumentEntry(Document):
    """A recipe or site that was found; ``summary`` of a broken one says what is wrong."""

    name: Name
    summary: str
    file: Line


class SearchMatch(NamedTuple):
    """A document, component or advisory that contains the words of a search."""

    kind: Literal["recipe", "site", "component", "advisory"]
    name: str
    summary: str


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
    site: tuple[Line, ...]  # What the site file must state.
    unknown: tuple[Line, ...]  # What the recipe lacks because it is unknown.
    differs: tuple[Line, ...]  # Differences of an environment made by create.
    file: Line | None = None  # File that was written.


class RowMatch(Document):
    """What a row of knowledge says of versions that were asked about."""

    id: AdvisoryId
    kind: Line
    verdict: Verdict
    severity: Severity  # Severity for these versions.
    summary: Line
    about: tuple[Line, ...]  # component@version
    open: tuple[Line, ...] = ()  # Facts or other components that it depends on.
    remedy: Line | None = None  # The remedy that lifts it, if one does.
    fix: Line | None = None
    link: Line
    # If an error counts as a warning for these versions: the last release that it was confirmed
    # for.
    confirmed_to: Line | None = None


class CheckResult(Document):
    """What is known of versions together.

    ``bad``: a row holds that is an error, or one may hold that says it counts all the same. With
    ``--strict`` errors also count for releases that they were not confirmed for.
    """

    asked: tuple[Line, ...]
    rows: tuple[RowMatch, ...]
    bad: bool


class RecordResult(Document):
    """What sources of knowledge state. ``statements``: how many are new, known, contradicting."""

    releases: int
    new_releases: int
    statements: dict[Line, int]
    shipped: int  # Combinations of releases that EasyBuild ships.
    # Those of them that a row calls an error, and statements against rows or them.
    contradictions: tuple[Line, ...]
    outdated: tuple[Line, ...]  # Open ranges of rows that are more than two releases behind.
    unread: tuple[Line, ...] = ()  # Files of a checkout that could not be read.
    written: tuple[Line, ...]  # Files, as the user names the folder.


class ImportResult(Document):
    """A recipe that was made of another tool's file."""

    name: Name
    form: Line  # Kind of file, such as a lock of pixi.
    arch: Arch
    file: Line | None  # File that was written.
    recipe: str
    left_out: tuple[str, ...]  # Contents of the file that the recipe lacks.


class LockCheck(Document):
    """Whether a lock is still made of what is there now."""

    file: Line
    id: Line
    changed: tuple[Line, ...]  # Inputs that changed.
