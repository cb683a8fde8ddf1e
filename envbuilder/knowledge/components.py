"""Components: their names in package systems, their releases, and what their wheels contain."""

from pydantic import Field

from ..base import Document, Line, Name, VariableName
from .entries import RuntimeName
from .ranges import VersionRange
from .terms import Api, Arch, GpuVendor, PlainVersion


class Need(Document):
    """Requirements of releases of a component, by canonical name; ``range``: these releases."""

    range: VersionRange = "*"
    components: dict[Name, VersionRange] = Field(min_length=1)


class HorovodPart(Document):
    """The part of Horovod for a framework, and the smoke test that proves it."""

    name: Name = Field(description="Name of the part: torch of horovod.torch.")
    flag: VariableName = Field(
        description="Name in Horovod's build variables: PYTORCH in HOROVOD_WITHOUT_PYTORCH."
    )
    proof: Api | None = Field(
        default=None,
        description="API that the smoke test uses; None: the build is verified, but not started.",
    )
    bundled: bool = Field(
        default=False,
        description="Whether the bundled runtime has this part under its alias horovod.",
    )


class OwnLauncher(Document):
    """Releases of a framework with their own launcher, perhaps only together with others."""

    range: VersionRange
    beside: dict[Name, VersionRange] = Field(
        default_factory=dict, description="Required releases of other components (default: any)."
    )


class Collectives(Document):
    """The collectives that a framework contains, and the smoke test that proves them."""

    proof: Api
    package: RuntimeName = Field(description="The runtime that a recipe states to use them.")
    launched: tuple[OwnLauncher, ...] = Field(
        description="Releases whose own launcher starts the ranks (default: the launcher of the "
        "MPI)."
    )


class Component(Document):
    """A component: its canonical name, and its names in package systems."""

    summary: Line
    modules: tuple[Line, ...] = Field(
        default=(),
        description="Names of modules whose version is that of the component: NCCL in "
        "NCCL/2.3.7-...",
    )
    conda: Line | None = None
    pip: Line | None = None
    debian: Line | None = None
    fulfils: tuple[Name, ...] = Field(
        default=(), description="Virtuals that it provides, such as mpi."
    )
    python_import: Line | None = Field(
        default=None, alias="import", description="Name of its Python module."
    )
    series: int | None = Field(
        default=None,
        ge=1,
        le=4,
        description="How many leading numbers of a version identify the ABI: 2 for Open MPI "
        "(3.1.1 can replace 3.1.4). None: no release can replace another one.",
    )
    build_only: bool = Field(default=False, description="Whether only builds need it: cmake.")
    from_source: bool = Field(
        default=False, description="Whether the index has its sources and envbuild can build them."
    )
    needs: tuple[Need, ...] = Field(
        default=(), description="What it needs at run time if it is built from source."
    )
    build_needs: tuple[Need, ...] = Field(
        default=(),
        description="What a build from source needs in addition to the stack; the newest matching "
        "release.",
    )
    links: tuple[Name, ...] = Field(
        default=(), description="Components that its libraries link to: mpi, nccl."
    )
    pip_home: Line | None = Field(
        default=None, description="Folder of its headers and libraries in site-packages."
    )
    pip_variants: tuple[Line, ...] = Field(
        default=(),
        description="Distributions with the same contents and releases: tensorflow-cpu.",
    )
    aliases: tuple[Line, ...] = Field(
        default=(),
        description="Other names in lists of packages and in reports: nvidia-nccl-cu13. Nothing is "
        "installed by these.",
    )
    gpu: bool = Field(default=False, description="Whether a stack with this component needs GPUs.")
    gpu_vendor: GpuVendor | None = Field(
        default=None, description="The vendor whose GPUs alone it is for."
    )
    sole_mpi: bool = Field(
        default=False,
        description="Whether no other MPI reaches the network of a site that has a module of it.",
    )
    site_tuned: bool = Field(
        default=False,
        description="Whether sites build it for their network and GPUs. A plan that takes it from "
        "an index or channel although the site has a module of it prints a warning.",
    )
    release_notes: tuple[Line, ...] = Field(
        default=(),
        description="Its release notes: the name of its repository, and a pattern of files in it.",
    )
    horovod: HorovodPart | None = None
    collectives: Collectives | None = None


class Release(Document):
    """One release of a component on the Python package index."""

    version: PlainVersion
    requires_python: Line | None = None
    arch: tuple[Arch, ...] = Field(
        default=(), description="Architectures with binary wheels (default: pure Python, for all)."
    )
    wheels: bool = Field(
        default=True,
        description="Whether there are wheels; false: only sources, which need a compiler.",
    )
    pythons: tuple[PlainVersion, ...] = Field(
        default=(),
        description="CPython series with binary wheels, such as 3.12 (default: all that requires- "
        "python allows).",
    )
    glibc: PlainVersion | None = Field(
        default=None, description="The oldest glibc on which all its binary wheels run."
    )
    pip: Line | None = Field(
        default=None, description="Name of its distribution (default: that of the component)."
    )
    requires: dict[Name, VersionRange] = Field(
        default_factory=dict,
        description="Requirements in the metadata of its wheels, by the names of distributions: "
        "only those of components, without extras.",
    )


class WheelBuild(Document):
    """What the wheels of some releases contain: one build of a component.

    A build of the index has no ``tag``; others are named by their local version, such as cu121.
    """

    releases: VersionRange
    pip: Line | None = Field(
        default=None, description="Name of the distribution (default: that of the component)."
    )
    tag: Line | None = None
    arch: tuple[Arch, ...] = Field(default=(), description="Architectures (default: all).")
    cuda: Line | None = Field(
        default=None, description="Series of CUDA that it contains or loads; none: for CPUs alone."
    )
    loads: bool = Field(
        default=False, description="Whether it loads the CUDA libraries of the stack by name."
    )
    gpus: tuple[Line, ...] = Field(
        default=(), description="GPUs that it contains code for (default: not recorded)."
    )
    sources: tuple[Line, ...] = Field(min_length=1)


class CudaDriver(Document):
    """The oldest driver that runs programs of a series of CUDA."""

    driver: PlainVersion
    source: Line


class Existing(Document):
    """All releases of a component, oldest first; ranges are checked against them."""

    source: Line
    versions: tuple[PlainVersion, ...] = Field(min_length=1)
    announced: tuple[PlainVersion, ...] = Field(
        default=(), description="Announced releases, which rows may mention."
    )
