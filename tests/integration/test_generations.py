"""Horovod for TensorFlow, compiled for real: today's, and that of the documents' time.

Each takes many minutes, so they run when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from integration_tools import Envbuild

from tests.pythons import find_python

BUILD_SECONDS = 2400.0
LAUNCHED = ("g++", "make", "mpicxx")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(shutil.which(each) for each in LAUNCHED),
        reason=f"{', '.join(LAUNCHED)} build Horovod; not all of them are on PATH",
    ),
]

# A wheel of TensorFlow that GCC 4.8 built, under a compiler of today. Gloo is left out: it does not
# compile beside current kernel headers (HVD-004).
OLD = """\
schema: 1
name: documents
summary: The documents' own generation, with a compiler of today
arch: [x86_64]
stack: {python: "==3.6.*", tensorflow: "==1.14.*", openmpi: "*", termcolor: "==1.1.0"}
runtime:
  package: horovod
  version: "==0.18.2"
  flags:
    HOROVOD_WITH_MPI: 1
    HOROVOD_WITHOUT_GLOO: 1
    HOROVOD_WITH_TENSORFLOW: 1
    HOROVOD_WITHOUT_PYTORCH: 1
    HOROVOD_WITHOUT_MXNET: 1
"""


def test_the_documents_generation(envbuild: Envbuild, tmp_path: Path) -> None:
    python = find_python("3.6")
    if python is None:
        pytest.skip("the documents' generation needs a Python 3.6")
    recipe = tmp_path / "documents.yaml"
    recipe.write_text(OLD)
    env = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "ENVBUILD_WHEEL_CACHE": str(tmp_path / "cache"),
    }
    refused = envbuild("plan", recipe, env=env)
    assert refused.code == 4, refused.text
    assert "HVD-054" in refused.err
    assert "crashes in the first\n    allreduce" in refused.err

    root = tmp_path / "root"
    waived = ("--allow", "HVD-054=to see what the smoke test says")
    done = envbuild("create", recipe, *waived, "--root", root, env=env, timeout=BUILD_SECONDS)
    assert done.code == 6, done.text
    assert "signal 11 (SIGSEGV)" in done.err
    assert "nothing was published" in done.err
    assert not list(root.glob("modulefiles/documents/*"))
    # Everything before looked well: it was built, verified and imported, and the ranks met.
    [check] = root.glob("documents/*.build/logs/*-check.log")
    assert "are as pinned" in check.read_text()
    files = sorted(root.glob("documents/*.evidence/*/evidence.json"))
    results = [json.loads(file.read_text())["result"] for file in files]
    assert [each["verdict"] for each in results] == ["passed", "failed"]
    assert results[1]["api"] == "horovod.tensorflow"
    imports = [check for check in results[1]["checks"] if check["name"] == "import"]
    assert [check["passed"] for check in imports] == [True]


def test_horovod_for_tensorflow(envbuild: Envbuild, tmp_path: Path) -> None:
    env = {"ENVBUILD_WHEEL_CACHE": str(tmp_path / "cache")}
    for root in ("one", "two"):
        words = ("create", "horovod-tf-cpu", "--root", tmp_path / root)
        done = envbuild(*words, env=env, timeout=BUILD_SECONDS)
        assert done.code == 0, done.text
        for transport in ("mpi", "gloo"):
            assert f"proved: horovod.tensorflow over {transport}: several ranks" in done.out
    logs = sorted(tmp_path.glob("*/horovod-tf-cpu/*.build/logs/*-build-horovod.log"))
    assert ["from the cache: " in log.read_text() for log in logs] == [False, True]
    words = ("smoke", "horovod-tf-cpu", "--ranks", "4", "--root", tmp_path / "one")
    four = envbuild(*words, timeout=BUILD_SECONDS)
    assert four.code == 0, four.text
