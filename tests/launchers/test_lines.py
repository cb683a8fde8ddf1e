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
    TaskRequest,
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
    "ddlrun-without-stated-gpus": (
        asked("ddlrun", hosts=FOUR),
        "ddlrun -H server1,server2,server3,server4 --accelerators 4",
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
    "accelerate-one-node": (
        asked("accelerate", ranks=4),
        "accelerate launch --multi_gpu --num_machines=1 --num_processes=4 "
        "--main_process_port=0 --no_python",
    ),
    "accelerate-slurm-named": (
        asked("accelerate", hosts=FOUR, scheduler="slurm", options=("--use_fsdp",)),
        "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 "
        "--nodelist=server1,server2,server3,server4 accelerate launch --use_fsdp "
        "--num_machines=4 --num_processes=16 --rdzv_backend=c10d --machine_rank=1 "
        "--main_process_ip server1 --main_process_port 29400 --no_python",
    ),
    "deepspeed": (
        asked("deepspeed", ranks=4, options=("--bind_cores_to_rank",)),
        "deepspeed --bind_cores_to_rank --num_gpus=4 --master_port=29400 --no_python "
        "--no_local_rank",
    ),
    "srun-with-options": (
        asked(
            "srun",
            hosts=IN_JOB,
            scheduler="slurm",
            mpi=OPENMPI_4,
            task=TaskRequest(cpus=2),
            options=("--gpus-per-task=1", "--gpu-bind=closest", "-c 7", "--mpi=cray_shasta"),
        ),
        "srun --gpus-per-task=1 --gpu-bind=closest -c 7 --mpi=cray_shasta --nodes=4 --ntasks=16 "
        "--ntasks-per-node=4 --kill-on-bad-exit=1",
    ),
    "srun-asked-for-cores-counts-before-options": (
        asked("srun", hosts=IN_JOB, scheduler="slurm", cores_per_rank=3, options=("-c 7",)),
        "srun -c 7 --nodes=4 --ntasks=16 --ntasks-per-node=4 --kill-on-bad-exit=1 "
        "--cpus-per-task=3",
    ),
    "openmpi-cores": (
        asked("openmpi", mpi=OPENMPI_4, ranks=2, cores_per_rank=4),
        "mpirun -n 2 --bind-to core --map-by slot:PE=4",
    ),
    "openmpi-with-options": (
        asked(
            "openmpi",
            mpi=OPENMPI_3,
            ranks=2,
            options=("--mca btl_tcp_if_include ib0", "--mca pml ucx", "--bind-to core"),
        ),
        "mpirun --mca btl_tcp_if_include ib0 --mca pml ucx --bind-to core -n 2 --map-by slot "
        "--mca btl '^openib'",
    ),
    "jsrun-with-options": (
        summit(
            "jsrun",
            transport=CUDA,
            options=("--smpiargs=-gpu -disable_gpu_hooks", "-l gpu-cpu"),
        ),
        "jsrun '--smpiargs=-gpu -disable_gpu_hooks' -l gpu-cpu -n2 -r1 -g6 -a6 -c42 -bpacked:7",
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
    "no program": (asked("hydra", program=()), "launch.no-program"),
    "an option for a program": (
        asked("hydra", program=("-n",)),
        "launch.program-starts-with-hyphen",
    ),
    "no ranks": (asked("hydra", ranks=0), "launch.no-ranks"),
    "more ranks than slots": (
        asked("hydra", ranks=17, hosts=FOUR),
        "hosts.too-few-slots",
    ),
    "more ranks than a job": (
        asked("srun", ranks=17, hosts=IN_JOB),
        "hosts.too-few-slots",
    ),
    "more ranks than GPUs": (
        asked("hydra", hosts=FOUR, gpus=True, shape=Shape(gpus_per_node=2)),
        "launch.too-few-gpus",
    ),
    "GPUs where there are none": (
        asked("hydra", hosts=FOUR, gpus=True, shape=Shape(gpus_per_node=0)),
        "launch.too-few-gpus",
    ),
    "more ranks than cores": (
        asked("hydra", shape=Shape(cores_per_node=8)),
        "launch.too-few-cores",
    ),
    "a variable that is none": (asked("hydra", exports=("A B",)), "launch.malformed-variable"),
    "another launcher's ranks": (
        asked("hydra", mpi=OPENMPI_4),
        "launch.other-mpi",
    ),
    "Open MPI by Spectrum's mpirun": (
        asked("spectrum-mpi", mpi=OPENMPI_4),
        "launch.other-mpi",
    ),
    "RDMA on Open MPI 4": (
        asked("openmpi", mpi=OPENMPI_4, transport=TransportOptions(rdma=True)),
        "launch.rdma-release",
    ),
    "RDMA on Open MPI 5": (
        asked("openmpi", mpi=OPENMPI_5, transport=TransportOptions(rdma=True)),
        "launch.rdma-release",
    ),
    "RDMA of another MPI": (
        asked("hydra", mpi=MPICH, transport=TransportOptions(rdma=True)),
        "launch.rdma-not-openmpi",
    ),
    "RDMA by Gloo": (
        asked("horovodrun", transport=TransportOptions(rdma=True, gloo=True)),
        "launch.gloo-transport",
    ),
    "Gloo by mpirun": (
        asked("openmpi", mpi=OPENMPI_4, transport=GLOO),
        "launch.gloo-launcher",
    ),
    "an unknown Open MPI": (asked("openmpi"), "launch.unknown-openmpi-release"),
    "another MPI's mpirun": (asked("openmpi", mpi=MPICH), "launch.unknown-openmpi-release"),
    "uneven srun": (
        asked("srun", ranks=6, hosts=FOUR),
        "launch.uneven-ranks",
    ),
    "uneven torchrun": (
        asked("torchrun", ranks=6, hosts=FOUR, scheduler="slurm"),
        "launch.uneven-ranks",
    ),
    "one rank of accelerate": (asked("accelerate", ranks=1), "launch.one-rank"),
    "deepspeed on several nodes": (
        asked("deepspeed", hosts=FOUR, scheduler="slurm"),
        "launch.one-node",
    ),
    "an option of another launcher": (
        asked("srun", hosts=IN_JOB, scheduler="slurm", options=("--mca pml ucx",)),
        "launch.unknown-option",
    ),
    "an option that envbuild writes": (
        asked("srun", hosts=IN_JOB, scheduler="slurm", options=("--ntasks=3",)),
        "launch.unknown-option",
    ),
    "a value that an option does not take": (
        asked("srun", hosts=IN_JOB, scheduler="slurm", options=("--gpu-bind=nearest",)),
        "launch.unknown-option",
    ),
    "torchrun outside a job": (asked("torchrun", hosts=FOUR), "launch.outside-job"),
    "torchrun without names": (
        asked("torchrun", hosts=IN_JOB, scheduler="slurm"),
        "launch.hosts-required",
    ),
    "horovodrun without hosts": (
        asked("horovodrun", hosts=IN_JOB),
        "launch.hosts-required",
    ),
    "the runtime's launcher without hosts": (
        asked("distributed-dl-trainingrun", hosts=IN_JOB),
        "launch.hosts-required",
    ),
    "horovodrun over Open MPI 5": (
        asked("horovodrun", mpi=OPENMPI_5),
        "launch.horovodrun-openmpi",
    ),
    "jsrun with hosts": (
        asked("jsrun", hosts=FOUR, shape=SUMMIT, scheduler="lsf"),
        "launch.hosts-not-accepted",
    ),
    "jsrun outside a job": (
        asked("jsrun", ranks=6, shape=SUMMIT),
        "launch.outside-job",
    ),
    "jsrun in a job of Slurm": (
        asked("jsrun", hosts=FOUR, shape=SUMMIT, scheduler="slurm", allocated=True),
        "launch.outside-job",
    ),
    "more cores than a node has": (
        summit("jsrun", cores_per_rank=8),
        "launch.too-few-cores",
    ),
    "GPU memory by an MPI without an option for it": (
        asked("openmpi", mpi=OPENMPI_4, transport=CUDA),
        "launch.no-cuda-aware-option",
    ),
    "jsrun without cores": (
        summit("jsrun", shape=Shape(gpus_per_node=6)),
        "launch.unknown-core-count",
    ),
    "jsrun without GPUs": (
        summit("jsrun", shape=Shape(cores_per_node=42)),
        "launch.unknown-gpu-count",
    ),
    "uneven jsrun": (summit("jsrun", ranks=7), "launch.uneven-ranks"),
    "ddlrun on some GPUs": (
        summit("ddlrun", ranks=8, hosts=JobHosts(2, 4)),
        "launch.rank-per-gpu",
    ),
    "ddlrun beyond its licence": (summit("ddlrun", 955), "launch.ddl-licence"),
    "ddlrun without hosts": (
        asked("ddlrun", hosts=IN_JOB),
        "launch.hosts-required",
    ),
    "custom with hosts": (
        asked("custom", command=("start",), hosts=FOUR),
        "launch.custom-hosts",
    ),
    "custom without a command": (asked("custom"), "launch.no-command"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_is_refused_with_advice(name: str) -> None:
    request, problem_id = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        launch_line(request)
    problem = caught.value.problems[0]
    assert problem.id == problem_id
    assert problem.hints
