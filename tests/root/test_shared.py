"""Roots that a group shares, used by two of its members and by somebody else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.errors import UsageError
from envbuilder.model.plan import Lock
from envbuilder.target_tools import sharing
from envbuilder.target_tools.root import layout, publish, store
from envbuilder.target_tools.trust import distrust
from tests.cli.published import planned
from tests.made_up_files import locked
from tests.users import NUMBERS, TEAM, Users, make_users

# Users, groups and modes are the kernel's, whatever the Python.
pytestmark = pytest.mark.thorough

# Publishes the environment of a lock, by the functions of create and with a build that made a file.
PUBLISH = """
import sys
from pathlib import Path
from envbuilder.target_tools import files, sharing
from envbuilder.target_tools.root import locks, publish, store

def say(text):
    print(text, file=sys.stderr)

root, file, end = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
text, identity = file.read_text(), file.stem
home = store.open_home(store.open_root(root, "local", "x86_64", "team"), "demo")
with sharing.readable(home.group), locks.hold(home.lock_file, say=say):
    publish.clear(home, home.prefix(identity), say)
    publish.clear(home, home.build(identity), say)
    publish.mark(home, identity)
    (home.prefix(identity) / "bin").mkdir(parents=True, mode=0o700)
    (home.prefix(identity) / "bin" / "tool").touch(mode=0o700)
    (home.build(identity) / "lock.json").write_text(text)
    if end == "killed":
        import os
        os._exit(9)
    sharing.share_trees(home.group, home.build(identity), home.prefix(identity))
    if end == "published":
        version = publish.reserve(home, identity, "lua")
        publish.publish(home, version, f"-- {home.prefix(identity)}\\n")
        publish.set_default(home, version)
    files.write_atomically(home.last_lock, text)
"""
HOLD = """
import sys
from pathlib import Path
from envbuilder.target_tools import sharing
from envbuilder.target_tools.root import locks
path = Path(sys.argv[1])
group = sharing.declared_group(path.parent.parent)
with locks.hold(path, lambda text: print(text, flush=True), poll=0.05, group=group):
    print("held", flush=True)
    if len(sys.argv) > 2:
        import time
        time.sleep(float(sys.argv[2]))
"""
DISTRUST = """
import sys
from envbuilder.target_tools.sharing import declared_group
from envbuilder.target_tools.trust import distrust
print(distrust(sys.argv[1], declared_group(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    yield from make_users()


@dataclass(frozen=True)
class Team:
    """A root that is shared with the team, and locks of environments."""

    users: Users
    root: Path
    locks: tuple[Path, ...]

    @property
    def home(self) -> layout.Home:
        return layout.Home(self.root, "demo")

    def make(self, name: str, number: int, umask: int = 0o077, end: str = "published") -> str:
        """Build and publish an environment as a user; return what was said."""
        words = (sys.executable, "-c", PUBLISH, self.root, self.locks[number], end)
        done = self.users.run(name, *words, umask=umask)
        assert done.returncode == (9 if end == "killed" else 0), done.stderr
        return done.stderr

    def do(
        self, name: str, *words: str, umask: int = 0o077, code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        done = self.users.envbuild(name, *words, "--root", self.root, umask=umask)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def numbers(self) -> list[int]:
        return [each.number for each in publish.published(self.home)]


@pytest.fixture
def team(users: Users) -> Team:
    folder = Path(tempfile.mkdtemp(dir=users.folder))
    folder.chmod(0o1777)
    lock = locked(small_plan())
    files = []
    for size in (1024, 2048, 4096):
        smoke = lock.plan.smoke.model_copy(update={"max_bytes": size})
        each = Lock(plan=lock.plan.model_copy(update={"smoke": smoke}), artifacts=lock.artifacts)
        files.append(folder / f"{each.id()}.json")
        files[-1].write_text(each.text(), encoding="utf-8")
        files[-1].chmod(0o644)
    return Team(users, folder / "root", tuple(files))


def small_plan() -> object:
    from envbuilder.model.plan import Plan

    return Plan.model_validate({**planned("allreduce"), "recipe": "demo"})


def joined(text: str) -> str:
    """Return text without its line breaks."""
    return " ".join(text.split())


ORDERS = [("ann", 0o077, "bob", 0o002), ("bob", 0o002, "ann", 0o077)]


@pytest.mark.parametrize(("first", "one", "second", "other"), ORDERS)
@pytest.mark.sample(1)
def test_what_one_member_made_another_uses_changes_and_removes(
    team: Team, first: str, one: int, second: str, other: int
) -> None:
    team.make(first, 0, one)
    team.make(second, 1, other)
    assert team.numbers() == [1, 2]
    identities = {each.stem for each in team.locks}
    for path in (team.root, *team.root.rglob("*")):
        status, inside = path.lstat(), team.home.folder in path.parents
        assert status.st_gid == TEAM, path
        assert not status.st_mode & 0o002, path
        assert status.st_mode & 0o044 == 0o044, path
        if inside and path.relative_to(team.home.folder).parts[0] in identities:
            assert not status.st_mode & 0o222, path
        elif path.is_dir():
            assert status.st_mode & 0o7777 == 0o2775, path
    shown = team.do(second, "info", "demo/1", umask=other).stdout
    assert "with group team" in shown
    assert "with group team" in team.do(first, "list", umask=one).stdout
    changed = json.loads(team.do(first, "rollback", "demo", "--json", umask=one).stdout)
    assert (changed["before"], changed["now"]) == (2, 1)
    assert (team.home.modulefiles / ".modulerc.lua").stat().st_mode & 0o777 == 0o644
    # The second removes its own, then the first one's is all that is left.
    team.do(second, "remove", "demo/2", umask=other)
    team.make(second, 2, other)
    prefix = team.home.prefix(publish.published(team.home)[0].id)
    said = team.do(second, "remove", "demo", "--keep", "1", umask=other).stderr
    assert team.numbers() == [3]
    assert not prefix.exists()
    assert f"{prefix} belongs to {first}: " in said
    # Whose it was made it for the next of this name; it is free.
    assert "kept as unfinished build" not in team.make(second, 0, other)
    left = publish.unpublished(team.home)
    assert len(left) == 1
    done = team.do(second, "remove", "demo", "--unfinished", umask=other)
    assert f"unfinished build {left[0]} belongs to {first}" in done.stderr
    done = team.do(first, "remove", "demo", "--unfinished", umask=one)
    assert done.stdout == f"removed {left[0]}\n"
    assert publish.unpublished(team.home) == ()
    team.do(first, "remove", "demo", "--all", umask=one)
    assert team.numbers() == []


@pytest.mark.long
def test_who_is_no_member_uses_and_lists_and_changes_nothing(team: Team) -> None:
    team.make("ann", 0)
    team.make("bob", 1)
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in team.root.rglob("*"))
    assert "demo/2" in team.do("eve", "list").stdout
    assert "with group team" in team.do("eve", "info", "demo").stdout
    tool = team.home.prefix(publish.published(team.home)[0].id) / "bin" / "tool"
    assert team.users.run("eve", "sh", "-c", f"test -x '{tool}'").returncode == 0
    for words in (
        ("rollback", "demo"),
        ("remove", "demo/1"),
        ("remove", "demo", "--unfinished"),
        ("smoke", "demo"),
    ):
        done = team.do("eve", *words, code=2)
        assert "with group team" in done.stderr
        assert "nothing was changed" in done.stderr
    after = sorted((str(path), path.lstat().st_mtime_ns) for path in team.root.rglob("*"))
    assert after == before


def test_what_a_killed_build_left_stands_in_no_members_way(team: Team) -> None:
    """It had no time to be shared: the folders below are its owner's alone."""
    team.make("ann", 0, end="killed")
    [identity] = publish.unpublished(team.home)
    said = team.make("bob", 0)
    assert "taking over from" in said
    assert f"{team.home.prefix(identity)} belongs to ann: " in said
    assert team.numbers() == [1]
    assert publish.published(team.home)[0].id == identity
    done = team.do("ann", "remove", "demo", "--unfinished")
    assert len(done.stdout.split(",")) == 1
    assert publish.unpublished(team.home) == ()
    team.make("bob", 1, end="unfinished")
    assert len(publish.unpublished(team.home)) == 1
    team.do("ann", "remove", "demo", "--unfinished")
    assert publish.unpublished(team.home) == ()


def test_a_member_waits_for_another_by_name(team: Team) -> None:
    team.make("ann", 0)
    lock = team.home.lock_file
    with team.users.start("ann", sys.executable, "-c", HOLD, lock, "4") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert lock.stat().st_mode & 0o777 == 0o664
        done = team.users.run("bob", sys.executable, "-c", HOLD, lock)
        waiting, held = done.stdout.splitlines()
        assert "(user ann)" in waiting
        assert held == "held"


def test_what_another_member_left_running_is_waited_for(team: Team) -> None:
    """Its own successor would end it; nobody else can."""
    team.make("ann", 0)
    lock = team.home.lock_file
    script = team.home.folder / "step.sh"
    step = f"touch '{script}'; sh -c 'sleep 5; true' '{script}' >/dev/null 2>&1 & exec \"$@\""
    words = ("sh", "-c", step, "sh", sys.executable, "-c", HOLD, lock, "60")
    with team.users.start("ann", *words) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n", holder.communicate()
        holder.kill()
        holder.communicate()
    done = team.users.run("bob", sys.executable, "-c", HOLD, lock)
    waiting, over, held = done.stdout.splitlines()
    assert waiting.startswith("waiting for ")
    assert "(user ann)" in waiting
    assert over.startswith("taking over from ")
    assert held == "held"


def distrusted(team: Team, name: str, path: Path) -> str | None:
    done = team.users.run(name, sys.executable, "-c", DISTRUST, path, team.root)
    assert done.returncode == 0, done.stderr
    return None if done.stdout == "None\n" else done.stdout.strip()


def test_members_trust_one_another_and_nobody_else(team: Team) -> None:
    team.make("ann", 0)
    last = team.home.last_lock
    assert distrusted(team, "ann", last) is None
    assert distrusted(team, "bob", last) is None
    assert distrusted(team, "eve", last) is not None, "she does not trust the group"
    os.chown(last, NUMBERS["eve"], TEAM)
    assert distrusted(team, "bob", last) == f"{last} belongs to user {NUMBERS['eve']}"
    os.chown(last, NUMBERS["ann"], NUMBERS["eve"])
    last.chmod(0o664)
    assert distrusted(team, "bob", last) == f"group {NUMBERS['eve']} may write {last}"
    os.chown(last, NUMBERS["ann"], TEAM)
    last.chmod(0o666)
    assert distrusted(team, "bob", last) == f"everybody may write {last}"
    last.chmod(0o664)
    assert distrusted(team, "bob", last) is None
    # The same folders without the stamp's word: a group bit alone declares nothing.
    stamp = {"schema": 1, "site": "local", "arch": "x86_64"}
    (team.root / sharing.STAMP).write_text(json.dumps(stamp), encoding="utf-8")
    assert distrusted(team, "ann", last) == f"group {TEAM} may write {team.root}"
    assert distrusted(team, "bob", last) is not None


def test_who_may_write_a_folder_of_another_cannot_declare_it_shared(team: Team) -> None:
    """Else a group bit on ann's folder would let bob say that she trusts him."""
    team.make("ann", 0)
    last, stamp = team.home.last_lock, team.root / sharing.STAMP
    said = stamp.read_text(encoding="utf-8")
    swap = f"rm -f '{stamp}' && printf '%s' '{said}' > '{stamp}' && chmod 644 '{stamp}'"
    assert team.users.run("bob", "sh", "-c", swap).returncode == 0
    assert distrusted(team, "ann", last) == f"group {TEAM} may write {team.root}"
    assert distrusted(team, "bob", last) == f"{team.root} belongs to user {NUMBERS['ann']}"
    for name in ("ann", "bob"):
        told = joined(team.do(name, "list", code=2).stderr)
        assert "team, but bob" in told
        assert "owner of the folder, ann" in told
    os.chown(stamp, NUMBERS["ann"], TEAM)
    assert distrusted(team, "bob", last) is None


def test_a_folder_of_another_is_not_declared_shared(team: Team) -> None:
    """Also where it has group and mode already."""
    team.root.mkdir()
    os.chown(team.root, NUMBERS["ann"], TEAM)
    team.root.chmod(sharing.FOLDER_MODE)
    words = (sys.executable, "-c", PUBLISH, team.root, team.locks[0], "published")
    refused = team.users.run("bob", *words)
    assert refused.returncode == 1
    assert "belongs to ann" in refused.stderr
    assert list(team.root.iterdir()) == []


@pytest.mark.parametrize("which", [".", "modulefiles", "demo", "modulefiles/demo"])
def test_a_folder_that_does_not_fit_the_stamp_is_named(tmp_path: Path, which: str) -> None:
    """Whoever looks is told; who would write in it is refused, and told how to mend it."""
    group = os.getegid()
    root = store.open_root(tmp_path / "root", "local", "x86_64", str(group))
    home = store.open_home(root, "demo")
    home.make_folder(home.modulefiles)
    assert store.misfits(root, home) == []
    folder = root.path / which
    folder.chmod(0o755)
    words = ["list", "--root", str(root.path)]
    told = CliRunner().invoke(app, words, env={"COLUMNS": "300"}).output
    assert f"! {folder} has mode 755, not 2775" in joined(told)
    with pytest.raises(UsageError) as refused:
        store.open_home(store.open_root(root.path, "local", "x86_64"), "demo")
    assert refused.value.id == "root.wrong-group-permissions"
    assert "755" in str(refused.value)
    assert "2775" in str(refused.value)
    [hint] = refused.value.problems[0].hints
    assert f"chmod 2775 '{folder}'" in hint
    if os.geteuid() == 0:
        folder.chmod(0o2775)
        os.chown(folder, -1, TEAM)
        assert store.misfits(root, home)[0][1] == sharing.misfit(folder, group)
        assert f"{TEAM}, not {group}" in store.misfits(root, home)[0][1]
    subprocess.run(["sh", "-c", hint.partition(": ")[2]], check=True)
    assert store.misfits(root, home) == []


def test_who_is_no_member_cannot_share_and_a_root_is_shared_from_its_beginning(team: Team) -> None:
    script = (
        "import sys; from pathlib import Path; from envbuilder.target_tools.root import store; "
    )
    script += "store.open_root(Path(sys.argv[1]), 'local', 'x86_64', *sys.argv[2:])"

    def attempt(name: str, *more: str) -> str:
        return team.users.run(name, sys.executable, "-c", script, team.root, *more).stderr

    assert "group team: you" in attempt("eve", "team")
    assert "group 'staf'" in attempt("ann", "staf")
    assert not team.root.exists()
    assert attempt("ann") == ""
    assert "with any group" in attempt("ann", "team")
    assert not team.root.stat().st_mode & 0o020


def test_the_stamp_of_a_shared_root_says_more_than_earlier_releases_know(tmp_path: Path) -> None:
    group = os.getegid()
    root = store.open_root(tmp_path / "root", "local", "x86_64", str(group))
    stamp = json.loads((root.path / sharing.STAMP).read_text(encoding="utf-8"))
    assert stamp == {"schema": 2, "site": "local", "arch": "x86_64", "group": str(group)}
    assert sharing.declared_group(root.path) == group
    assert store.read_root(root.path).shared == str(group)
    tmp_path.chmod(0o700)
    assert distrust(root.path / sharing.STAMP, group) is None
    assert distrust(root.path / sharing.STAMP) is not None
    with pytest.raises(UsageError) as raised:
        store.open_root(root.path, "local", "x86_64", f"{group + 1}")
    assert raised.value.id == "root.other-group"
    assert str(group) in str(raised.value)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--bundle",), "--shared does not apply to a bundle"),
        (("--arch", "ppc64le", "--emulate"), "an emulated environment cannot be built in a shared"),
    ],
)
def test_what_cannot_be_shared_is_refused_before_anything_is_written(
    tmp_path: Path, words: tuple[str, ...], refusal: str
) -> None:
    line = ["create", "allreduce", "--shared", str(os.getegid()), "--root", str(tmp_path / "root")]
    done = CliRunner().invoke(app, [*line, *words], env={"COLUMNS": "300"})
    assert done.exit_code == 2, done.output
    assert refusal in done.stderr
    assert list(tmp_path.iterdir()) == []
