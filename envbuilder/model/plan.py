"""Plan and lock: what was decided, frozen, and every file that it will fetch."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ..base import Day, Document, Line, ModuleName, Name, Sha256, VariableName, canonical_json
from ..knowledge.artifacts import (
    Artifact,
    CondaArchive,
    GitRevision,
    GitTree,
    IndexFile,
    Patch,
    no_content_trust,
)
from ..knowledge.entries import AliasName, BackendName, LaunchOptions, RuntimeName
from ..knowledge.terms import (
    AdvisoryId,
    Api,
    Arch,
    Origin,
    PlainVersion,
    Profile,
    Severity,
    Transport,
)
from ..knowledge.urls import ChannelName, LockUrl
from .decisions import lock_sha256
from .recipe import Smoke
from .site import AbsolutePath, ModuleSystem, SiteLauncher


class Pin(Document):
    """``component@version <- origin:locator``, and why."""

    component: Name
    version: PlainVersion
    origin: Origin
    locator: Line  # Module name, interpreter path, name on the index, or CHANNEL/NAME of conda.
    why: Line
    fulfils: tuple[Name, ...] = ()  # Virtuals that the component fulfils, such as mpi.

    def __str__(self) -> str:
        return f"{self.component}@{self.version} <- {self.origin}:{self.locator}"


class Edit(Document):
    """One change of the process environment, in no shell's language.

    ``in_prefix``: *value* is relative to the prefix, which is known only when it is rendered.
    """

    kind: Literal["set", "unset", "prepend", "append"]
    name: VariableName
    value: str = ""
    in_prefix: bool = False


class Replacement(Document):
    """A module that other modules bring and that *by* takes the place of.

    It is unloaded right before *by* is loaded: a swap that is written out works whether or not the
    module system swaps modules of a name by itself.
    """

    module: ModuleName
    by: ModuleName


class Modules(Document):
    """How to reach the site's modules, what to load in which order, and what is loaded then.

    ``stand_ins``: those that load the module ``envbuild-stand-in``, by which a module says that it
    has the name of one that cannot be had, and not its content. What is loaded is compared when it
    is built, so one that a plan does not know of ends the build.
    """

    system: ModuleSystem = "none"
    init: AbsolutePath | None = None
    trees: tuple[AbsolutePath, ...] = ()
    loads: tuple[ModuleName, ...] = ()
    final: tuple[ModuleName, ...] = ()
    replaced: tuple[Replacement, ...] = ()
    stand_ins: tuple[ModuleName, ...] = ()

    def actions(self) -> tuple[tuple[Literal["unload", "load"], str], ...]:
        """Return what to do with which module, in order."""
        actions: list[tuple[Literal["unload", "load"], str]] = []
        for name in self.loads:
            actions += [("unload", each.module) for each in self.replaced if each.by == name]
            actions.append(("load", name))
        return tuple(actions)


FindingStatus = Literal["warning", "unknown", "info", "lifted", "waived"]


class PlanFinding(Document):
    """A row of knowledge that says something about this plan, and what came of it.

    ``unknown``: it depends on a fact that is not stated (*facts*). ``lifted``: by *remedy*.
    ``waived``: a user took the risk, for *reason*.
    """

    id: AdvisoryId
    status: FindingStatus
    severity: Severity
    summary: Line
    components: tuple[Line, ...]  # Affected components: component@version.
    fix: Line | None = None
    link: Line  # Its first source.
    facts: tuple[Line, ...] = ()
    remedy: Line | None = None
    reason: Line | None = None


# A message names so many modules; a plan as JSON names all of them.
_NAMED_MODULES = 3


class SiteFinding(Document):
    """What a plan does not take from its site, or does not know about it.

    ``unused-modules``: *component* comes from an index or a channel although the site has *modules*
    of it. ``unread-modules``: the same, of modules whose names could not be read.
    ``modules-out-of-reach``: those of MODULEPATH, as its module system does not work.
    ``uncompared-release``: the release of *component* is compared with no range.
    ``unknown-modules``: *modules* look like an MPI, a compiler or a GPU stack and are unknown.
    ``unknown-value``: no row reads a value of the site's facts. ``no-compiler``: sources are
    compiled, and the stack has no compiler.
    """

    kind: Literal[
        "not-described",
        "no-snapshot",
        "modules-out-of-reach",
        "unused-modules",
        "unread-modules",
        "uncompared-release",
        "unknown-modules",
        "unknown-value",
        "no-compiler",
    ]
    reason: str
    component: Name | None = None
    pin: str | None = None  # component@version <- origin:locator
    modules: tuple[ModuleName, ...] = ()
    fix: str | None = None

    def message(self) -> str:
        """Return it in a sentence, with what to do."""
        modules = ", ".join(self.modules[:_NAMED_MODULES])
        more = len(self.modules) - _NAMED_MODULES
        modules += f" and {more} more" if more > 0 else ""
        about = f"{self.pin} although the site has {modules}: " if self.modules else ""
        if self.kind == "unknown-modules":
            about = f"{modules}: "
        return f"{about}{self.reason}" + (f"; {self.fix}" if self.fix else "")


class SourceBuild(Document):
    """A component that is built from its sources inside the environment, and with which flags."""

    component: Name
    version: PlainVersion
    flags: dict[VariableName, Line] = Field(default_factory=dict)
    # Flags whose values are folders of the prefix, relative to it; '.' is the prefix.
    homes: dict[VariableName, Line] = Field(default_factory=dict)
    # Further variables of the build: remedies.
    environment: dict[VariableName, Line] = Field(default_factory=dict)
    pip_options: tuple[Line, ...] = ()
    build_requires: tuple[Line, ...] = ()  # Requirements that only this build has: setuptools<60.
    patches: tuple[Line, ...] = ()
    tree: GitRevision | None = None  # Its git tree, if its sources are not an archive of the index.
    frameworks: tuple[Name, ...] = ()  # Frameworks that it is built for: torch, tensorflow, mxnet.
    links: tuple[Name, ...] = ()  # Components that its libraries link to: mpi, nccl.


class Proof(Document):
    """One smoke test that the environment must pass: who starts the ranks, what they talk through,
    and what must carry the data then.
    """

    api: Api
    transport: Transport
    launcher: SiteLauncher


class RuntimePlan(Document):
    """The runtime that is built inside the environment."""

    package: Name
    version: PlainVersion
    source_sha256: Sha256
    bundled: bool = True
    # Further names under which it can be imported, such as horovod.
    aliases: tuple[AliasName, ...] = ()
    # The runtime that programs use if its own launch method starts them: ddlrun, or TF_CONFIG on
    # every rank.
    beside: RuntimeName | None = None


class Input(Document):
    """A document or fact that the plan depends on; a changed one makes a lock stale."""

    kind: Literal["recipe", "site", "snapshot", "knowledge", "runtime", "base"]
    name: Line
    sha256: Sha256


class Step(Document, extra="ignore"):
    """One step of the build script. Earlier locks say more of one, which nothing ever read."""

    id: Name
    title: Line


class PlanChannel(Document):
    """A conda channel that packages come from. ``accept``: what a user must have set before.

    ``name``: as it is recorded, or its URL. ``url``: where it was read.
    """

    name: ChannelName
    url: LockUrl
    canonical: LockUrl | None = None  # URL of the channel itself, if a mirror of the site was read.
    # Other mirrors of the site, for files that the first one lacks.
    mirrors: tuple[LockUrl, ...] = ()
    accept: dict[VariableName, Line] = Field(default_factory=dict)
    licence: Line | None = None
    # Day of the first report that the channel has no packages any more, if the site has no copy of
    # it.
    gone_since: Day | None = None
    # In earlier locks: keys of conda's content trust.
    keys: Annotated[tuple[Line, ...], AfterValidator(no_content_trust)] = ()


class Plan(Document):
    """The components decided, where each comes from and why, the environment and the steps."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    recipe: Name
    summary: Line
    site: Name
    arch: Arch
    backend: BackendName
    system_site_packages: bool
    # The interpreter that creates the virtualenv; None: conda installs it.
    python: AbsolutePath | None
    pins: tuple[Pin, ...]
    build_pins: tuple[Pin, ...] = ()  # Components that only builds need.
    brought: tuple[Pin, ...] = ()  # Additional components of the modules that nothing requires.
    packages: tuple[Line, ...] = ()
    # MatchSpecs of additional packages of the channels, or of builds.
    conda_specs: tuple[Line, ...] = ()
    modules: Modules = Modules()
    builds: tuple[SourceBuild, ...] = ()
    # Components of modules that are verified like builds; only flags that the recipe states are
    # known.
    verified: tuple[SourceBuild, ...] = ()
    findings: tuple[PlanFinding, ...] = ()
    site_findings: tuple[SiteFinding, ...] = ()
    environment: tuple[Edit, ...] = ()
    runtime: RuntimePlan
    patches: tuple[Patch, ...] = ()
    launcher: SiteLauncher
    # Options of launch lines by launcher.
    launch_options: LaunchOptions = Field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    smoke: Smoke
    pip_indexes: tuple[LockUrl, ...] = ()
    find_links: tuple[LockUrl, ...] = ()
    channels: tuple[PlanChannel, ...] = ()
    profile: Profile | None = None  # The profiler that measures the ranks.
    # The partition of the site that was named for the plan. Evidence of another partition does not
    # count.
    partition: Name | None = None
    steps: tuple[Step, ...]
    inputs: tuple[Input, ...] = ()

    @property
    def waived(self) -> tuple[PlanFinding, ...]:
        return tuple(each for each in self.findings if each.status == "waived")

    @property
    def licence_variables(self) -> tuple[str, ...]:
        """The variables by which a user accepts the licences of its channels."""
        return tuple(name for each in self.channels for name in each.accept)

    def pin(self, component: str) -> Pin | None:
        """Return the pin of *component*, or None."""
        return next((pin for pin in self.pins if pin.component == component), None)


def is_of_revision(tree: GitTree, revision: GitRevision | None) -> bool:
    """Whether a locked tree is that of a plan's revision."""
    locked = GitRevision(url=tree.url, tag=tree.tag, commit=tree.commit)
    return locked == revision


class Lock(Document):
    """A plan with every file it will fetch. Its hash names the prefix."""

    schema_: Literal[1] = Field(default=1, alias="schema")
    plan: Plan
    artifacts: tuple[Artifact, ...]

    @property
    def index_files(self) -> tuple[IndexFile, ...]:
        """What comes from the package index."""
        return tuple(each for each in self.artifacts if isinstance(each, IndexFile))

    @property
    def secret_links(self) -> tuple[IndexFile, ...]:
        """Those of them whose links are not kept: see ``artifact`` on their ``index``."""
        return tuple(each for each in self.index_files if each.index)

    @property
    def conda_packages(self) -> tuple[CondaArchive, ...]:
        """What comes from conda channels."""
        return tuple(each for each in self.artifacts if isinstance(each, CondaArchive))

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """What only stands in for what cannot be had: of conda packages NAME VERSION, modules."""
        packages = (each for each in self.conda_packages if each.stands_in)
        return (
            *(f"{each.name} {each.version}" for each in packages),
            *self.plan.modules.stand_ins,
        )

    @property
    def git_trees(self) -> tuple[GitTree, ...]:
        """What is fetched by git."""
        return tuple(each for each in self.artifacts if isinstance(each, GitTree))

    @property
    def wheelhouse(self) -> tuple[IndexFile | GitTree, ...]:
        """The files that lie in the wheelhouse of a build, each by its ``filename``."""
        return (*self.index_files, *self.git_trees)

    def tree_of(self, build: SourceBuild) -> GitTree | None:
        """Return the git tree that a build is made of; None where it is not locked."""
        return next((each for each in self.git_trees if is_of_revision(each, build.tree)), None)

    def text(self) -> str:
        """Return the lock as it is written: canonical JSON."""
        return canonical_json(self.plain())

    def sha256(self) -> str:
        """Return the sha256 of everything decided, 64 hex digits: see ``decisions``."""
        return lock_sha256(self)

    def id(self) -> str:
        """Return the name of the prefix: the first 12 hex digits of the hash."""
        return self.sha256()[:12]


# What fulfils mpi in locks of before pins said so themselves. No further MPI belongs here: which
# components fulfil it stands in components.yaml.
_EARLIER_MPIS = frozenset({"mpich", "openmpi", "spectrum-mpi", "mvapich2", "impi"})


def proofs_of(plan: Plan) -> tuple[Proof, ...]:
    """Return the smoke tests that an environment of *plan* must pass, in their order.

    A plan that names none proves the bundled runtime over MPI, which every such plan holds.
    """
    return plan.proofs or (Proof(api="numpy", transport="mpi", launcher=plan.launcher),)


def mpi_of(plan: Plan) -> Pin | None:
    """Return the MPI that the plan holds, or None."""
    return next(filter(is_mpi, plan.pins), None)


def mpi_from(plan: Plan) -> Literal["prefix", "wrapper"] | None:
    """Return who knows where libmpi must lie: for pip and our own builds it is the prefix."""
    pin = mpi_of(plan)
    if pin is None:
        return None
    return "wrapper" if pin.origin in ("module", "system") else "prefix"


def is_mpi(pin: Pin) -> bool:
    """Whether a pin is an MPI."""
    return "mpi" in pin.fulfils or pin.component in _EARLIER_MPIS
