"""The commands that make something of a recipe: create, clone, image, lock, render; and doctor."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..workflow.options import (
    CloneOptions,
    CreateOptions,
    DockerfileOptions,
    LockOptions,
    RenderOptions,
    SignatureOptions,
)
from ..workflow.plan_options import OutputOption, PlanOptions
from .command import Group, command
from .session import Session

if TYPE_CHECKING:
    from ..knowledge.rows import Knowledge

verbs = Group()
GROUPS = (verbs,)

# The words of ``--require-tier`` by their tiers, lowest first.
TierName = Enum(
    "TierName",
    {
        "built": "built",
        "imported": "imported",
        "one rank": "rank",
        "several ranks": "ranks",
        "several nodes": "nodes",
    },
)


class ImageKind(str, Enum):
    """The words of ``image --format``."""

    sif = "sif"
    oci = "oci"
    sandbox = "sandbox"


def build_hints(log: Path, knowledge: Knowledge) -> tuple[str, ...]:
    """Return advice on a build step that failed, read from its log."""
    # lazy import: only a step that failed has its log searched
    from ..diagnosis.command import build_hints as search

    return search(log, knowledge)


@command(verbs, example="create allreduce --root /scratch/me/env")
def create(
    session: Session,
    options: CreateOptions,
    bundle: Annotated[
        bool,
        typer.Option(
            "--bundle", help="Pack everything that an offline build needs; build nothing."
        ),
    ] = False,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Build and test for another architecture in qemu-user."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help="Folder for the bundle (default: the current folder).",
        ),
    ] = None,
    require_tier: Annotated[
        TierName | None,
        typer.Option("--require-tier", help="Fail unless the smoke test reaches this tier."),
    ] = None,
) -> None:
    """Build an environment, run its smoke test and publish it (uses the network).

    For another architecture than this machine's, create makes a bundle to build there offline;
    with --emulate, it builds here in a Debian of that architecture.
    """
    from ..commands.create import create as run
    from ..errors import UsageError
    from ..views import building as views

    tier = require_tier.name if require_tier else None
    if bundle and emulate:
        raise UsageError(
            "option.conflict",
            "--bundle and --emulate cannot be combined",
            "leave one of them out: --bundle builds nothing, --emulate builds here",
        )
    target = "bundle" if bundle else "emulation" if emulate else None
    asked = replace(options, target=target, output=output, require_tier=tier)
    done = run(asked, session.context, build_hints)
    session.report.show(done, views.made(done))


@command(verbs, example="clone /sw/anaconda/envs/torch --name ours --root /scratch/me/env")
def clone(session: Session, options: CloneOptions) -> None:
    """Make a new environment from the packages of a conda environment (uses the network).

    The conda environment is not changed. Packages come from their channels, otherwise from
    conda's cache or from the installed files. The recipe is written to NAME.yaml.
    """
    from ..clone.command import clone as run
    from ..views import building as views

    done = run(options, session.context, build_hints)
    session.report.show(done, views.made(done))


@command(verbs, example="image allreduce --base ./debian-12")
def image(
    session: Session,
    choice: PlanOptions,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="The base system: a folder, an archive, a SIF file, oci:DIR, "
            "docker://NAME@DIGEST, a Dockerfile or a definition file (default: the base of the "
            "recipe or the site).",
        ),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR[:DIR]",
            help="A folder of the site's modules, which the image binds and does not contain. The "
            "image is then planned for --site. May be repeated.",
        ),
    ] = None,
    kind: Annotated[
        ImageKind,
        typer.Option(
            "--format",
            help="A SIF file, an OCI layout or an Apptainer sandbox (default: sif).",
            show_default=False,
        ),
    ] = ImageKind.sif,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", metavar="DIR", help="Folder for the image (default: the current folder)."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|REGISTRY",
            help="Publish the image in this folder instead, as NAME/N-ARCH.sif with a module; or "
            "with --format oci in a registry, docker://HOST/PATH.",
        ),
    ] = None,
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Build exactly this lock; do not resolve.")
    ] = None,
    candidate: Annotated[
        bool,
        typer.Option(
            "--candidate",
            help="Keep the image although this machine has no GPU to test NCCL: packages are "
            "imported, ranks are not tested.",
        ),
    ] = False,
    *,
    build: DockerfileOptions,
    signed: SignatureOptions,
) -> None:
    """Build an image, run the smoke test in it, and test the packed image (uses the network).

    The image contains its lock, manifest and evidence; copies are in a folder next to it.
    """
    from ..commands.create import create as run
    from ..model.places import REGISTRY
    from ..views import building as views
    from ..workflow.options import CreateOptions, ImageOptions

    pushed = to if to and to.startswith(REGISTRY) else None
    options = CreateOptions(
        choice,
        root=None if pushed else to,
        target="image",
        image=ImageOptions(base, tuple(bind or ()), kind.value, candidate, build, pushed),
        output=output,
        locked=locked,
        signed=signed,
    )
    done = run(options, session.context, build_hints)
    session.report.show(done, views.made(done))


@command(verbs, example="lock allreduce --output allreduce.lock.json")
def lock(
    session: Session,
    choice: LockOptions,
    output: OutputOption = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Show what has changed since this lock was made; exit code 8 if anything has. "
            "No network.",
        ),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Lock exactly the packages of an explicit list, a conda-lock.yml or a pixi.lock.",
        ),
    ] = None,
    *,
    signed: SignatureOptions,
) -> int:
    """Resolve a recipe to files with hashes and print the lock as JSON (uses the network)."""
    from ..errors import ExitCode, UsageError
    from ..files import write_atomically
    from ..views import building as views
    from ..workflow import lock as run
    from ..workflow.load import load
    from ..workflow.output import output_path

    if check is not None and listed is not None:
        raise UsageError(
            "option.conflict",
            "--check and --from cannot be combined",
            "leave one of them out: --check makes no lock, --from makes one",
        )
    if check is not None:
        value = run.check(choice, check, signed, session.context)
        session.report.show(value, views.lock_check(value))
        return ExitCode.DRIFT if value.changed else ExitCode.OK
    if signed.key or signed.signature:
        raise UsageError(
            "signature.not-applicable",
            "--key and --signature apply to the file of --check; a new lock is not signed yet",
            "leave them out",
        )
    if not choice.recipe:
        raise UsageError(
            "recipe.missing", "no recipe was given", "envbuild recipes list shows the recipes"
        )
    path = output_path(output, session.context)
    if listed is not None:
        from ..commands.lock_listed import lock_of_file

        text = lock_of_file(choice, listed, session.context).text()
    else:
        text = run.new_lock(load(choice, session.context), session.context).text()
    if path is not None:
        write_atomically(path, text)
    if path is None or session.report.as_json:
        session.report.raw(text)
    return ExitCode.OK


@command(verbs, example="render allreduce --as environment.yml")
def render(session: Session, options: RenderOptions) -> None:
    """Render an environment or a plan to another form, or write the build folder.

    A published environment is rendered from its lock; a recipe from its plan, without network.
    The build folder and the image form need a lock: the one of --locked, otherwise a new one
    (uses the network).
    """
    from ..commands.render import render as run

    done = run(options, session.context)
    if done.text is not None and not session.report.as_json:
        session.report.raw(done.text)
    else:
        session.report.show(done, "\n".join(done.written))


@command(verbs, example="doctor", recipes=False)
def doctor(session: Session) -> None:
    """Show what this machine has, what is missing, and how to install it without root."""
    from ..doctor import view as views
    from ..doctor.command import doctor as run

    value = run(session.context)
    session.report.show(value, views.doctor(value))
