"""Several at once in one root: builds, rollback, remove; and numbers that never come back."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from integration_tools import (
    Done,
    Envbuild,
    finish,
    published_state,
    read_until,
    seed,
    small_lock,
    small_recipe,
)
from kill_tools import hold_at

from envbuilder.model.plan import Lock


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
    assert re.search(
        rf"waiting for process \d+ on {re.escape(socket.gethostname())}, "
        "which is building the same environment",
        waited.err,
    )
    assert "demo/1 holds exactly this already" in waited.err
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
    assert "error: demo/1 is the default" in refused.err
    assert "hint: envbuild rollback demo makes another the default first" in refused.err
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
        assert f"error: there is no demo/{number}" in refused.err
        assert "hint: published: demo/1, demo/3, demo/4" in refused.err
    nothing = crowd.envbuild("rollback", "other", "--root", crowd.root)
    assert nothing.code == 2
    assert "error: there is nothing before other/1 to go back to" in nothing.err


def test_what_a_process_uses_is_not_removed(crowd: Crowd) -> None:
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
        assert f"error: {environment} is in use by 1 processes here: {job.pid}" in refused.err
        out, _ = job.communicate()
        assert str(prefix) in out, "its late import came from its own prefix"
    assert crowd.json("remove", environment)["removed"] == [environment]
    assert not prefix.exists()
    assert 1 not in crowd.numbers("demo")


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
    assert "taking over from process" in done.err
    assert crowd.json("list")["unfinished"] == []
    assert not list(crowd.root.glob(f"other/{lock.id()}*"))
    assert crowd.numbers("other") == {1: True}
