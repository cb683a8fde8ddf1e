"""Rendered job scripts, run by a real Slurm of two nodes, with the environment's module in Lmod."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from integration_tools import Done, run
from module_tools import lmod_init
from slurm_tools import Slurm, need_slurm, slurm

from envbuilder.launching.launchers import launch_line
from envbuilder.launching.schedulers import SCHEDULERS
from envbuilder.launching.schedulers.slurm import node_names
from envbuilder.model.job import Job
from envbuilder.model.launch import EnvironmentProgram, JobHosts, LaunchRequest, Mpi
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Edit, Lock, Plan, RuntimePlan
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import SiteLauncher
from envbuilder.render.job import ENDPOINT, HOSTS, program_words, render_job, shell_program
from envbuilder.render.modulefile import render_modulefile
from envbuilder.workflow.texts import job_parts

NODES, RANKS = 2, 2
TOTAL = NODES * RANKS
JOB = Job("probe", NODES, RANKS, minutes=5, gpus_per_node=1, cpus_per_rank=1, partition="test")
# What a script is submitted with must not reach it by accident, and as root Open MPI wants this.
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PMI_RANK": "7"}

LOCK = Lock(
    plan=Plan(
        recipe="probe",
        summary="An environment that only sets a variable",
        site="here",
        arch="x86_64",
        backend="virtualenv",
        system_site_packages=False,
        python="/usr/bin/python3",
        pins=(),
        environment=(
            Edit(kind="set", name="PROBE", value="it's $HOME in here"),
            Edit(kind="prepend", name="PATH", value="bin", in_prefix=True),
        ),
        runtime=RuntimePlan(
            package="distributed-dl-training", version="0.1.0", source_sha256="a" * 64
        ),
        launcher=SiteLauncher(kind="srun", command=("srun",)),
        smoke=Smoke(),
        steps=(),
    ),
    artifacts=(),
)

Submit = Callable[..., Done]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    need_slurm()
    with slurm(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def submit(cluster: Slurm, tmp_path: Path) -> Submit:
    """Return a function that renders a script, submits it, and waits for what it printed."""
    init = lmod_init("bash")
    places = BuildFolders(prefix=tmp_path / "prefix", build=tmp_path / "build")
    python = places.prefix / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    tree = tmp_path / "my modules"
    (tree / "probe").mkdir(parents=True)

    def run_job(
        words: Sequence[str],
        job: Job = JOB,
        options: Sequence[str] = (),
        modules: Mapping[str, object] = MappingProxyType({}),
        launcher: EnvironmentProgram | None = None,
        env: Mapping[str, str] = MappingProxyType({}),
        module: bool = True,
    ) -> Done:
        loaded = LOCK.plan.modules.model_copy(update={"init": init, **modules})
        plan = LOCK.plan.model_copy(update={"modules": loaded})
        lock = LOCK.model_copy(update={"plan": plan})
        if module:
            text = render_modulefile(lock, places, 1, None, "lua")
            (tree / "probe" / "1.lua").write_text(text)
        script = tmp_path / "job.sh"
        parts = job_parts("slurm", job, words, launcher)
        script.write_text(render_job(lock, places, str(tree), parts))
        environ = {**ENV, **env}
        done = cluster("sbatch", "--parsable", *options, script, "an argument", env=environ)
        assert done.code == 0, done.text
        number = done.out.strip()
        code = cluster.ended(number)
        return Done(code, (cluster.folder / f"{job.name}-{number}.out").read_text(), done.err)

    return run_job


def request(kind: str, program: Sequence[str], **more: object) -> LaunchRequest:
    base = LaunchRequest("srun", tuple(program), TOTAL, JobHosts(NODES, RANKS), "slurm")
    return replace(base, kind=kind, **more)  # type: ignore[arg-type]


def shell(text: str) -> tuple[str, ...]:
    return ("bash", "-c", text, "probe")


def placed(printed: str) -> list[str]:
    """Return the lines ``RANK HOST ...`` in the order of the ranks."""
    return sorted(line for line in printed.splitlines() if re.match(r"\d ", line))


def test_srun_starts_the_ranks_in_the_environment(submit: Submit) -> None:
    program = shell('echo "$SLURM_PROCID $(hostname) $PROBE $1 ${SLURM_CPUS_PER_TASK}"')
    done = submit(launch_line(request("srun", program)))
    assert done.code == 0, done.text
    assert placed(done.out) == [
        f"{rank} {host} it's $HOME in here an argument 1"
        for rank, host in enumerate(["node1", "node1", "node2", "node2"])
    ]


def test_mpirun_takes_the_nodes_of_the_job(submit: Submit) -> None:
    version = openmpi_version()
    program = shell('echo "$OMPI_COMM_WORLD_RANK $(hostname) $OMPI_COMM_WORLD_SIZE"')
    line = launch_line(request("openmpi", program, mpi=Mpi("openmpi", version)))
    done = submit(line)
    assert done.code == 0, done.text
    assert placed(done.out) == ["0 node1 4", "1 node1 4", "2 node2 4", "3 node2 4"]


def openmpi_version() -> str:
    program = shutil.which("mpirun")
    if program is None:
        pytest.skip("mpirun is not on this machine")
    found = re.search(r"\(Open MPI\) ([0-9.]+)", run([program, "--version"]).out)
    if not found:
        pytest.skip(f"{program} is not Open MPI")
    return found[1]


def test_a_launcher_that_asks_no_scheduler_gets_the_hosts(submit: Submit) -> None:
    hosts = JobHosts(NODES, RANKS, HOSTS, ENDPOINT)
    line = request("horovodrun", ["train"], hosts=hosts, command=("printf", "%s\n"))
    done = submit(launch_line(line))
    assert done.code == 0, done.text
    expected = ["--mpi", "-np", "4", "-H", "node1:2,node2:2", "train", "an argument"]
    assert done.out.splitlines() == expected


def test_torchrun_is_started_once_on_every_node(submit: Submit) -> None:
    hosts = JobHosts(NODES, RANKS, HOSTS, ENDPOINT)
    said = shell('printf "%s %s\n" "0 $(hostname)" "$*"')
    line = request("torchrun", ["train"], hosts=hosts, command=said)
    done = submit(launch_line(line), replace(JOB, one_task_per_node=True))
    assert done.code == 0, done.text
    words = (
        "--nnodes=2 --nproc_per_node=2 --no_python --rdzv_backend=c10d --rdzv_endpoint PLACE "
        "train an argument"
    )
    found = [re.sub(r"node1:2\d{4}", "PLACE", line) for line in placed(done.out)]
    assert found == [f"0 node1 {words}", f"0 node2 {words}"]


@pytest.mark.parametrize("kind", ["srun", "openmpi"])
def test_tf_config_names_each_ranks_own_worker(submit: Submit, kind: str) -> None:
    mpi = Mpi("openmpi", openmpi_version()) if kind == "openmpi" else None
    rank = "$OMPI_COMM_WORLD_RANK" if kind == "openmpi" else "$SLURM_PROCID"
    job = replace(JOB, tf_config=True)
    program = program_words(job, shell(f'echo "{rank} $(hostname) $TF_CONFIG"'))
    done = submit(launch_line(request(kind, program, mpi=mpi)), job)
    assert done.code == 0, done.text
    lines = placed(done.out)
    assert len(lines) == TOTAL
    for number, line in enumerate(lines):
        _, host, text = line.split(" ", 2)
        config = json.loads(text)
        assert config["task"] == {"type": "worker", "index": number}
        workers = config["cluster"]["worker"]
        assert len(set(workers)) == TOTAL
        assert workers[number].startswith(f"{host}:2")


def test_a_launcher_of_a_module_must_come_from_it(
    cluster: Slurm, submit: Submit, tmp_path: Path
) -> None:
    """The module is loaded with the environment's; without its program the system's would run."""
    own, other = (tmp_path / folder / "myrun" for folder in ("own", "other"))
    for program in (own, other):
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\necho '0 {program.parent.name}'\n")
        program.chmod(0o755)
    site = tmp_path / "site" / "MyMPI"
    site.mkdir(parents=True)
    (site / "1.lua").write_text(f'prepend_path("PATH", "{own.parent}")\n')
    modules = {"trees": (str(site.parent),), "loads": ("MyMPI/1",), "final": ("MyMPI/1",)}
    launcher = EnvironmentProgram("myrun", "MyMPI/1")
    path = {"PATH": f"{other.parent}:/usr/local/bin:/usr/bin:/bin"}
    done = submit(["myrun"], modules=modules, launcher=launcher, env=path)
    assert (done.code, placed(done.out)) == (0, ["0 own"]), done.text
    own.unlink()
    done = submit(["myrun"], modules=modules, launcher=launcher, env=path)
    assert (done.code, placed(done.out)) == (1, [])
    assert f"error: myrun is {other}" in done.out


def test_a_job_of_another_size_is_refused(submit: Submit) -> None:
    done = submit(launch_line(request("srun", ["true"])), options=["--nodes=1"])
    assert done.code == 2
    assert " 2 nodes, but the job has 1: " in done.out


def test_a_program_that_fails_fails_the_job(submit: Submit) -> None:
    assert submit(launch_line(request("srun", shell("exit 3")))).code == 3


def test_a_shell_loads_the_module_after_the_start_up_file(cluster: Slurm, tmp_path: Path) -> None:
    """The start-up file has loaded another module, and has put another Python first."""
    places = BuildFolders(prefix=tmp_path / "prefix", build=tmp_path / "build")
    tree, other = tmp_path / "my modules", tmp_path / "other"
    for folder in (places.prefix / "bin", other):
        folder.mkdir(parents=True)
        (folder / "python").write_text("#!/bin/sh\n")
        (folder / "python").chmod(0o755)
    for name in ("probe", "else"):
        (tree / name).mkdir(parents=True)
    (tree / "else" / "1.lua").write_text('setenv("ELSE", "1")\n')
    loaded = LOCK.plan.modules.model_copy(update={"init": lmod_init("bash")})
    plan = LOCK.plan.model_copy(update={"modules": loaded})
    text = render_modulefile(LOCK.model_copy(update={"plan": plan}), places, 1, None, "lua")
    (tree / "probe" / "1.lua").write_text(text)
    start_up = f"source {loaded.init}; module use '{tree}'; module load else; PATH='{other}':$PATH"
    (tmp_path / ".bashrc").write_text(f"{start_up}\n")
    job = replace(JOB, name=None)
    line = SCHEDULERS["slurm"].shell_line(job, shell_program(plan, places, str(tree), "probe/1"))
    result = tmp_path / "result"
    shown = f'printf \'%s\\n\' "$(type -P python)" "$PROBE" "${{ELSE-}}" > \'{result}\''
    assert cluster.typed(line, [f"{shown}; module -t list 2>> '{result}'", "exit 7"], tmp_path) == 7
    python = str(places.prefix / "bin" / "python")
    assert result.read_text().splitlines() == [python, "it's $HOME in here", "", "probe/1"]
    (tree / "probe" / "1.lua").unlink()
    result.unlink()
    assert cluster.typed(line, [shown], tmp_path) == 1
    assert not result.exists()


def test_a_missing_module_is_told(submit: Submit) -> None:
    done = submit(launch_line(request("srun", ["true"])), module=False)
    assert done.code == 1
    assert "load the module probe/1 " in done.out


@pytest.mark.parametrize(
    "nodelist",
    ["n1", "n[3,1-2],a1", "n[08-11,7],login-2", "r[0-1]n[08-10],x.example.org"],
)
def test_node_lists_unfold_as_slurm_unfolds_them(cluster: Slurm, nodelist: str) -> None:
    shown = cluster("scontrol", "show", "hostnames", nodelist)
    assert shown.out.split() == list(node_names(nodelist))
