"""Which launchers are told the hosts: of the allocation of a shell, of a job, and some of those."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from envbuilder.launching.hosts import hosts_argument
from envbuilder.launching.launchers import launch_line
from envbuilder.model.launch import JobHosts, LaunchRequest, Mpi, Shape

BASE = LaunchRequest(
    "openmpi",
    ("python", "train.py"),
    16,
    hosts_argument("server1:4,server2:4,server3:4,server4:4"),
    "slurm",
    allocated=True,
)


def asked(kind: str, **changes: object) -> LaunchRequest:
    return replace(BASE, kind=kind, **changes)  # type: ignore[arg-type]


LINES = {
    "jsrun": (
        asked(
            "jsrun",
            ranks=12,
            hosts=hosts_argument("a1:6,a2:6"),
            scheduler="lsf",
            gpus=True,
            shape=Shape(gpus_per_node=6, cores_per_node=42),
        ),
        "jsrun -n2 -r1 -g6 -a6 -c42 -bpacked:7",
    ),
    "openmpi": (
        asked("openmpi", mpi=Mpi("openmpi", "4.0.5")),
        "mpirun -n 16 --bind-to none --map-by slot",
    ),
    "hydra": (
        asked("hydra", mpi=Mpi("mpich", "5.0.2")),
        "mpiexec -n 16",
    ),
    "srun": (
        asked("srun", mpi=Mpi("openmpi", "4.0.5")),
        "srun --mpi=pmix --nodes=4 --ntasks=16 --ntasks-per-node=4 --kill-on-bad-exit=1",
    ),
    "srun-in-an-allocation-with-more-slots-on-one-node": (
        asked(
            "srun",
            ranks=11,
            hosts=hosts_argument("a:4,b:4,c:3"),
        ),
        "srun --nodes=3 --ntasks=11 --kill-on-bad-exit=1",
    ),
    "srun-on-a-part-of-it": (
        asked("srun", mpi=Mpi("openmpi", "4.0.5"), ranks=8),
        "srun --mpi=pmix --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 "
        "--nodelist=server1,server2",
    ),
    "horovodrun": (
        asked("horovodrun", mpi=Mpi("openmpi", "4.0.5")),
        "horovodrun --mpi -np 16 -H server1:4,server2:4,server3:4,server4:4",
    ),
    "torchrun": (
        asked("torchrun"),
        "srun --nodes=4 --ntasks=4 --ntasks-per-node=1 --kill-on-bad-exit=1 "
        "torchrun --nnodes=4 --nproc_per_node=4 --no_python "
        "--rdzv_backend=c10d --rdzv_endpoint server1:29400",
    ),
    "ddlrun": (
        asked("ddlrun", scheduler="lsf"),
        "ddlrun",
    ),
    "ddlrun-on-a-part-of-it": (
        asked("ddlrun", ranks=8, scheduler="lsf"),
        "ddlrun -H server1,server2",
    ),
    "ddlrun-in-an-allocation-of-slurm": (
        asked("ddlrun"),
        "ddlrun -H server1,server2,server3,server4",
    ),
    "custom": (
        asked("custom", command=("start", "--all")),
        "start --all -n 16",
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_exact_line(name: str) -> None:
    request, text = LINES[name]
    assert shlex.join(launch_line(request)) == f"{text} python train.py"


def test_what_the_job_knows_stays_the_same_object() -> None:
    """A word that is bash already must reach the script as what it is."""

    class Bash(str):
        __slots__ = ()

    hosts = JobHosts(4, 4, Bash('"$hosts"'), Bash('"$endpoint"'))
    assert hosts.names in launch_line(asked("horovodrun", hosts=hosts, allocated=False))
    torch = launch_line(asked("torchrun", hosts=hosts, allocated=False))
    assert [type(word) for word in torch if "$" in word] == [Bash]


def test_a_job_with_room_to_spare_spreads_its_ranks() -> None:
    line = launch_line(asked("srun", ranks=8, hosts=JobHosts(4, 4), allocated=False))
    assert "--ntasks-per-node=2" in line


def test_hosts_that_no_rank_reaches_do_not_count() -> None:
    line = launch_line(asked("srun", ranks=8, scheduler=None, allocated=False))
    assert line[1:6] == (
        "--nodes=2",
        "--ntasks=8",
        "--ntasks-per-node=4",
        "--kill-on-bad-exit=1",
        "--nodelist=server1,server2",
    )
