"""The site: where environments are built, and what was found there (the snapshot)."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..base import Day, Document, Line, ModuleName, Name, Sha256, spelt
from ..knowledge.entries import LauncherName, SchedulerName
from ..knowledge.terms import Arch, Origin, PeerMemory, PlainVersion
from ..knowledge.urls import ChannelName, ChannelUrl, CleanUrl, RegistryName, RegistryUrl
from .places import ImageFormat

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


SitePath = Annotated[AbsolutePath, AfterValidator(_site_path)]
"""An absolute path that a site's author wrote; spaces and quotes are fine."""


FactName = Annotated[str, spelt(r"^[a-z][a-z0-9_]*$", "a fact's name such as cuda_aware", 40)]


class StatedModule(Document):
    """What is known of one module: stated by the site, or found by looking (the snapshot).

    What a site states wins over what a snapshot holds of the same module.
    """

    name: ModuleName
    provides: dict[Name, PlainVersion] = Field(
        default_factory=dict,
        description="Components and versions; none: what the name says (NCCL/2.3.7-...).",
    )
    shadowable: tuple[Name, ...] = Field(
        default=(), description="Provided components that another module may take the place of."
    )
    python: SitePath | None = Field(
        default=None, description="The interpreter, where the module provides python."
    )
    home: SitePath | None = Field(default=None, description="Folder that its software lies in.")
    loads: tuple[ModuleName, ...] = Field(
        default=(), description="Modules that it loads itself, in their order."
    )
    parents: tuple[tuple[ModuleName, ...], ...] = Field(
        default=(),
        description="Hierarchical trees: what must be loaded first; any one of the alternatives.",
    )
    conflicts: tuple[Line, ...] = Field(
        default=(), description="Modules, or names of modules, that may not be loaded beside it."
    )
    families: tuple[Line, ...] = Field(
        default=(), description="Of each family one module can be loaded; Lmod replaces silently."
    )
    facts: dict[FactName, bool | Line] = Field(
        default_factory=dict, description="What conditions ask of it, such as cuda_aware: true."
    )
    default: bool = Field(
        default=False, description="The site marks it as what its bare name loads."
    )
    toolchain: Line | None = Field(
        default=None, description="Its toolchain generation where its name does not say it."
    )


class SiteLauncher(Document):
    """How ranks are started. ``command`` is put before ``-n RANKS PROGRAM``."""

    kind: LauncherName = "custom"
    command: tuple[Line, ...] = Field(min_length=1)


class SiteFacts(Document):
    """What conditions ask of a site; what is left out is unknown."""

    os: Line | None = None
    glibc: PlainVersion | None = None
    kernel: PlainVersion | None = None
    driver: PlainVersion | None = None
    driver_cuda: PlainVersion | None = Field(
        default=None,
        description="The newest CUDA that its driver runs, as nvidia-smi says: __cuda for conda.",
    )
    network: tuple[Name, ...] | None = None
    gpu: tuple[Line, ...] | None = Field(
        default=None, description="Compute capabilities such as sm_70; [] for no GPU."
    )
    offline: bool | None = Field(
        default=None, description="Whether builds run where no package index is reached."
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
        description="Whether network cards reach GPU memory at all, by such a module or DMA-BUF.",
    )
    pmi: tuple[Name, ...] | None = Field(
        default=None, description="What srun can start ranks by (srun --mpi=list): pmi2, pmix."
    )


SuiteName = Annotated[str, spelt(r"^[a-z][a-z0-9-]*$", "a suite such as bookworm", 40)]
PackageName = Annotated[str, spelt(r"^[a-z0-9][a-z0-9+.-]+$", "a package such as openmpi-bin", 80)]


DEBIAN_ARCHES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64el"}
"""Debian's own names of the architectures that recipes name."""


class DebianSystem(Document):
    """A Debian that can stand for the site's machines: what ``create --emulate`` builds in."""

    suite: SuiteName = Field(description="The release by its code name, such as bookworm.")
    packages: tuple[PackageName, ...] = Field(
        min_length=1, description="Packages beside the smallest system."
    )


class Partition(Document):
    """A part of the site with hardware or modules of its own. What is left out is the site's."""

    summary: Line
    arch: Arch
    preload: tuple[ModuleName, ...] | None = None
    facts: SiteFacts = SiteFacts()


class Runner(Document):
    """What runs jobs of continuous integration (``envbuild ci``), and where."""

    tags: tuple[Line, ...] = Field(
        default=(), description="Tags (GitLab) or labels (GitHub, Jenkins) that it is known by."
    )
    gpus: bool = Field(default=False, description="Whether programs find the site's GPUs there.")
    scheduler_parameters: Line | None = Field(
        default=None,
        description="What Jacamar CI hands to the scheduler for each job: -W 0:30 -nnodes 1.",
    )
    in_job: tuple[Line, ...] = Field(
        default=(),
        description="For a runner that is in no job itself: the words that start a command in "
        "one, such as [salloc, --partition=ml].",
    )


class ImageCI(Document):
    """Of which recipes a site's pipelines make images, and what these begin with."""

    base: Line | None = Field(
        default=None,
        description="As --base of `envbuild image` takes it, there where ranks are started. Else "
        "the Debian that the site states.",
    )
    format: ImageFormat = Field(default="sif", description="As --format of `envbuild image`.")
    recipes: tuple[Name, ...] = Field(default=(), description="Of these; else of every one.")


class SiteCI(Document):
    """How a site's pipelines run; what is left out: on any runner, envbuild on its path."""

    setup: tuple[Line, ...] = Field(
        default=(), description="Lines of bash that put envbuild on the search path."
    )
    build: Runner = Field(
        default=Runner(), description="Where is planned, locked and built, with a network."
    )
    prove: Runner = Field(default=Runner(), description="Where ranks are started.")
    image: ImageCI | None = Field(
        default=None, description="The images that are made as well; left out: none."
    )


class SiteImage(Document):
    """What the images of a site's stacks begin with, and take from its machines."""

    base: Line | None = Field(
        default=None, description="As --base has it; a path is relative to the site's file."
    )
    binds: tuple[Line, ...] = Field(
        default=(), description="Of recipes that take the site's modules: as --bind has each."
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
    """Where: architectures, module system, interpreters, launcher, places and mirrors."""

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    summary: Line
    arch: tuple[Arch, ...] = Field(min_length=1)
    module_system: ModuleSystem = "none"
    module_init: SitePath | None = Field(
        default=None, description="File that a bash script sources to get the module command."
    )
    module_trees: tuple[SitePath, ...] = ()
    preload: tuple[ModuleName, ...] = Field(
        default=(), description="Modules that are loaded before all others, such as modenv/ml."
    )
    snapshot: Line | None = Field(
        default=None,
        description="File with what the module trees hold, relative to this one; "
        "envbuild sites snapshot makes it.",
    )
    modules: tuple[StatedModule, ...] = ()
    toolchain: Line | None = Field(
        default=None, description="The toolchain generation to prefer, such as 2018b."
    )
    facts: SiteFacts = SiteFacts()
    partitions: dict[Name, Partition] = Field(default_factory=dict)
    scheduler: SchedulerName | None = None
    pythons: tuple[SitePath, ...] = Field(
        default=(), description="Interpreters to consider; none given: those found on PATH."
    )
    origins: tuple[Origin, ...] = Field(
        default=("module", "system", "pip", "build"), min_length=1, description="Whom to ask first."
    )
    launcher: SiteLauncher | None = Field(
        default=None, description="None: the launcher of the MPI that the plan holds."
    )
    base: SitePath | None = Field(
        default=None, description="Folder for roots: <base>/<site>/<arch>."
    )
    debian: DebianSystem | None = Field(
        default=None, description="A Debian as its machines have it, for create --emulate."
    )
    image: SiteImage = Field(default=SiteImage(), description="Images of its stacks.")
    ci: SiteCI = Field(default=SiteCI(), description="Runners of the pipelines of envbuild ci.")
    pip_indexes: tuple[CleanUrl, ...] = ()
    find_links: tuple[CleanUrl, ...] = ()
    channels: dict[ChannelName, Mirrors] = Field(
        default_factory=dict,
        description="Copies that the site keeps of conda channels: one URL or folder, or several "
        "that are tried in this order.",
    )
    registries: dict[RegistryName, RegistryCopies] = Field(
        default_factory=dict,
        description="What the site's machines ask in place of a registry of images: one URL of a "
        "copy or proxy, or several that are tried in this order.",
    )
    channel_order: tuple[ChannelName, ...] = Field(
        default=(),
        description="The order of a recipe's conda channels here; those that are not named keep "
        "theirs, behind these.",
    )


class Interpreter(Document):
    """A Python that was asked about itself."""

    path: AbsolutePath
    version: PlainVersion
    arch: Line
    can_make_venv: bool


class SystemComponent(Document):
    """A component that the machine itself has, outside modules: a compiler, CMake, an MPI."""

    component: Name
    version: PlainVersion
    locator: Line = Field(description="The program that said so: /usr/bin/g++.")
    facts: dict[FactName, bool | Line] = Field(default_factory=dict)


class Tree(Document):
    """One module tree as a snapshot found it.

    ``sha256`` is over the names and contents of its modulefiles; None: not taken from files.
    """

    path: SitePath
    sha256: Sha256 | None = None


class Snapshot(Document):
    """What a site held when it was looked at. The resolver works from this, never from the site.

    ``taken`` is a day (2021-12-01). ``live``: by looking at the site itself; ``documented``: from
    what its documentation lists.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["live", "documented"] = "live"
    taken: Day | None = None
    source: Line | None = Field(default=None, description="What made it, or what it was read from.")
    module_system: Line | None = Field(default=None, description="Name and version.")
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
