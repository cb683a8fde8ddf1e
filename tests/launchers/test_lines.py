"""The launch lines: their exact text, and what is refused."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from envbuilder.errors import UsageError
from envbuilder.launching.hosts import hosts_argument
from envbuilder.launching.launchers import launch_line
from envbuilder.model.launch import (
    Host,
    JobHosts,
    LaunchRequest,
    Mpi,
    Shape,
    TransportOptions,
)

# What Horovod's documentation hands to every rank: docs/mpi.rst, "Run on 4 machines".
DOCUMENTED_EXPORTS = ("NCCL_DEBUG=INFO", "LD_LIBRARY_PATH", "PATH")
FOUR = hosts_argument("server1:4,server2:4,server3:4,server4:4")
PYTHON = ("python", "train.py")
BASE = LaunchRequest("openmpi", PYTHON, 16)
SUMMIT = Shape(gpus_per_node=6, cores_per_node=42)
OPENMPI_3, OPENMPI_4, OPENMPI_5 = (Mpi("openmpi", text) for text in ("3.1.4", "4.0.5", "5.0.11"))
SPECTRUM, MPICH = Mpi("spectrum-mpi", "10.3.1.2"), Mpi("mpich", "5.0.2")
UCX, GLOO, CUDA = (
    TransportOptions(ucx=True),
    TransportOptions(gloo=True),
    TransportOptions(cuda_aware=True),
)
IN_JOB = JobHosts(4, 4)
NAMED = JobHosts(4, 4, "HOSTS", "FIRST:PORT")


def asked(kind: str, **changes: object) -> LaunchRequest:
    return replace(BASE, kind=kind, **changes)  # type: ignore[arg-type]


def summit(kind: str, nodes: int = 2, **changes: object) -> LaunchRequest:
    hosts = JobHosts(nodes, 6)
    base = asked(kind, ranks=nodes * 6, hosts=hosts, scheduler="lsf", gpus=True, shape=SUMMIT)
    return replace(base, **changes)  # type: ignore[arg-type]


LINES = {
    "openmpi-3": (
        asked("openmpi", mpi=OPENMPI_3, hosts=FOUR, exports=DOCUMENTED_EXPORTS),
        "mpirun -n 16 --host server1:4,server2:4,server3:4,server4:4 --bind-to none --map-by slot "
        "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH --mca pml ob1 --mca btl '^openib'",
    ),
    "openmpi-3-has-no-ucx-form": (
        asked("openmpi", mpi=OPENMPI_3, transport=UCX),
        "mpirun -n 16 --bind-to none --map-by slot --mca pml ob1 --mca btl '^openib'",
    ),
    "openmpi-3-rdma": (
        asked("openmpi", mpi=OPENMPI_3, transport=TransportOptions(rdma=True), exports=("PATH",)),
        "mpirun -n 16 --bind-to none --map-by slot -x PATH -x HOROVOD_MPI_THREADS_DISABLE=1 "
        "--mca pml ob1",
    ),
    "openmpi-4-ucx": (
        asked("openmpi", mpi=OPENMPI_4, transport=UCX),
        "mpirun -n 16 --bind-to none --map-by slot --mca pml ucx",
    ),
    "openmpi-4": (
        asked("openmpi", mpi=OPENMPI_4, hosts=IN_JOB, scheduler="slurm"),
        "mpirun -n 16 --bind-to none --map-by slot",
    ),
    "openmpi-5-ucx": (
        asked("openmpi", mpi=OPENMPI_5, transport=UCX, exports=DOCUMENTED_EXPORTS),
        "mpirun -n 16 --bind-to none --map-by slot "
        "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH --mca pml ucx",
    ),
    "openmpi-of-the-site": (
        asked("openmpi", mpi=OPENMPI_5, command=("/sw/bin/mpiexec", "--oversubscribe")),
        "/sw/bin/mpiexec --oversubscribe -n 16 --bind-to none --map-by slot",
    ),
    "spectrum": (
        asked("spectrum-mpi", mpi=SPECTRUM, hosts=FOUR, exports=("PATH",)),
        "mpirun -n 16 --host server1:4,server2:4,server3:4,server4:4 "
        "--bind-to socket --map-by socket --rank-by core -x PATH",
    ),
    "spectrum-cuda": (
        asked("spectrum-mpi", mpi=SPECTRUM, transport=CUDA),
        "mpirun -gpu -n 16 --bind-to socket --map-by socket --rank-by core",
    ),
    "hydra": (
        asked("hydra", mpi=MPICH, hosts=FOUR, exports=DOCUMENTED_EXPORTS),
        "env NCCL_DEBUG=INFO mpiexec -n 16 -hosts server1:4,server2:4,server3:4,server4:4",
    ),
    "hydra-in-job": (asked("hydra", mpi=MPICH, hosts=IN_JOB), "mpiexec -n 16"),
    "srun-openmpi": (
        asked("srun", mpi=OPENMPI_4, hosts=IN_JOB, exports=("PATH", "NCCL_DEBUG=INFO")),
        "env NCCL_DEBUG=INFO srun --mpi=pmix --nodes=4 --ntasks=16 --ntasks-per-node=4 "
        "--kill-on-bad-exit=1",
    ),
    "srun-mpich": (
        asked("srun", mpi=MPICH),
        "srun --mpi=pmi2 --nodes=1 --ntasks=16 --ntasks-per-node=16 --kill-on-bad-exit=1",
    ),
    "srun-as-the-site-says": (
        asked("srun", mpi=OPENMPI_4, command=("srun", "--mpi=pmi2"), hosts=FOUR),
        "srun --mpi=pmi2 --nodes=4 --ntasks=16 --ntasks-per-node=4 --kill-on-bad-exit=1 "
        "--nodelist=server1,server2,server3,server4",
    ),
    "srun-other-mpi": (
        asked("srun", mpi=SPECTRUM, hosts=IN_JOB),
        "srun --nodes=4 --ntasks=16 --ntasks-per-node=4 --kill-on-bad-exit=1",
    ),
    "jsrun": (summit("jsrun"), "jsrun -n2 -r1 -g6 -a6 -c42 -bpacked:7"),
    "jsrun-cuda-aware": (
        summit("jsrun", transport=CUDA, exports=("NCCL_DEBUG=INFO",)),
        "env NCCL_DEBUG=INFO jsrun --smpiargs=-gpu -n2 -r1 -g6 -a6 -c42 -bpacked:7",
    ),
    "jsrun-without-gpus": (
        summit("jsrun", ranks=84, hosts=JobHosts(2, 42), gpus=False),
        "jsrun -n2 -r1 -g0 -a42 -c42 -bpacked:1",
    ),
    "jsrun-with-fewer-cores-a-rank": (
        summit("jsrun", cores_per_rank=4),
        "jsrun -n2 -r1 -g6 -a6 -c42 -bpacked:4",
    ),
    "ddlrun-in-job": (summit("ddlrun", 18), "ddlrun"),
    "ddlrun-hosts": (
        asked("ddlrun", hosts=FOUR, shape=Shape(gpus_per_node=4), exports=("NCCL_DEBUG=INFO",)),
        "ddlrun -H server1,server2,server3,server4 --mpiarg '-x NCCL_DEBUG=INFO'",
    ),
    "horovodrun-mpi": (
        asked("horovodrun", mpi=OPENMPI_3, hosts=FOUR),
        "horovodrun --mpi -np 16 -H server1:4,server2:4,server3:4,server4:4",
    ),
    "horovodrun-gloo": (
        asked("horovodrun", transport=GLOO, ranks=2, exports=("HOROVOD_LOG_LEVEL=info",)),
        "env HOROVOD_LOG_LEVEL=info horovodrun --gloo -np 2",
    ),
    "horovodrun-gloo-beside-openmpi-5": (
        asked("horovodrun", transport=GLOO, mpi=OPENMPI_5, hosts=NAMED),
        "horovodrun --gloo -np 16 -H HOSTS",
    ),
    "torchrun-one-node": (
        asked("torchrun", ranks=4),
        "torchrun --standalone --nnodes=1 --nproc_per_node=4 --no_python",
    ),
    "torchrun-slurm": (
        asked("torchrun", hosts=NAMED, scheduler="slurm"),
        "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 --cpus-per-task=4 "
        "torchrun --nnodes=4 --nproc_per_node=4 --no_python "
        "--rdzv_backend=c10d --rdzv_endpoint FIRST:PORT",
    ),
    "torchrun-slurm-named": (
        asked("torchrun", hosts=FOUR, scheduler="slurm"),
        "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 "
        "--nodelist=server1,server2,server3,server4 torchrun --nnodes=4 --nproc_per_node=4 "
        "--no_python --rdzv_backend=c10d --rdzv_endpoint server1:29400",
    ),
    "torchrun-lsf": (
        summit("torchrun", hosts=JobHosts(2, 6, "HOSTS", "FIRST:PORT")),
        "jsrun -n2 -r1 -g6 -a1 -c42 -bnone torchrun --nnodes=2 --nproc_per_node=6 --no_python "
        "--rdzv_backend=c10d --rdzv_endpoint FIRST:PORT",
    ),
    "runtime": (
        asked("distributed-dl-trainingrun", hosts=FOUR),
        "distributed-dl-trainingrun -np 16 -H server1:4,server2:4,server3:4,server4:4",
    ),
    "runtime-gloo": (
        asked("distributed-dl-trainingrun", transport=GLOO, ranks=2),
        "distributed-dl-trainingrun --gloo -np 2",
    ),
    "custom": (
        asked("custom", command=("jsrun", "-a1", "-c7", "-g1", "-bpacked:7")),
        "jsrun -a1 -c7 -g1 -bpacked:7 -n 16",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_exact_line(name: str) -> None:
    request, text = LINES[name]
    assert shlex.join(launch_line(request)) == f"{text} python train.py"


@pytest.mark.parametrize("name", LINES)
def test_the_programs_words_stay_as_they_are(name: str) -> None:
    program = ("python", "a b.py", "--note=it's $HOME", "")
    assert launch_line(replace(LINES[name][0], program=program))[-4:] == program


# The documents' own lines on launching Horovod, as words, without the program.
DOCUMENT_MPI = (
    "mpirun -np 16 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
    "-mca pml ob1 -mca btl ^openib"
)
DOCUMENT_RDMA = (
    "mpirun -np 16 -H server1:4,server2:4,server3:4,server4:4 -bind-to none -map-by slot "
    "-x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x HOROVOD_MPI_THREADS_DISABLE=1 -x PATH -mca pml ob1"
)
# Every option that is spelt differently, and why.
SPELT = {
    "-np": "-n",  # the MPI standard's name for it, which every mpirun knows
    "-H": "--host",  # the long form
    "-bind-to": "--bind-to",  # Open MPI 5 takes the short-looking form for the program's name
    "-map-by": "--map-by",  # the same
    "-mca": "--mca",  # the same
}


def options(words: list[str]) -> list[tuple[str, ...]]:
    """Return the options with their values, the launcher's name first."""
    values = {"-n": 1, "--host": 1, "--bind-to": 1, "--map-by": 1, "-x": 1, "--mca": 2}
    found, position = [], 0
    while position < len(words):
        width = 1 + values.get(words[position], 0)
        found.append(tuple(words[position : position + width]))
        position += width
    return found


@pytest.mark.parametrize(
    ("document", "request_"),
    [
        (DOCUMENT_MPI, asked("openmpi", mpi=OPENMPI_3)),
        (
            DOCUMENT_RDMA,
            asked("openmpi", mpi=OPENMPI_3, hosts=FOUR, transport=TransportOptions(rdma=True)),
        ),
    ],
    ids=["plain", "rdma"],
)
def test_the_documents_line_option_by_option(document: str, request_: LaunchRequest) -> None:
    ours = options(list(launch_line(replace(request_, exports=DOCUMENTED_EXPORTS)))[:-2])
    theirs = options([SPELT.get(word, word) for word in document.split()])
    assert sorted(ours) == sorted(theirs)
    # Of one kind they come in the documents' order, but for the variable that is ours to add.
    added = ("-x", "HOROVOD_MPI_THREADS_DISABLE=1")
    assert [each for each in ours if each != added] == [each for each in theirs if each != added]


@pytest.mark.parametrize(
    ("document", "request_"),
    [
        (
            "horovodrun -np 16 -H server1:4,server2:4,server3:4,server4:4",
            asked("horovodrun", hosts=FOUR),
        ),
        ("horovodrun --gloo -np 2", asked("horovodrun", ranks=2, transport=GLOO)),
        ("ddlrun", summit("ddlrun", 18)),
        # Document 004 writes it with capitals.
        (
            "distributed-dl-trainingrun -np 4 -H localhost:4",
            asked("distributed-dl-trainingrun", ranks=4, hosts=(Host("localhost", 4),)),
        ),
        (
            "distributed-dl-trainingrun --gloo -np 2",
            asked("distributed-dl-trainingrun", ranks=2, transport=GLOO),
        ),
    ],
)
def test_other_lines_of_the_documents(document: str, request_: LaunchRequest) -> None:
    # --mpi says what is horovodrun's default in a build with MPI; said, it does not hang on that.
    ours = [word for word in launch_line(request_) if word != "--mpi"]
    assert ours == [*document.split(), *PYTHON]


REFUSED = {
    "no program": (asked("hydra", program=()), "there is no program"),
    "an option for a program": (asked("hydra", program=("-n",)), "begins with a hyphen"),
    "no ranks": (asked("hydra", ranks=0), "0 ranks cannot be started"),
    "more ranks than slots": (
        asked("hydra", ranks=17, hosts=FOUR),
        "17 ranks are more than the 16 slots of 4 hosts",
    ),
    "more ranks than a job": (
        asked("srun", ranks=17, hosts=IN_JOB),
        "17 ranks are more than the 16 slots of 4 hosts",
    ),
    "more ranks than GPUs": (
        asked("hydra", hosts=FOUR, gpus=True, shape=Shape(gpus_per_node=2)),
        "4 GPUs a node are asked for, the site's nodes have 2",
    ),
    "GPUs where there are none": (
        asked("hydra", hosts=FOUR, gpus=True, shape=Shape(gpus_per_node=0)),
        "the site's nodes have none",
    ),
    "more ranks than cores": (
        asked("hydra", shape=Shape(cores_per_node=8)),
        "16 ranks a node are asked for, the site's nodes have 8 cores",
    ),
    "a variable that is none": (asked("hydra", exports=("A B",)), "not a variable to export"),
    "another launcher's ranks": (
        asked("hydra", mpi=OPENMPI_4),
        "the ranks are linked to openmpi, which hydra does not start: each would be rank 0 of 1",
    ),
    "Open MPI by Spectrum's mpirun": (
        asked("spectrum-mpi", mpi=OPENMPI_4),
        "linked to openmpi, which spectrum-mpi does not start",
    ),
    "RDMA on Open MPI 4": (
        asked("openmpi", mpi=OPENMPI_4, transport=TransportOptions(rdma=True)),
        "Open MPI 4.0.5 has no use for the form with HOROVOD_MPI_THREADS_DISABLE=1",
    ),
    "RDMA on Open MPI 5": (
        asked("openmpi", mpi=OPENMPI_5, transport=TransportOptions(rdma=True)),
        "Open MPI 5.0.11 has no use for the form with HOROVOD_MPI_THREADS_DISABLE=1",
    ),
    "RDMA of another MPI": (
        asked("hydra", mpi=MPICH, transport=TransportOptions(rdma=True)),
        "this form of RDMA is Open MPI's",
    ),
    "RDMA by Gloo": (
        asked("horovodrun", transport=TransportOptions(rdma=True, gloo=True)),
        "Gloo carries no RDMA",
    ),
    "Gloo by mpirun": (
        asked("openmpi", mpi=OPENMPI_4, transport=GLOO),
        "openmpi starts MPI programs; Gloo has launchers of its own",
    ),
    "an unknown Open MPI": (asked("openmpi"), "which Open MPI it is must be known"),
    "another MPI's mpirun": (asked("openmpi", mpi=MPICH), "which Open MPI it is must be known"),
    "uneven srun": (
        asked("srun", ranks=6, hosts=FOUR),
        "the same number of ranks on every node",
    ),
    "uneven torchrun": (
        asked("torchrun", ranks=6, hosts=FOUR, scheduler="slurm"),
        "as many ranks on every node",
    ),
    "torchrun outside a job": (asked("torchrun", hosts=FOUR), "must be started on every node"),
    "torchrun without names": (
        asked("torchrun", hosts=IN_JOB, scheduler="slurm"),
        "torchrun asks no scheduler: for 4 nodes it must be told the hosts",
    ),
    "horovodrun without hosts": (
        asked("horovodrun", hosts=IN_JOB),
        "horovodrun asks no scheduler: for 4 nodes it must be told the hosts",
    ),
    "the runtime's launcher without hosts": (
        asked("distributed-dl-trainingrun", hosts=IN_JOB),
        "distributed-dl-trainingrun asks no scheduler: for 4 nodes it must be told the hosts",
    ),
    "horovodrun over Open MPI 5": (
        asked("horovodrun", mpi=OPENMPI_5),
        "horovodrun --mpi gives mpirun options that Open MPI 5.0.11 does not take",
    ),
    "jsrun with hosts": (
        asked("jsrun", hosts=FOUR, shape=SUMMIT, scheduler="lsf"),
        "jsrun takes the nodes of its job",
    ),
    "jsrun outside a job": (
        asked("jsrun", ranks=6, shape=SUMMIT),
        "jsrun starts ranks inside a job of LSF only",
    ),
    "jsrun in a job of Slurm": (
        asked("jsrun", hosts=FOUR, shape=SUMMIT, scheduler="slurm", allocated=True),
        "jsrun starts ranks inside a job of LSF only",
    ),
    "more cores than a node has": (
        summit("jsrun", cores_per_rank=8),
        "6 ranks of 8 cores a node are asked for, the site's nodes have 42 cores",
    ),
    "GPU memory by an MPI without an option for it": (
        asked("openmpi", mpi=OPENMPI_4, transport=CUDA),
        "openmpi has no option for an MPI that is handed GPU memory",
    ),
    "jsrun without cores": (
        summit("jsrun", shape=Shape(gpus_per_node=6)),
        "jsrun must be told how many cores a node has",
    ),
    "jsrun without GPUs": (
        summit("jsrun", shape=Shape(cores_per_node=42)),
        "jsrun hands out no GPU that it is not told of",
    ),
    "uneven jsrun": (summit("jsrun", ranks=7), "every node must get as many ranks"),
    "ddlrun on some GPUs": (
        summit("ddlrun", ranks=8, hosts=JobHosts(2, 4)),
        "not 8 on 2 nodes with 6 GPUs each",
    ),
    "ddlrun beyond its licence": (summit("ddlrun", 955), "licensed for 954 nodes, not 955"),
    "ddlrun without hosts": (
        asked("ddlrun", hosts=IN_JOB),
        "outside an LSF job ddlrun must be told the hosts",
    ),
    "custom with hosts": (
        asked("custom", command=("start",), hosts=FOUR),
        "how a custom launcher takes hosts is not known",
    ),
    "custom without a command": (asked("custom"), "a custom launcher has no command"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_is_refused_with_advice(name: str) -> None:
    request, message = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        launch_line(request)
    problem = caught.value.problems[0]
    assert message in problem.message
    assert problem.hints
