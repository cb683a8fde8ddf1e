"""The command over launch lines."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from .command import command
from .options import ArchOption, Environment, Partition, RootOption, SiteOption
from .session import Session

app = typer.Typer()


Program = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- PROGRAM...", help="What every rank runs, and its words."),
]
Ranks = Annotated[
    int | None,
    typer.Option("--ranks", metavar="N", help="Else all slots of the hosts, or the smoke test's."),
]
Nodes = Annotated[
    int | None,
    typer.Option("--nodes", metavar="N", help="As inside a job of N nodes, wherever this is."),
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


@command(app, example="launch allreduce -H server1:4,server2:4 -- python train.py", recipes=True)
def launch(
    session: Session,
    environment: Environment,
    program: Program = None,
    ranks: Ranks = None,
    nodes: Nodes = None,
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
) -> None:
    """Print the line that starts a program on all ranks. Starts nothing.

    Where nothing of that name is published it is the recipe's, as it would be at the site.
    The hosts are those of -H or --hostfile, else of the Slurm or LSF job that the shell is in, else
    this machine alone.
    """
    from ..commands.launch import LaunchOptions
    from ..commands.launch import launch as run

    options = LaunchOptions(
        environment=environment,
        program=tuple(program or ()),
        ranks=ranks,
        nodes=nodes,
        hosts=hosts,
        hostfile=hostfile,
        rdma=rdma,
        gloo=gloo,
        cuda_aware=cuda_aware,
        exports=tuple(exports or ()),
        launcher=launcher,
        site=site,
        partition=partition,
        root=root,
        arch=arch,
    )
    value = run(options, session.context)
    session.report.show(value, shlex.join(value.words))
