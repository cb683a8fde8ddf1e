"""The build record: what it holds, and that a wheel carries it."""

import json
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

import distributed_dl_training
from distributed_dl_training import record

from launcher import why_not

TREE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEYS = ["flags", "mpi", "mpi4py", "numpy", "platform", "python", "runtime", "schema", "tensorflow"]


def run(arguments, tree=TREE, **extra):
    environ = dict(os.environ, **extra)
    return subprocess.run(
        [sys.executable, "-m", "distributed_dl_training.record"] + arguments,
        cwd=tree,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def tree(tmp_path):
    """A copy of the source tree, as a build makes one."""
    copy = tmp_path / "runtime"
    shutil.copytree(TREE, str(copy), ignore=shutil.ignore_patterns("tests", "__pycache__", ".*"))
    return copy


@pytest.mark.parametrize(
    "text, line",
    [
        ("MPICH Version:      4.0.2\nMPICH Release date: today\n", "MPICH Version:      4.0.2"),
        (
            "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4,"
            " May 26, 2022\0",
            "Open MPI v4.1.4, ident: 4.1.4, repo rev: v4.1.4",
        ),
        (
            "Open MPI v3.1.4, package: Open MPI me@login1, x Distribution, ident: 3.1.4",
            "Open MPI v3.1.4, ident: 3.1.4",
        ),
        ("Intel(R) MPI Library 2021.10\n", "Intel(R) MPI Library 2021.10"),
    ],
)
def test_library_line(text, line):
    assert record.library_line(text) == line


def test_record_is_sorted_repeatable_and_has_flags(tree):
    path = tree / "distributed_dl_training" / "build_record.json"
    flags = {"HOROVOD_GPU_ALLREDUCE": "NCCL", "DDLT_X": "1", "XHOROVOD_Y": "no"}
    texts = set()
    for _ in range(2):
        done = run(["--write", str(path)], str(tree), **flags)
        assert done.returncode == 0, done.stderr
        texts.add(path.read_text())
    assert len(texts) == 1
    text = texts.pop()
    written = json.loads(text)
    assert text == json.dumps(written, indent=2, sort_keys=True) + "\n"
    assert sorted(written) == KEYS
    assert written["flags"]["HOROVOD_GPU_ALLREDUCE"] == "NCCL"
    assert written["flags"]["DDLT_X"] == "1" and "XHOROVOD_Y" not in written["flags"]
    assert written["python"]["version"] == "{}.{}.{}".format(*sys.version_info[:3])
    assert written["runtime"] == distributed_dl_training.__version__


def test_record_does_not_start_mpi():
    if why_not():
        pytest.skip(why_not())
    code = (
        "import os\n"
        "from distributed_dl_training import record\n"
        "made = record.collect(os.environ)\n"
        "from mpi4py import MPI\n"
        "assert not MPI.Is_initialized()\n"
        "assert made['mpi']['name'] == MPI.get_vendor()[0], made\n"
    )
    subprocess.check_call([sys.executable, "-c", code], cwd=TREE)


def test_required_mpi(tmp_path):
    (tmp_path / "mpi4py.py").write_text("raise ImportError('gone', name='mpi4py')")
    done = run(["--require-mpi"], PYTHONPATH=str(tmp_path))
    assert done.returncode == 1 and b"required" in done.stderr and not done.stdout
    done = run([], PYTHONPATH=str(tmp_path))
    assert done.returncode == 0 and json.loads(done.stdout.decode())["mpi"] is None


def test_wheel_carries_the_record(tree, tmp_path):
    pytest.importorskip("flit_core")
    package = tree / "distributed_dl_training"
    assert not (package / "build_record.json").exists()
    assert run(["--write", str(package / "build_record.json")], str(tree)).returncode == 0
    code = "import flit_core.buildapi as b, sys; print(b.build_wheel(sys.argv[1]))"
    subprocess.check_call([sys.executable, "-c", code, str(tmp_path)], cwd=str(tree))
    (wheel,) = tmp_path.glob("distributed_dl_training-*-py3-none-any.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(str(wheel)) as archive:
        archive.extractall(str(unpacked))
    assert (unpacked / "distributed_dl_training" / "py.typed").exists()
    shown = subprocess.check_output(
        [
            sys.executable,
            "-c",
            "import json, distributed_dl_training as d; print(json.dumps(d.build_record()))",
        ],
        cwd=str(unpacked),
    )
    assert json.loads(shown.decode()) == json.loads((package / "build_record.json").read_text())


def test_no_record_is_none(tree):
    code = "import distributed_dl_training as d; assert d.build_record() is None"
    subprocess.check_call([sys.executable, "-c", code], cwd=str(tree))
