"""Jobs that test TensorFlow's API: its contract and training; skipped without TensorFlow."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

from launcher import HERE, mpi_job, why_not

NO_MPI = why_not()
pytestmark = [
    pytest.mark.skipif(NO_MPI is not None, reason=str(NO_MPI)),
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed"
    ),
]


@pytest.fixture(scope="session")
def operation() -> None:
    """Build the operation in C++ unless this TensorFlow's is there; skip without a compiler."""
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("no C++ compiler is installed")
    command = [sys.executable, "-m", "distributed_dl_training.tensorflow.build"]
    subprocess.run(command, check=True, cwd=os.path.dirname(HERE))


@pytest.fixture(params=["op", "py-function"])
def implementation(request: "pytest.FixtureRequest") -> str:
    name: str = request.param
    if name == "op":
        request.getfixturevalue("operation")
    return name


def run_cases(program: str, ranks: int, implementation: str) -> None:
    environ = {"DDLT_TENSORFLOW": implementation}
    outcome = mpi_job(ranks, program, environ=environ, limit=240)
    assert outcome.code == 0, outcome.output
    assert outcome.orphans == []
    counts = re.findall(rf"passed (\d+) by {implementation}$", outcome.output, re.MULTILINE)
    assert len(counts) == ranks and len(set(counts)) == 1 and int(counts[0]) > 2, outcome.output


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_contract(ranks: int, implementation: str) -> None:
    run_cases("tensorflow_contract.py", ranks, implementation)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_training_equals_training_on_one_rank(ranks: int, implementation: str) -> None:
    run_cases("tensorflow_training.py", ranks, implementation)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_monitored_session_of_the_document(ranks: int, tmp_path: "os.PathLike[str]") -> None:
    outcome = mpi_job(ranks, "tensorflow_document.py", str(tmp_path), limit=120)
    assert outcome.code == 0, outcome.output
    weights = re.findall(r"weights (\S+)", outcome.output)
    assert len(weights) == ranks and len(set(weights)) == 1, outcome.output
    assert any(name.startswith("model.ckpt-20") for name in os.listdir(tmp_path))


def test_saved_models_load_without_the_runtime(
    tmp_path: "os.PathLike[str]", implementation: str
) -> None:
    environ = {"DDLT_TENSORFLOW": implementation}
    saving = mpi_job(2, "tensorflow_saving.py", str(tmp_path), environ=environ, limit=240)
    assert saving.code == 0, saving.output
    loading = mpi_job(1, "tensorflow_loading.py", str(tmp_path), limit=120)
    assert loading.code == 0 and "loaded 5" in loading.output, loading.output


def test_horovod_alias_uses_the_rules_of_horovod() -> None:
    home = os.path.join(os.path.dirname(HERE), "distributed_dl_training", "_alias")
    environ = {"PYTHONPATH": os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])}
    outcome = mpi_job(2, "tensorflow_alias.py", environ=environ, limit=120)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("averages of integers: 1") == 2, outcome.output


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ddl_trains_as_its_programs_expect(ranks: int, implementation: str) -> None:
    home = os.path.join(os.path.dirname(HERE), "distributed_dl_training", "_alias_ddl")
    path = os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])
    environ = {"PYTHONPATH": path, "DDLT_TENSORFLOW": implementation}
    outcome = mpi_job(ranks, "tensorflow_ddl.py", environ=environ, limit=120)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("passed 6") == ranks, outcome.output


ORDER = {"DDLT_STALL_CHECK_TIME_SECONDS": "2", "DDLT_STALL_SHUTDOWN_TIME_SECONDS": "6"}


def test_operation_completes_in_any_order(operation: None) -> None:
    environ = dict(ORDER, DDLT_TENSORFLOW="op")
    outcome = mpi_job(2, "tensorflow_order.py", environ=environ, limit=90)
    assert outcome.code == 0, outcome.output
    assert outcome.output.count("complete\n") == 2


def test_different_order_of_py_functions_raises_stall_error() -> None:
    """A rank runs one at a time: if ranks wait for different ones, the job must end."""
    environ = dict(ORDER, DDLT_TENSORFLOW="py-function")
    outcome = mpi_job(2, "tensorflow_order.py", environ=environ, limit=90)
    assert outcome.code not in (0, None), outcome.output
    assert "StallError" in outcome.output and "is missing on rank" in outcome.output


def test_cache_has_the_operation(operation: None, tmp_path: "os.PathLike[str]") -> None:
    """The first build fills the cache; what others may have written there is not used."""
    folders = [os.path.join(tmp_path, str(number)) for number in range(3)]
    origins = []
    for folder in folders:
        os.mkdir(folder)
        command = [sys.executable, "-m", "distributed_dl_training.tensorflow.build"]
        command += ["--output", folder, "--cache", os.path.join(tmp_path, "cache")]
        process = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            cwd=os.path.dirname(HERE),
        )
        origins.append(process.stdout.split()[-1])
        if len(origins) == 2:
            (entry,) = os.listdir(os.path.join(tmp_path, "cache"))
            os.chmod(os.path.join(tmp_path, "cache", entry, "collective_op.so"), 0o666)
    assert origins == ["compiled", "cached", "compiled"]
    libraries = [open(os.path.join(folder, "collective_op.so"), "rb").read() for folder in folders]
    assert libraries[0] == libraries[1] == libraries[2]


def test_import_without_tensorflow_names_it() -> None:
    code = "import sys; sys.modules['tensorflow'] = None; import distributed_dl_training.tensorflow"
    process = subprocess.run(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, universal_newlines=True
    )
    assert process.returncode == 1 and "tensorflow" in process.stderr.splitlines()[-1]
