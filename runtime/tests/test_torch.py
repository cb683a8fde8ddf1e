"""Torch's API, gloo and nccl in jobs: what is promised, what is documented, how jobs end.

Where there is no GPU each test that needs one is there once, skipped with the reason.
"""

import functools
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, Iterator, List, Tuple

import pytest

from launcher import HERE, Outcome, command_job, gpus, job, mpi_job, why_not

NO_TORCH = why_not("gloo")
NO_MPI = why_not()
NO_GPU = why_not("nccl", "cuda")
pytestmark = pytest.mark.skipif(NO_TORCH is not None, reason=str(NO_TORCH))
WITH_MPI = pytest.mark.skipif(NO_MPI is not None, reason=str(NO_MPI))
WITH_GPU = pytest.mark.skipif(NO_GPU is not None, reason=str(NO_GPU))

# Unbuffered, print writes a line in pieces, which those of other ranks may come between.
BUFFERED = {"PYTHONUNBUFFERED": ""}
# Optimizers of PyTorch import the second when they are first used.
TRAINING = "torch,torch._dynamo"
ENGINES = [
    pytest.param("mpi", marks=WITH_MPI),
    "gloo",
    pytest.param("nccl", marks=WITH_GPU),
]
# Engines, and where the tensors of the contract lie.
PLACES = [("mpi", "cpu"), ("gloo", "cpu"), ("nccl", "cuda")]
PLACES += [("nccl", "cpu"), ("mpi", "cuda"), ("gloo", "cuda")]


def lacks_gpu(engine: str, device: str) -> bool:
    return NO_GPU is not None and (engine, device) not in PLACES[:2]


def each_run() -> Iterator[Any]:
    """Yield engine, device and ranks of each job that runs the contract."""
    for engine, device in PLACES:
        marks = [WITH_MPI] if engine == "mpi" else []
        where = engine if device == "cpu" and engine != "nccl" else f"{engine}-{device}"
        if lacks_gpu(engine, device):
            yield pytest.param(engine, device, 1, marks=WITH_GPU, id=where)
            continue
        for ranks in (1, 2, 4):
            yield pytest.param(engine, device, ranks, marks=marks, id=f"{where}-{ranks}")


def each_case() -> Iterator[Any]:
    for run in each_run():
        engine, device, _ = run.values
        for case in [] if lacks_gpu(engine, device) else cases(device):
            yield pytest.param(case, *run.values, marks=run.marks, id=f"{case}-{run.id}")


def on_gpu(*parameters: Any) -> List[Any]:
    """Return what a test that needs a GPU is run with: without one, the first, to be skipped."""
    return [pytest.param(*each, marks=WITH_GPU) for each in parameters][: 1 if NO_GPU else None]


def cases(device: str) -> List[str]:
    """Return the names of the cases without importing torch."""
    found: List[str] = []
    names = ["tensors", "gradients", "training", "lifecycle", "wrapping", "contract"]
    for name in [f"torch_{each}" for each in names] + ["torch_device"] * (device != "cpu"):
        with open(os.path.join(HERE, name + ".py")) as source:
            found += re.findall(r"^def case_(\w+)", source.read(), re.MULTILINE)
    return found


@functools.lru_cache(maxsize=None)
def contract_run(engine: str, device: str, ranks: int) -> Tuple[Outcome, List[List[str]]]:
    """Run the whole contract once; return also the cases that each rank has passed."""
    environ = {"DDLT_TEST_DEVICE": device}
    with tempfile.TemporaryDirectory() as directory:
        outcome = job(
            engine,
            ranks,
            "torch_contract.py",
            directory,
            limit=180,
            environ=environ,
            modules=TRAINING,
        )
        passed: List[List[str]] = []
        for rank in range(ranks):
            path = os.path.join(directory, str(rank))
            passed.append([])
            if os.path.exists(path):
                with open(path) as stream:
                    passed[-1] = stream.read().split()
    return outcome, passed


@pytest.mark.parametrize("case, engine, device, ranks", list(each_case()))
def test_contract(case: str, engine: str, device: str, ranks: int) -> None:
    outcome, passed = contract_run(engine, device, ranks)
    missing = [rank for rank in range(ranks) if case not in passed[rank]]
    assert not missing, f"ranks {missing} failed or never came here:\n{outcome.output}"


@pytest.mark.parametrize("engine, device, ranks", list(each_run()))
def test_contract_ends_well(engine: str, device: str, ranks: int) -> None:
    outcome, _ = contract_run(engine, device, ranks)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    assert "Warning" not in outcome.output, outcome.output


@pytest.mark.parametrize("engine", ENGINES)
def test_hello(engine: str) -> None:
    outcome = job(engine, 2, "torch_documents.py", "hello", environ=BUFFERED)
    assert outcome.code == 0, outcome.output
    assert sorted(re.findall(r"Hello from: (\d)", outcome.output)) == ["0", "1"]


@WITH_MPI
def test_splits_of_mpi4py() -> None:
    outcome = mpi_job(4, "torch_documents.py", "splits")
    assert outcome.code == 0, outcome.output
    pairs = sorted(re.findall(r"COMM_WORLD rank: (\d), rank: (\d)", outcome.output))
    assert pairs == [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]


@pytest.mark.parametrize("ranks", [2], ids=["gloo-2"])
def test_saved_models_load_without_the_runtime(ranks: int) -> None:
    outcome = job("gloo", ranks, "torch_saving.py", modules=TRAINING, limit=120)
    assert outcome.code == 0 and "loaded 2" in outcome.output, outcome.output


@pytest.mark.parametrize("engine", ENGINES)
def test_training_in_six_steps(engine: str, tmp_path: "os.PathLike[str]") -> None:
    outcome = job(engine, 2, "torch_documents.py", "training", str(tmp_path), modules=TRAINING)
    assert outcome.code == 0, outcome.output
    # Another number of ranks goes on from the first one's checkpoint.
    outcome = job(engine, 3, "torch_documents.py", "training", str(tmp_path), modules=TRAINING)
    assert outcome.code == 0, outcome.output
    found = re.findall(r"epoch (\d): accuracy ([\d.]+)", outcome.output)
    assert len(found) == 1 and found[0][0] == "5" and float(found[0][1]) > 0.9, outcome.output


def test_torchrun() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    words = [*command, os.path.join(HERE, "torch_documents.py"), "hello"]
    outcome = command_job(words)
    assert outcome.code == 0, outcome.output
    # It starts Python with -u: print writes a line in pieces, and those of two ranks may mix.
    assert outcome.output.count("Hello from:") == 2, outcome.output
    assert sorted(re.findall(r"\d", outcome.output)) == ["0", "1"], outcome.output


@pytest.mark.parametrize(
    "way, rank, text",
    [
        ("exception", "0", "rank 0 has ended the job, exit code 1"),
        ("exit", "2", ": shutdown()"),
        ("killed", "0", "PeerLostError"),
        ("killed", "2", "PeerLostError: rank 2 gone"),
        ("killed_inside", "1", "PeerLostError: rank 1 gone"),
        ("stopped", "0", "StallError"),
        ("stopped", "2", "StallError"),
    ],
)
def test_lost_rank_of_gloo(way: str, rank: str, text: str) -> None:
    """Every survivor gets an error within the limit, also those that did not talk to the lost."""
    outcome = job("gloo", 3, "gloo_endings.py", way, rank)
    assert outcome.output.count("survivor False") == 2, outcome.output
    assert outcome.output.count(text) >= 2, outcome.output
    assert outcome.code is not None and (outcome.code == 0) == (way == "exit"), outcome.output
    assert outcome.orphans == []


@pytest.mark.parametrize(
    "way, rank, text",
    on_gpu(
        ("exception", "0", "rank 0 has ended the job, exit code 1"),
        ("exit", "2", ": shutdown()"),
        ("killed", "0", "PeerLostError"),
        ("killed", "2", "PeerLostError: rank 2 gone"),
        ("killed_inside", "0", "PeerLostError"),
        ("killed_inside", "1", "PeerLostError: rank 1 gone"),
        ("stopped", "0", "StallError"),
        ("stopped", "2", "StallError"),
    ),
)
def test_lost_rank_of_nccl(way: str, rank: str, text: str) -> None:
    """The same with tensors on a GPU, which the survivors can use again."""
    outcome = job("nccl", 3, "gloo_endings.py", way, rank, environ={"DDLT_TEST_DEVICE": "cuda"})
    assert outcome.output.count("survivor False") == 2, outcome.output
    assert outcome.output.count(text) >= 2, outcome.output
    assert outcome.output.count("saved") == 2, outcome.output
    # It would end the survivors a minute later, whatever they are at.
    assert "failure detected by watchdog" not in outcome.output, outcome.output
    assert outcome.code is not None and (outcome.code == 0) == (way == "exit"), outcome.output
    assert outcome.orphans == []


@WITH_GPU
def test_stopped_rank_of_nccl() -> None:
    """Whoever is inside a collective of NCCL then is ended past the limit; others get an error."""
    environ = {"DDLT_TEST_DEVICE": "cuda"}
    outcome = job("nccl", 3, "gloo_endings.py", "stopped_inside", "1", environ=environ)
    assert outcome.code not in (0, None), outcome
    assert "rank 1: no answer" in outcome.output
    assert outcome.orphans == []


@WITH_GPU
def test_two_ranks_with_one_gpu() -> None:
    """What forgets to give each rank a GPU of its own is told so, on every rank."""
    if gpus()[0] > 2:
        pytest.skip("each rank has a GPU of its own")
    environ = {"DDLT_TEST_DEVICE": "cuda", "NCCL_HOSTID": "one"}
    ranks = gpus()[0] + 1
    outcome = job("nccl", ranks, "gloo_endings.py", "shared", "0", environ=environ)
    assert outcome.code not in (0, None), outcome
    assert len(re.findall(r"survivor False: PeerLostError", outcome.output)) == ranks
    assert "Duplicate GPU" in outcome.output, outcome.output
    assert outcome.orphans == []


@pytest.mark.parametrize(
    "engine, device", [("gloo", "cpu"), pytest.param("nccl", "cuda", marks=WITH_GPU)]
)
def test_program_has_its_own_torch_distributed(engine: str, device: str) -> None:
    for order in ("before", "after"):
        environ = {"DDLT_TEST_DEVICE": device}
        outcome = job(engine, 2, "gloo_endings.py", "beside", order, environ=environ)
        assert outcome.code == 0, outcome.output


@pytest.mark.parametrize(
    "engine, text",
    [
        ("gloo", b"RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT not set"),
        ("nccl", b"(built without nccl|needs a GPU, and torch can use none here)\n"),
    ],
)
def test_what_is_missing_is_told(engine: str, text: bytes) -> None:
    code = "import distributed_dl_training.torch as hvd; hvd.init()"
    environ = {name: value for name, value in os.environ.items() if name not in ("RANK",)}
    environ.update(DDLT_ENGINE=engine, PYTHONPATH=os.path.dirname(HERE), CUDA_VISIBLE_DEVICES="")
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, env=environ)
    assert done.returncode == 1
    assert re.search(b"EngineUnavailableError: .*" + text, done.stderr), done.stderr
