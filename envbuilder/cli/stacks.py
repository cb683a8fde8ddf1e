"""The commands over a recipe: create, lock, render, plan, why, why-not; and doctor."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..workflow.options import (
    CloneOptions,
    CreateOptions,
    LockOptions,
    PlanOptions,
    RenderOptions,
    SignatureOptions,
    WhyOptions,
)
from .command import Group, command
from .session import Session

if TYPE_CHECKING:
    from ..knowledge.rows import Knowledge

verbs = Group()

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
        typer.Option("--bundle", help="Build nothing: pack all that an offline build needs."),
    ] = False,
    emulate: Annotated[
        bool,
        typer.Option("--emulate", help="Build and prove another architecture here, by qemu-user."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Where a bundle is put.")
    ] = None,
    require_tier: Annotated[
        TierName | None,
        typer.Option("--require-tier", help="Publish nothing unless so much was proved."),
    ] = None,
) -> None:
    """Build an environment, prove it with a smoke test, publish it (uses the network).

    For an architecture that this machine is not, make a bundle that is built there offline; with
    --emulate, build it here in a Debian of that architecture.
    """
    from ..commands.create import create as run
    from ..errors import UsageError
    from ..views import building as views

    tier = require_tier.name if require_tier else None
    if bundle and emulate:
        raise UsageError(
            "cli.bundle-builds-nothing",
            "--bundle builds nothing, and --emulate builds: take one of them",
        )
    target = "bundle" if bundle else "emulation" if emulate else None
    asked = replace(options, target=target, output=output, require_tier=tier)
    done = run(asked, session.context, build_hints)
    session.report.show(done, views.made(done))


@command(verbs, example="clone /sw/anaconda/envs/torch --name ours --root /scratch/me/env")
def clone(session: Session, options: CloneOptions) -> None:
    """Make an environment of the packages of a conda environment, which stays as it is.

    They come from their channels, else from conda's cache or the files that are there (uses the
    network). The recipe is written to NAME.yaml.
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
            help="The system it begins with: a folder, an archive, a SIF file, oci:DIR, "
            "docker://NAME@DIGEST, a Dockerfile, a definition file. Else as recipe or site say.",
        ),
    ] = None,
    bind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR[:DIR]",
            help="A folder of the site's modules, which the image binds in and does not hold: it "
            "is then planned for --site. May be repeated.",
        ),
    ] = None,
    kind: Annotated[
        ImageKind,
        typer.Option("--format", help="A file, OCI's layout, or what Apptainer runs."),
    ] = ImageKind.sif,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Where it is put.")
    ] = None,
    locked: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Build just this lock: nothing is solved.")
    ] = None,
    candidate: Annotated[
        bool,
        typer.Option(
            "--candidate",
            help="Where there is no GPU for NCCL, keep it all the same: imported, not proved.",
        ),
    ] = False,
    *,
    signed: SignatureOptions,
) -> None:
    """Build an image, prove in it that its ranks talk, and test it packed (uses the network).

    Lock, manifest and records are inside, and in a folder beside it.
    """
    from ..commands.create import create as run
    from ..views import building as views
    from ..workflow.options import CreateOptions, ImageOptions

    options = CreateOptions(
        choice,
        target="image",
        image=ImageOptions(base, tuple(bind or ()), kind.value, candidate),
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
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Else standard output.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Only say what has changed since this lock was made; exit code 8 if something "
            "has. No network.",
        ),
    ] = None,
    listed: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take just the packages of an explicit list, a conda-lock.yml or a pixi.lock.",
        ),
    ] = None,
    *,
    signed: SignatureOptions,
) -> int:
    """Decide every file that would be fetched, with its hash; prints JSON (uses the network)."""
    from ..errors import ExitCode, UsageError
    from ..files import write_atomically
    from ..views import building as views
    from ..workflow import lock as run
    from ..workflow.load import load
    from ..workflow.output import output_path

    if check is not None and listed is not None:
        raise UsageError(
            "cli.check-makes-no", "--check makes no lock, and --from makes one: take one of them"
        )
    if check is not None:
        value = run.check(choice, check, signed, session.context)
        session.report.show(value, views.lock_check(value))
        return ExitCode.DRIFT if value.changed else ExitCode.OK
    if signed.key or signed.signature:
        raise UsageError(
            "cli.key-file-check",
            "--key is for the file of --check: what is made now is not signed yet",
        )
    if not choice.recipe:
        raise UsageError(
            "cli.lock-needs-recipe", "lock needs a recipe", "envbuild recipes list shows them"
        )
    path = output_path(output, session.context)
    if listed is not None:
        from ..commands.lock_listed import lock_of_file

        text = lock_of_file(choice, listed, session.context).text()
    else:
        text = run.new_lock(load(choice, session.context, "to lock"), session.context).text()
    if path is not None:
        write_atomically(path, text)
    if path is None or session.report.as_json:
        session.report.raw(text)
    return ExitCode.OK


@command(verbs, example="render allreduce --as environment.yml")
def render(session: Session, options: RenderOptions) -> None:
    """Render an environment or a plan to another form, or write the build folder.

    A published environment is rendered from its lock. One form, and all, of a recipe that is not
    built are made from the plan and need no network. The build folder and image need a lock: of
    --locked, else a new one (uses the network).
    """
    from ..commands.render import render as run

    done = run(options, session.context)
    if done.text is not None and not session.report.as_json:
        session.report.raw(done.text)
    else:
        session.report.show(done, "\n".join(done.written))


@command(verbs, example="doctor", recipes=False)
def doctor(session: Session) -> None:
    """Show what this machine has, what is missing, and how to get it without root."""
    from ..doctor import view as views
    from ..doctor.command import doctor as run

    value = run(session.context)
    session.report.show(value, views.doctor(value))


@command(verbs, example="plan horovod-nccl --site taurus-ml --arch ppc64le")
def plan(
    session: Session,
    choice: PlanOptions,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all there is to say.")
    ] = False,
) -> None:
    """Show what would be built: components, modules, steps. No network, nothing written."""
    from ..views import plan as views
    from ..workflow import load as run

    value = run.plan(run.load(choice, session.context), verbose=verbose)
    session.report.show(value, views.plan(value, verbose))


@command(verbs, example="why openmpi horovod-nccl --site taurus-ml")
def why(
    session: Session,
    component: Annotated[str, typer.Argument(help="A component of the stack, such as openmpi.")],
    choice: WhyOptions,
) -> None:
    """Say why a component of an environment or plan is what it is, and not something newer."""
    from ..commands.why import why as run
    from ..views import plan as views

    value = run(choice, component, session.context)
    session.report.show(value, views.why(value))


@command(verbs, "why-not", example="why-not openmpi==3.1.3 horovod-nccl --site taurus-ml")
def why_not(
    session: Session,
    asked: Annotated[str, typer.Argument(metavar="COMPONENT==VERSION", help="What is not there.")],
    choice: WhyOptions,
) -> None:
    """Say what stands against a version of a component."""
    from ..commands.why import why_not as run
    from ..views import plan as views

    value = run(choice, asked, session.context)
    session.report.show(value, views.why_not(value))
