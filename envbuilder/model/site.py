"""The site: where environments are built, and what was found there (the snapshot)."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from ..base import Day, Document, Line, ModuleName, Name, Sha256, spelt
from ..knowledge.entries import LauncherName, LaunchOptions, SchedulerName
from ..knowledge.terms import Arch, FactName, Origin, PeerMemory, PlainVersion
from ..knowledge.urls import ChannelName, ChannelUrl, CleanUrl, RegistryName, RegistryUrl
from .places import REGISTRY, WORKSPACE, ImageFormat

ModuleSystem = Literal["lmod", "tcl", "none"]


def _absolute(path: str) -> str:
    # On text: a snapshot has tens of thousands of them.
    if not path.startswith("/"):
        raise ValueError(f"must be an absolute path: {path!r}")
    if ".." in path.split("/"):
        raise ValueError(f"must not contain '..': {path!r}")
    return path


AbsolutePath = Annotated[Line, AfterValidator(_absolute)]


def _site_path(path: str) -> str:
    # Its author would expect an expansion that never comes, or break a list such as PATH in two.
    if "$" in path or "`" in path:
        raise ValueError(f"variables and commands are not expanded, write it out: {path!r}")
    if ":" in path:
        raise ValueError(f"a ':' would split it in lists such as PATH: {path!r}")
    return path


ImagePlace = Annotated[
    Line, AfterValidator(lambda text: text if text.startswith(REGISTRY) else _absolute(text))
]
SitePath = Annotated[AbsolutePath, AfterValidator(_site_path)]
"""An absolute path that a site's author wrote; spaces and quotes are fine."""


def _base_path(path: str) -> str:
    return path if WORKSPACE.fullmatch(path) else _site_path(_absolute(path))


BasePath = Annotated[Line, AfterValidator(_base_path)]
"""A path that a site's author wrote, or a workspace that each user has under that name."""


class StatedModule(Document):
    """Facts about a module: stated by the site, or recorded in its snapshot.

    Statements of the site override the snapshot.
    """

    name: ModuleName
    provides: dict[Name, PlainVersion] = Field(
        default_factory=dict,
        description="Components and versions that the module provides (default: those in its "
        "name, NCCL/2.3.7-...).",
    )
    shadowable: tuple[Name, ...] = Field(
        default=(), description="Provided components that another module may replace."
    )
    python: SitePath | None = Field(
        default=None, description="The interpreter, if the module provides python."
    )
    home: SitePath | None = Field(default=None, description="Folder of its software.")
    loads: tuple[ModuleName, ...] = Field(
        default=(), description="Modules that it loads itself, in order."
    )
    parents: tuple[tuple[ModuleName, ...], ...] = Field(
        default=(),
        description="Hierarchical trees: alternatives of modules, one of which must be loaded "
        "first.",
    )
    conflicts: tuple[Line, ...] = Field(
        default=(), description="Modules, or names of modules, that it conflicts with."
    )
    families: tuple[Line, ...] = Field(
        default=(),
        description="Families: only one module of a family can be loaded; Lmod replaces the other "
        "one silently.",
    )
    facts: dict[FactName, bool | Line] = Field(
        default_factory=dict,
        description="Facts for the conditions of advisories, such as cuda_aware: true.",
    )
    default: bool = Field(
        default=False, description="Whether the name without a version loads this module."
    )
    toolchain: Line | None = Field(
        default=None, description="Its toolchain generation, if its name does not contain one."
    )


class SiteLauncher(Document):
    """The command that starts ranks; ``-n RANKS PROGRAM`` follows it."""

    kind: LauncherName = "custom"
    command: tuple[Line, ...] = Field(min_length=1)


class SiteFacts(Document):
    """Facts of a site for the conditions of advisories; a missing fact is unknown."""

    os: Line | None = None
    glibc: PlainVersion | None = None
    kernel: PlainVersion | None = None
    driver: PlainVersion | None = None
    driver_cuda: PlainVersion | None = Field(
        default=None,
        description="The newest CUDA that the driver supports, as nvidia-smi reports it; conda's "
        "__cuda.",
    )
    network: tuple[Name, ...] | None = None
    gpu: tuple[Line, ...] | None = Field(
        default=None, description="Compute capabilities such as sm_70; [] for no GPU."
    )
    offline: bool | None = Field(
        default=None, description="Whether builds run without access to a package index."
    )
    gpus_per_node: int | None = Field(
        default=None, ge=0, le=1024, description="GPUs of one node; 0 for none."
    )
    cores_per_node: int | None = Field(
        default=None, ge=1, le=65536, description="Physical cores of one node that jobs may use."
    )
    peer_memory: tuple[PeerMemory, ...] | None = Field(
        default=None,
        description="Kernel modules that let network cards reach GPU memory; [] for none.",
    )
    gpudirect: bool | None = Field(
        default=None,
        description="Whether network cards can reach GPU memory, by a kernel module or DMA-BUF.",
    )
    pmi: tuple[Name, ...] | None = Field(
        default=None,
        description="Interfaces by which srun starts ranks (srun --mpi=list): pmi2, pmix.",
    )


SuiteName = Annotated[str, spelt(r"^[a-z][a-z0-9-]*$", "a suite such as bookworm", 40)]
PackageName = Annotated[str, spelt(r"^[a-z0-9][a-z0-9+.-]+$", "a package such as openmpi-bin", 80)]


DEBIAN_ARCHES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
"""Debian's own names of the architectures that recipes name."""


class DebianSystem(Document):
    """A Debian similar to the site's machines, for ``create --emulate``."""

    suite: SuiteName = Field(description="Code name of the release, such as bookworm.")
    packages: tuple[PackageName, ...] = Field(
        min_length=1, description="Packages to install in addition to the minimal system."
    )


class Partition(Document):
    """A part of the site with its own hardware or modules (default of each key: the site's)."""

    summary: Line
    arch: Arch
    preload: tuple[ModuleName, ...] | None = None
    facts: SiteFacts = SiteFacts()


class Runner(Document):
    """A runner of the jobs of continuous integration (``envbuild ci``)."""

    tags: tuple[Line, ...] = Field(
        default=(), description="Tags (GitLab) or labels (GitHub, Jenkins) of the runner."
    )
    gpus: bool = Field(default=False, description="Whether the runner has the site's GPUs.")
    scheduler_parameters: Line | None = Field(
        default=None,
        description="Options that Jacamar CI passes to the scheduler for each job: -W 0:30 "
        "-nnodes 1.",
    )
    in_job: tuple[Line, ...] = Field(
        default=(),
        description="For a runner outside of a job: the command that starts a command in a job, "
        "such as [salloc, --partition=ml].",
    )


class ImageCI(Document):
    """The images that the pipelines of a site build."""

    base: Line | None = Field(
        default=None,
        description="Base of the images, in the form of --base of `envbuild image`, on the runner "
        "that starts ranks (default: the site's debian).",
    )
    format: ImageFormat = Field(
        default="sif", description="Format of the images, as for --format of `envbuild image`."
    )
    recipes: tuple[Name, ...] = Field(
        default=(), description="Recipes to build images of (default: all)."
    )
    to: ImagePlace | None = Field(
        default=None,
        description="Folder or registry to publish the images in, as for --to of `envbuild image`; "
        "at a site of several architectures its folder ARCH (default: they are only artefacts).",
    )

    @model_validator(mode="after")
    def _format_fits_place(self) -> "ImageCI":
        expected = "oci" if (self.to or "").startswith(REGISTRY) else "sif"
        if self.to and self.format != expected:
            raise ValueError(f"images in {self.to} have the format {expected}, not {self.format}")
        return self


class SiteCI(Document):
    """Settings of the pipelines of a site (default: any runner, with envbuild on PATH)."""

    setup: tuple[Line, ...] = Field(
        default=(), description="Lines of bash that add envbuild to PATH."
    )
    build: Runner = Field(
        default=Runner(),
        description="Runner of the jobs that plan, lock and build; it needs a network.",
    )
    prove: Runner = Field(default=Runner(), description="Runner of the jobs that start ranks.")
    image: ImageCI | None = Field(
        default=None, description="Images to build as well (default: none)."
    )
    record: tuple[Line, ...] = Field(
        default=(),
        description="Sources of a weekly job that runs `envbuild knowledge record`: URLs of git "
        "repositories, which it clones, and of package indexes (.../simple).",
    )


class SiteImage(Document):
    """The base of the images of a site's stacks, and the folders that they bind."""

    base: Line | None = Field(
        default=None,
        description="Base of the images, in the form of --base; a path is relative to the site "
        "file.",
    )
    binds: tuple[Line, ...] = Field(
        default=(),
        description="Folders to bind for recipes that use the site's modules, each in the form of "
        "--bind.",
    )


class SiteJob(Document):
    """Defaults of jobs in the site's scheduler; the options of a command override them."""

    account: Line | None = Field(default=None, description="Account or project: --account.")
    queue: Line | None = Field(
        default=None,
        description="Queue, or partition of Slurm: --queue, unless --partition is given.",
    )
    alloc_flags: Line | None = Field(
        default=None, description="Flags of LSF with IBM's CSM: --alloc-flags."
    )
    required: tuple[Literal["account", "queue", "memory"], ...] = Field(
        default=(),
        description="Options without which the site rejects a job; envbuild job and shell then "
        "require them.",
    )


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_MIRROR = {"type": "string", "minLength": 1, "maxLength": 500}

Mirrors = Annotated[
    tuple[ChannelUrl, ...],
    Field(min_length=1),
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [_MIRROR, {"type": "array", "items": _MIRROR, "minItems": 1}]}),
]
"""Copies of a conda channel, the first one first; one alone may be written without a list."""


_REGISTRY = {"type": "string", "minLength": 1, "maxLength": 500}

RegistryCopies = Annotated[
    tuple[RegistryUrl, ...],
    Field(min_length=1),
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [_REGISTRY, {"type": "array", "items": _REGISTRY, "minItems": 1}]}),
]
"""Copies of a registry, the first one first; one alone may be written without a list."""


class Site(Document):
    """A site: architectures, module system, interpreters, launcher, folders and mirrors."""

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    summary: Line
    arch: tuple[Arch, ...] = Field(min_length=1)
    module_system: ModuleSystem = "none"
    module_init: SitePath | None = Field(
        default=None, description="File that a bash script sources to define the module command."
    )
    module_trees: tuple[SitePath, ...] = ()
    preload: tuple[ModuleName, ...] = Field(
        default=(), description="Modules to load before all others, such as modenv/ml."
    )
    snapshot: Line | None = Field(
        default=None,
        description="File with the contents of the module trees, relative to the site file; "
        "envbuild sites snapshot writes it.",
    )
    modules: tuple[StatedModule, ...] = ()
    toolchain: Line | None = Field(
        default=None, description="The toolchain generation to prefer, such as 2018b."
    )
    facts: SiteFacts = SiteFacts()
    partitions: dict[Name, Partition] = Field(default_factory=dict)
    scheduler: SchedulerName | None = None
    job: SiteJob = Field(default=SiteJob(), description="Defaults of jobs in this scheduler.")
    pythons: tuple[SitePath, ...] = Field(
        default=(), description="Interpreters to consider (default: those on PATH)."
    )
    origins: tuple[Origin, ...] = Field(
        default=("module", "system", "pip", "build"),
        min_length=1,
        description="Origins of components, the preferred one first.",
    )
    launcher: SiteLauncher | None = Field(
        default=None,
        description="The launcher of ranks (default: the launcher of the planned MPI).",
    )
    launch_options: LaunchOptions = Field(
        default_factory=dict,
        description="Further options of launch lines, by launcher: {srun: [--gpu-bind=closest]}.",
    )
    base: BasePath | None = Field(
        default=None,
        description="Folder for roots, <base>/<site>/<arch>: a path, or ws:NAME for a workspace of "
        "the user.",
    )
    debian: DebianSystem | None = Field(
        default=None, description="A Debian like that of the site's machines, for create --emulate."
    )
    image: SiteImage = Field(
        default=SiteImage(), description="Settings of images of the site's stacks."
    )
    ci: SiteCI = Field(default=SiteCI(), description="Settings of the pipelines of envbuild ci.")
    pip_indexes: tuple[CleanUrl, ...] = ()
    find_links: tuple[CleanUrl, ...] = ()
    channels: dict[ChannelName, Mirrors] = Field(
        default_factory=dict,
        description="Mirrors of conda channels: one URL or folder, or several to try in this "
        "order.",
    )
    registries: dict[RegistryName, RegistryCopies] = Field(
        default_factory=dict,
        description="Mirrors or proxies of registries of images: one URL, or several to try in "
        "this order.",
    )
    channel_order: tuple[ChannelName, ...] = Field(
        default=(),
        description="The order of the conda channels of recipes at this site; other channels "
        "follow in the order of the recipe.",
    )


class Interpreter(Document):
    """A Python interpreter of the machine."""

    path: AbsolutePath
    version: PlainVersion
    arch: Line
    can_make_venv: bool


class SystemComponent(Document):
    """A component of the machine, outside of modules: a compiler, CMake, an MPI."""

    component: Name
    version: PlainVersion
    locator: Line = Field(description="The program that reports the version: /usr/bin/g++.")
    facts: dict[FactName, bool | Line] = Field(default_factory=dict)


class Tree(Document):
    """A module tree of a snapshot.

    ``sha256``: hash of the names and contents of its modulefiles; None: not recorded from files.
    """

    path: SitePath
    sha256: Sha256 | None = None


class Snapshot(Document):
    """The contents of a site at one time. The resolver reads the snapshot, never the site.

    ``taken``: a date (2021-12-01). ``live``: recorded at the site; ``documented``: taken from its
    documentation.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["live", "documented"] = "live"
    taken: Day | None = None
    source: Line | None = Field(
        default=None,
        description="The program that wrote the snapshot, or the document it is taken from.",
    )
    module_system: Line | None = Field(
        default=None, description="Name and version of the module system."
    )
    preload: tuple[ModuleName, ...] = ()
    trees: tuple[Tree, ...] = ()
    interpreters: tuple[Interpreter, ...] = ()
    system: tuple[SystemComponent, ...] = ()
    modules: tuple[StatedModule, ...] = ()
    glibc: Line | None = None


def glibc_of(site: Site, own: SiteFacts, snapshot: Snapshot) -> str | None:
    """Return the glibc of a site, or None; *own* are its partition's facts, which win.

    What was found comes last, as with every fact that a site states.
    """
    return own.glibc or site.facts.glibc or snapshot.glibc
