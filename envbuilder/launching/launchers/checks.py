"""What no launcher could start, or would start and hang."""

from __future__ import annotations

import re

from ...errors import UsageError
from ...knowledge.entries import option_fault
from ...model.launch import JobHosts, LaunchRequest, Shape, slots_of
from ...text import counted, shown
from .protocol import Traits

_EXPORT = r"[A-Za-z_][A-Za-z0-9_]*(=[^\n\0]*)?"


def check_request(request: LaunchRequest, traits: Traits) -> None:
    """Raise UsageError for what no launcher could start, or would start and hang."""
    _check_program(request)
    _check_ranks(request)
    if not request.oversubscribe:
        most = request.most_per_node()
        gpus = most if request.gpus else 0
        check_node(request.shape, ranks=most, gpus=gpus, cores_per_rank=request.cores_per_rank or 1)
    _check_options(request, traits)
    _check_transport(request, traits)
    _check_place(request, traits)


def _check_program(request: LaunchRequest) -> None:
    if not request.program:
        raise UsageError(
            "launch.no-program", "there is no program to start", "give one: python train.py"
        )
    if request.program[0].startswith("-"):
        raise UsageError(
            "launch.program-starts-with-hyphen",
            f"the program starts with a hyphen: '{shown(request.program[0])}'",
            "give an executable first: python train.py --epochs 3",
        )
    wrong = next((each for each in request.exports if not re.fullmatch(_EXPORT, each)), None)
    if wrong is not None:
        raise UsageError(
            "launch.malformed-variable",
            f"not a variable to export: '{shown(wrong)}'",
            "write NAME, or NAME=VALUE",
        )


def _check_ranks(request: LaunchRequest) -> None:
    ranks, hosts = request.ranks, request.hosts
    if ranks < 1:
        raise UsageError(
            "launch.no-ranks",
            f"cannot start {ranks} ranks",
            "use 1 or more",
        )
    if request.cores_per_rank is not None and request.cores_per_rank < 1:
        raise UsageError(
            "launch.no-cores",
            f"a rank cannot have {request.cores_per_rank} cores",
            "use 1 or more",
        )
    if hosts is not None and ranks > slots_of(hosts) and not request.oversubscribe:
        nodes = hosts.nodes if isinstance(hosts, JobHosts) else len(hosts)
        raise UsageError(
            "hosts.too-few-slots",
            f"{ranks} ranks exceed the {slots_of(hosts)} slots of {counted(nodes, 'host')}",
            "give more hosts or more slots (host:4)",
            "or start fewer ranks",
        )


def check_node(shape: Shape, *, ranks: int, gpus: int = 0, cores_per_rank: int = 1) -> None:
    """Raise UsageError where *ranks* ranks and *gpus* GPUs on one node are more than it has."""
    if shape.gpus_per_node is not None and gpus > shape.gpus_per_node:
        raise UsageError(
            "launch.too-few-gpus",
            f"the launch needs {gpus} GPUs per node, but the nodes of the site have "
            f"{shape.gpus_per_node or 'none'}",
            "use more nodes with fewer ranks on each, or another partition",
            "if this is wrong, correct facts: {gpus-per-node: N} in the site file",
        )
    if shape.cores_per_node is not None and ranks * cores_per_rank > shape.cores_per_node:
        each = f" of {cores_per_rank} cores" if cores_per_rank > 1 else ""
        raise UsageError(
            "launch.too-few-cores",
            f"the launch needs {ranks} ranks{each} per node, but the nodes of the site have "
            f"{shape.cores_per_node} cores",
            "use more nodes, or fewer ranks on each",
            "if this is wrong, correct facts: {cores-per-node: N} in the site file",
        )


def _check_options(request: LaunchRequest, traits: Traits) -> None:
    for option in request.options:
        fault = option_fault(option, traits.line.options)
        if fault:
            raise UsageError(
                "launch.unknown-option",
                f"{request.kind}: {fault}",
                "correct launch-options of the site or recipe",
            )


def _check_transport(request: LaunchRequest, traits: Traits) -> None:
    wanted, mpi = request.transport, request.mpi
    if mpi is not None and mpi.component in traits.mpi.not_of:
        raise UsageError(
            "launch.other-mpi",
            f"{request.kind} cannot start programs that link {mpi.component}: each rank would be "
            "rank 0 of 1",
            f"use the launcher of {mpi.component}",
        )
    if wanted.gloo and (wanted.rdma or wanted.ucx):
        raise UsageError(
            "launch.gloo-transport",
            "Gloo does not support RDMA or UCX",
            "use MPI, or remove these options",
        )
    if wanted.gloo and traits.mpi.only:
        raise UsageError(
            "launch.gloo-launcher",
            f"{request.kind} starts MPI programs, not Gloo programs",
            "use --launcher horovodrun, torchrun or distributed-dl-trainingrun",
        )
    if not wanted.rdma:
        return
    if not traits.line.rdma or mpi is None or mpi.component not in traits.mpi.own_of:
        raise UsageError(
            "launch.rdma-not-openmpi",
            "this RDMA option requires Open MPI",
            "use --launcher openmpi with Open MPI below 4, or remove the option",
        )
    if mpi.series >= 4:
        raise UsageError(
            "launch.rdma-release",
            f"Open MPI {mpi.version} does not support HOROVOD_MPI_THREADS_DISABLE=1, which is for "
            "the openib transport of Open MPI below 4",
            "from 4.0 on UCX provides RDMA: state ucx of the MPI and remove the option",
        )


def _check_place(request: LaunchRequest, traits: Traits) -> None:
    if request.transport.cuda_aware and not traits.line.cuda_aware:
        raise UsageError(
            "launch.no-cuda-aware-option",
            f"{request.kind} has no option for a CUDA-aware MPI: support depends on how the MPI "
            "was built",
            "remove --cuda-aware, which is for Spectrum MPI and jsrun",
        )
    if traits.job.job_only and request.scheduler != traits.job.scheduler:
        title = (traits.job.scheduler or "").upper()
        raise UsageError(
            "launch.outside-job",
            f"{request.kind} starts ranks only inside a job of {title}",
            "start one first: bsub -Is -nnodes 1 -W 30 -P ACCOUNT $SHELL",
            f"or render a job: envbuild render RECIPE --as {traits.job.scheduler}",
        )
    if request.in_image and traits.job.outside_image:
        raise UsageError(
            "launch.launcher-outside-image",
            f"{request.kind} is not available inside an image",
            "use the launcher of the MPI in the image",
        )
