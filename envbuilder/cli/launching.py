"""The command over launch lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import ArchOption, Environment, Json, Partition, Recipes, RootOption, SiteOption
from .session import open_session, run_verb

app = typer.Typer()


Program = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- PROGRAM...", help="What every rank runs, and its words."),
]
Ranks = Annotated[
    int | None,
    typer.Option("--ranks", metavar="N", help="Else all slots of the hosts, or the smoke test's."),
]
HostList = Annotated[
    str | None,
    typer.Option("-H", "--hosts", metavar="HOSTS", help="As host:4,host2:4. Else the job's."),
]
Hostfile = Annotated[
    Path | None,
    typer.Option("--hostfile", metavar="FILE", help="A host a line: host slots=4."),
]
Rdma = Annotated[
    bool, typer.Option("--rdma", help="Open MPI below 4: its own RDMA, without threads.")
]
Gloo = Annotated[bool, typer.Option("--gloo", help="Without MPI, by a launcher that knows Gloo.")]
CudaAware = Annotated[
    bool,
    typer.Option("--cuda-aware", help="Spectrum MPI, jsrun: MPI is handed GPU memory."),
]
Exports = Annotated[
    list[str] | None,
    typer.Option(
        "--export", metavar="NAME[=VALUE]", help="Hand it to every rank; may be repeated."
    ),
]
LauncherKind = Annotated[
    str | None,
    typer.Option(
        "--launcher",
        metavar="KIND",
        help="openmpi, spectrum-mpi, hydra, srun, jsrun, ddlrun, horovodrun, torchrun, "
        "distributed-dl-trainingrun or custom. Else the site's, or the MPI's own.",
    ),
]


@app.command(epilog="Example: envbuild launch allreduce -H server1:4,server2:4 -- python train.py")
def launch(
    environment: Environment,
    program: Program = None,
    ranks: Ranks = None,
    hosts: HostList = None,
    hostfile: Hostfile = None,
    rdma: Rdma = False,
    gloo: Gloo = False,
    cuda_aware: CudaAware = False,
    exports: Exports = None,
    launcher: LauncherKind = None,
    root: RootOption = None,
    site: SiteOption = None,
    arch: ArchOption = None,
    partition: Partition = None,
    recipes: Recipes = None,
    as_json: Json = False,
) -> None:
    """Print the line that starts a program on all ranks. Starts nothing.

    The hosts are those of -H or --hostfile, else of the Slurm or LSF job that the shell is in, else
    this machine alone.
    """
    session = open_session(as_json, recipes)

    def verb() -> None:
        from .. import views
        from ..commands.launch import LaunchOptions
        from ..commands.launch import launch as run
        from ..commands.places import existing_root

        options = LaunchOptions(
            environment=environment,
            program=tuple(program or ()),
            ranks=ranks,
            hosts=hosts,
            hostfile=hostfile,
            rdma=rdma,
            gloo=gloo,
            cuda_aware=cuda_aware,
            exports=tuple(exports or ()),
            launcher=launcher,
            site=site,
            partition=partition,
        )
        value = run(existing_root(root, site, arch, session.context), options, session.context)
        session.report.show(value, views.launch_line(value))

    run_verb(session, verb)
