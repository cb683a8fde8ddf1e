"""build.sh of horovod-nccl at taurus-ml beside the commands of document 001, line by line.

The document's installation with NCCL is held here as data. Whatever differs is named with its
reason; what differs and is not named is a failure, and so is a reason for what no longer differs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from render_cases import build_files
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.model.places import BuildFolders
from envbuilder.model.plan import Lock, Plan

LOADS = (
    "modenv/ml",
    "TensorFlow/1.14.0-PythonAnaconda-3.6",
    "NCCL/2.3.7-fosscuda-2018b",
    "CMake/3.12.1-GCCcore-7.3.0",
)

VARIABLES = {
    "HOROVOD_NCCL_HOME": "/sw/installed/NCCL/2.4.2-gcccuda-2019a",
    "HOROVOD_GPU_ALLREDUCE": "NCCL",
    "HOROVOD_WITH_MPI": "1",
    "HOROVOD_WITH_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_PYTORCH": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}

PIP = ("python3", "-m", "pip", "install", "--no-cache-dir", "horovod")

# Module -> why the loads differ in it.
OTHER_LOADS = {
    "OpenMPI/3.1.4-gcccuda-2018b": (
        "NCCL's toolchain brings 3.1.1; the document's own part on MPI takes 3.1.4, and what is "
        "loaded last is what stays"
    ),
}

# Variable -> (what build.sh has, why).
OTHER_VARIABLES = {
    "HOROVOD_NCCL_HOME": (
        "/sw/installed/NCCL/2.3.7-fosscuda-2018b",
        "derived from the NCCL that is loaded; the document names the folder of another",
    ),
    "HOROVOD_CUDA_HOME": (
        "/sw/installed/CUDA/9.2.88-GCC-7.3.0-2.30",
        "derived from the CUDA that comes along, instead of what nvcc is found first",
    ),
    "HOROVOD_NCCL_LINK": (
        "SHARED",
        "nobody says that the module has the static library, without which the default fails",
    ),
}


@pytest.fixture(scope="module")
def planned() -> Plan:
    words = ["plan", "horovod-nccl", "--site", "taurus-ml", "--arch", "ppc64le", "--json"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.stderr
    return Plan.model_validate_json(answer.stdout)


@pytest.fixture(scope="module")
def files(planned: Plan) -> dict[str, str]:
    places = BuildFolders(prefix=Path("/scratch/env/1"), build=Path("/scratch/env/1.build"))
    return build_files(Lock(plan=planned, artifacts=()), places)


def function(script: str, name: str) -> str:
    """Return the body of a function of a script."""
    found = re.search(rf"^{re.escape(name)}\(\) {{\n(.*?)^}}", script, re.MULTILINE | re.DOTALL)
    assert found, name
    return found[1]


def words_of(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def test_the_module_loads(files: dict[str, str]) -> None:
    body = function(files["environment.sh"], "load_all_modules")
    lines = [words_of(line) for line in body.splitlines() if "load_module " in line]
    loads = [words[1] for words in lines if words[0] == "load_module"]
    assert set(loads) - set(LOADS) == set(OTHER_LOADS)
    assert set(LOADS) <= set(loads)
    # The document's first comes first, and what it leaves to chance comes last.
    assert loads[0] == LOADS[0]
    assert loads[-1] in OTHER_LOADS


def test_what_is_replaced_is_what_the_toolchain_brings(files: dict[str, str]) -> None:
    body = function(files["environment.sh"], "load_all_modules")
    unloads = [words_of(line)[1] for line in body.splitlines() if "unload_module " in line]
    assert unloads == ["OpenMPI/3.1.1-gcccuda-2018b"]


def test_the_variables(files: dict[str, str]) -> None:
    body = function(files["build.sh"], "step_build-horovod")
    exports = [words_of(line) for line in body.splitlines() if line.strip().startswith("export ")]
    found = dict(words[1].split("=", 1) for words in exports)
    for name, value in VARIABLES.items():
        assert found[name] == OTHER_VARIABLES.get(name, (value,))[0], name
    for name in found.keys() - VARIABLES.keys():
        assert found[name] == OTHER_VARIABLES[name][0], name
    # A reason for what is as in the document would be none.
    assert all(found[name] != VARIABLES.get(name) for name in OTHER_VARIABLES)


def test_the_pip_line(files: dict[str, str], planned: Plan) -> None:
    pip = next(line for line in files["build.sh"].splitlines() if "--wheel-dir" in line)
    before = files["build.sh"][: files["build.sh"].index(pip)].splitlines()[-2:]
    words = words_of(" ".join(line.rstrip("\\") for line in (*before, pip)))
    # Kept: pip of the environment's Python, and no wheel of another build from its cache.
    assert PIP[1:3] == ("-m", "pip")
    assert {"-m", "pip", "--no-cache-dir"} <= set(words)
    # Otherwise, and why: a wheel is made first, so that it can be kept and looked at; what it is
    # made of was fetched and checked before; its requirements are those of the lock; and it is
    # built beside TensorFlow, which a build of its own kind would not see.
    assert {"wheel", "--no-index", "--no-deps", "--no-build-isolation"} <= set(words)
    # The document takes whatever release is newest; what it describes was written for these.
    [horovod] = [each for each in planned.builds if each.component == "horovod"]
    assert horovod.version == "0.19.5"
    assert "horovod-0.19.5.tar.gz" in function(files["build.sh"], "step_build-horovod")
