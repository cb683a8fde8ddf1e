"""``create`` killed at a moment, then repeated: what was published stays as it was."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from integration_tools import (
    COMMAND,
    MARK,
    PATIENCE,
    Done,
    Envbuild,
    finish,
    marked,
    published_state,
    run,
    seed,
    small_lock,
    small_recipe,
    start,
)
from kill_tools import LAST_MOMENTS, STEPS, SUDDEN_DEATH, hold_at

from envbuilder.model.plan import Lock

MOMENTS = (*STEPS, *LAST_MOMENTS)
# As a program that crashes, and as a node that loses power.
ALONE, WITH_CHILDREN = "alone", "with its children"


@dataclass(frozen=True)
class Case:
    """A recipe in a root, and the lock that it will be built from."""

    root: Path
    recipe: Path
    lock: Lock
    options: tuple[str, ...] = ()
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def words(self) -> list[str]:
        return ["create", str(self.recipe), "--root", str(self.root), *self.options]

    @property
    def lock_file(self) -> Path:
        return self.root / self.lock.plan.recipe / "in-use.lock"

    def kill_at(self, moment: str, how: str) -> Done:
        """Create and kill at that moment; what was killed is certain to have gone."""
        env = {MARK: self.mark}
        if moment in LAST_MOMENTS:
            running = start([sys.executable, "-c", SUDDEN_DEATH, moment, *self.words], env=env)
            running.wait(PATIENCE)
        else:
            gate = self.recipe.with_name("never opened")
            running = hold_at(moment, self.words, self.root, self.lock, gate, env).running
            os.kill(running.pid, signal.SIGKILL)
        if how == WITH_CHILDREN:
            for pid in marked(self.mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        done = finish(running)
        assert done.code == -signal.SIGKILL, done
        assert self.lock_file.is_file(), "nothing can have given the lock back"
        return done

    def repeat(self) -> Done:
        """Create again; nothing of the killed one is left, nor of this one."""
        done = run([*COMMAND, *self.words], env={MARK: self.mark})
        assert done.code == 0, done.text
        assert marked(self.mark) == {}
        assert not self.lock_file.exists()
        assert not (self.root / self.lock.plan.recipe / ".scratch").exists()
        assert "taking over from" in done.err
        return done


def listed(envbuild: Envbuild, root: Path) -> dict[str, bool]:
    """Return the published numbers of a root: name/number -> whether it is the default."""
    done = envbuild("list", "--root", root, "--json")
    assert done.code == 0, done.text
    listing = json.loads(done.out)
    assert listing["unfinished"] == []
    return {f"{e['environment']}/{e['number']}": e["default"] for e in listing["environments"]}


def imports_from_prefix(prefix: Path) -> bool:
    code = "import numpy, mpi4py.MPI, distributed_dl_training.numpy; print(numpy.__file__)"
    done = run([prefix / "bin" / "python", "-c", code])
    return done.code == 0 and done.out.startswith(str(prefix))


# Where what is left differs in kind: a question to pip, half a prefix, all but a modulefile or a
# default. What is killed at the others leaves less than half a prefix, or all of it.
KINDS = ("lock", "install", "publish", "set_default")


@pytest.mark.long
def test_killed_at_a_moment_then_repeated(
    envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    """Each of them in an environment of its own, two at a time, beside one that is published."""
    root = tmp_path / "root"
    cases = {}
    for moment in MOMENTS:
        name = f"at-{moment.replace('_', '-')}"
        lock = small_lock(built_root, name)
        cases[moment] = Case(root, small_recipe(tmp_path, name), lock)
    # The one killed while it asks pip has to ask again.
    seed(root, built_root, *(cases[moment].lock for moment in MOMENTS if moment != "lock"))

    def kill_and_repeat(moment: str) -> Done:
        how = ALONE if MOMENTS.index(moment) % 2 else WITH_CHILDREN
        cases[moment].kill_at(moment, how)
        return cases[moment].repeat()

    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(MOMENTS, pool.map(kill_and_repeat, MOMENTS), strict=True))
    assert listed(envbuild, root) == {f"{case.lock.plan.recipe}/1": True for case in cases.values()}
    for case in cases.values():
        assert imports_from_prefix(root / case.lock.plan.recipe / case.lock.id())
    for moment, done in results.items():
        name = cases[moment].lock.plan.recipe
        # Once its modulefile is written an environment is there.
        assert ("exactly this" in done.err) == (moment == "set_default")


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(KINDS, id="of each kind"),
        pytest.param(MOMENTS, id="all", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_killed_again_and_again(
    moments: tuple[str, ...], envbuild: Envbuild, built_root: Path, tmp_path: Path
) -> None:
    """One environment: each try starts over, and what is killed last has published number 1.

    For number 2 each goes on where the one before was killed, and number 1 stays as it is.
    """
    first, second = (small_lock(built_root, "demo", summary) for summary in ("first", "second"))
    root = seed(tmp_path / "root", built_root)
    recipe = small_recipe(tmp_path, "demo", summary="first")
    case = Case(root, recipe, first)
    modulefile = root / "modulefiles" / "demo" / "1.lua"
    for n, moment in enumerate(moments):
        killed = case.kill_at(moment, WITH_CHILDREN if n % 2 else ALONE)
        assert ("taking over from" in killed.err) == (n > 0), f"killed at {moment}"
        assert ("make the virtualenv" in killed.err) == (moment != "lock"), f"killed at {moment}"
        assert modulefile.is_file() == (moment == "set_default"), f"killed at {moment}"
    done = case.repeat()
    # Once its modulefile is written an environment is there.
    assert "exactly this" in done.err
    assert listed(envbuild, root) == {"demo/1": True}
    assert imports_from_prefix(root / "demo" / first.id())

    before = published_state(root, "demo")
    small_recipe(tmp_path, "demo", summary="second")
    case = Case(root, recipe, second, options=("--resume",))
    for n, moment in enumerate(moments):
        killed = case.kill_at(moment, ALONE if n % 2 else WITH_CHILDREN)
        # What was done before packages were installed is not done again.
        if n > moments.index("install"):
            assert "make the virtualenv" not in killed.err, f"killed at {moment}"
        now = published_state(root, "demo")
        assert {path: now.get(path) for path in before} == before, f"killed at {moment}"
        assert imports_from_prefix(root / "demo" / first.id()), f"killed at {moment}"
    done = case.repeat()
    assert "exactly this" in done.err
    assert listed(envbuild, root) == {"demo/1": False, "demo/2": True}
    now = published_state(root, "demo")
    kept = {path: about for path, about in before.items() if not path.endswith("/.modulerc.lua")}
    assert {path: now.get(path) for path in kept} == kept
    assert imports_from_prefix(root / "demo" / second.id())
