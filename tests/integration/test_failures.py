"""What goes wrong at a site: disk, permissions, network, index, files, Ctrl-C.

Every failure says what, why and what to try, has the exit code of its kind, leaves no process and
no lock, and does not touch what is published.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import (
    MARK,
    Done,
    Envbuild,
    finish,
    marked,
    published_state,
    seed,
    small_lock,
    small_recipe,
    start,
    write_wheel,
)
from kill_tools import STEPS, hold, hold_at
from place_tools import (
    expect,
    nearly_full,
    read_only,
    small_disk,
    without_network,
    without_privileges,
)

from envbuilder.model.plan import Lock


@dataclass(frozen=True)
class Shop:
    """A root with allreduce/1, and a folder for the recipes of what fails beside it."""

    root: Path
    folder: Path
    built_root: Path
    envbuild: Envbuild
    state: dict[str, tuple[int, int, int]]

    def recipe(self, name: str, *, lock: bool = True, more: str = "") -> Path:
        """Write a recipe; with its *lock* the package index is not asked."""
        if lock:
            seed(self.root, self.built_root, self.lock(name))
        return small_recipe(self.folder, name, more=more)

    def lock(self, name: str) -> Lock:
        return small_lock(self.built_root, name)

    def create(self, recipe: Path, **how: object) -> Done:
        """Try; afterwards allreduce/1 is as it was, and of the recipe nothing is published."""
        done = self.envbuild("create", recipe, "--root", self.root, **how)  # type: ignore[arg-type]
        self.check(recipe.stem)
        return done

    def check(self, failed: str) -> None:
        assert published_state(self.root, "allreduce") == self.state
        left = {each.name for each in (self.root / "modulefiles" / failed).glob("*")}
        # The number that it would have had is given to nothing else.
        assert left <= {".last-number"}
        assert not (self.root / failed / "in-use.lock").exists()


@pytest.fixture(scope="module")
def shop(envbuild: Envbuild, built_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    root = folder / "root"
    # Whose files have other paths than those it was built in: here they are looked at, no more.
    shutil.copytree(built_root, root, symlinks=True)
    return Shop(root, folder, built_root, envbuild, published_state(root, "allreduce"))


# Nothing that pip has at hand on this machine: neither folders of files nor what it fetched before.
NOTHING_AT_HAND = {
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_FIND_LINKS": None,
    "PIP_INDEX_URL": "https://index.example/simple",
    "PIP_EXTRA_INDEX_URL": None,
    "PIP_NO_INDEX": "0",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_RETRIES": "0",
}

FULL = ("No space left on device", "hint: the file system is full: free some space, or use another")


def test_a_root_that_is_full_from_the_start(envbuild: Envbuild, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    done = envbuild("create", "allreduce", "--root", root, through=small_disk(root, 4096))
    expect(done, 5, *FULL)


@pytest.mark.long
def test_a_root_that_fills_up_while_packages_are_installed(shop: Shop, tmp_path: Path) -> None:
    """What is published in it can still be loaded then."""
    recipe = shop.recipe("full")
    [prefix] = (shop.root / "allreduce").glob("?" * 12)
    find = f"find {shop.root}/modulefiles {prefix} -type f -printf '%p %m %s %T@\\n' | sort"
    before, after = tmp_path / "before", tmp_path / "after"
    assert os.system(f"{find} >{before}") == 0
    script = f"""
        "$@"; code=$?
        {find} >{after}
        {prefix}/bin/python -c 'import numpy, mpi4py.MPI' || code=1
        exit $code
    """
    through = (*nearly_full(shop.root, 90_000), "bash", "-c", script, "bash")
    done = shop.create(recipe, through=through)
    expect(done, 5, "error: step install (install them) ended with exit code", *FULL)
    expect(done, 5, "hint: complete log: ", "--resume")
    assert after.read_text() == before.read_text()


def test_a_root_that_is_read_only(shop: Shop) -> None:
    done = shop.create(shop.recipe("frozen"), through=read_only(shop.root))
    hint = "hint: the file system is read-only: use another --root"
    expect(done, 5, f"error: Read-only file system: {shop.root}\n", hint)
    looked = shop.envbuild("list", "--root", shop.root, through=read_only(shop.root))
    assert looked.code == 0, looked.text
    assert "allreduce/1" in looked.out


def test_a_root_that_one_may_not_write_to(envbuild: Envbuild, tmp_path: Path) -> None:
    denied = tmp_path / "denied"
    denied.mkdir(mode=0o555)
    through = without_privileges() if os.geteuid() == 0 else ()
    hint = "hint: you have no permission: use another --root or --output, or ask the owner"
    for root in (denied, denied / "below"):
        done = envbuild("create", "allreduce", "--root", root, through=through)
        expect(done, 5, f"error: Permission denied: {denied}/", hint)
    assert list(denied.iterdir()) == []


def test_a_root_that_is_no_folder(envbuild: Envbuild, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    done = envbuild("create", "allreduce", "--root", tmp_path / "file")
    expect(done, 2, "file is a file, not a folder", "hint: use --root with ")
    done = envbuild("create", "allreduce", "--root", tmp_path / "file" / "below")
    expect(done, 5, "Not a directory", "hint: a part of the path is a file")


def test_no_network_to_ask_the_index(shop: Shop) -> None:
    through = without_network()
    recipe = shop.recipe("offline", lock=False)
    done = shop.create(recipe, env=NOTHING_AT_HAND, through=through)
    expect(done, 5, "index is not reachable")
    expect(done, 5, "pip-indexes")
    again = shop.envbuild(
        *("create", "allreduce", "--root", shop.root),
        env=NOTHING_AT_HAND,
        through=through,
    )
    assert again.code == 0, again.text
    assert "exactly this" in again.err


def test_no_network_to_fetch_what_is_locked(shop: Shop) -> None:
    lock = shop.lock("unfetched")
    artifacts = tuple(
        file.model_copy(update={"url": f"https://index.example/files/{file.filename}"})
        for file in lock.artifacts
    )
    seed(shop.root, shop.built_root, lock.model_copy(update={"artifacts": artifacts}))
    recipe = shop.recipe("unfetched", lock=False)
    done = shop.create(recipe, env=NOTHING_AT_HAND, through=without_network())
    expect(done, 5, "error: step fetch (fetch the locked packages) ended with exit code ")
    expect(done, 5, "hint: the network cannot be reached from here")
    expect(done, 5, "hint: its environment: bash '", "/shell.sh'\n")


def test_an_index_without_the_package(shop: Shop) -> None:
    (shop.folder / "empty").mkdir()
    more = f'pip-indexes: ["{(shop.folder / "empty").as_uri()}"]\n'
    recipe = shop.recipe("lacking", lock=False, more=more)
    env = {name: value for name, value in NOTHING_AT_HAND.items() if name != "PIP_INDEX_URL"}
    done = shop.create(recipe, env=env)
    expect(done, 5, "error: the package index offers no file of ")
    expect(
        done,
        5,
        "hint: if the mirror is incomplete, set pip-indexes (recipe or site file) to another",
    )


def test_a_wheel_that_was_tampered_with_after_it_was_locked(shop: Shop, tmp_path: Path) -> None:
    wheel = write_wheel(shop.folder, "good = True\n")
    more = f'packages: [tinywheel]\nfind-links: ["{shop.folder.as_uri()}"]\n'
    recipe = shop.recipe("tampered", lock=False, more=more)
    words = ("create", recipe, "--root", shop.root)
    held = hold(words, shop.root / "tampered", "lock.json", tmp_path / "gate")
    held.running.send_signal(signal.SIGINT)
    assert held.finish().code == 130
    write_wheel(wheel.parent, "import os; os.system('echo owned')\n")
    done = shop.create(recipe)
    expect(done, 5, "reusing the existing lock", "error: step fetch (fetch the locked")
    expect(done, 5, "THESE PACKAGES DO NOT MATCH THE HASHES")
    expect(done, 5, "hint: a file differs from the locked one: find out who changed the file")
    wheel.unlink()
    expect(shop.create(recipe), 5, "hint: a locked file is no longer available at its URL")


def end_at(moment: str, shop: Shop, number: signal.Signals, times: int = 1) -> Done:
    """Send a signal at that moment of a build; what is left afterwards fails the test."""
    mark = uuid.uuid4().hex
    words = ["create", str(shop.folder / "ended.yaml"), "--root", str(shop.root), "--resume"]
    lock, gate = shop.lock("ended"), shop.folder / mark
    held = hold_at(moment, words, shop.root, lock, gate, {MARK: mark})
    for _ in range(times):
        held.running.send_signal(number)
    # Opened after the signal was sent, the gate lets nothing by: the signal is seen first.
    done = held.finish()
    assert marked(mark) == {}, f"processes are left after {number.name} at {moment}"
    assert not (shop.root / "ended" / ".scratch").exists()
    shop.check("ended")
    return done


@pytest.mark.long
def test_ctrl_c_at_each_step(shop: Shop) -> None:
    """Also twice, as impatient people do, and what a closed terminal or a scheduler sends."""
    shop.recipe("ended", lock=False)
    for moment in STEPS:
        done = end_at(moment, shop, signal.SIGINT, times=2 if moment == "install" else 1)
        said = "warning: stopped by SIGINT; published environments are unchanged"
        expect(done, 128 + signal.SIGINT, said)
    for number in (signal.SIGTERM, signal.SIGHUP):
        expect(end_at("smoke", shop, number), 128 + number, f"warning: stopped by {number.name}; ")


def test_ctrl_c_before_anything_was_begun(shop: Shop) -> None:
    """While Python still loads the tool there is nothing to say and no traceback to show."""
    code = "import os, signal; from envbuilder import cli; "
    code += "cli.command_line = lambda _: os.kill(os.getpid(), signal.SIGINT); cli.main()"
    done = finish(start([sys.executable, "-c", code]))
    expect(done, -signal.SIGINT)
    assert done.text == ""
