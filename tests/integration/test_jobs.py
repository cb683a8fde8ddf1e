"""A running job keeps its environment whatever is created, rolled back or removed meanwhile.

The job lasts until the others are through, and ENVBUILD_JOB_SECONDS at least.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from integration_tools import (
    PATIENCE,
    Done,
    Envbuild,
    finish,
    seed,
    small_lock,
    small_recipe,
    start,
)
from kill_tools import wait_until
from module_tools import in_lmod, lmod_init

SECONDS = float(os.environ.get("ENVBUILD_JOB_SECONDS", "0"))

# Nearly everything is imported at the end, when the time is up and everybody else is through.
JOB = """\
import os, sys, time
import numpy

rank = os.environ["PMI_RANK"]
open(f"started-{rank}", "w").close()
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until or not os.path.exists("go-on"):
    time.sleep(0.2)

late = set(sys.modules)
import numpy.polynomial, numpy.f2py, numpy.testing
import distributed_dl_training.numpy as hvd

hvd.init()
total = hvd.allreduce(numpy.ones(3), op=hvd.Sum)
late = set(sys.modules) - late
own = [getattr(sys.modules[name], "__file__", None) for name in late]
own = [path for path in own if path and "/site-packages/" in path]
maps = open("/proc/self/maps").read().split()
mpi = {path for path in maps if path.rpartition("/")[2].startswith("libmpi.so")}
with open(f"ended-{rank}", "w") as file:
    file.write("\\n".join([str(total.tolist()), *sorted(own), *sorted(mpi)]))
"""


def test_a_job_keeps_what_it_loaded(envbuild: Envbuild, built_root: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    root = seed(tmp_path / "root", built_root, small_lock(built_root, "job", "first"))
    work.mkdir()

    def create(summary: str) -> dict[str, Any]:
        recipe = small_recipe(tmp_path, "job", summary=summary)
        return answer(envbuild("create", recipe, "--root", root, "--json"))

    first = create("first")
    assert first["number"] == 1
    (work / "job.py").write_text(JOB, encoding="utf-8")
    lines = [f"source {lmod_init('bash')}", f"module use '{root}/modulefiles'"]
    lines += ["module load job", f"mpiexec -n 2 python job.py {SECONDS:g}"]
    job = start(["bash", "--noprofile", "--norc", "-c", "\n".join(lines)], cwd=work)
    try:
        wait_until(lambda: len(list(work.glob("started-*"))) == 2, job, "both ranks run")
        assert create("second")["number"] == 2
        refused = envbuild("remove", "job/1", "--root", root)
        assert refused.code == 2
        assert "error: job/1 is in use by " in refused.err
        back = answer(envbuild("rollback", "job", "--root", root, "--json"))
        assert (back["before"], back["now"]) == (2, 1)
        forth = answer(envbuild("rollback", "job", "--to", "2", "--root", root, "--json"))
        assert (forth["before"], forth["now"]) == (1, 2)
        again = envbuild("remove", "job/1", "--root", root)
        assert "error: job/1 is in use by " in again.err
        assert job.poll() is None
        (work / "go-on").touch()
    finally:
        done = finish(job, timeout=SECONDS + PATIENCE)
    assert done.code == 0, done.text
    expect_own_files(work, first["prefix"])
    listed = answer(envbuild("list", "--root", root, "--json"))["environments"]
    assert [each["number"] for each in listed if each["default"]] == [2]
    removed = envbuild("remove", "job/1", "--root", root)
    assert removed.code == 0, removed.err
    assert not Path(first["prefix"]).exists()
    loads = ["module load job", 'echo "$LOADEDMODULES"', "module load job/1"]
    now = in_lmod("bash", [f"module use '{root}/modulefiles'", *loads], tmp_path)
    assert now.out == "job/2\n"
    assert '"job/1"' in now.err


def answer(done: Done) -> dict[str, Any]:
    assert done.code == 0, done.text
    value: dict[str, Any] = json.loads(done.out)
    return value


def expect_own_files(work: Path, prefix: str) -> None:
    for rank in (0, 1):
        total, *files = (work / f"ended-{rank}").read_text(encoding="utf-8").splitlines()
        assert total == "[2.0, 2.0, 2.0]"
        assert len(files) > 20
        assert [path for path in files if not path.startswith(f"{prefix}/")] == []
        for name in ("numpy/polynomial/", "distributed_dl_training/numpy.py", "mpi4py/", "libmpi"):
            assert any(name in path for path in files)
