"""All that ranks may talk through, with what is here: each says what it cannot do.

MPICH and mpi4py come from the package index, and PyTorch where that has a build for processors.
TORCH_PYTHON names an interpreter that has a PyTorch, or a Horovod, already. One of a few lines
stands in only where the judging is tested; integration/test_horovod.py compiles a real one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from smoke_runs import Runs, virtualenv

from envbuilder import data
from tests.golden_texts import Golden

pytestmark = [pytest.mark.integration, pytest.mark.network]

STATED = os.environ.get("TORCH_PYTHON")
# As in the recipe collective-torch-cpu.
TORCH = "torch==2.13.*"


def names(result: Any) -> set[str]:
    return {check.name for check in result.checks}


def test_mpi4py_itself(golden: Golden, smoke: Runs) -> None:
    options = ("--api", "mpi4py", "--transport", "mpi")
    result = smoke(options=options, ranks=3, api="mpi4py", transport="mpi")
    assert (result.verdict, result.reasons, result.tier) == ("passed", (), "several ranks")
    assert {each.dtype for each in result.checks if each.name == "allreduce"} == {
        "int32",
        "int64",
        "float32",
        "float64",
    }
    assert {"allgather", "allgather with no rows", "broadcast", "barrier"} <= names(result)
    assert [(each.name, each.dtype) for each in result.left_out] == [
        ("allreduce", "float16"),
        ("mismatch", None),
    ]
    assert {(each.operation, each.transport) for each in result.carried} == {
        ("allreduce", "mpi"),
        ("allgather", "mpi"),
        ("broadcast", "mpi"),
    }
    assert result.carried[0].source.startswith("mpi4py calls MPICH ")
    said = {check.name: check.said for check in result.checks if check.said}
    golden(said["hello"])
    assert said["import"].startswith("numpy ")
    assert ", mpi4py " in said["import"]


def test_the_bundled_runtime_hands_everything_to_mpi(golden: Golden, smoke: Runs) -> None:
    result = smoke(transport="mpi")
    assert (result.verdict, result.left_out) == ("passed", ())
    assert {each.transport for each in result.carried} == {"mpi"}
    refused = smoke_again(smoke, transport="gloo")
    golden(refused.reasons[0].partition(" (")[0])


def smoke_again(smoke: Runs, **changed: Any) -> Any:
    (smoke.folder / "run").rename(smoke.folder / "before")
    return smoke(**changed)


@pytest.fixture(scope="module")
def torch_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return an interpreter with PyTorch: the stated one, else one made for these tests."""
    if STATED:
        return having("torch.distributed")
    version = offered(TORCH)
    if not version.endswith("+cpu"):
        # With CUDA it is gigabytes.
        pytest.skip(f"needs {TORCH} for processors from the index, which has {version or 'none'}")
    return virtualenv(tmp_path_factory.mktemp("torch") / "v", TORCH, "numpy").python


def offered(requirement: str) -> str:
    """Return the version that pip would install here; empty where there is none."""
    words = "install --dry-run --quiet --ignore-installed --no-deps --only-binary :all: --report -"
    asked = [sys.executable, "-m", "pip", *words.split(), requirement]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        return ""
    return str(json.loads(done.stdout)["install"][0]["metadata"]["version"])


def having(module: str) -> str:
    """Return the stated interpreter, which must have a module."""
    if not STATED:
        pytest.skip(f"needs {module}: TORCH_PYTHON names no interpreter that has it")
    question = [STATED, "-c", f"import {module}"]
    done = subprocess.run(question, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["?"])[-1]
        pytest.skip(f"needs {module} in TORCH_PYTHON ({STATED}): {why}")
    return STATED


def beside(python: str, program: str) -> str:
    path = Path(python).with_name(program)
    if not path.is_file():
        pytest.skip(f"needs {program} beside {python}")
    return str(path)


def gloo(smoke: Runs, api: Any, python: str, *command: str) -> Any:
    smoke.environ["PATH"] = f"{Path(python).parent}:{os.environ['PATH']}"
    words = (*command, python, "target_tools", "smoke", "--api", api, "--transport", "gloo")
    return smoke(command=words, api=api, transport="gloo", mpi_from=None)


@pytest.mark.long
def test_torch_distributed_finds_its_ranks_by_a_file(smoke: Runs, torch_python: str) -> None:
    words = (smoke.mpi.mpiexec, "-n", "2")
    result = gloo(smoke, "torch.distributed", torch_python, *words)
    assert (result.verdict, result.reasons) == ("passed", ())
    assert result.framework is not None
    assert result.framework.startswith("torch ")
    assert {each.transport for each in result.carried} == {"gloo"}
    assert [each.name for each in result.left_out] == ["allgather", "mismatch"]
    assert {"allgather of equal rows", "broadcast", "barrier"} <= names(result)


def test_tensors_that_travel_are_in_memory_of_torch(torch_python: str) -> None:
    """Memory of numpy cannot be resized; to release it a thread waits for Python."""
    program = """
import sys, numpy, torch
sys.path.append(sys.argv[1])
from target_tools.smoke.api_torch import Distributed
api = Distributed.__new__(Distributed)
api.torch, api.device = torch, "cpu"
values = numpy.ones(3, numpy.float32)
for tensor in (api._tensor(values), torch.from_numpy(values)):
    print(tensor.dtype, tensor.tolist(), tensor.untyped_storage().resizable())
"""
    words = [torch_python, "-c", program, str(data.TARGET_TOOLS.parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
    ones = "torch.float32 [1.0, 1.0, 1.0]"
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{ones} True", f"{ones} False"]


def test_torch_distributed_under_torchrun(smoke: Runs, torch_python: str) -> None:
    torchrun = beside(torch_python, "torchrun")
    words = (torchrun, "--standalone", "--nproc_per_node", "2", "--no_python")
    result = gloo(smoke, "torch.distributed", torch_python, *words)
    assert (result.verdict, result.reasons) == ("passed", ())


@pytest.mark.long
def test_torch_distributed_that_nobody_tells_its_place(
    golden: Golden, smoke: Runs, torch_python: str
) -> None:
    both = smoke.script('"$@" & "$@" & wait')
    result = gloo(smoke, "torch.distributed", torch_python, *both)
    golden(result.reasons[0].partition(" (Horovod")[0])


def test_real_horovod_over_gloo(smoke: Runs) -> None:
    python = having("horovod.torch")
    words = (beside(python, "horovodrun"), "--gloo", "-np", "2", "-H", "localhost:2")
    result = gloo(smoke, "horovod.torch", python, *words)
    assert (result.verdict, result.reasons) == ("passed", ())
    told = {each.operation: each for each in result.carried}
    assert {each.transport for each in result.carried} == {"gloo"}
    assert told["allreduce"].source.startswith("Horovod's timeline: GLOO_ALLREDUCE ")
    assert told["negotiation"].source == "hvd.gloo_enabled() is true"
    assert "mismatch" in names(result)


def test_another_libmpi_first_in_ld_library_path(golden: Golden, smoke: Runs) -> None:
    """Horovod links libmpi by its name alone: the loader takes the first one that it finds."""
    python = having("horovod.torch")
    mpirun, mpicxx = shutil.which("mpirun"), shutil.which("mpicxx")
    if mpirun is None or mpicxx is None:
        pytest.skip("needs mpirun and mpicxx of the MPI that Horovod was built with")
    asks = f'wrapper={mpicxx}; {{ echo "$wrapper"; "$wrapper" -show; }} >mpi.txt; exec "$@"'
    options = ("--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none", "-n", "2")
    words = (*smoke.script(asks), mpirun, *options, python, "target_tools", "smoke")
    words += ("--api", "horovod.torch", "--transport", "mpi")
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    smoke.environ.update(dict.fromkeys(as_root, "1"))
    asked: Any = {"api": "horovod.torch", "transport": "mpi", "mpi_from": "wrapper"}
    good = smoke(command=words, **asked)
    assert (good.verdict, good.reasons) == ("passed", ())

    right = next(each.path for each in good.libraries if "/libmpi.so" in each.path)
    other = smoke.folder.resolve() / "other"
    other.mkdir()
    shutil.copyfile(right, other / "libmpi.so.40")
    smoke.environ["LD_LIBRARY_PATH"] = str(other)
    result = smoke_again(smoke, command=words, **asked)
    (reason,) = result.reasons
    golden(reason.partition(";")[0], other=other)
    assert right in reason
    assert reason.endswith(f"({mpicxx} -show)")


# A framework whose tensors are numpy's, and a Horovod that lets mpi4py talk but writes into its
# timeline whatever it is told to.
TORCH_OF_TEXT = """
__version__ = "1.0"
class Tensor:
    def __init__(self, values): self.values = values
    def to(self, device): return self
    cpu = lambda self: self
    numpy = lambda self: self.values
from_numpy = Tensor
"""
HOROVOD_OF_TEXT = """
import json, os
from distributed_dl_training import numpy as under
from torch import Tensor
from distributed_dl_training.numpy import rank, size, local_rank, local_size

TIMELINE = os.environ["HOROVOD_TIMELINE"]

def init():
    del os.environ["HOROVOD_TIMELINE"]  # what is below would write one of its own
    under.init()

def mpi_enabled(): return True

def _does(name, activity):
    if rank() == 0 and {timeline}:
        with open(TIMELINE, "a") as stream:
            for each in (name, activity):
                event = {{"ph": "B", "name": each, "ts": 1, "pid": 1}}
                stream.write(json.dumps(event) + ",\\n")

def allreduce(tensor, average=True, name=None):
    assert not average
    _does("ALLREDUCE", "{activity}")
    try:
        return Tensor(under.allreduce(tensor.values, op=under.Sum))
    except under.MismatchError as error:
        raise RuntimeError("Mismatched allreduce tensor shapes: " + str(error)) from None

def allgather(tensor, name=None):
    return Tensor(under.allgather(tensor.values))

def broadcast(tensor, root_rank, name=None):
    return Tensor(under.broadcast(tensor.values, root_rank=root_rank))

shutdown = under.shutdown
"""


def stand_in(smoke: Runs, activity: str, *, timeline: bool = True) -> Any:
    """Run against a Horovod as old as 0.18 that says it used *activity*."""
    packages = smoke.folder / "packages"
    (packages / "horovod").mkdir(parents=True)
    (packages / "torch.py").write_text(textwrap.dedent(TORCH_OF_TEXT))
    (packages / "horovod" / "__init__.py").write_text('__version__ = "0.18.2"\n')
    text = HOROVOD_OF_TEXT.format(activity=activity, timeline=timeline)
    (packages / "horovod" / "torch.py").write_text(text)
    request = smoke.request()
    path = f"{packages}:{request['env']['PYTHONPATH']}"
    (smoke.folder / "run").rename(smoke.folder / "unused")
    options = ("--api", "horovod.torch", "--transport", "mpi")
    smoke.environ["PYTHONPATH"] = path
    return smoke(options=options, api="horovod.torch", transport="mpi")


def test_an_old_horovod_sums_and_lacks_a_barrier(golden: Golden, smoke: Runs) -> None:
    result = stand_in(smoke, "MPI_ALLREDUCE")
    assert (result.verdict, result.reasons) == ("passed", ())
    assert (result.runtime, result.framework) == ("horovod 0.18.2", "torch 1.0")
    golden(*(f"{each.name}: {each.why}" for each in result.left_out))
    assert "mismatch" in names(result)
    assert "barrier" not in names(result)
    assert {(each.operation, each.transport) for each in result.carried} == {
        ("allreduce", "mpi"),
        ("negotiation", "mpi"),
    }


def test_a_horovod_that_used_gloo_where_mpi_was_asked_for(golden: Golden, smoke: Runs) -> None:
    result = stand_in(smoke, "GLOO_ALLREDUCE")
    assert result.verdict == "failed"
    golden(result.reasons[0].partition(" (Horovod")[0])
    assert all(check.passed for check in result.checks)


def test_a_horovod_that_says_nothing(golden: Golden, smoke: Runs) -> None:
    result = stand_in(smoke, "MPI_ALLREDUCE", timeline=False)
    golden(*result.reasons)
