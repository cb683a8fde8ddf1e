"""What a user may say to the verbs: one frozen value each, whose fields are the options.

The command line is made from them (``cli/command.py``): a field's annotation holds its option.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from ..model.places import ImageFormat
from .plan_options import (
    AllowOption,
    ArchOption,
    EnvironmentOptions,
    Partition,
    PlanOptions,
    RootOption,
    SiteOption,
    WhyOptions,
    recipe_names,
)


@dataclass(frozen=True)
class LockOptions(PlanOptions):
    """Of what a lock is made; the recipe of one that is checked is its own."""

    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe's name, or the path of its file (default with --check: the lock's "
            "recipe).",
            autocompletion=recipe_names,
            show_default=False,
        ),
    ] = ""


@dataclass(frozen=True)
class LiveOptions(WhyOptions):
    """Of what a plan is made that a lock is compared with: where nothing is said, as the lock."""

    recipe: Annotated[
        str,
        typer.Option(
            help="For live: the recipe's file (default: the recipe of that name).",
            show_default=False,
        ),
    ] = ""


@dataclass(frozen=True)
class RootOptions:
    """Which root is meant: its path, else that of a site and an architecture."""

    root: RootOption = None
    site: SiteOption = None
    arch: ArchOption = None


@dataclass(frozen=True)
class SignatureOptions:
    """The key that a file must be signed with; ``commands/signed.py`` verifies it."""

    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Require a signature of this public key (PEM); exit code 8 if it is not valid.",
        ),
    ] = None
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The signature for --key (default: NAME.sig)."),
    ] = None


@dataclass(frozen=True)
class DockerfileOptions:
    """Of a Dockerfile that is the base of an image."""

    build_args: Annotated[
        list[str] | None,
        typer.Option(
            "--build-arg",
            metavar="NAME=VALUE",
            help="The value of an ARG of the Dockerfile that is the base. May be repeated.",
        ),
    ] = None
    context: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder that COPY of the Dockerfile reads (default: that of the Dockerfile).",
        ),
    ] = None


@dataclass(frozen=True)
class ImageOptions:
    """What an image begins with, which folders it binds in, and what it is packed as.

    ``candidate``: it is kept without a proof over GPUs, where there are none. ``build``: of a
    Dockerfile that is its base. ``registry``: where it is pushed to.
    """

    base: str | None = None
    binds: tuple[str, ...] = ()
    format: ImageFormat = "sif"
    candidate: bool = False
    build: DockerfileOptions = field(default_factory=DockerfileOptions)
    registry: str | None = None


@dataclass(frozen=True)
class CreateOptions:
    """Of ``create`` and ``image``. ``target``: None takes the one for the architecture."""

    choice: PlanOptions
    root: RootOption = None
    shared: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Create a root that this group shares.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue with the step that failed.")
    ] = False
    relock: Annotated[
        bool, typer.Option("--relock", help="Resolve again instead of reusing the existing lock.")
    ] = False
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Build exactly this lock; do not resolve.")
    ] = None
    signed: SignatureOptions = field(default_factory=SignatureOptions)
    target: str | None = None
    output: Path | None = None
    require_tier: str | None = None
    image: ImageOptions | None = None


@dataclass(frozen=True)
class CloneOptions:
    """Of ``clone``. ``allow`` and the site's: as of a plan."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="PATH|NAME[/N]", help="The folder or the name of a conda environment."
        ),
    ]
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the new environment.")]
    leave: Annotated[
        bool,
        typer.Option(
            "--leave",
            help="Omit files that belong to no package, and take changed files as packaged.",
        ),
    ] = False
    root: RootOption = None
    site: SiteOption = None
    partition: Partition = None
    allow: AllowOption = None


@dataclass(frozen=True)
class MatrixOptions:
    """Several recipes on the architectures of one site. ``base``: where its roots are."""

    matrix: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RECIPE]...",
            help="Names or files of recipes (default: the recipes documented for the site).",
            autocompletion=recipe_names,
        ),
    ] = None
    site: SiteOption = None
    arch: Annotated[
        list[str] | None,
        typer.Option(help="Only this architecture of the site. May be repeated."),
    ] = None
    partition: Partition = None
    base: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Parent of the roots DIR/SITE/ARCH and DIR/SITE/ARCH-candidates (default: the "
            "site's).",
        ),
    ] = None


@dataclass(frozen=True)
class CiOptions(MatrixOptions):
    """Of which jobs a pipeline is."""

    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Build and test other architectures in qemu-user."),
    ] = False


@dataclass(frozen=True)
class JobSize:
    """What is asked of a job; None: as for the smoke test, or left to the scheduler."""

    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="Number of nodes for the job (default: 1).")
    ] = None
    ranks_per_node: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Ranks on each node of the job (default: those of the smoke test)."
        ),
    ] = None
    minutes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Time limit of the job in minutes (default: 30)."),
    ] = None
    account: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Account (project of LSF) that is charged (default: the site's)."
        ),
    ] = None
    cpus_per_rank: Annotated[
        int | None,
        typer.Option(metavar="N", help="Cores for each rank (default: the scheduler's)."),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--mem", metavar="SIZE", help="Memory of each node, such as 64G. Slurm and PBS only."
        ),
    ] = None
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Queue, or partition of Slurm, of the job (default: --partition, otherwise the "
            "site's).",
        ),
    ] = None
    alloc_flags: Annotated[
        str | None,
        typer.Option(
            metavar="FLAGS",
            help="Flags of LSF with IBM's CSM, such as 'gpumps smt1' (default: the site's).",
        ),
    ] = None
    job_name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the job (default: the environment's)."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class AllocationOptions:
    """Of ``job`` and ``shell``."""

    choice: EnvironmentOptions
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="SCHEDULER", help="One of: {schedulers} (default: the site's)."
        ),
    ] = None
    size: JobSize = field(default_factory=JobSize)
    root: RootOption = None


@dataclass(frozen=True, kw_only=True)
class RenderOptions:
    """Of ``render``. ``output``: a file, or for more than one a new or empty folder."""

    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="One of: {forms}; job: the form of the site's scheduler; all: all of these; "
            "image: the files to build an image from; folder: the build folder (default: "
            "folder).",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File or new folder to write (default for one form: standard output).",
        ),
    ] = None
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Render exactly this lock, with its hashes.")
    ] = None
    signed: SignatureOptions = field(default_factory=SignatureOptions)
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE", help="For image and def: the base system, as of envbuild image."
        ),
    ] = None
    binds: Annotated[
        list[str] | None,
        typer.Option(
            "--bind", metavar="DIR[:DIR]", help="For image and def: a folder of the site's modules."
        ),
    ] = None
    candidate: Annotated[
        bool, typer.Option("--candidate", help="For image and def: as of envbuild image.")
    ] = False
    build: DockerfileOptions = field(default_factory=DockerfileOptions)
    size: JobSize = field(default_factory=JobSize)
    choice: EnvironmentOptions
    root: RootOption = None


@dataclass(frozen=True)
class LaunchOptions:
    """Of ``launch``."""

    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM...", help="The program of every rank, with arguments."),
    ] = None
    ranks: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of ranks (default: all slots of the hosts, otherwise the rank count of "
            "the smoke test).",
        ),
    ] = None
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Print the line for a job of N nodes, without being in it."),
    ] = None
    hosts: Annotated[
        str | None,
        typer.Option(
            "-H", "--hosts", metavar="HOSTS", help="Hosts with slots: a:4,b:4 (default: the job's)."
        ),
    ] = None
    hostfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with one host on a line: a slots=4.")
    ] = None
    rdma: Annotated[
        bool, typer.Option("--rdma", help="Open MPI below 4: use its openib RDMA, without threads.")
    ] = False
    cpus_per_rank: Annotated[
        int | None, typer.Option(metavar="N", help="Cores for each rank (default: the job's).")
    ] = None
    gloo: Annotated[
        bool, typer.Option("--gloo", help="Use Gloo instead of MPI, with a launcher for Gloo.")
    ] = False
    cuda_aware: Annotated[
        bool, typer.Option("--cuda-aware", help="Spectrum MPI, jsrun: pass GPU memory to MPI.")
    ] = False
    exports: Annotated[
        list[str] | None,
        typer.Option(
            "--export",
            metavar="NAME[=VALUE]",
            help="A variable to set for every rank. May be repeated.",
        ),
    ] = None
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="One of: {launchers} (default: the site's, otherwise the MPI's own).",
        ),
    ] = None
    host_mpi: Annotated[
        bool, typer.Option("--host-mpi", help="For an image: bind this machine's MPI into it.")
    ] = False
    binds: Annotated[
        list[str] | None,
        typer.Option(
            "--bind",
            metavar="DIR[:DIR]",
            help="For an image: a folder of modules (default: the folders it states).",
        ),
    ] = None
    where: RootOptions = field(default_factory=RootOptions)
    partition: Partition = None
