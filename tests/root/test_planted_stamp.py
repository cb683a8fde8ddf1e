"""A stamp that somebody else put into a folder above a root, or into it, shares nothing.

The folder of the users is as /scratch or /tmp: it is root's and sticky, and all may write there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from envbuilder.target_tools.sharing import STAMP
from tests.users import NUMBERS, TEAM, Users, make_users
from tests.verbs import SCRIPT, Answer, answers

# Users, groups and modes are the kernel's, whatever the Python.
pytestmark = pytest.mark.thorough

SHARED = {"schema": 2, "site": "local", "arch": "x86_64", "group": "team"}
# Makes a root that is not shared, with an environment in it, and keeps the lock of its last create.
MAKE = """
import sys
from pathlib import Path
from envbuilder.files import write_atomically
from envbuilder.target_tools.root import publish, store

home = store.open_home(store.open_root(Path(sys.argv[1]), "local", "x86_64"), "demo")
publish.mark(home, "a" * 12)
home.prefix("a" * 12).mkdir()
version = publish.reserve(home, "a" * 12, "lua")
publish.publish(home, version, f"-- {home.prefix('a' * 12)}\\n")
publish.set_default(home, version)
write_atomically(home.last_lock, "{}")
"""
DISTRUST = """
import sys
from pathlib import Path
from envbuilder.target_tools.root.layout import Home
from envbuilder.target_tools.trust import distrust
home = Home(Path(sys.argv[1]), "demo")
print(distrust(home.last_lock, home.group))
print(distrust(home.root.parent / "locks" / "lock.json"))
"""


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    yield from make_users()


@pytest.fixture
def scratch(users: Users) -> Path:
    """Return a new folder of root, sticky, in which all may write."""
    folder = Path(tempfile.mkdtemp(dir=users.folder))
    folder.chmod(0o1777)
    return folder


def plant(users: Users, folder: Path, kind: str) -> None:
    """Let ann put something into a folder where a root has its stamp."""
    commands = {
        "stamp": f"printf '%s' '{json.dumps(SHARED)}' > '{folder / STAMP}'",
        "fifo": f"mkfifo '{folder / STAMP}'",
        "nothing": "true",
    }
    done = users.run("ann", "sh", "-c", commands[kind], umask=0o022)
    assert done.returncode == 0, done.stderr


def made_below(users: Users, scratch: Path, *lines: list[str]) -> dict[str, tuple[str, str]]:
    """Let bob make a root and caches below a folder; return mode and group of all, by path.

    *lines*: the verbs that he runs, ROOT for his root.
    """
    root, caches = scratch / "bob" / "root", scratch / "caches"
    variables = {
        "XDG_CACHE_HOME": caches,
        "ENVBUILD_LOCK_CACHE": caches / "locks",
        "ENVBUILD_KNOWLEDGE_CACHE": caches / "knowledge",
        "PIP_NO_INDEX": "1",
    }
    env = ["env", *(f"{name}={value}" for name, value in variables.items()), sys.executable]
    made = users.run("bob", *env, "-c", MAKE, root, umask=0o002)
    assert made.returncode == 0, made.stderr
    verbs = [json.dumps(line).replace("ROOT", str(root)) for line in lines]
    listed, *_ = ran(users.run("bob", *env, "-c", SCRIPT, *verbs, umask=0o002))
    assert json.loads(listed.out)["shared"] is None
    return {
        str(path.relative_to(scratch)): (f"{path.lstat().st_mode:o}", str(path.lstat().st_gid))
        for top in (scratch / "bob", caches)
        for path in (top, *sorted(top.rglob("*")))
        # The names of other files are of a process, or of their content.
        if path.is_dir() or path.name in (STAMP, "lock.json", "1.lua", ".modulerc.lua")
    }


def ran(done: subprocess.CompletedProcess[str]) -> list[Answer]:
    assert done.returncode == 0, done.stderr
    return answers(done.stdout)


# Without an index nothing can be locked: the folders of caches are there by then.
LIST = ["list", "--json", "--root", "ROOT"]
PLAN = ["plan", "allreduce", "--site", "local"]
CREATE = ["create", "allreduce", "--site", "local", "--root", "ROOT"]


@pytest.mark.parametrize(
    "lines", [[LIST, PLAN], pytest.param([LIST, PLAN, CREATE], marks=pytest.mark.long)]
)
def test_a_stamp_or_fifo_above_changes_no_mode(users: Users, lines: list[list[str]]) -> None:
    found = {}
    for kind in ("nothing", "stamp", "fifo"):
        scratch = Path(tempfile.mkdtemp(dir=users.folder))
        scratch.chmod(0o1777)
        plant(users, scratch, kind)
        found[kind] = made_below(users, scratch, *lines)
    assert any(path.startswith("caches/") for path in found["nothing"])
    assert all(not int(mode, 8) & 0o2022 for mode, _ in found["nothing"].values())
    assert {group for _, group in found["nothing"].values()} == {str(NUMBERS["bob"])}
    assert found["stamp"] == found["nothing"]
    assert found["fifo"] == found["nothing"]


def distrusted(users: Users, name: str, root: Path) -> list[str]:
    """Return why the last lock of a root, and a lock in a cache beside it, do not count."""
    done = users.run(name, sys.executable, "-c", DISTRUST, root)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("kind", ["nothing", "stamp", "fifo"])
def test_a_lock_that_another_replaced_is_not_trusted(
    users: Users, scratch: Path, kind: str
) -> None:
    """Bob lets the group write his root, which declares nothing; ann declares it above."""
    plant(users, scratch, kind)
    root = scratch / "root"
    caches = scratch / "locks"
    assert users.run("bob", sys.executable, "-c", MAKE, root).returncode == 0
    assert (
        users.run("bob", "sh", "-c", f"mkdir '{caches}'; echo > '{caches}/lock.json'").returncode
        == 0
    )
    assert distrusted(users, "bob", root) == ["None", "None"]
    for path in (root, root / "demo", caches):
        os.chown(path, -1, TEAM)
        path.chmod(0o2775)
    for lock in (root / "demo" / "lock.json", caches / "lock.json"):
        swap = f"rm -f '{lock}' && echo '{{}}' > '{lock}'"
        assert users.run("ann", "sh", "-c", swap).returncode == 0
    reasons = distrusted(users, "bob", root)
    assert reasons == [f"group {TEAM} may write {each}" for each in (root, caches)]


# Of a folder of root: mode, group, and whether a member may share it.
FOLDERS = [
    (0o2775, TEAM, True),
    # Nobody else can have put the stamp there, or can change it by now.
    (0o755, 0, True),
    (0o3775, TEAM, False),
    (0o1777, 0, False),
    (0o1777, TEAM, False),
    (0o777, TEAM, False),
    (0o2775, NUMBERS["ann"], False),
]


def test_in_a_folder_of_root_a_member_shares_what_the_group_alone_can_change(
    users: Users, scratch: Path
) -> None:
    roots = []
    for number, (mode, group, _) in enumerate(FOLDERS):
        root = scratch / str(number)
        (root / "modulefiles").mkdir(parents=True)
        (root / STAMP).write_text(json.dumps(SHARED), encoding="utf-8")
        os.chown(root / STAMP, NUMBERS["ann"], TEAM)
        os.chown(root, 0, group)
        root.chmod(mode)
        roots.append(root)

    def listed() -> list[Answer]:
        verbs = [json.dumps(["list", "--json", "--root", str(root)]) for root in roots]
        return ran(users.run("bob", sys.executable, "-c", SCRIPT, *verbs))

    for folder, answer in zip(FOLDERS, listed(), strict=True):
        assert answer.code == (0 if folder[2] else 2), (folder, answer.err)
        if folder[2]:
            assert json.loads(answer.out)["shared"] == "team"
        else:
            assert "ann wrote it" in " ".join(answer.err.split())
    # As the hint says.
    for root in roots:
        os.chown(root / STAMP, 0, 0)
    assert [answer.code for answer in listed()] == [0] * len(FOLDERS)


def test_a_member_shares_a_folder_of_root_only_where_such_a_stamp_counts(
    users: Users, scratch: Path
) -> None:
    def attempt(root: Path) -> subprocess.CompletedProcess[str]:
        script = "import sys; from pathlib import Path; "
        script += "from envbuilder.target_tools.root import store; "
        script += "store.open_root(Path(sys.argv[1]), 'local', 'x86_64', 'team')"
        return users.run("ann", sys.executable, "-c", script, root)

    for mode, shared in ((0o2775, True), (0o3775, False), (0o1777, False)):
        root = Path(tempfile.mkdtemp(dir=scratch))
        os.chown(root, 0, TEAM)
        root.chmod(mode)
        done = attempt(root)
        assert (done.returncode == 0) is shared, done.stderr
        assert (root / STAMP).exists() is shared
        assert root.stat().st_mode & 0o7777 == mode


def test_a_link_to_the_stamp_of_another_root_is_no_stamp(users: Users, scratch: Path) -> None:
    """The other one is root's own, and says what ann wants."""
    other = scratch / "other"
    other.write_text(json.dumps(SHARED), encoding="utf-8")
    (scratch / STAMP).symlink_to(other)
    done = users.envbuild("bob", "list", "--root", scratch)
    assert done.returncode == 2
    assert "is damaged" in done.stderr
