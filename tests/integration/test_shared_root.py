"""A real environment in a root that a group shares: one member makes it, another goes on.

``tests/root/test_shared.py`` tries the same on small made-up roots; this runs when asked for.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tools import small_lock, small_recipe

from tests.users import TEAM, Users, make_users

pytestmark = pytest.mark.long


@pytest.fixture
def users() -> Iterator[Users]:
    yield from make_users()


def test_two_members_create_smoke_and_remove_whatever_their_umask(
    users: Users, built_root: Path
) -> None:
    folder, root = users.folder / "recipes", users.folder / "root"
    folder.mkdir(mode=0o755)
    recipe = small_recipe(folder, "demo", summary="one")
    locks = []
    for summary in ("one", "two"):
        locks.append(folder / f"{summary}.json")
        locks[-1].write_text(small_lock(built_root, "demo", summary).text(), encoding="utf-8")
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)

    def envbuild(name: str, umask: int, *words: str | Path, code: int = 0) -> str:
        done = users.envbuild(name, *words, "--root", root, umask=umask)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    made = ("create", recipe, "--locked", locks[0])
    assert "demo/1 is ready" in envbuild("ann", 0o077, *made, "--shared", "team")
    # Her lock counts: the index is not asked again.
    again = envbuild("bob", 0o002, "create", recipe)
    assert "is left out" not in again
    assert "exactly this" in again
    assert "group team; you are not" in envbuild("eve", 0o022, *made, code=2)
    assert "demo/2 is ready" in envbuild("bob", 0o002, "create", recipe, "--locked", locks[1])
    prefixes = [path for path in (root / "demo").iterdir() if len(path.name) == 12]
    assert len(prefixes) == 2
    for path in (root, *root.rglob("*")):
        status = path.lstat()
        assert status.st_gid == TEAM or path.is_symlink(), path
        assert status.st_mode & 0o044 == 0o044, path
        writable = status.st_mode & 0o222 and not path.is_symlink()
        assert not (writable and any(each in (path, *path.parents) for each in prefixes)), path
    assert "passed: several ranks" in envbuild("ann", 0o077, "smoke", "demo/2")
    python = (
        json.loads(envbuild("eve", 0o022, "info", "demo/1", "--json"))["prefix"] + "/bin/python"
    )
    done = users.run("eve", python, "-c", "import numpy; print(numpy.ones(2).sum())")
    assert done.stdout == "2.0\n", done.stderr
    assert "kept as unfinished build" in envbuild("bob", 0o002, "remove", "demo/1")
    envbuild("ann", 0o077, "remove", "demo", "--unfinished")
    envbuild("bob", 0o002, "remove", "demo", "--all")
    assert sorted(path.name for path in (root / "demo").iterdir()) == [
        ".envbuild.json",
        "lock.json",
    ]
