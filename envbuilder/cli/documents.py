"""The commands over documents: recipes, sites and advisories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..workflow.options import ArchOption, RootOption, SignatureOptions
from .command import Group, command
from .environments import environment_or_active
from .session import Session

if TYPE_CHECKING:
    from ..commands.library import Kind


def _group(kind: Kind) -> Group:
    """Return the commands that recipes and sites share."""
    prefix = f"{kind}s"
    group = Group(prefix, f"Look at {kind}s and check your own.")
    one = {"recipe": "allreduce", "site": "taurus-ml"}[kind]

    @command(group, "list", example=f"{prefix} list")
    def list_documents(session: Session) -> None:
        """List them, with the file of each that is not shipped."""
        from ..commands.library import list_documents as run
        from ..views import documents as views

        value = run(kind, session.context)
        session.report.show(value, views.documents(value))

    @command(group, "show", example=f"{prefix} show {one}")
    def show(session: Session, name: str) -> None:
        """Print one as it is written; with --json as it is read."""
        from ..commands.library import show as run

        value, text = run(kind, name, session.context)
        session.report.show(value, text)

    @command(group, "check", example=f"{prefix} check my-{kind}.yaml")
    def check(session: Session, files: list[Path]) -> None:
        """Check files; every problem of all of them is shown with its line and column."""
        from ..views import documents as views
        from ..workflow.document_checks import check as run

        value = run(kind, files, session.context)
        session.report.show(value, views.checked(value))

    @command(group, "schema", example=f"{prefix} schema >{kind}.json", json=False, recipes=False)
    def schema(session: Session) -> None:
        """Print the JSON schema for editors."""
        from ..commands.library import schema as run

        session.report.raw(run(kind))

    return group


recipes = _group("recipe")
sites = _group("site")


@command(recipes, "from", example="recipes from /scratch/me/venv --output mine.yaml")
def recipe_from(
    session: Session,
    name: Annotated[
        str | None,
        environment_or_active("PATH|NAME[/N]", "The folder of an environment, or one of a root."),
    ] = None,
    root: RootOption = None,
    loaded: Annotated[
        bool,
        typer.Option("--loaded", help="The modules that are loaded in this shell belong to it."),
    ] = False,
    called: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Of the recipe. Else as the folder is called."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A new file. Else standard output."),
    ] = None,
) -> None:
    """Print the recipe that would make an environment again, whoever built it. Only reads.

    What nothing says is not guessed: it is listed in the recipe's first lines.
    """
    from ..recipes_from.command import recipe_from as run
    from ..views import documents as views

    value = run(name, root, called, output, session.context, loaded=loaded)
    if session.report.as_json or value.file:
        session.report.show(value, views.recipe_draft(value))
    else:
        session.report.raw(value.recipe)


@command(recipes, "import", example="recipes import environment.yml -o my-recipe.yaml")
def import_file(
    session: Session,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An environment.yml, an explicit list, a conda-lock.yml or a pixi.lock.",
        ),
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of the recipe. Else as the file says.")
    ] = None,
    arch: ArchOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A new file. Else standard output."),
    ] = None,
) -> None:
    """Make a recipe of another tool's file; what a recipe cannot say is named.

    Of a lock it pins every package; envbuild lock NAME --from FILE takes just these files.
    """
    from ..workflow.foreign_files import import_recipe

    made = import_recipe(file, name, arch, output, session.context)
    for each in made.left_out:
        session.report.warn(each)
    if made.file is None and not session.report.as_json:
        session.report.raw(made.recipe)
    else:
        session.report.show(made, f"wrote {made.file}")


@command(sites, example="sites snapshot our-site.yaml -o our-site.snapshot.json")
def snapshot(
    session: Session,
    site: Annotated[
        str, typer.Argument(metavar="SITE", help="A site's name or file; local: this machine.")
    ],
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there, not to the screen."),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also load modules and ask what they bring.")
    ] = False,
    tree: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Look there instead; may be repeated."),
    ] = None,
) -> None:
    """Record what a site's module trees hold, for planning on any machine.

    Run it on a login node of the site. It loads the site's preloads and shows every module;
    nothing is changed there. A site file without a snapshot is made to use the one of --output.
    """
    from ..commands import sites as run
    from ..files import write_atomically
    from ..views import documents as views
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    detected = run.take_snapshot(site, session.context, probe=probe, trees=tree)
    for note in detected.notes:
        session.report.warn(note)
    if path is None:
        session.report.raw(run.snapshot_text(detected.snapshot))
        return
    write_atomically(path, run.snapshot_text(detected.snapshot))
    use = run.attach_snapshot(site, path, session.context, trial=bool(tree))
    if use.note:
        session.report.warn(use.note)
    site_file = str(use.site_file) if use.site_file else None
    notes = (*detected.notes, *([use.note] if use.note else []))
    plain = {
        "file": str(path),
        "site_file": site_file,
        "notes": notes,
        "snapshot": detected.snapshot.plain(),
    }
    text = views.snapshot(str(path), detected.snapshot, len(notes), site_file)
    session.report.show(plain, text)


@command(sites, example="sites detect --output our-site.yaml", recipes=False)
def detect(
    session: Session,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it to our-site.yaml."),
    ] = None,
) -> None:
    """Draft a site document from what this machine has; with --json all that was found."""
    from ..commands import sites as run
    from ..files import write_atomically
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    text = run.draft_site(session.context, output)
    if path is not None:
        write_atomically(path, text)
        session.report.say(f"wrote {path}: a draft, read it and fill in what is missing")
        for line in run.next_steps(path, text):
            session.report.say(line)
    if session.report.as_json:
        site, found = run.detect_site(session.context)
        plain = {"site": site.plain(), "snapshot": found.plain(), "draft": text}
        session.report.show(plain, "")
    elif output is None:
        session.report.raw(text)


advisories = Group("advisories", "List and show advisories, check versions.")


@command(advisories, "list", example="advisories list --component openmpi")
def list_rows(
    session: Session,
    component: Annotated[
        str | None, typer.Option(help="Only what speaks of it, or of its kind.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option(help="Only these: error, warning or info.")
    ] = None,
) -> None:
    """List advisories, couplings and rules of flags, a line each."""
    from ..commands import advisories as run
    from ..views import advisories as views

    value = run.list_rows(component, severity, session.context)
    session.report.show({"rows": [run.plain(row) for row in value]}, views.listing(value))


@command(advisories, "show", example="advisories show OMPI-001")
def show_row(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="ID", help="The id of a row.")],
) -> None:
    """Show all of one row: condition, remedies, sources, notes."""
    from ..commands import advisories as run
    from ..views import advisories as views

    value = run.show(name, session.context)
    session.report.show(run.plain(value), views.row(value))


@command(
    advisories, "check", example="advisories check openmpi==3.1.3 horovod==0.18.2 --arch ppc64le"
)
def check_versions(
    session: Session,
    versions: Annotated[
        list[str], typer.Argument(metavar="COMPONENT==VERSION...", help="What is there together.")
    ],
    arch: ArchOption = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="network=infiniband, mpi.cuda_aware=true, horovod.origin=pip, "
            "flags.HOROVOD_WITH_MPI=1 (then flags not stated count as not set)...; may be "
            "repeated.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Tell each advisory.")] = False,
) -> int:
    """Check versions against the advisories; exit code 4 if one that holds is an error."""
    from ..commands.advisories import check as run
    from ..errors import ExitCode
    from ..views import advisories as views

    value = run(versions, arch, fact or (), session.context)
    session.report.show(value, views.checked(value, verbose))
    return ExitCode.KNOWN_BAD if value.bad else ExitCode.OK


bundles = Group("bundle", "Look at bundles and install them.")


@command(
    bundles, "verify", example="bundle verify allreduce-0123456789ab-ppc64le.tar.gz", recipes=False
)
def verify(
    session: Session,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A bundle's archive, or its folder.")
    ],
    signed: SignatureOptions,
) -> int:
    """Compare a bundle with what was packed. Nothing of it is unpacked or run.

    Every file against SHA256SUMS, none missing or added; the lock against itself and against what
    is to be installed and proved. Exit code 8 if something is not as it was packed.
    """
    from ..commands.bundle import verify as run
    from ..errors import ExitCode
    from ..views import building as views

    value = run(file, signed, session.context)
    session.report.show(value, views.bundle_check(value))
    return int(ExitCode.DRIFT if value.changed or value.contradictions else ExitCode.OK)


@command(bundles, "install", example="bundle install bundles --root /scratch/me/env", recipes=False)
def install(
    session: Session,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="An unpacked bundle, or a folder with just one.")
    ],
    root: Annotated[str, typer.Option(metavar="DIR", help="Where it is published.")],
) -> None:
    """Build, prove and publish what a bundle holds, by its own install.sh. No network.

    Exit codes are its own: 2 if the bundle was changed, 5 for the build, 6 for the smoke test.
    """
    from ..commands.bundle import install as run

    said = run(folder, root, session.context)
    session.report.show({"said": said}, said)
