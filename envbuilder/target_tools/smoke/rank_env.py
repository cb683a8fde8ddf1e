"""What is in the environment of each process: rank, size and local rank, as launchers set them;
variables that shape how the ranks talk; the job step and the container that the process is in.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePath

# (rank, size, rank on the node, processes on the node) as each launcher names them. torchrun and
# horovodrun come first: they may themselves have been started by one of the others.
NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"),
)
# The number of the job, as schedulers set it.
JOBS = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID")
# The files by which these runtimes mark their containers.
CONTAINER_MARKS = (("/.dockerenv", "docker"), ("/run/.containerenv", "podman"))
# PMIx tells the rank but not the size.
RANKS = [names[0] for names in NAMES] + ["PMIX_RANK"]


def launcher_rank() -> "int | None":
    """Return the rank that the launcher set, or None."""
    values = (os.environ.get(name, "") for name in RANKS)
    return next((int(text) for text in values if text.isdigit()), None)


def place() -> "tuple[int, int, int, int] | None":
    """Return (rank, size, local rank, local size) as the launcher set them, or None.

    Where the launcher sets nothing about the node, one node is assumed to hold all ranks.
    """
    for names in NAMES:
        rank, size, local_rank, local_size = (_number(os.environ.get(name, "")) for name in names)
        if rank is not None and size is not None:
            return (
                rank,
                size,
                rank if local_rank is None else local_rank,
                size if local_size is None else local_size,
            )
    return None


def job_step(environ: "Mapping[str, str]" = os.environ) -> "str | None":
    """Return the job of a scheduler, with its step where the scheduler has steps, or None."""
    name = next((name for name in JOBS if environ.get(name)), None)
    if name is None:
        return None
    scheduler = name.partition("_")[0].lower()
    step = environ.get(f"{scheduler.upper()}_STEP_ID")
    return f"{scheduler} {environ[name]}" + (f".{step}" if step else "")


def container(environ: "Mapping[str, str]" = os.environ) -> "str | None":
    """Return the container that this process is in, by its runtime and image, or None."""
    for runtime in ("apptainer", "singularity"):
        image = environ.get(f"{runtime.upper()}_CONTAINER")
        if image:
            return f"{runtime} {PurePath(image).name}"
    return next((name for path, name in CONTAINER_MARKS if Path(path).exists()), None)


def _number(text: str) -> "int | None":
    """Return the number that begins *text*: Slurm writes 4(x2) for four tasks on each of two."""
    found = re.match(r"[0-9]+", text)
    return int(found.group()) if found else None


# Variables that decide how ranks talk, of UCX, libfabric, MPIs and their parts, NCCL, Gloo, the
# loader, Horovod.
SHAPING = re.compile(
    "(UCX|FI|MPIR|MPICH|I_MPI|OMPI|PMIX_MCA|PRTE_MCA|PSM2|NCCL|GLOO|LD|HOROVOD)_[A-Za-z0-9_]+"
)
# Those that launchers set for each process or each run: they say nothing of how the ranks talk.
OF_A_LAUNCH = re.compile(
    "OMPI_(COMM_WORLD|APP_CTX|FILE_LOC|FIRST_RANKS|NUM_APP|UNIVERSE|ARGV|COMMAND|VERSION"
    "|MCA_(orte|ess|pmix|prte|plm|initial_wdir|num_procs))|PMIX_MCA_(mca_base_|gds|ptl|psec)"
    "|HOROVOD_(RANK|SIZE|LOCAL_|CROSS_|HOSTNAME|GLOO_RENDEZVOUS|TASK_|JOB_|WORKER_)"
)
SECRET = re.compile("TOKEN|SECRET|PASS|KEY|CREDENTIAL|COOKIE|AUTH|SIGNATURE", re.IGNORECASE)
# So many characters of a value are kept.
LONGEST = 300


def shaping(environ: "Mapping[str, str]" = os.environ) -> "dict[str, str]":
    """Return the variables that shape how the ranks talk; of secrets their names alone."""
    return {
        name: "(left out)" if SECRET.search(name) else environ[name][:LONGEST]
        for name in sorted(environ)
        if SHAPING.fullmatch(name) and not OF_A_LAUNCH.match(name)
    }
