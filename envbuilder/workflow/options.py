"""What a user may say to the verbs: one frozen value each, whose fields are the options.

The command line is made from them (``cli/command.py``): a field's annotation holds its option.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import UsageError
from ..model.places import ImageFormat
from ..text import shown

if TYPE_CHECKING:
    from ..model.plan import Plan


def recipe_names(incomplete: str) -> list[str]:
    """Return the recipes that begin so, for the shell's completion; never fails."""
    from ..documents.library import catalogue, search_path

    with contextlib.suppress(Exception):
        names = [name for name, _ in catalogue("recipe", search_path(os.environ, ()))]
        return [name for name in names if name.startswith(incomplete)]
    return []


RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe's name, or the path of its file.",
        autocompletion=recipe_names,
    ),
]
EnvironmentOrRecipe = Annotated[
    str,
    typer.Argument(
        metavar="NAME[/N]|RECIPE",
        help="A published environment; otherwise a recipe's name, or the path of its file.",
        autocompletion=recipe_names,
    ),
]
SiteOption = Annotated[
    str | None, typer.Option(help="Where: a site's name or file. Else ENVBUILD_SITE.")
]
ArchOption = Annotated[str | None, typer.Option(help="Architecture: x86_64, ppc64le or aarch64.")]
Partition = Annotated[str | None, typer.Option(help="A part of the site with hardware of its own.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID=REASON", help="Waive an advisory; may be repeated."),
]
RootOption = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Where environments live. Else ENVBUILD_ROOT, else the site's.",
    ),
]


@dataclass(frozen=True)
class PlanOptions:
    """Of what a plan is made; None: not said. Raises UsageError for a waiver without a reason."""

    recipe: RecipeName
    site: SiteOption = None
    arch: ArchOption = None
    partition: Partition = None
    profile: Annotated[
        str | None, typer.Option(help="scorep: instrument what is built, start through Score-P.")
    ] = None
    allow: AllowOption = None

    def __post_init__(self) -> None:
        self.waivers()

    def waivers(self) -> dict[str, str]:
        """Return the reason of each waiver by the id of what it waives."""
        return dict(_waiver(each) for each in self.allow or ())

    def as_locked(self, plan: Plan) -> PlanOptions:
        """Return the options with what was not said as it was in *plan*."""
        from ..model.profiles import base_name

        return replace(
            self,
            recipe=self.recipe or base_name(plan),
            profile=self.profile or plan.profile,
            site=self.site or plan.site,
            arch=self.arch or plan.arch,
        )


def _waiver(text: str) -> tuple[str, str]:
    name, equals, reason = text.partition("=")
    if not reason.isprintable() or len(reason) > 500:
        raise UsageError(
            "options.reason-allow-must",
            f"the reason for --allow {shown(name)} must be one short line of text",
        )
    if not (name and equals and reason.strip()):
        raise UsageError(
            "options.gives-no-reason",
            f"'{shown(text)}' gives no reason",
            f"write --allow '{shown(name) or 'ID'}=why it is fine here'",
        )
    return name, reason.strip()


@dataclass(frozen=True)
class LockOptions(PlanOptions):
    """Of what a lock is made; the recipe of one that is checked is its own."""

    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe's name, or the path of its file. With --check: else the lock's.",
            autocompletion=recipe_names,
            show_default=False,
        ),
    ] = ""


@dataclass(frozen=True)
class EnvironmentOptions(PlanOptions):
    """Of a published environment, or of what a plan is made."""

    recipe: EnvironmentOrRecipe


@dataclass(frozen=True)
class WhyOptions(EnvironmentOptions):
    """Of a published environment, or of what a plan without a profile is made."""

    profile: str | None = None
    root: RootOption = None


@dataclass(frozen=True)
class LiveOptions(WhyOptions):
    """Of what a plan is made that a lock is compared with: where nothing is said, as the lock."""

    recipe: Annotated[
        str,
        typer.Option(help="For live: the recipe's file. Else by its name.", show_default=False),
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
            help="Refuse a file that is not signed with this public key (PEM); exit code 8.",
        ),
    ] = None
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What --key verifies. Else beside it: NAME.sig."),
    ] = None


@dataclass(frozen=True)
class ImageOptions:
    """What an image begins with, which folders it binds in, and what it is packed as.

    ``candidate``: it is kept without a proof over GPUs, where there are none.
    """

    base: str | None = None
    binds: tuple[str, ...] = ()
    format: ImageFormat = "sif"
    candidate: bool = False


@dataclass(frozen=True)
class CreateOptions:
    """Of ``create`` and ``image``. ``target``: None takes the one for the architecture."""

    choice: PlanOptions
    root: RootOption = None
    shared: Annotated[
        str | None, typer.Option(metavar="GROUP", help="Make the root one that a group shares.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the step that failed last time.")
    ] = False
    relock: Annotated[
        bool, typer.Option("--relock", help="Ask the package index again, take newer files.")
    ] = False
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Build just this lock: nothing is solved.")
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
            metavar="PATH|NAME[/N]", help="A conda environment: its folder, or its name."
        ),
    ]
    name: Annotated[str, typer.Option(metavar="NAME", help="Of the new environment.")]
    leave: Annotated[
        bool,
        typer.Option(
            "--leave",
            help="Leave behind what no package has, and take what was changed as it was packed.",
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
            help="Names or files. Else those that are documented for the site.",
            autocompletion=recipe_names,
        ),
    ] = None
    site: SiteOption = None
    arch: Annotated[
        list[str] | None,
        typer.Option(help="Only this architecture of the site; may be repeated."),
    ] = None
    partition: Partition = None
    base: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Roots are DIR/SITE/ARCH, or with -candidates. Else the site's."
        ),
    ] = None


@dataclass(frozen=True)
class CiOptions(MatrixOptions):
    """Of which jobs a pipeline is: ``ci render`` and ``ci run`` have the same."""

    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Build and prove another architecture by qemu-user."),
    ] = False


@dataclass(frozen=True)
class JobSize:
    """What is asked of a job; None: as for the smoke test, or left to the scheduler."""

    nodes: Annotated[int | None, typer.Option(metavar="N", help="Of a job. Else one.")] = None
    ranks_per_node: Annotated[
        int | None, typer.Option(metavar="N", help="Of a job. Else as many as the smoke test has.")
    ] = None
    minutes: Annotated[
        int | None, typer.Option(metavar="N", help="A job's longest run time. Else 30.")
    ] = None
    account: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose account a job is on.")
    ] = None
    cpus_per_rank: Annotated[
        int | None, typer.Option(metavar="N", help="Cores. Else as the scheduler has it.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RenderOptions:
    """Of ``render``. ``output``: a file, or for more than one a new or empty folder."""

    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="{forms}; job: the one of these for the site's scheduler; all: each of them; "
            "image: what an image is built from; folder, which it is without --as: the build "
            "folder.",
        ),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File or new folder to write. One form: else standard output."
        ),
    ] = None
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Render just this lock: with its hashes.")
    ] = None
    signed: SignatureOptions = field(default_factory=SignatureOptions)
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE", help="Of image and def: the system that it begins with, as for image."
        ),
    ] = None
    binds: Annotated[
        list[str] | None,
        typer.Option(
            "--bind", metavar="DIR[:DIR]", help="Of image and def: a folder of the site's modules."
        ),
    ] = None
    candidate: Annotated[
        bool, typer.Option("--candidate", help="Of image and def: as for image.")
    ] = False
    size: JobSize = field(default_factory=JobSize)
    choice: EnvironmentOptions
    root: RootOption = None


@dataclass(frozen=True)
class LaunchOptions:
    """Of ``launch``."""

    program: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM...", help="What every rank runs, and its words."),
    ] = None
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", help="Else all slots of the hosts, or the smoke test's."),
    ] = None
    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="As inside a job of N nodes, wherever this is.")
    ] = None
    hosts: Annotated[
        str | None,
        typer.Option("-H", "--hosts", metavar="HOSTS", help="As host:4,host2:4. Else the job's."),
    ] = None
    hostfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A host a line: host slots=4.")
    ] = None
    rdma: Annotated[
        bool, typer.Option("--rdma", help="Open MPI below 4: its own RDMA, without threads.")
    ] = False
    cpus_per_rank: Annotated[
        int | None, typer.Option(metavar="N", help="Cores. Else as the job has it.")
    ] = None
    gloo: Annotated[
        bool, typer.Option("--gloo", help="Without MPI, by a launcher that knows Gloo.")
    ] = False
    cuda_aware: Annotated[
        bool, typer.Option("--cuda-aware", help="Spectrum MPI, jsrun: MPI is handed GPU memory.")
    ] = False
    exports: Annotated[
        list[str] | None,
        typer.Option(
            "--export", metavar="NAME[=VALUE]", help="Hand it to every rank; may be repeated."
        ),
    ] = None
    launcher: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="{launchers}. Else the site's, or the MPI's own."),
    ] = None
    host_mpi: Annotated[
        bool, typer.Option("--host-mpi", help="Of an image: with this machine's MPI, bound in.")
    ] = False
    binds: Annotated[
        list[str] | None,
        typer.Option(
            "--bind", metavar="DIR[:DIR]", help="Of an image: a folder of modules. Else as it says."
        ),
    ] = None
    where: RootOptions = field(default_factory=RootOptions)
    partition: Partition = None
