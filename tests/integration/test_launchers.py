"""Every launcher starts ranks by its line: the real one, or one as strict as its documentation."""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from integration_tools import Done, run
from slurm_tools import Slurm, need_slurm, slurm

from envbuilder.launching.launchers import LAUNCHERS, launch_line
from envbuilder.model.launch import Host, LaunchRequest, Mpi, Shape, TransportOptions
from tests.strict_tools import GPUS, RANK, write_tool

# What a rank is told by the real ones; by the strict ones see there.
REAL: Mapping[str, tuple[str, str]] = {
    "openmpi": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    "hydra": ("PMI_RANK", "PMI_SIZE"),
    "srun": ("SLURM_PROCID", "SLURM_NTASKS"),
    "distributed-dl-trainingrun": ("PMI_RANK", "PMI_SIZE"),
    "custom": ("CUSTOM_RANK", "CUSTOM_SIZE"),
}
# One that a site wrote itself.
CUSTOM = """\
#!/bin/sh
[ "$1" = --site ] && [ "$2" = -n ] || exit 9
size=$3; shift 3; rank=0
while [ $rank -lt $size ]; do
  CUSTOM_RANK=$rank CUSTOM_SIZE=$size "$@" || exit
  rank=$((rank + 1))
done
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


def openmpi() -> Mpi:
    program = shutil.which("mpirun")
    found = program and re.search(r"\(Open MPI\) ([0-9.]+)", run([program, "--version"]).out)
    if not found:
        pytest.skip("mpirun of Open MPI is not on this machine")
    return Mpi("openmpi", found[1])


def request_for(kind: str, fixture: pytest.FixtureRequest, folder: Path) -> LaunchRequest:
    """Return a request for two ranks on this machine, by the best launcher that is to be had."""
    asked = LaunchRequest(kind, ("true",), 2)
    if kind == "openmpi":
        return replace(asked, mpi=openmpi())
    if kind in ("hydra", "distributed-dl-trainingrun"):
        root = fixture.getfixturevalue("built_root")
        program = "mpiexec" if kind == "hydra" else kind
        command = (str(next(root.glob(f"allreduce/*/bin/{program}"))),)
        return replace(asked, mpi=Mpi("mpich", "5.0.2"), command=command)
    if kind == "srun":
        fixture.getfixturevalue("cluster")
        return asked
    if kind == "custom":
        script = folder / "start"
        script.write_text(CUSTOM)
        script.chmod(0o755)
        return replace(asked, command=(str(script), "--site"))
    program = LAUNCHERS[kind].COMMAND[0]
    command = (str(write_tool(folder, program)), *LAUNCHERS[kind].COMMAND[1:])
    asked = replace(asked, command=command)
    shape = Shape(gpus_per_node=GPUS, cores_per_node=8)
    if kind == "jsrun":
        return replace(asked, scheduler="lsf", shape=shape, gpus=True)
    return replace(asked, shape=shape) if kind == "ddlrun" else asked


@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("proof", [False, True], ids=["users", "smoke"])
def test_every_rank_starts_with_what_is_exported(
    kind: str, proof: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    asked = request_for(kind, request, tmp_path)
    command = (asked.command or LAUNCHERS[kind].COMMAND)[0]
    number, size = REAL.get(kind) or RANK[Path(command).name]
    show = f'echo "rank ${number} of ${size} $NCCL_DEBUG $1"'
    line = launch_line(
        replace(
            asked,
            program=("bash", "-c", show, "probe", "it's $HOME"),
            exports=("NCCL_DEBUG=INFO",),
            oversubscribe=proof,
        )
    )
    done = start(kind, line, request)
    assert done.code == 0, done.text
    # The runtime's launcher says before each line whose it is.
    ranks = sorted(re.findall(r"rank \d of .*", done.out))
    assert ranks == [f"rank {rank} of 2 INFO it's $HOME" for rank in range(2)]


def start(kind: str, line: tuple[str, ...], request: pytest.FixtureRequest) -> Done:
    if kind == "srun":
        cluster: Slurm = request.getfixturevalue("cluster")
        return cluster(*line)
    return run(line, env=dict.fromkeys(LAUNCHERS[kind].TRAITS.line.root_variables, "1"))


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("jsrun", "-n 2 -a1 -c7 true"),
        ("jsrun", "-n2 -r1 -g6 -a6 -c42 -bpacked:x true"),
        ("ddlrun", "-H a:4,b:4 true"),
        ("ddlrun", "-n 4 true"),
        ("horovodrun", "-n 4 true"),
        ("mpirun", "-n 4 --mca pml ob1 true"),
        ("torchrun", "--nproc-per-node=2 true"),
        ("accelerate", "launch --cpu --num_processes=2 true"),
        ("deepspeed", "--num_nodes=2 true"),
    ],
)
def test_the_strict_ones_refuse_what_is_not_documented(
    tool: str, words: str, tmp_path: Path
) -> None:
    done = run([write_tool(tmp_path, tool), *words.split()])
    assert done.code == 1
    assert done.err.startswith(f"{tool}: ")


def test_gloo_and_gpu_memory_have_documented_words(tmp_path: Path) -> None:
    both = (
        ("horovodrun", TransportOptions(gloo=True)),
        ("spectrum-mpi", TransportOptions(cuda_aware=True)),
        ("jsrun", TransportOptions(cuda_aware=True)),
    )
    for kind, transport in both:
        program = LAUNCHERS[kind].COMMAND[0]
        tool = str(write_tool(tmp_path, program))
        shape = Shape(gpus_per_node=2, cores_per_node=8)
        asked = LaunchRequest(kind, ("true",), 2, command=(tool,), transport=transport, shape=shape)
        done = run(launch_line(replace(asked, scheduler="lsf" if kind == "jsrun" else None)))
        assert done.code == 0, done.text


ALLREDUCE = """\
import torch, torch.distributed
torch.distributed.init_process_group("gloo")
tensor = torch.ones(3) * (torch.distributed.get_rank() + 1)
torch.distributed.all_reduce(tensor)
print("sum", torch.distributed.get_world_size(), tensor.tolist(), flush=True)
torch.distributed.destroy_process_group()
"""
TORCH_PYTHON = os.environ.get("TORCH_PYTHON", "")


def torch_line(kind: str, **changes: object) -> tuple[tuple[str, ...], str]:
    """Return the line of a launcher beside TORCH_PYTHON, and the PATH for its ranks."""
    folder = Path(TORCH_PYTHON).parent
    program, *words = LAUNCHERS[kind].COMMAND
    if not TORCH_PYTHON or not (folder / program).exists():
        pytest.skip(f"needs {program} beside TORCH_PYTHON")
    command = (str(folder / program), *words)
    asked = LaunchRequest(kind, (TORCH_PYTHON, "-c", ALLREDUCE), 2, command=command)
    return launch_line(replace(asked, **changes)), f"{folder}:{os.environ['PATH']}"  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["torchrun", "accelerate", "deepspeed"])
def test_the_real_one_starts_ranks_that_reduce(kind: str) -> None:
    line, path = torch_line(kind)
    done = run(line, env={"PATH": path})
    assert done.code == 0, done.text
    assert done.out.count("sum 2 [3.0, 3.0, 3.0]") == 2


def test_accelerate_on_two_nodes_meets_at_the_first_one() -> None:
    """Both nodes are this machine."""
    hosts = (Host(socket.gethostname(), 1), Host("other", 1))
    line, path = torch_line(
        "accelerate", hosts=hosts, scheduler="slurm", mpi=Mpi("openmpi", "4.1.4"), port=29517
    )
    own = line[line.index("launch") - 1 :]
    both = f"{shlex.join(own)} & {shlex.join(own)} & wait"
    done = run(["bash", "-c", both], env={"PATH": path})
    assert done.out.count("sum 2 [3.0, 3.0, 3.0]") == 2, done.text


def test_the_real_ones_know_the_options_that_documents_may_state() -> None:
    """By the help of those that are here, and the man pages of the others."""
    for kind in ("accelerate", "deepspeed", "torchrun"):
        program, *words = LAUNCHERS[kind].COMMAND
        tool = Path(TORCH_PYTHON).parent / program
        if tool.exists():
            text = run([str(tool), *words, "--help"]).out
            assert not {each for each in options_of(kind) if each not in text}
    for kind, page in (("srun", "srun"), ("openmpi", "mpirun.openmpi")):
        file = Path(f"/usr/share/man/man1/{page}.1.gz")
        if file.exists():
            text = gzip.decompress(file.read_bytes()).decode().replace("\\-", "-")
            assert not {each for each in options_of(kind) if each not in text}


def options_of(kind: str) -> list[str]:
    found = list(LAUNCHERS[kind].TRAITS.line.options)
    assert found
    return found
