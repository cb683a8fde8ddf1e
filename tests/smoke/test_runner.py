"""Starting, waiting and ending without any MPI: one rank, with a runtime that is a few lines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from smoke_runs import run_smoke

from envbuilder import data
from envbuilder.build import sources
from envbuilder.errors import MissingToolError
from envbuilder.target_tools.proving.runner import SmokeRequest
from tests.golden_texts import Golden

RUNTIME = """
__version__ = "1.0"
Sum = None
def init(): pass
def shutdown(): pass
def barrier(): pass
def rank(): return 0
def size(): return 1
local_rank, local_size = rank, size
def allreduce(tensor, op): return tensor.copy()
def allgather(tensor): return tensor.copy()
def broadcast(tensor, root_rank): return tensor.copy()
"""


@pytest.fixture
def request_for(tmp_path: Path) -> Any:
    def of(sabotage: str = "", **changed: Any) -> SmokeRequest:
        package = tmp_path / "sources" / "distributed_dl_training"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('__version__ = "1.0"\n')
        (package / "numpy.py").write_text(RUNTIME + sabotage)
        run = tmp_path / "a folder"
        run.mkdir()
        sources.copy(data.TARGET_TOOLS, run / "target_tools")
        standard: dict[str, Any] = {
            "command": (sys.executable, "target_tools", "smoke"),
            "folder": run,
            "ranks": 1,
            "timeout": 60.0,
            "max_bytes": 4096,
            "prefix": tmp_path,
            "env": {**os.environ, "PYTHONPATH": str(tmp_path / "sources")},
        }
        return SmokeRequest(**{**standard, **changed})

    return of


def test_a_launcher_that_is_not_there(request_for: Any) -> None:
    with pytest.raises(MissingToolError) as raised:
        run_smoke(request_for(command=("/nowhere/mpiexec", "-n", "1")))
    assert raised.value.id == "program.not-found"


@pytest.mark.integration
def test_one_rank(request_for: Any) -> None:
    request = request_for(launch=("mpiexec", "-n", "1", "a b"))
    result = run_smoke(request)
    assert (result.verdict, result.tier, result.reasons) == ("passed", "one rank", ())
    assert (result.launch, result.libraries, result.mpi) == ("mpiexec -n 1 'a b'", (), None)


@pytest.mark.integration
def test_the_command_gets_the_number_of_ranks(golden: Golden, request_for: Any) -> None:
    words = "test $ENVBUILD_RANKS = 1 || exit 9"
    result = run_smoke(request_for(command=("sh", "-c", words)))
    golden(*result.reasons)


@pytest.mark.integration
def test_a_hang(golden: Golden, request_for: Any) -> None:
    request = request_for("import time\ndef barrier(): time.sleep(600)\n", timeout=3.0)
    result = run_smoke(request)
    golden(*result.reasons)
    assert "in barrier" in result.stacks["rank 0"]
    assert [path.name for path in request.folder.glob("ranks/stack-*")]


@pytest.mark.integration
def test_an_exception_in_init(golden: Golden, request_for: Any) -> None:
    result = run_smoke(request_for("def init(): raise ValueError('line 1\\nline 2')\n"))
    golden(
        result.reasons[0].partition("\n")[0], pid=_pid(result.reasons[0]), node=os.uname().nodename
    )
    assert result.tier == "imported"


def _pid(reason: str) -> str:
    return reason.split()[1]
