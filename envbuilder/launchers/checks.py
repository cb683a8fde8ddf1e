"""What no launcher could start, or would start and hang."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..errors import UsageError
from ..model.launch import JobHosts, LaunchRequest
from ..text import shown
from .protocol import Traits
from .shape import check_node

_EXPORT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(=[^\n\0]*)?")


def check_request(request: LaunchRequest, traits: Traits) -> None:
    """Raise UsageError for what no launcher could start, or would start and hang."""
    for check in _CHECKS:
        check(request, traits)


def _program(request: LaunchRequest, _traits: Traits) -> None:
    if not request.program:
        raise UsageError("there is no program to start", "name it: python train.py")
    if request.program[0].startswith("-"):
        raise UsageError(
            f"the program's name begins with a hyphen: '{shown(request.program[0])}'",
            "give an executable first: python train.py --epochs 3",
        )


def _exports(request: LaunchRequest, _traits: Traits) -> None:
    wrong = next((each for each in request.exports if not _EXPORT.fullmatch(each)), None)
    if wrong is not None:
        raise UsageError(f"not a variable to export: '{shown(wrong)}'", "write NAME, or NAME=VALUE")


def _ranks(request: LaunchRequest, _traits: Traits) -> None:
    ranks, hosts = request.ranks, request.hosts
    if ranks < 1:
        raise UsageError(f"{ranks} ranks cannot be started", "ask for one or more")
    if hosts is None or request.oversubscribe:
        return
    if isinstance(hosts, JobHosts):
        slots, nodes = hosts.nodes * hosts.slots, hosts.nodes
    else:
        slots, nodes = sum(host.slots for host in hosts), len(hosts)
    if ranks > slots:
        raise UsageError(
            f"{ranks} ranks are more than the {slots} slots of {nodes} "
            f"{'host' if nodes == 1 else 'hosts'}",
            "name more hosts, or give them more slots (host:4)",
            "ask for fewer ranks",
        )


def _node(request: LaunchRequest, _traits: Traits) -> None:
    if request.oversubscribe:
        return
    most = request.most_per_node()
    check_node(
        request.shape,
        ranks=most,
        gpus=most if request.gpus else 0,
        cores_per_rank=request.cores_per_rank or 1,
    )


def _mpi(request: LaunchRequest, traits: Traits) -> None:
    mpi = request.mpi
    if mpi is not None and mpi.component in traits.not_of:
        raise UsageError(
            f"the ranks are linked to {mpi.component}, which {request.kind} does not start: each "
            "would be rank 0 of 1",
            f"start them by the launcher of {mpi.component}",
        )


def _transport(request: LaunchRequest, traits: Traits) -> None:
    wanted, mpi = request.transport, request.mpi
    if wanted.gloo and (wanted.rdma or wanted.ucx):
        raise UsageError(
            "Gloo carries no RDMA and no UCX", "start it by MPI, or without these options"
        )
    if wanted.gloo and traits.mpi_only:
        raise UsageError(
            f"{request.kind} starts MPI programs; Gloo has launchers of its own",
            "take --launcher horovodrun, torchrun or distributed-dl-trainingrun",
        )
    if wanted.rdma and (not traits.rdma or mpi is None or mpi.component not in traits.own_of):
        raise UsageError(
            "this form of RDMA is Open MPI's",
            "take its mpirun, of a release below 4: --launcher openmpi; or leave that option out",
        )
    if wanted.rdma and mpi is not None and mpi.series >= 4:
        raise UsageError(
            f"Open MPI {mpi.version} has no use for the form with HOROVOD_MPI_THREADS_DISABLE=1, "
            "which is for the openib transport of Open MPI below 4",
            "from 4.0 on UCX does RDMA, with threads: state ucx of the MPI, leave that option out",
        )


def _cuda(request: LaunchRequest, traits: Traits) -> None:
    if request.transport.cuda_aware and not traits.cuda_aware:
        raise UsageError(
            f"{request.kind} has no option for an MPI that is handed GPU memory: it can, or "
            "cannot, as it was built",
            "leave --cuda-aware out; it is for Spectrum MPI and jsrun",
        )


def _job(request: LaunchRequest, traits: Traits) -> None:
    if traits.job_only and request.scheduler != traits.scheduler:
        title = (traits.scheduler or "").upper()
        raise UsageError(
            f"{request.kind} starts ranks inside a job of {title} only, and here is none",
            "get one first: bsub -Is -nnodes 1 -W 30 -P ACCOUNT $SHELL",
            f"or render a job: envbuild render RECIPE --as {traits.scheduler}",
        )


def _image(request: LaunchRequest, traits: Traits) -> None:
    if request.in_image and traits.outside_image:
        raise UsageError(
            f"{request.kind} is the host's: inside an image there is none",
            "start the ranks by the launcher of the image's own MPI",
        )


_CHECKS: Sequence[Callable[[LaunchRequest, Traits], None]] = (
    _program,
    _exports,
    _ranks,
    _node,
    _mpi,
    _transport,
    _cuda,
    _job,
    _image,
)
