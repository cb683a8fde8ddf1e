"""The contract: one body of cases x engines x frameworks, on 1, 2 and 4 ranks."""

import functools
import os
import tempfile
from typing import Dict, Iterator, List, Tuple

import pytest

import contract
import frameworks
from launcher import ENGINES, Outcome, gpus, job, needs_gpu, why_not

CASES = contract.cases()
Passed = List[List[str]]


def lacks_gpu(engine: str, framework: str) -> bool:
    return needs_gpu(engine, framework) and not gpus()[0]


def combinations() -> Iterator[Tuple[str, str, int]]:
    """Yield engine, framework and ranks; without a GPU what needs one is there once, to tell."""
    for engine in ENGINES:
        for framework in frameworks.NAMES:
            alone = engine == "single" or lacks_gpu(engine, framework)
            for ranks in (1,) if alone else (1, 2, 4):
                yield engine, framework, ranks


COMBINATIONS = list(combinations())


def skip_unless_possible(engine: str, framework: str) -> None:
    reason = why_not(engine, framework)
    if reason is not None:
        pytest.skip(reason)


def run(
    engine: str, framework: str, ranks: int, cases: Tuple[str, ...], environ: Dict[str, str]
) -> Tuple[Outcome, Passed]:
    """Run cases, all if none are named; return also those that each rank has passed."""
    with tempfile.TemporaryDirectory() as directory:
        arguments = (directory, framework) + cases
        outcome = job(engine, ranks, "contract.py", *arguments, limit=180, environ=environ)
        passed: Passed = []
        for rank in range(ranks):
            path = os.path.join(directory, str(rank))
            passed.append([])
            if os.path.exists(path):
                with open(path) as stream:
                    passed[-1] = stream.read().split()
    return outcome, passed


@functools.lru_cache(maxsize=None)
def whole_run(engine: str, framework: str, ranks: int) -> Tuple[Outcome, Passed]:
    return run(engine, framework, ranks, (), {})


def each_case() -> Iterator[Tuple[str, str, int, str]]:
    for engine, framework, ranks in COMBINATIONS:
        for name, case in CASES.items():
            if contract.fits(case, framework, engine) and not lacks_gpu(engine, framework):
                yield engine, framework, ranks, name


@pytest.mark.parametrize("engine, framework, ranks, case", list(each_case()))
def test_contract(engine: str, framework: str, ranks: int, case: str) -> None:
    skip_unless_possible(engine, framework)
    outcome, passed = whole_run(engine, framework, ranks)
    missing = [rank for rank in range(ranks) if case not in passed[rank]]
    assert not missing, f"ranks {missing} failed or never came here:\n{outcome.output}"


@pytest.mark.parametrize("engine, framework, ranks", COMBINATIONS)
def test_contract_ends_well(engine: str, framework: str, ranks: int) -> None:
    skip_unless_possible(engine, framework)
    outcome, _ = whole_run(engine, framework, ranks)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    assert "Warning" not in outcome.output, outcome.output


SETTINGS: List[Dict[str, str]] = [
    {"DDLT_CACHE_CAPACITY": "0", "DDLT_FUSION_THRESHOLD": "0"},
    {"DDLT_CACHE_CAPACITY": "1", "HOROVOD_FUSION_THRESHOLD": "64"},
    {"HOROVOD_CACHE_CAPACITY": "2", "DDLT_CACHE_CAPACITY": "", "DDLT_FUSION_THRESHOLD": "1000"},
    {"DDLT_CACHE_CAPACITY": "70"},
]
CAPACITIES = ["capacity-0", "capacity-1", "capacity-2", "capacity-70"]
ORDER = ("case_any_order", "case_groups", "case_unnamed", "case_join", "case_process_sets")
ORDER += ("case_mismatch_of_several", "case_mismatch", "case_float16")


@pytest.mark.parametrize("environ", SETTINGS, ids=CAPACITIES)
@pytest.mark.parametrize("engine", ["mpi", "gloo"])
def test_settings_by_variable(engine: str, environ: Dict[str, str]) -> None:
    """Whatever is remembered and packed, the results are the same."""
    skip_unless_possible(engine, "numpy")
    outcome, passed = run(engine, "numpy", 4, ORDER, environ)
    assert outcome.code == 0, outcome.output
    assert all(set(ORDER) <= set(each) for each in passed)


def test_mpi_without_threads_by_variable() -> None:
    """Document 001 sets this; MPI_THREAD_MULTIPLE is not asked for then, and all works."""
    skip_unless_possible("mpi", "numpy")
    cases: Tuple[str, ...] = ("case_any_order", "case_groups", "case_no_threads")
    environ = {"HOROVOD_MPI_THREADS_DISABLE": "1", "DDLT_TEST_NO_THREADS": "1"}
    outcome, passed = run("mpi", "numpy", 2, cases, environ)
    assert outcome.code == 0, outcome.output
    assert all(set(cases) <= set(each) for each in passed)


@pytest.mark.parametrize("level", ["serialized", "funneled"])
def test_less_thread_support(level: str) -> None:
    """What needs no other thread in MPI works without one."""
    skip_unless_possible("mpi", "numpy")
    cases: Tuple[str, ...] = ("case_any_order", "case_groups", "case_unnamed")
    cases += ("case_join", "case_mismatch", "case_mismatch_of_several", "case_poll", "case_fork")
    outcome, passed = run("mpi", "numpy", 2, cases, {"DDLT_TEST_THREAD_LEVEL": level})
    assert outcome.code == 0, outcome.output
    assert all(set(cases) <= set(each) for each in passed)
