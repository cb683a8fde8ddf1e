"""The ranks among processes: what a launcher numbered, not what that started."""

from __future__ import annotations

from envbuilder.hang.processes import Process, below, of_job, ranks


def process(pid: int, parent: int = 1, *, python: bool = True, **environ: str) -> Process:
    return Process(pid, parent, 1000 + pid, "S", environ, python)


def rows(*processes: Process) -> list[tuple[int, int | None, int]]:
    return [(each.number, each.size, each.process.pid) for each in ranks(processes)]


def test_workers_and_shells_are_no_ranks() -> None:
    first = {"PMI_RANK": "0", "PMI_SIZE": "2"}
    assert rows(
        process(10, 9, python=False, **first),  # bash -c
        process(11, 10, **first),
        process(12, 11, **first),  # its loader of data
        process(13, 9, PMI_RANK="1", PMI_SIZE="2"),
    ) == [(0, 2, 11), (1, 2, 13)]


def test_of_launchers_within_launchers_the_inner_one_numbers() -> None:
    node = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}
    assert rows(
        process(10, 9, **node),  # torchrun, one on each node
        process(11, 10, RANK="4", WORLD_SIZE="8", **node),
        process(12, 10, RANK="5", WORLD_SIZE="8", **node),
    ) == [(4, 8, 11), (5, 8, 12)]


def test_what_no_launcher_numbered_is_none() -> None:
    assert rows(process(10), process(11, RANK="x")) == []
    # PMIx does not tell how many there are.
    assert rows(process(10, PMIX_RANK="3")) == [(3, None, 10)]


def test_what_is_below_a_process_or_of_a_job() -> None:
    every = {
        each.pid: each
        for each in (
            process(1, 0),
            process(5, 1),
            process(6, 5, SLURM_JOB_ID="77"),
            process(7, 6),
            process(8, 1, LSB_JOBID="77"),
        )
    }
    assert {each.pid for each in below([5], every)} == {5, 6, 7}
    assert below([99], every) == []
    variables = ["SLURM_JOB_ID", "LSB_JOBID"]
    assert {each.pid for each in of_job("77", variables, every)} == {6, 8}
    assert of_job("7", variables, every) == []
