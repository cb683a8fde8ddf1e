"""What may choose which code runs: only what nobody else can have written."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

from envbuilder import files
from envbuilder.cli import app
from envbuilder.model.plan import Lock
from envbuilder.runtimes import RUNTIMES
from envbuilder.target_tools.root import store
from envbuilder.target_tools.trust import distrust
from envbuilder.workflow import root_lock
from envbuilder.workflow.targets import here
from tests.cli.published import planned
from tests.made_up_files import locked

NOW = datetime.now(timezone.utc)
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file in two folders that nobody else may write, whatever the umask of the tests."""
    path = tmp_path / "one" / "two" / "file"
    path.parent.mkdir(parents=True)
    path.write_text("text", encoding="utf-8")
    for each in (path, *path.parents[:3]):
        each.chmod(0o755)
    return path


def test_what_only_its_owner_may_write_counts(file: Path) -> None:
    assert distrust(file) is None
    assert files.read_own(file) == b"text"
    assert distrust(file.with_name("none")) is None, "what is not there does no harm"


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize(("mode", "who"), [(0o775, "group"), (0o757, "everybody")])
def test_what_others_may_write_or_put_in_its_place_does_not(
    file: Path, which: int, mode: int, who: str
) -> None:
    """A group bit declares nothing about who is in the group."""
    writable = (file, *file.parents)[which]
    writable.chmod(mode)
    reason = distrust(file)
    assert reason is not None
    assert reason.startswith(who)
    assert reason.endswith(f"may write {writable}")
    assert files.read_own(file) is None


def test_a_sticky_folder_above_does_no_harm(file: Path) -> None:
    file.parents[1].chmod(0o1777)
    assert distrust(file) is None


@AS_ROOT
@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_belongs_to_somebody_else_does_not(file: Path, which: int) -> None:
    theirs = (file, *file.parents)[which]
    os.chown(theirs, 65534, -1)
    assert distrust(file) == f"{theirs} belongs to user 65534"


def test_links_are_looked_at_and_what_they_lead_to(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    assert distrust(link / "file") is None
    file.parents[1].chmod(0o777)
    assert distrust(link / "file") == f"everybody may write {file.parents[1]}"
    file.parents[1].chmod(0o755)
    if os.geteuid() == 0:
        os.chown(link, 65534, -1, follow_symlinks=False)
        assert distrust(link / "file") == f"{link} belongs to user 65534"


@pytest.fixture
def lax() -> Iterator[None]:
    """Let new files be such that everybody may write them."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("lax")
def test_what_we_write_counts_whatever_the_umask(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    root = store.open_root(tmp_path / "a" / "root", "local", "x86_64")
    home = store.open_home(root, "demo")
    files.write_atomically(home.last_lock, "{}")
    assert distrust(home.last_lock) is None
    assert distrust(home.registry_file) is None
    cached = tmp_path / "caches" / "locks" / f"lock-{'0' * 64}.json"
    root_lock.store_cached(cached, lock(), NOW)
    assert distrust(cached) is None


def lock() -> Lock:
    from envbuilder.model.plan import Plan

    return locked(Plan.model_validate(planned("allreduce")))


def test_a_cached_lock_that_others_may_have_written_is_not_taken(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    cached = tmp_path / "locks" / f"lock-{'0' * 64}.json"
    root_lock.store_cached(cached, lock(), NOW)
    assert root_lock.find_cached(cached, NOW, RUNTIMES)
    cached.parent.chmod(0o775)
    assert root_lock.find_cached(cached, NOW, RUNTIMES) is None


@pytest.mark.parametrize("trusted", [True, False])
def test_the_last_lock_counts_only_where_nobody_else_may_have_written_it(
    tmp_path: Path, trusted: bool
) -> None:
    """What a colleague put there would be installed, and run, by whoever creates it next."""
    tmp_path.chmod(0o700)
    root = tmp_path / "root"
    home = store.open_home(store.open_root(root, "local", platform.machine()), "allreduce")
    home.last_lock.write_text(lock().text(), encoding="utf-8")
    home.last_lock.chmod(0o644 if trusted else 0o664)
    # CliRunner runs in this process: what comes after the choice of a lock is not reached.
    with (
        mock.patch.object(root_lock, "fingerprint", side_effect=KeyError("asked")),
        mock.patch.object(here, "published_number", side_effect=KeyError("reused")),
    ):
        words = ["create", "allreduce", "--site", "local", "--root", str(root)]
        answer = CliRunner().invoke(app, words)
    said = " ".join(answer.stderr.split())
    assert answer.exit_code == 70
    left_out = f"warning: ignored {home.last_lock}: group "
    assert (left_out in said) is not trusted
    assert ("the existing lock" in said) is trusted
