"""Several at once in one root: builds, rollback, remove, a job; and numbers that never come back.

The job runs on demo/1 whatever is created, rolled back or removed meanwhile. It lasts until the
others are through, and ENVBUILD_JOB_SECONDS at least.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import (
    PATIENCE,
    Done,
    Envbuild,
    finish,
    published_state,
    read_until,
    seed,
    small_lock,
    small_recipe,
    start,
)
from kill_tools import hold_at, wait_until
from module_tools import in_lmod, lmod_init

from envbuilder.model.plan import Lock

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


@dataclass(frozen=True)
class Crowd:
    """A root with demo/1, demo/2 and other/1, and how it came about."""

    root: Path
    recipes: Path
    same: tuple[Done, Done]
    different: tuple[Done, Done]
    envbuild: Envbuild

    def json(self, *words: str | Path) -> Any:
        done = self.envbuild(*words, "--root", self.root, "--json")
        assert done.code == 0, done.text
        return json.loads(done.out)

    def numbers(self, name: str) -> dict[int, bool]:
        """Return the published numbers of an environment: number -> whether it is the default."""
        entries = self.json("list")["environments"]
        return {e["number"]: e["default"] for e in entries if e["environment"] == name}

    def seed(self, built_root: Path, summary: str) -> Path:
        """Change the summary of recipe demo, and with it the environment; return its file."""
        seed(self.root, built_root, small_lock(built_root, "demo", summary))
        return small_recipe(self.recipes, "demo", summary=summary)


@pytest.fixture(scope="module")
def crowd(envbuild: Envbuild, built_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """A create while another of the same recipe builds, then two different ones at once."""
    folder = tmp_path_factory.mktemp("crowd")
    root = folder / "root"
    more = ("--root", root, "--json")

    def while_it_builds(recipe: Path, lock: Lock) -> tuple[Done, Done]:
        words = ("create", recipe, *more)
        held = hold_at("venv", words, root, lock, folder / "gate")
        second = envbuild.start(*words)
        said = read_until("which is building the same environment", second)
        first, done = held.finish(), finish(second)
        return first, Done(done.code, done.out, said + done.err)

    def at_once(*recipes: Path) -> tuple[Done, Done]:
        first, second = (envbuild.start("create", recipe, *more) for recipe in recipes)
        # Both outputs are read as they come, so that neither process has to wait for us.
        done: list[Done] = []
        reader = threading.Thread(target=lambda: done.append(finish(second)))
        reader.start()
        ended = finish(first)
        reader.join()
        return ended, done[0]

    def recipe(name: str, summary: str) -> Path:
        seed(root, built_root, small_lock(built_root, name, summary))
        return small_recipe(folder, name, summary=summary)

    demo = recipe("demo", "one")
    same = while_it_builds(demo, small_lock(built_root, "demo", "one"))
    different = at_once(recipe("demo", "two"), recipe("other", "one"))
    return Crowd(root, folder, same, different, envbuild)


def test_of_two_creates_of_one_recipe_one_builds_and_the_other_waits(crowd: Crowd) -> None:
    assert [done.code for done in crowd.same] == [0, 0], crowd.same
    built, waited = crowd.same
    assert re.search(rf"waiting for process \d+ on {re.escape(socket.gethostname())}, ", waited.err)
    assert "exactly this" in waited.err
    assert "make the virtualenv" in built.err
    assert "make the virtualenv" not in waited.err
    assert "waiting for" not in built.err
    one, other = (json.loads(done.out) for done in crowd.same)
    assert one["prefix"] == other["prefix"]
    assert one["number"] == other["number"] == 1
    assert one["evidence"] == other["evidence"], "the ranks were started once"
    assert len(list(Path(one["prefix"]).with_suffix(".evidence").glob("[0-9]*"))) == 1


def test_two_recipes_build_in_one_root_at_once(crowd: Crowd) -> None:
    assert [done.code for done in crowd.different] == [0, 0], crowd.different
    for done in crowd.different:
        assert "waiting for" not in done.err
    made = [json.loads(done.out) for done in crowd.different]
    assert [(each["environment"], each["number"]) for each in made] == [("demo", 2), ("other", 1)]
    assert not list(crowd.root.glob("*/*.lock"))


@dataclass(frozen=True)
class Job:
    """Two ranks that run in a folder, on an environment whose module was loaded."""

    running: subprocess.Popen[str]
    work: Path
    prefix: str

    def finish(self) -> Done:
        (self.work / "go-on").touch()
        return finish(self.running, timeout=SECONDS + PATIENCE)


@pytest.fixture(scope="module")
def job(crowd: Crowd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job | str]:
    """Start the job on demo/1; where there is no Lmod, return that as the reason."""
    work = tmp_path_factory.mktemp("work")
    try:
        init = lmod_init("bash")
    except pytest.skip.Exception as reason:
        yield str(reason)
        return
    (work / "job.py").write_text(JOB, encoding="utf-8")
    lines = [f"source {init}", f"module use '{crowd.root}/modulefiles'", "module load demo/1"]
    lines += [f"mpiexec -n 2 python job.py {SECONDS:g}"]
    running = start(["bash", "--noprofile", "--norc", "-c", "\n".join(lines)], cwd=work)
    started = Job(running, work, crowd.json("info", "demo/1")["prefix"])
    wait_until(lambda: len(list(work.glob("started-*"))) == 2, running, "both ranks run")
    yield started
    if running.poll() is None:
        started.finish()


@pytest.mark.usefixtures("job")
def test_rollback_and_remove_while_a_build_runs(
    crowd: Crowd, built_root: Path, tmp_path: Path
) -> None:
    """Rollback does not wait for the build; remove does, and says for whom."""
    recipe = crowd.seed(built_root, "three")
    lock = small_lock(built_root, "demo", "three")
    words = ("create", recipe, "--root", crowd.root)
    held = hold_at("venv", words, crowd.root, lock, tmp_path / "gate")
    building = held.running
    before = published_state(crowd.root, "demo")
    changed = crowd.json("rollback", "demo", "--to", "1")
    assert (changed["before"], changed["now"]) == (2, 1)
    assert building.poll() is None, "rollback waited for the build"
    refused = crowd.envbuild("remove", "demo/1", "--root", crowd.root)
    assert refused.code == 2
    assert "demo/1 is the default" in refused.err
    assert f"hint: envbuild rollback demo --to 2 --root '{crowd.root}' " in refused.err
    removing = crowd.envbuild.start("remove", "demo/2", "--root", crowd.root)
    read_until(f"waiting for process {building.pid} on", removing)
    done = held.finish()
    removed = finish(removing)
    assert removed.code == 0, removed.text
    assert done.code == 0, done.text
    assert crowd.numbers("demo") == {1: False, 3: True}
    after = published_state(crowd.root, "demo")
    mine = [path for path in before if f"/{small_lock(built_root, 'demo', 'one').id()}" in path]
    assert len(mine) > 100
    assert {path: after.get(path) for path in mine} == {path: before[path] for path in mine}


def test_a_number_that_was_removed_is_not_given_again(crowd: Crowd, built_root: Path) -> None:
    """Number 2 was removed: what it held is built anew and gets the next one."""
    before = crowd.numbers("demo")
    assert 2 not in before
    made = crowd.json("create", crowd.seed(built_root, "two"))
    assert made["number"] == max(before) + 1
    assert crowd.json("rollback", "demo")["now"] == max(before)
    assert crowd.json("rollback", "demo", "--to", str(made["number"]))["now"] == made["number"]
    for number in ("2", "7"):
        refused = crowd.envbuild("rollback", "demo", "--to", number, "--root", crowd.root)
        assert refused.code == 2
        assert f"error: demo/{number} " in refused.err
        assert "hint: published: demo/1, demo/3, demo/4" in refused.err
    nothing = crowd.envbuild("rollback", "other", "--root", crowd.root)
    assert nothing.code == 2
    assert "number before other/1" in nothing.err


def test_a_job_keeps_what_it_loaded(crowd: Crowd, job: Job | str) -> None:
    """Others were created, made the default and removed since; nearly all it uses is read now."""
    if isinstance(job, str):
        pytest.skip(job)
    assert job.running.poll() is None
    assert crowd.numbers("demo").keys() > {1, 3}
    refused = crowd.envbuild("remove", "demo/1", "--root", crowd.root)
    assert refused.code == 2
    assert "demo/1 is in use " in refused.err
    done = job.finish()
    assert done.code == 0, done.text
    expect_own_files(job.work, job.prefix)


def expect_own_files(work: Path, prefix: str) -> None:
    for rank in (0, 1):
        total, *files = (work / f"ended-{rank}").read_text(encoding="utf-8").splitlines()
        assert total == "[2.0, 2.0, 2.0]"
        assert len(files) > 20
        assert [path for path in files if not path.startswith(f"{prefix}/")] == []
        for name in ("numpy/polynomial/", "distributed_dl_training/numpy.py", "mpi4py/", "libmpi"):
            assert any(name in path for path in files)


def test_what_a_process_uses_is_not_removed(crowd: Crowd, tmp_path: Path) -> None:
    """Also one that has imported nothing of it yet."""
    environment, prefix = "demo/1", Path(crowd.json("info", "demo/1")["prefix"])
    env = {**os.environ, "VIRTUAL_ENV": str(prefix), "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    code = "import sys; print('up', flush=True); sys.stdin.read(); import numpy; print(numpy)"
    job = subprocess.Popen(
        ["python", "-c", code],
        env=env,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with job:
        assert job.stdout is not None
        assert job.stdout.readline() == "up\n"
        refused = crowd.envbuild("remove", environment, "--root", crowd.root)
        assert refused.code == 2
        assert f" 1 processes here: {job.pid}" in refused.err
        out, _ = job.communicate()
        assert str(prefix) in out, "its late import came from its own prefix"
    assert crowd.json("remove", environment)["removed"] == [environment]
    assert not prefix.exists()
    left = crowd.numbers("demo")
    assert 1 not in left
    [default] = (number for number, is_default in left.items() if is_default)
    loads = ["module load demo", 'echo "$LOADEDMODULES"', "module load demo/1"]
    now = in_lmod("bash", [f"module use '{crowd.root}/modulefiles'", *loads], tmp_path)
    assert now.out == f"demo/{default}\n"
    assert '"demo/1"' in now.err


def test_remains_of_unfinished_builds_are_listed_and_removed(
    crowd: Crowd, built_root: Path, tmp_path: Path
) -> None:
    lock = small_lock(built_root, "other", "left behind")
    seed(crowd.root, built_root, lock)
    recipe = small_recipe(crowd.recipes, "other", summary="left behind")
    words = ("create", recipe, "--root", crowd.root)
    building = hold_at("venv", words, crowd.root, lock, tmp_path / "gate").running
    building.kill()
    finish(building)
    assert crowd.json("list")["unfinished"] == [{"environment": "other", "id": lock.id()}]
    assert crowd.numbers("other") == {1: True}
    done = crowd.envbuild("remove", "other", "--unfinished", "--root", crowd.root)
    assert done.code == 0, done.text
    assert "taking over from" in done.err
    assert crowd.json("list")["unfinished"] == []
    assert not list(crowd.root.glob(f"other/{lock.id()}*"))
    assert crowd.numbers("other") == {1: True}
