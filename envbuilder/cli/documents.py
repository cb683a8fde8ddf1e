"""The commands over documents: recipes, sites and advisories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..workflow.options import SignatureOptions
from ..workflow.plan_options import ArchOption, NewFileOption, RootOption
from .command import Group, command
from .environments import environment_or_active
from .session import Session

if TYPE_CHECKING:
    from ..commands.library import Kind


def _group(kind: Kind) -> Group:
    """Return the commands that recipes and sites share."""
    prefix = f"{kind}s"
    group = Group(prefix, f"List, show and check {kind}s.")
    one = {"recipe": "allreduce", "site": "taurus-ml"}[kind]

    @command(group, "list", example=f"{prefix} list")
    def list_documents(session: Session) -> None:
        """List all names, with the file of each document that envbuild does not ship."""
        from ..commands.library import list_documents as run
        from ..views import documents as views

        value = run(kind, session.context)
        session.report.show(value, views.documents(value))

    @command(group, "show", example=f"{prefix} show {one}")
    def show(session: Session, name: str) -> None:
        """Print the text of a document; with --json, the values that envbuild reads."""
        from ..commands.library import show as run

        value, text = run(kind, name, session.context)
        session.report.show(value, text)

    @command(group, "check", example=f"{prefix} check my-{kind}.yaml")
    def check(session: Session, files: list[Path]) -> None:
        """Check files and show every problem with its line and column.

        A folder stands for its files, its knowledge, and the logs that show its symptoms.
        """
        from ..views import documents as views
        from ..workflow.document_checks import check as run

        cases: list[Path] = []
        documents = [file for file in files if not file.is_dir()]
        for folder in (file for file in files if file.is_dir()):
            from ..diagnosis.site_symptoms import check_cases
            from ..documents.library import FOLDERS

            cases += check_cases(folder, replace(session.context, recipe_folders=(folder,)))
            documents += sorted((folder / FOLDERS[kind]).glob("*.yaml"))
        value = run(kind, documents, session.context)
        value = value.model_copy(update={"good": (*value.good, *map(str, cases))})
        session.report.show(value, views.checked(value))

    @command(group, "schema", example=f"{prefix} schema >{kind}.json", json=False, recipes=False)
    def schema(session: Session) -> None:
        """Print the JSON schema for editors."""
        from ..commands.library import schema as run

        session.report.raw(run(kind))

    return group


advisories = Group("advisories", "List and show advisories, check versions.")
knowledge = Group("knowledge", "Record and update advisories and releases.")
bundles = Group("bundle", "Verify and install bundles.")
recipes = _group("recipe")
sites = _group("site")
verbs = Group()
GROUPS = (verbs, advisories, knowledge, bundles, recipes, sites)


@command(verbs, example="search horovod pytorch")
def search(
    session: Session,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="Words, in any case.")],
) -> None:
    """Search recipes, sites, components and advisories for all of the words.

    The name of a package (torch) also finds its component (pytorch).
    """
    from ..commands.library import search as run
    from ..views import documents as views

    value = run(words, session.context)
    session.report.show({"matches": [each._asdict() for each in value]}, views.matches(value))


@command(recipes, "from", example="recipes from /scratch/me/venv --output mine.yaml")
def recipe_from(
    session: Session,
    name: Annotated[
        str | None,
        environment_or_active(
            "PATH|NAME[/N]", "The folder of an environment, or an environment of a root."
        ),
    ] = None,
    root: RootOption = None,
    loaded: Annotated[
        bool,
        typer.Option("--loaded", help="Include the modules that are loaded in this shell."),
    ] = False,
    called: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of the recipe (default: the folder's name)."
        ),
    ] = None,
    output: NewFileOption = None,
) -> None:
    """Print a recipe that reproduces an existing environment. The environment is only read.

    envbuild does not guess: the first lines of the recipe list what it could not determine.
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
            help="Such as environment.yml, conda-lock.yml, pixi.lock, requirements.txt, "
            "pyproject.toml, pylock.toml, spack.yaml, an easyconfig, a Dockerfile, or what conda "
            "list, pip freeze or module list print.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the recipe (default: the name in the file)."),
    ] = None,
    arch: ArchOption = None,
    output: NewFileOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if the recipe lacks a part of the file.")
    ] = False,
) -> None:
    """Convert another tool's file to a recipe, with a warning for each part it cannot convert.

    A recipe from a lock file pins every package. envbuild lock NAME --from FILE locks exactly
    its files.
    """
    from ..workflow.foreign_files import import_recipe

    made = import_recipe(file, name, arch, output, session.context, strict=strict)
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
        str, typer.Argument(metavar="SITE", help="A site's name or file. local: this machine.")
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="File to write (default: standard output)."
        ),
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe", help="Also load each module and record what it provides.")
    ] = False,
    tree: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Read this module tree instead. May be repeated."),
    ] = None,
) -> None:
    """Record the modules of a site, for planning on any machine.

    Run it on a login node of the site. It loads the site's preloads, shows every module and
    changes nothing there. If the site file has no snapshot, it is edited to use --output FILE.
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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write, such as our-site.yaml (default: standard output).",
        ),
    ] = None,
) -> None:
    """Draft a site document for this machine; with --json, show everything that was detected."""
    from ..commands import sites as run
    from ..files import write_atomically
    from ..workflow.output import output_path

    path = output_path(output, session.context)
    text = run.draft_site(session.context, output)
    if path is not None:
        write_atomically(path, text)
        session.report.say(f"wrote {path}: a draft; check it and fill in what is missing")
        for line in run.next_steps(path, text):
            session.report.say(line)
    if session.report.as_json:
        site, found = run.detect_site(session.context)
        plain = {"site": site.plain(), "snapshot": found.plain(), "draft": text}
        session.report.show(plain, "")
    elif output is None:
        session.report.raw(text)


@command(advisories, "list", example="advisories list --component openmpi")
def list_rows(
    session: Session,
    component: Annotated[
        str | None, typer.Option(help="Only rows about this component or its kind.")
    ] = None,
    severity: Annotated[
        str | None, typer.Option(help="Only rows of this severity: error, warning or info.")
    ] = None,
) -> None:
    """List advisories, couplings and flag rules, one on each line."""
    from ..commands import advisories as run
    from ..views import advisories as views

    value = run.list_rows(component, severity, session.context)
    session.report.show({"rows": [run.plain(row) for row in value]}, views.listing(value))


@command(advisories, "show", example="advisories show OMPI-001")
def show_row(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="ID", help="Its id, such as OMPI-001.")],
) -> None:
    """Show one advisory, coupling or flag rule: condition, remedies, sources, notes."""
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
        list[str] | None,
        typer.Argument(
            metavar="[COMPONENT==VERSION...]",
            help="The versions of one stack. Names of packages (torch==2.5.1) and modules "
            "(NCCL/2.8.3-CUDA-11.1.1) are valid too.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="A file in any format of recipes import, or what pip freeze, pip list, conda list "
            "or module list print; - reads standard input.",
        ),
    ] = None,
    arch: ArchOption = None,
    fact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A fact, such as network=infiniband, mpi.cuda_aware=true, horovod.origin=pip or "
            "flags.HOROVOD_WITH_MPI=1 (flags that are not given then count as unset). May be "
            "repeated.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show each advisory in full.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Exit with 4 also for releases that an error was not confirmed for."
        ),
    ] = False,
) -> int:
    """Check versions against the advisories; exit code 4 if an error applies."""
    from ..commands.advisories import check as run
    from ..errors import ExitCode
    from ..views import advisories as views
    from ..workflow.software_list import load_software
    from .streams import pipe

    listed = load_software(file, pipe(), session.context) if file else None
    value = run(versions or (), arch, fact or (), session.context, listed, strict=strict)
    session.report.show(value, views.checked(value, verbose))
    return ExitCode.KNOWN_BAD if value.bad else ExitCode.OK


@command(knowledge, example="knowledge record spack-packages --output ours/knowledge")
def record(
    session: Session,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|FILE|URL...",
            help="Checkouts of easybuild-easyconfigs and spack-packages; release notes; package "
            "indexes.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of knowledge to write.")
    ],
) -> None:
    """Write new releases, and drafts of rows to accept (uses the network for a URL)."""
    from ..commands.recording import record as run
    from ..views import advisories as views

    value = run(sources, output, session.context)
    session.report.show(value, views.recorded(value))


@command(
    knowledge, "update", example="knowledge update --from https://feed.example/envbuild --key k.pub"
)
def update(
    session: Session,
    source: Annotated[
        str, typer.Option("--from", metavar="URL|DIR", help="The feed: a folder of signed files.")
    ],
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The publisher's public key (PEM).")
    ] = None,
) -> None:
    """Verify a feed of knowledge and install it for this user (uses the network for a URL)."""
    from ..workflow.knowledge_feed import update as run

    version, folder = run(source, key, session.context)
    text = f"installed the feed of knowledge {version} in {folder}"
    session.report.show({"version": version, "folder": str(folder)}, text)


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
    """Verify the files of a bundle. Nothing is unpacked or run.

    Compares every file with SHA256SUMS, and the lock with its hash and with the files to install
    and test. Exit code 8 if a file is changed, missing or added.
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
        Path, typer.Argument(metavar="DIR", help="An unpacked bundle, or a folder with one bundle.")
    ],
    root: Annotated[str, typer.Option(metavar="DIR", help="The root to publish it in.")],
) -> None:
    """Build, test and publish a bundle by running its install.sh. No network.

    Exit codes of install.sh: 2 if the bundle was changed, 5 for the build, 6 for the smoke test.
    """
    from ..commands.bundle import install as run

    said = run(folder, root, session.context)
    session.report.show({"said": said}, said)
