"""The commands on the way to an environment: create, lock, render; and doctor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .command import command
from .options import (
    Allow,
    ArchOption,
    JobAccount,
    JobCpus,
    JobMinutes,
    JobNodes,
    JobRanks,
    Partition,
    ProfileOption,
    RecipeName,
    RootOption,
    SiteOption,
    TierName,
    recipe_names,
)
from .session import Session

if TYPE_CHECKING:
    from ..commands.load import PlanOptions

app = typer.Typer()


@command(app, example="create allreduce --root /scratch/me/env", recipes=True)
def create(
    session: Session,
    recipe: RecipeName,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    profile: ProfileOption = None,
    allow: Allow = None,
    root: RootOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the step that failed last time.")
    ] = False,
    relock: Annotated[
        bool, typer.Option("--relock", help="Ask the package index again, take newer files.")
    ] = False,
    locked: Annotated[
        Path | None,
        typer.Option("--locked", metavar="FILE", help="Build just this lock: nothing is solved."),
    ] = None,
    bundle: Annotated[
        bool,
        typer.Option("--bundle", help="Build nothing: pack all that an offline build needs."),
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

    For an architecture that this machine is not, make a bundle that is built there offline.
    """
    from ..commands.create import CreateOptions
    from ..commands.create import create as run
    from ..commands.load import choice
    from ..model.outcome import CreateResult
    from ..views import building as views

    chosen = choice(recipe, site, arch, partition, allow, profile)
    tier = require_tier.tier() if require_tier else None
    target = "bundle" if bundle else None
    options = CreateOptions(chosen, root, resume, relock, locked, target, output, tier)
    done = run(options, session.context)
    text = views.created(done) if isinstance(done, CreateResult) else views.bundled(done)
    session.report.show(done, text)


@command(app, example="lock allreduce --output allreduce.lock.json", recipes=True)
def lock(
    session: Session,
    recipe: Annotated[
        str | None,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe's name, or the path of its file. With --check: else the lock's.",
            autocompletion=recipe_names,
        ),
    ] = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    profile: ProfileOption = None,
    allow: Allow = None,
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
) -> int:
    """Decide every file that would be fetched, with its hash; prints JSON (uses the network)."""
    from ..commands.load import choice

    chosen = choice(recipe or "", site, arch, partition, allow, profile)
    if check is not None:
        return _check_lock(session, chosen, check)
    from ..commands.lock import make
    from ..errors import UsageError

    if recipe is None:
        raise UsageError("lock needs a recipe", "envbuild recipes list shows them")

    text = make(chosen, session.context).text()
    if output is None:
        session.report.raw(text)
    else:
        from ..files import write_atomically

        write_atomically(session.context.path(output), text)
    return 0


def _check_lock(session: Session, chosen: PlanOptions, file: Path) -> int:
    from ..commands.lock import check
    from ..errors import ExitCode
    from ..views import building as views

    value = check(chosen, file, session.context)
    session.report.show(value, views.lock_check(value))
    return int(ExitCode.DRIFT if value.changed else ExitCode.OK)


@command(app, example="render allreduce --as environment.yml", recipes=True)
def render(
    session: Session,
    recipe: RecipeName,
    form: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORM",
            help="script, environment.yml, requirements, lua, tcl, def, dockerfile, slurm, lsf; "
            "job: the one of these for the site's scheduler; all: each of them; image: what an "
            "image is built from; folder, which it is without --as: the build folder.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File or new folder to write. One form: else standard output."
        ),
    ] = None,
    locked: Annotated[
        Path | None,
        typer.Option("--locked", metavar="FILE", help="Render just this lock: with its hashes."),
    ] = None,
    nodes: JobNodes = None,
    ranks_per_node: JobRanks = None,
    minutes: JobMinutes = None,
    account: JobAccount = None,
    cpus_per_rank: JobCpus = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    profile: ProfileOption = None,
    allow: Allow = None,
    root: RootOption = None,
) -> None:
    """Render a plan to another form, or write the build folder, without building.

    One form, and all, are made from the plan and need no network. The build folder and image need
    a lock: of --locked, else a new one (uses the network).
    """
    from ..commands.job import JobSize
    from ..commands.load import choice
    from ..commands.render import FOLDER, RenderOptions
    from ..commands.render import render as run

    chosen = choice(recipe, site, arch, partition, allow, profile)
    size = JobSize(nodes, ranks_per_node, minutes, account, cpus_per_rank)
    options = RenderOptions(chosen, form or FOLDER, root, output, locked, size)
    done = run(options, session.context)
    if done.text is not None and not session.report.as_json:
        session.report.raw(done.text)
    else:
        session.report.show(done, "\n".join(done.written))


@command(app, example="doctor")
def doctor(session: Session) -> None:
    """Show what this machine has, what is missing, and how to get it without root."""
    from ..commands.doctor import doctor as run
    from ..views import doctor as views

    value = run(session.context)
    session.report.show(value, views.doctor(value))
