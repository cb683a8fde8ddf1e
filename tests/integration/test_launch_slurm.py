"""``envbuild launch`` inside real allocations of Slurm: the line it prints starts every rank."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from integration_tools import COMMAND, Done, run
from slurm_tools import PATIENCE, Slurm, need_slurm, slurm

from envbuilder.knowledge.entries import option_fault
from envbuilder.launching.launchers import srun
from tests.cli.published import planned, publish_plan

ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANK = {"openmpi": "$OMPI_COMM_WORLD_RANK", "srun": "$SLURM_PROCID"}

In = Callable[..., Done]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with an environment on this machine's Open MPI, published and not built."""
    program = shutil.which("mpirun")
    said = program and re.search(r"\(Open MPI\) ([0-9.]+)", run([program, "--version"]).out)
    if not said:
        pytest.skip("mpirun of Open MPI is not on this machine")
    plan = planned("allreduce", "--site", "local")
    pins = [pin for pin in plan["pins"] if pin["component"] not in ("mpich", "openmpi")]
    mpi = {"component": "openmpi", "version": said[1], "origin": "system", "locator": "mpirun"}
    plan["pins"] = [*pins, {**mpi, "why": "it is here"}]
    plan["launcher"] = {"kind": "openmpi", "command": ["mpirun"]}
    plan["launch-options"] = {"srun": ["--gpu-bind=map_gpu:1,0"]}
    for proof in plan["proofs"]:
        proof["launcher"] = plan["launcher"]
    folder = tmp_path_factory.mktemp("root")
    publish_plan(folder, plan, {"bin/python": "#!/bin/sh\n"})
    python(folder).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def torch_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with an environment whose programs talk through torch.distributed."""
    plan = planned("collective-torch-cpu", "--site", "local")
    plan["runtime"]["beside"] = "torch-distributed"
    folder = tmp_path_factory.mktemp("torch-root")
    publish_plan(folder, plan, {"bin/python": "#!/bin/sh\n", "bin/torchrun": TORCHRUN})
    for program in python(folder).parent.iterdir():
        program.chmod(0o755)
    return folder


def python(root: Path) -> Path:
    (path,) = root.glob("*/*/bin/python")
    return path


@pytest.fixture
def allocated(cluster: Slurm, root: Path, tmp_path: Path) -> In:
    """Return what runs the line for a program on every rank, in an allocation of its own."""

    def start(kind: str, *options: str, words: str = "") -> Done:
        script = tmp_path / "job.sh"
        program = f"""bash -c 'echo "{RANK[kind]} $(hostname)"'"""
        launch = f"{sys.executable} -m envbuilder launch allreduce --root '{root}'"
        script.write_text(
            "#!/usr/bin/env bash\nset -euo pipefail\n"
            f"line=$({launch} --launcher {kind} {words} -- {program})\n"
            f"PATH='{python(root).parent}':$PATH\n"
            'echo "$line"\neval "$line"\n'
        )
        asked = ("--partition=test", f"--output={tmp_path}/out", *options)
        done = cluster("sbatch", "--parsable", *asked, script, env=ENV)
        assert done.code == 0, done.text
        code = cluster.ended(done.out.strip())
        return Done(code, (tmp_path / "out").read_text(), "")

    return start


def placed(done: Done) -> list[str]:
    """Return the lines ``RANK HOST`` in the order of the ranks."""
    assert done.code == 0, done.text
    return sorted(line for line in done.out.splitlines() if re.match(r"\d ", line))


@pytest.mark.parametrize("kind", ["openmpi", "srun"])
def test_every_slot_of_the_allocation_gets_a_rank(allocated: In, kind: str) -> None:
    done = allocated(kind, "--nodes=2", "--ntasks-per-node=2")
    assert placed(done) == ["0 node1", "1 node1", "2 node2", "3 node2"]
    assert "node1:2, node2:2 (the job of Slurm)" in done.out
    assert ("srun --gpu-bind=map_gpu:1,0 " in done.out) == (kind == "srun")


@pytest.mark.parametrize("kind", ["openmpi", "srun"])
def test_fewer_ranks_fill_the_first_nodes(allocated: In, kind: str) -> None:
    done = allocated(kind, "--nodes=2", "--ntasks-per-node=2", words="--ranks 2")
    assert placed(done) == ["0 node1", "1 node1"]


@pytest.mark.parametrize("kind", ["openmpi", "srun"])
def test_named_hosts_of_the_allocation_take_the_ranks(allocated: In, kind: str) -> None:
    done = allocated(kind, "--nodes=2", "--ntasks-per-node=2", words="-H node2:2")
    assert placed(done) == ["0 node2", "1 node2"]


@pytest.mark.parametrize("kind", ["openmpi", "srun"])
def test_an_allocation_may_have_more_slots_on_one_node(allocated: In, kind: str) -> None:
    done = allocated(kind, "--nodes=2", "--ntasks=3")
    assert placed(done) == ["0 node1", "1 node1", "2 node2"]


# What stands in for torchrun, which is started once a node: where it is, and what it has there.
TORCHRUN = """\
#!/bin/sh
echo "torchrun $(hostname) $1 $2 gpus=$SLURM_GPUS_ON_NODE cpus=$(nproc)"
"""
STEPS = "--nnodes=2 --nproc_per_node=2 gpus=2"


@pytest.mark.parametrize(
    "options",
    [
        # The usual allocation: one task and all GPUs a node.
        ("--ntasks-per-node=1", "--gres=gpu:2"),
        ("--ntasks-per-node=1", "--gpus-per-node=2", "--cpus-per-task=3"),
        ("--ntasks-per-node=2", "--gpus-per-task=1", "--cpus-per-task=2"),
        ("--ntasks-per-node=1", "--gpus=4"),
    ],
    ids=" ".join,
)
@pytest.mark.sample(1)
def test_torchrun_has_every_gpu_of_the_job(
    cluster: Slurm, torch_root: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    script = tmp_path / "job.sh"
    launch = f"{sys.executable} -m envbuilder launch collective-torch-cpu --root '{torch_root}'"
    script.write_text(
        "#!/usr/bin/env bash\nset -euo pipefail\n"
        f"export PATH='{python(torch_root).parent}':$PATH\n"
        f"line=$({launch} --ranks 4 -- python train.py)\n"
        f'[[ $line == "$({launch} -- python train.py)" ]]\necho "$line"\neval "$line"\n'
    )
    asked = ("--partition=test", "--nodes=2", f"--output={tmp_path}/out", *options)
    done = cluster("sbatch", "--parsable", *asked, script, env=ENV)
    assert done.code == 0, done.text
    code, text = cluster.ended(done.out.strip()), (tmp_path / "out").read_text()
    assert code == 0, text
    started = sorted(row for row in text.splitlines() if row.startswith("torchrun "))
    assert [row.partition(" cpus=")[0] for row in started] == [
        f"torchrun node1 {STEPS}",
        f"torchrun node2 {STEPS}",
    ]


def test_the_ranks_of_srun_have_the_cpus_that_the_job_asked_for(allocated: In) -> None:
    """Without the option each would have one."""
    done = allocated("srun", "--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2")
    assert placed(done) == ["0 node1", "1 node1", "2 node2", "3 node2"]
    assert " --cpus-per-task=2 " in done.out


def test_mpirun_starts_its_own_step_inside_a_step(cluster: Slurm, root: Path) -> None:
    """On other nodes it starts daemons by srun, which would wait for the shell's CPUs for ever."""
    program = f"""bash -c 'echo "{RANK["openmpi"]} $(hostname)"'"""
    launch = f"{sys.executable} -m envbuilder launch allreduce --root '{root}' --launcher openmpi"
    load = f"PATH='{python(root).parent}':$PATH"
    script = f'line=$({launch} -- {program})\n{load}\necho "$line"\neval "$line"'
    done = cluster.in_step(script, "--nodes=2", "--ntasks-per-node=2", env=ENV)
    assert placed(done) == ["0 node1", "1 node1", "2 node2", "3 node2"]
    assert "env SLURM_OVERLAP=1 mpirun -n 4 --bind-to none --map-by slot" in done.out


def test_hang_finds_the_ranks_of_a_job(cluster: Slurm, tmp_path: Path) -> None:
    """srun's ranks are below a daemon of Slurm, not below srun: the job's number finds them."""
    program, script = tmp_path / "program.py", tmp_path / "job.sh"
    program.write_text(
        "import os, pathlib, time\n\n"
        "def read_batch():\n    time.sleep(600)\n\n"
        f"pathlib.Path('{tmp_path}', 'rank' + os.environ['SLURM_PROCID']).touch()\nread_batch()\n"
    )
    script.write_text(f"#!/usr/bin/env bash\nsrun -n 2 '{sys.executable}' '{program}'\n")
    asked = ("--partition=test", f"--output={tmp_path}/out", "--ntasks=2")
    done = cluster("sbatch", "--parsable", *asked, script)
    assert done.code == 0, done.text
    job = done.out.strip()
    try:
        end = time.monotonic() + PATIENCE
        while len(list(tmp_path.glob("rank?"))) < 2:
            assert time.monotonic() < end, (tmp_path / "out").read_text()
            time.sleep(0.05)
        found = run([*COMMAND, "hang", "--job", job, "--seconds", "0.1", "--json"])
    finally:
        cluster("scancel", job)
    assert found.code == 0, found.err
    value = json.loads(found.out)
    assert [each["rank"] for each in value["ranks"]] == [0, 1]
    assert value["size"] == 2
    if shutil.which("py-spy", path=str(Path(sys.executable).parent)):
        assert {each["at"]["function"] for each in value["ranks"]} <= {"read_batch", "<module>"}


# An example of each option that a site or a recipe may state for srun, as this Slurm has it.
STATED = {
    "-c": "-c 2",
    "--cpus-per-task": "--cpus-per-task=2",
    "--cpus-per-gpu": "--cpus-per-gpu=1",
    "--ntasks-per-gpu": "--ntasks-per-gpu=1",
    "--threads-per-core": "--threads-per-core=1",
    "--ntasks-per-core": "--ntasks-per-core=1",
    "--ntasks-per-socket": "--ntasks-per-socket=2",
    "--mem": "--mem=0",
    "--mem-per-cpu": "--mem-per-cpu=1",
    "--mem-per-gpu": "--mem-per-gpu=1",
    "--gpus-per-task": "--gpus-per-task=1",
    "--gpus-per-node": "--gpus-per-node=2",
    "--gpu-bind": "--gpu-bind=map_gpu:0,1",
    "--gpu-freq": "--gpu-freq=low",
    "--gres": "--gres=gpu:2",
    "--gres-flags": "--gres-flags=enforce-binding",
    "--accel-bind": "--accel-bind=g",
    "--cpu-bind": "--cpu-bind=none",
    "--cpu-freq": "--cpu-freq=high",
    "--mem-bind": "--mem-bind=none",
    "--distribution": "--distribution=block:cyclic",
    "--hint": "--hint=nomultithread",
    "--network": "--network=ib",
    "--mpi": "--mpi=none",
    "--exact": "--exact",
    "--exclusive": "--exclusive",
    "--label": "--label",
    "--unbuffered": "--unbuffered",
    "--quiet": "--quiet",
}


@pytest.mark.long
def test_srun_accepts_every_option_that_may_be_stated(cluster: Slurm, tmp_path: Path) -> None:
    assert STATED.keys() == srun.OPTIONS.keys()
    assert [option for option in STATED.values() if option_fault(option, srun.OPTIONS)] == []
    script = tmp_path / "job.sh"
    steps = "".join(
        f"srun {option} --nodes=1 --ntasks=1 true >> {tmp_path}/log 2>&1; echo {name} $?\n"
        for name, option in STATED.items()
    )
    script.write_text(f"#!/usr/bin/env bash\n{steps}")
    asked = ("--partition=test", "--ntasks=2", "--gres=gpu:2", f"--output={tmp_path}/out")
    done = cluster("sbatch", "--parsable", *asked, script)
    assert done.code == 0, done.text
    cluster.ended(done.out.strip())
    codes = dict(line.split() for line in (tmp_path / "out").read_text().splitlines())
    refused = {name for name, code in codes.items() if code != "0"}
    assert (codes.keys(), refused) == (STATED.keys(), set()), (tmp_path / "log").read_text()
