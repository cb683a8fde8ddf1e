"""The line in the allocation that our own job script asks for, of Slurm, LSF and PBS.

What the schedulers set in a job stands here as their manuals and real jobs of Slurm 22.05 have it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.cli.conftest import SCHEDULERS
from tests.cli.published import CHECK, PROGRAMS, planned, publish_plan
from tests.verbs import problem_ids

pytestmark = pytest.mark.thorough

RECIPE = """\
schema: 1
name: {name}
summary: A recipe
arch: [x86_64]
stack: {{python: ">=3.10", numpy: "*", mpi4py: ">=4", {stack}}}
{runtime}
smoke: {{ranks: 2}}
"""
DISTRIBUTED = "runtime: {package: torch-distributed}"
RECIPES: Mapping[str, tuple[str, str]] = {
    "mpich-cpu": ('mpich: ">=4.2"', ""),
    "openmpi-gpu": ('openmpi: ">=4", nccl: "*"', ""),
    "torch-cpu": ('pytorch: "==2.13.*", mpich: ">=4.2"', DISTRIBUTED),
    "torch-gpu": ('pytorch: "==2.13.*", openmpi: ">=4", nccl: "*"', DISTRIBUTED),
    # With Python 3.11 it has no torchrun that works.
    "torch-old": ('pytorch: "==1.13.*", mpich: ">=4.2"', DISTRIBUTED),
}
SITE = """\
schema: 1
name: {name}
summary: A site
arch: [x86_64]
scheduler: {scheduler}
{more}
"""
SRUN = "launcher: {kind: srun, command: [srun]}"
SITES: Mapping[str, tuple[str, str]] = {
    "slurm": ("slurm", ""),
    "slurm-srun": ("slurm", SRUN),
    "slurm-custom": ("slurm", "launcher: {command: [srun, --mpi=pmi2]}"),
    "slurm-8": ("slurm", f"{SRUN}\nfacts: {{gpus-per-node: 8}}"),
    "slurm-horovodrun": ("slurm", "launcher: {kind: horovodrun, command: [horovodrun]}"),
    "lsf": ("lsf", ""),
    "lsf-csm": (
        "lsf",
        "launcher: {kind: jsrun, command: [jsrun]}\nfacts: {gpus-per-node: 8, cores-per-node: 42}",
    ),
    "pbs": ("pbs", ""),
    "pbs-horovodrun": ("pbs", "launcher: {kind: horovodrun, command: [horovodrun]}"),
}
PROGRAM = ("python", "my_program.py")
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recipes and sites above."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "sites").mkdir()
    for name, (stack, runtime) in RECIPES.items():
        text = RECIPE.format(name=name, stack=stack, runtime=runtime)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    for name, (scheduler, more) in SITES.items():
        text = SITE.format(name=name, scheduler=scheduler, more=more)
        (folder / "sites" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder of programs before the system's; scontrol knows no job."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool(folder, "scontrol", "exit 1")
    return folder


@pytest.fixture
def run(library: Path, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PATH", str(tools), prepend=":")

    def run_verb(*words: str, **env: str) -> Result:
        none = dict.fromkeys((*SCHEDULERS, "ENVBUILD_SITE", "ENVBUILD_ROOT", "CSM_ALLOCATION_ID"))
        home = {"ENVBUILD_PATH": str(library), "XDG_DATA_HOME": str(tmp_path / "data")}
        return CliRunner().invoke(app, list(words), env={**none, **home, "COLUMNS": "80", **env})

    run_verb.library = library  # type: ignore[attr-defined]
    return run_verb


def tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@cache
def root_of(recipe: str, site: str, folder: Path) -> Path:
    """Return a root with an environment of the recipe, which is planned and published once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENVBUILD_PATH", str(folder))
        plan = planned(recipe, "--site", site)
    root = folder / "roots" / site / recipe
    publish_plan(root, plan, PROGRAMS)
    return root


def start(run: Run, recipe: str, site: str, *words: str, **env: str) -> Result:
    root = root_of(recipe, site, run.library)  # type: ignore[attr-defined]
    return run("launch", recipe, "--root", str(root), *words, "--", *PROGRAM, **env)


def launch(run: Run, recipe: str, site: str, *words: str, **env: str) -> list[str]:
    """Return the words of the line, without its check."""
    done = start(run, recipe, site, *words, **env)
    assert done.exit_code == 0, done.stderr
    return shlex.split(done.stdout)[CHECK:]


def told(run: Run, recipe: str, site: str, *words: str, **env: str) -> dict[str, Any]:
    """Return what ``--json`` says of the line, without its check."""
    done = start(run, recipe, site, "--json", *words, **env)
    assert done.exit_code == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    value["words"] = value["words"][CHECK:]
    return value


def refused(run: Run, recipe: str, site: str, *words: str, **env: str) -> str:
    done = start(run, recipe, site, *words, "--json", **env)
    assert done.exit_code == 2
    assert "hint: " in done.stderr
    (problem,) = problem_ids(done.stdout)
    return problem


# --- What a scheduler sets in the job that the directives of a script ask for.


def directives(text: str, mark: str) -> dict[str, str]:
    rows = (row[len(mark) :].strip() for row in text.splitlines() if row.startswith(mark))
    return dict(re.split(r"[= ]", row, maxsplit=1) for row in rows)


def of_slurm(text: str, _tools: Path) -> dict[str, str]:
    asked = directives(text, "#SBATCH")
    nodes, tasks = int(asked["--nodes"]), int(asked["--ntasks-per-node"])
    cpus = asked.get("--cpus-per-task")
    env = {
        "SLURM_JOB_ID": "123457",
        "SLURM_JOB_NODELIST": f"n[1-{nodes}]",
        "SLURM_TASKS_PER_NODE": f"{tasks}(x{nodes})",
        "SLURM_JOB_CPUS_PER_NODE": f"{tasks * int(cpus or 1)}(x{nodes})",
    }
    if cpus:
        env["SLURM_CPUS_PER_TASK"] = cpus
    if "--gres" in asked:
        env["SLURM_GPUS_ON_NODE"] = asked["--gres"].removeprefix("gpu:")
    return env


def of_lsf(text: str, tools: Path) -> dict[str, str]:
    asked = directives(text, "#BSUB")
    hosts = tools.parent / "hosts"
    env = {"LSB_JOBID": "123457", "LSB_DJOB_HOSTFILE": str(hosts)}
    if "-nnodes" in asked:
        lines = [
            "batch1",
            *(f"n{n}" for n in range(1, int(asked["-nnodes"]) + 1) for _ in "x" * 42),
        ]
        env["CSM_ALLOCATION_ID"] = "7"
    else:
        match = re.search(r"ptile=(\d+)", asked["-R"])
        assert match
        slots = int(match[1])
        lines = [f"n{slot // slots + 1}" for slot in range(int(asked["-n"]))]
    if "-gpu" in asked:
        number = int(asked["-gpu"].strip('"').removeprefix("num="))
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(number)))
    hosts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return env


def of_pbs(text: str, tools: Path) -> dict[str, str]:
    select = re.search(r"^#PBS -l select=(\d+):(\S+)$", text, re.MULTILINE)
    assert select
    chunk = dict(item.split("=") for item in select[2].split(":"))
    names = [f"n{number}" for number in range(1, int(select[1]) + 1)]
    return pbs_job(tools, names, int(chunk["mpiprocs"]), chunk["ncpus"], chunk.get("ngpus"))


def pbs_job(
    tools: Path, names: list[str], mpiprocs: int, ncpus: str, ngpus: str | None, domain: str = ""
) -> dict[str, str]:
    """Write the file of nodes, and a qstat that folds its lines as the real one."""
    nodes = tools.parent / "nodefile"
    nodes.write_text("".join(f"{name}{domain}\n" * mpiprocs for name in names), encoding="utf-8")
    resources = f"ncpus={ncpus}" + (f":ngpus={ngpus}" if ngpus else "")
    values = {
        "Job_Name": "train",
        "exec_host": "+".join(f"{name}/0*{ncpus}" for name in names),
        "exec_vnode": "+".join(f"({name}:{resources})" for name in names),
    }
    lines = (f"    {key} = {value}" for key, value in values.items())
    folded = ("\n\t".join(line[at : at + 79] for at in range(0, len(line), 79)) for line in lines)
    answer = "\n".join(("Job Id: 123457.server", *folded))
    tool(tools, "qstat", f"[ \"$*\" = '-f 123457.server' ] || exit 1\ncat <<'E'\n{answer}\nE")
    return {"PBS_JOBID": "123457.server", "PBS_NODEFILE": str(nodes), "NCPUS": "1"}


JOBS = {"slurm": of_slurm, "lsf": of_lsf, "pbs": of_pbs}

SIZE = ("--nodes", "4", "--ranks-per-node", "8")
CORES = ("--cpus-per-rank", "4")
RANKS = ("--ranks", "32")

# Recipe, site, further size of the job, further words of launch; what starts the ranks.
SAME: Mapping[str, tuple[str, str, tuple[str, ...], tuple[str, ...], str]] = {
    "slurm srun": ("openmpi-gpu", "slurm-srun", CORES, (), "srun"),
    "slurm srun, no cores": ("openmpi-gpu", "slurm-srun", (), (), "srun"),
    "slurm srun, no GPUs": ("mpich-cpu", "slurm-srun", CORES, (), "srun"),
    "slurm custom": ("mpich-cpu", "slurm-custom", CORES, (), "env"),
    "slurm openmpi": ("openmpi-gpu", "slurm", CORES, (), "mpiexec"),
    "slurm hydra": ("mpich-cpu", "slurm", CORES, (), "mpiexec"),
    "slurm horovodrun": ("mpich-cpu", "slurm-horovodrun", CORES, (), "horovodrun"),
    "slurm torchrun": ("torch-gpu", "slurm-srun", CORES, (), "srun"),
    "slurm torchrun, no cores": ("torch-gpu", "slurm", (), (), "srun"),
    # How many ranks share the CPUs of the one task, nothing in the job tells.
    "slurm torchrun, no GPUs": ("torch-cpu", "slurm-srun", CORES, RANKS, "srun"),
    "slurm torchrun, no GPUs, no cores": ("torch-cpu", "slurm-srun", (), RANKS, "srun"),
    "lsf openmpi": ("openmpi-gpu", "lsf", CORES, (), "mpiexec"),
    "lsf hydra": ("mpich-cpu", "lsf", CORES, (), "mpiexec"),
    "lsf torchrun": ("torch-gpu", "lsf", CORES, (), "mpiexec"),
    "lsf torchrun, no GPUs": ("torch-cpu", "lsf", (), (), "mpiexec"),
    # jsrun is told the cores of a rank; its job is whole nodes.
    "lsf jsrun": ("openmpi-gpu", "lsf-csm", CORES, CORES, "jsrun"),
    "lsf jsrun, no cores": ("openmpi-gpu", "lsf-csm", (), (), "jsrun"),
    "lsf jsrun torchrun": ("torch-gpu", "lsf-csm", (), (), "jsrun"),
    "pbs openmpi": ("openmpi-gpu", "pbs", CORES, (), "mpiexec"),
    "pbs hydra": ("mpich-cpu", "pbs", CORES, (), "mpiexec"),
    "pbs horovodrun": ("mpich-cpu", "pbs-horovodrun", CORES, (), "horovodrun"),
    "pbs torchrun": ("torch-gpu", "pbs", CORES, (), "mpiexec"),
    "pbs torchrun, no GPUs": ("torch-cpu", "pbs", (), RANKS, "mpiexec"),
}


# One of each scheduler in every run; each plans a recipe of its own.
QUICK = ("slurm srun", "slurm torchrun", "lsf jsrun torchrun", "pbs torchrun", "pbs hydra")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in SAME],
)
def test_job_script_and_launch_start_the_same_line(name: str, run: Run, tools: Path) -> None:
    recipe, site, size, words, starter = SAME[name]
    lock = next(root_of(recipe, site, run.library).glob("*/*.build/lock.json"))  # type: ignore[attr-defined]
    words_of_job = ("--site", site, "--root", "/apps", "--as", "job", "--locked", str(lock))
    done = run("render", recipe, *words_of_job, *SIZE, *size)
    assert done.exit_code == 0, done.stderr
    env = JOBS[SITES[site][0]](done.stdout, tools)
    ours = launch(run, recipe, site, *words, **env)
    assert ours == line_of(done.stdout, env)
    assert ours[0] == starter
    assert ("torchrun" in ours) == recipe.startswith("torch")
    if "torchrun" in ours:
        assert {"--nnodes=4", "--nproc_per_node=8", "n1:23457"} <= {*ours}


def line_of(script: str, env: Mapping[str, str]) -> list[str]:
    """Return the words of a script's last line, which bash expands in a job of four nodes."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    rows = script.splitlines()
    values = [row for row in rows if row.startswith(("port=", "endpoint="))]
    hosts = "hosts=n1:8,n2:8,n3:8,n4:8"
    text = "\n".join(("nodes=(n1 n2 n3 n4)", hosts, *values, f"printf '%s\\n' {rows[-1]}"))
    done = subprocess.run(["bash", "-euc", text], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# --- Slurm

FOUR = {"SLURM_JOB_ID": "17", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_CPUS_PER_NODE": "64(x4)"}
ONE_TASK = {**FOUR, "SLURM_TASKS_PER_NODE": "1(x4)"}
EIGHT_TASKS = {**FOUR, "SLURM_TASKS_PER_NODE": "8(x4)"}

# Variables, words; nodes and ranks of a node.
TORCHRUN: Mapping[str, tuple[dict[str, str], tuple[str, ...], int, int]] = {
    "--gres=gpu:8": ({**ONE_TASK, "SLURM_GPUS_ON_NODE": "8"}, (), 4, 8),
    "32 ranks": ({**ONE_TASK, "SLURM_GPUS_ON_NODE": "8"}, RANKS, 4, 8),
    "16 ranks": ({**ONE_TASK, "SLURM_GPUS_ON_NODE": "8"}, ("--ranks", "16"), 2, 8),
    "--gpus-per-node=8": ({**ONE_TASK, "SLURM_GPUS_PER_NODE": "8"}, (), 4, 8),
    "--gpus-per-node=a100:4,v100:2": (
        {**ONE_TASK, "SLURM_GPUS_PER_NODE": "a100:4,v100:2"},
        (),
        4,
        6,
    ),
    "--gpus=32": ({**ONE_TASK, "SLURM_GPUS": "32", "SLURM_GPUS_ON_NODE": "8"}, (), 4, 8),
    "--gpus-per-task=1": ({**EIGHT_TASKS, "SLURM_GPUS_PER_TASK": "1"}, (), 4, 8),
    "eight tasks": ({**EIGHT_TASKS, "SLURM_GPUS_ON_NODE": "4"}, (), 4, 4),
    "uneven tasks": (
        {**FOUR, "SLURM_TASKS_PER_NODE": "4(x2),3,1", "SLURM_GPUS_ON_NODE": "8"},
        (),
        4,
        8,
    ),
    "an earlier Slurm": ({**ONE_TASK, "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, (), 4, 4),
    "no count": (ONE_TASK, RANKS, 4, 8),
}


@pytest.mark.parametrize("name", TORCHRUN)
def test_torchrun_has_a_slot_for_each_gpu(name: str, run: Run) -> None:
    env, words, nodes, per_node = TORCHRUN[name]
    line = launch(run, "torch-gpu", "slurm-srun", *words, **env)
    assert {f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"} <= {*line}
    assert {f"--nnodes={nodes}", f"--nproc_per_node={per_node}"} <= {*line}
    # Without the option the step would have the GPUs of one task.
    assert ("--gpus-per-node=8" in line) == ("SLURM_GPUS_PER_TASK" in env)


def test_each_nodes_own_gpus_are_counted(run: Run, tools: Path) -> None:
    """--gpus and --exclusive give nodes different numbers; a node's own is not another's."""
    details = (
        "echo '     Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:a100:8(IDX:0-7)'\n"
        "echo '     Nodes=n[3-4] CPU_IDs=0 Mem=0 GRES=gpu:{}(IDX:0-3)'"
    )
    tool(tools, "scontrol", details.format("4"))
    env = {**ONE_TASK, "SLURM_GPUS": "24", "SLURM_GPUS_ON_NODE": "8"}
    assert refused(run, "torch-gpu", "slurm-srun", **env) == "launch.uneven-ranks"
    line = launch(run, "torch-gpu", "slurm-srun", "--ranks", "16", **env)
    assert {"--nnodes=2", "--nproc_per_node=8", "--nodelist=n1,n2"} <= {*line}
    tool(tools, "scontrol", "exit 1")
    assert refused(run, "torch-gpu", "slurm-srun", **env) == "hosts.unknown-gpu-count"


def test_where_no_job_tells_the_gpus_the_site_does(run: Run) -> None:
    line = told(run, "torch-gpu", "slurm-8", **ONE_TASK)
    assert (line["ranks"], line["hosts"]) == (32, ["n1:8", "n2:8", "n3:8", "n4:8"])
    assert "8" in line["hosts-from"].partition(";")[2]


def test_an_unknown_number_of_gpus_is_an_error(run: Run) -> None:
    assert refused(run, "torch-gpu", "slurm-srun", **ONE_TASK) == "hosts.unknown-gpu-count"
    line = told(run, "torch-gpu", "slurm-srun", *RANKS, **ONE_TASK)
    assert "unknown" in line["hosts-from"]


def test_a_job_without_gpus_is_refused(run: Run) -> None:
    env = {**ONE_TASK, "CUDA_VISIBLE_DEVICES": "NoDevFiles"}
    assert refused(run, "torch-gpu", "slurm-8", **env) == "hosts.no-gpus"


@pytest.mark.parametrize("site", ["slurm-srun", pytest.param("slurm", marks=pytest.mark.long)])
def test_mpi_has_a_slot_for_each_task(site: str, run: Run) -> None:
    gpus = {"SLURM_GPUS_ON_NODE": "8"}
    assert told(run, "openmpi-gpu", site, **ONE_TASK, **gpus)["ranks"] == 4
    assert refused(run, "openmpi-gpu", site, *RANKS, **ONE_TASK, **gpus) == "hosts.too-few-slots"
    eight = launch(run, "openmpi-gpu", site, **EIGHT_TASKS, **gpus)
    assert {"--ntasks=32", "--ntasks-per-node=8"} <= {*eight} or eight[1:3] == ["-n", "32"]


@pytest.mark.long
def test_srun_is_told_the_cpus_of_a_task(run: Run) -> None:
    line = launch(run, "mpich-cpu", "slurm-srun", **EIGHT_TASKS, SLURM_CPUS_PER_TASK="4")
    assert "--cpus-per-task=4" in line
    own = launch(
        run,
        *("mpich-cpu", "slurm-srun"),
        **EIGHT_TASKS,
        SLURM_CPUS_PER_TASK="4",
        SRUN_CPUS_PER_TASK="2",
    )
    assert "--cpus-per-task=2" in own
    # A daemon of mpirun that got the CPUs of one task would give them to all ranks of its node.
    mpirun = launch(run, "openmpi-gpu", "slurm", **EIGHT_TASKS, SLURM_CPUS_PER_TASK="4")
    assert not [word for word in mpirun if "CPUS" in word or "cpus" in word]


def test_ranks_without_gpus_are_as_many_as_there_are_cpus(run: Run) -> None:
    env = {**ONE_TASK, "SLURM_CPUS_PER_TASK": "8"}
    assert "--nproc_per_node=1" in launch(run, "torch-cpu", "slurm-srun", **env)
    assert "--nproc_per_node=8" in launch(run, "torch-cpu", "slurm-srun", *RANKS, **env)
    assert "slots" in refused(run, "torch-cpu", "slurm-srun", "--ranks", "36", **env)


# --- The launcher of torch.distributed


@pytest.mark.long
def test_torchrun_starts_torch_distributed_everywhere(run: Run) -> None:
    for site in ("slurm-srun", "lsf", "pbs"):
        line = launch(run, "torch-cpu", site, "--ranks", "2")
        assert line[0] == "torchrun", line
    shown = run("render", "torch-cpu", "--site", "slurm-srun", "--as", "lua").stdout
    assert "torchrun --standalone" in shown
    plan = json.loads(run("plan", "torch-cpu", "--site", "slurm-srun", "--json").stdout)
    kinds = {each["api"]: each["launcher"]["kind"] for each in plan["proofs"]}
    assert kinds == {"numpy": "srun", "torch.distributed": "torchrun"}
    other = launch(run, "torch-cpu", "slurm-srun", "--launcher", "hydra", "--ranks", "2")
    assert other[0] == "mpiexec"


def test_a_release_without_torchrun_is_told(run: Run) -> None:
    done = start(run, "torch-old", "slurm")
    assert done.exit_code == 0, done.stderr
    assert shlex.split(done.stdout)[CHECK] == "mpiexec"
    assert "MASTER_ADDR" in done.stderr


@pytest.mark.long
def test_an_environment_of_before_is_started_as_ever(run: Run, tmp_path: Path) -> None:
    plan = planned("collective-torch-cpu", "--site", "local")
    assert plan["runtime"].get("beside") is None
    publish_plan(tmp_path / "root", plan, PROGRAMS)
    words = ("launch", "collective-torch-cpu", "--root", str(tmp_path / "root"), "--", *PROGRAM)
    assert shlex.split(run(*words).stdout)[CHECK] == "mpiexec"


# --- PBS


@pytest.mark.parametrize(("mpiprocs", "mpi_ranks"), [(1, 4), (8, 32)])
@pytest.mark.parametrize("domain", ["", ".cluster.example"])
def test_a_job_of_pbs(mpiprocs: int, mpi_ranks: int, domain: str, run: Run, tools: Path) -> None:
    env = pbs_job(tools, ["n1", "n2", "n3", "n4"], mpiprocs, "32", "8", domain)
    line = told(run, "mpich-cpu", "pbs", **env)
    assert (line["ranks"], line["hosts"][0]) == (mpi_ranks, f"n1{domain}:{mpiprocs}")
    torch = launch(run, "torch-gpu", "pbs", **env)
    assert {"--nnodes=4", "--nproc_per_node=8", f"n1{domain}:23457"} <= {*torch}
    assert launch(run, "torch-gpu", "pbs", *RANKS, **env) == torch


def test_vnodes_and_hosts_that_come_again(run: Run, tools: Path) -> None:
    """Chunks of one host, which has a vnode for each socket."""
    env = pbs_job(tools, ["n1", "n2", "n1", "n2"], 1, "16", "4")
    vnodes = Path(env["PBS_NODEFILE"])
    vnodes.write_text("n1[0]\nn2[0]\nn1[1]\nn2[1]\n", encoding="utf-8")
    assert "--nproc_per_node=8" in launch(run, "torch-gpu", "pbs", **env)
    assert launch(run, "mpich-cpu", "pbs", **env)[:3] == ["mpiexec", "-n", "4"]


def test_one_node_of_pbs_without_qstat(run: Run, tools: Path) -> None:
    env = pbs_job(tools, ["n1"], 1, "32", "8")
    tool(tools, "qstat", "exit 1")
    env["CUDA_VISIBLE_DEVICES"] = "GPU-1,GPU-2,GPU-3"
    assert "--nproc_per_node=3" in launch(run, "torch-gpu", "pbs", **env)


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        (None, "job.variable-not-set"),
        ("", "job.no-hosts"),
        ("n1\na b\n", "hosts.malformed-name"),
    ],
)
def test_a_job_of_pbs_that_tells_no_hosts(
    nodes: str | None, problem: str, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "nodes"
    file.write_text(nodes or "", encoding="utf-8")
    env = {"PBS_JOBID": "17.server", **({} if nodes is None else {"PBS_NODEFILE": str(file)})}
    assert refused(run, "mpich-cpu", "pbs", **env) == problem


def test_the_script_for_pbs_asks_for_gpus_and_whole_nodes(run: Run) -> None:
    words = ("--account", "project", "--minutes", "90", "--cpus-per-rank", "4")
    text = run("render", "torch-gpu", "--site", "slurm", "--as", "pbs", *SIZE, *words).stdout
    rows = [row for row in text.splitlines() if row.startswith("#PBS ")]
    assert rows == [
        "#PBS -S /bin/bash",
        "#PBS -N torch-gpu",
        "#PBS -l select=4:ncpus=32:ngpus=8:mpiprocs=1:ompthreads=4",
        "#PBS -l place=scatter",
        "#PBS -l walltime=01:30:00",
        "#PBS -A project",
        "#PBS -j oe",
    ]


# --- ddlrun


def test_ddlrun_takes_whole_nodes(run: Run) -> None:
    """Document 003: ddlrun -H server1,server2,server3,server4 python train.py."""
    line = launch(run, "ddl", "summit", "-H", "server1,server2,server3,server4")
    assert line == ["ddlrun", "-H", "server1,server2,server3,server4", *PROGRAM]
    two = told(run, "ddl", "summit", "-H", "a,b")
    assert (two["ranks"], two["hosts"]) == (12, ["a:6", "b:6"])
    assert "6" in two["hosts-from"].partition(";")[2]
    assert refused(run, "ddl", "summit", "-H", "a:4,b:4") == "launch.rank-per-gpu"


def test_ranks_of_ddlrun_that_nothing_counts(run: Run, tmp_path: Path) -> None:
    shown = run("sites", "show", "summit").stdout
    site = tmp_path / "summit.yaml"
    site.write_text(re.sub(r"(?m)^(snapshot: .*| *gpus-per-node: .*)\n", "", shown), "utf-8")
    line = told(run, "ddl", "summit", "-H", "a,b", "--site", str(site))
    assert (line["ranks"], line["words"][:3]) == (None, ["ddlrun", "-H", "a,b"])
    # No number is made up for a host.
    assert (line["hosts"], "unknown" in line["hosts-from"]) == (["a", "b"], True)


@pytest.mark.parametrize("words", [("-H", "a,b:1"), ("--hostfile", "hosts")])
def test_one_slot_of_a_host_without_a_number_is_stated(
    run: Run, tmp_path: Path, words: tuple[str, str]
) -> None:
    (tmp_path / "hosts").write_text("a\nb slots=1\n", encoding="utf-8")
    option, value = words
    value = str(tmp_path / value) if option == "--hostfile" else value
    line = told(run, "mpich-cpu", "lsf", option, value)
    assert line["hosts"] == ["a:1", "b:1"]
    assert "1 slot" in line["hosts-from"].partition(";")[2]
    counted = told(run, "mpich-cpu", "lsf", "-H", "a:1,b:1")
    assert counted["hosts-from"] == "-H"


@pytest.mark.long
def test_a_job_of_summit_is_known_by_its_allocation(run: Run, tools: Path) -> None:
    """The launch node is left out also where jsrun is not the launcher."""
    hosts = {"LSB_JOBID": "17", "LSB_MCPU_HOSTS": "batch1 1 a1 42 a2 42"}
    done = launch(run, "mpich-cpu", "lsf-csm", "--launcher", "horovodrun", **hosts)
    assert done[-4:-2] == ["-H", "a1:42,a2:42"]
    plain: Any = launch(run, "mpich-cpu", "lsf", "--launcher", "horovodrun", **hosts)
    assert "batch1:1" in plain[-3]
    csm = {**hosts, "CSM_ALLOCATION_ID": "7"}
    assert "batch1" not in launch(run, "mpich-cpu", "lsf", "--launcher", "horovodrun", **csm)[-3]
