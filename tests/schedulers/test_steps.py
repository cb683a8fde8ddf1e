"""Steps of a job that hold its CPUs: when there is one, and what a launch line needs there."""

from __future__ import annotations

import pytest

from envbuilder.launching.launchers import launch_words
from envbuilder.launching.schedulers import slurm
from envbuilder.model.launch import Host, JobStep, LaunchRequest, Mpi

JOB = {"SLURM_JOB_ID": "17"}


def asking(answer: str) -> tuple[list[tuple[str, ...]], object]:
    """Return what was asked, and what answers."""
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> str:
        asked.append(words)
        return answer

    return asked, ask


@pytest.mark.parametrize(
    ("release", "option"),
    [
        ("slurm 19.05.5", None),
        ("slurm 20.02.7", None),
        ("slurm 20.11.0", "--overlap"),
        ("slurm-wlm 22.05.8", "--overlap"),
        ("slurm 24.05.1-1", "--overlap"),
        # One that does not say so takes it: without it the ranks would wait for ever.
        ("srun: fatal: Could not establish a configuration source", "--overlap"),
        ("", "--overlap"),
    ],
)
def test_overlap_where_the_release_knows_it(release: str, option: str | None) -> None:
    asked, ask = asking(release)
    step = slurm.job_step({**JOB, "SLURM_STEP_ID": "0"}, ask)  # type: ignore[arg-type]
    assert step == JobStep(option, "SLURM_OVERLAP=1")
    assert asked == [("srun", "--version")]


@pytest.mark.parametrize(
    "step",
    [
        {},
        {"SLURM_STEP_ID": ""},
        # The batch script, and the shell that salloc starts by itself: they share CPUs.
        {"SLURM_STEP_ID": "4294967291"},
        {"SLURM_STEP_ID": "4294967290"},
        {"SLURM_STEP_ID": "4294967294"},
    ],
)
def test_no_step_that_holds_cpus_asks_nothing(step: dict[str, str]) -> None:
    asked, ask = asking("slurm 22.05.8")
    assert slurm.job_step({**JOB, **step}, ask) is None  # type: ignore[arg-type]
    assert asked == []


def test_older_releases_name_the_variable_otherwise() -> None:
    _, ask = asking("slurm 20.11.9")
    assert slurm.job_step({**JOB, "SLURM_STEPID": "3"}, ask) is not None  # type: ignore[arg-type]


TWO = (Host("n1", 2), Host("n2", 2))
STEP = JobStep("--overlap", "SLURM_OVERLAP=1")


def words(kind: str, step: JobStep | None, hosts: tuple[Host, ...], **more: object) -> str:
    ranks = sum(host.slots for host in hosts)
    request = LaunchRequest(
        kind,
        ("python", "x.py"),
        ranks,
        hosts,
        "slurm",
        allocated=True,
        step=step,
        **more,  # type: ignore[arg-type]
    )
    return " ".join(launch_words(request))


def test_srun_shares_the_cpus() -> None:
    plain = words("srun", None, TWO, mpi=Mpi("openmpi", "4.1.4"))
    shared = words("srun", STEP, TWO, mpi=Mpi("openmpi", "4.1.4"))
    assert shared == plain.replace("srun --mpi=pmix", "srun --mpi=pmix --overlap")
    old = JobStep(None, "SLURM_OVERLAP=1")
    assert words("srun", old, TWO, mpi=Mpi("openmpi", "4.1.4")) == plain


def test_so_does_the_srun_that_starts_torchrun() -> None:
    line = words("torchrun", STEP, TWO)
    assert line.startswith("srun --overlap --nodes=2 --ntasks=2 --ntasks-per-node=1 ")


@pytest.mark.parametrize(
    ("kind", "mpi"), [("openmpi", Mpi("openmpi", "4.1.4")), ("hydra", Mpi("mpich", "5.0.2"))]
)
def test_launchers_that_start_steps_themselves_are_told_by_a_variable(kind: str, mpi: Mpi) -> None:
    plain = words(kind, None, TWO, mpi=mpi)
    assert words(kind, STEP, TWO, mpi=mpi) == f"env SLURM_OVERLAP=1 {plain}"
    # On one node they start none.
    one = (Host("n1", 2),)
    assert words(kind, STEP, one, mpi=mpi) == words(kind, None, one, mpi=mpi)


def test_the_variable_stands_beside_others() -> None:
    line = words("hydra", STEP, TWO, mpi=Mpi("mpich", "5.0.2"), exports=("X=1",))
    assert line.startswith("env X=1 SLURM_OVERLAP=1 mpiexec ")
