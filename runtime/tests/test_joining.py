"""Who has not called init, as another rank of the node sees it; jobs are in ``test_endings.py``."""

import os
import subprocess
import tempfile
from typing import Any

import pytest

from distributed_dl_training._joining import Joining, _process


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    """Return rank 0 of three, which waits, and the folder that its node's ranks leave files in."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    joining = Joining(3, "mpi", {"PMI_RANK": "0", "PMI_SIZE": "3", "MPI_LOCALNRANKS": "3"})
    joining._note()
    return joining, tmp_path / f"ddlt-{os.getuid()}-{os.getppid()}"


def test_who_has_left_no_file_is_named(waiting: Any) -> None:
    joining, folder = waiting
    assert "join: ranks 1-2 of this node" in joining.text()
    (folder / "2.new").write_text("")  # it is just being written
    assert "join: ranks 1-2 of this node" in joining.text()
    (folder / "2").write_text(_process(os.getpid()))
    assert "join: rank 1 of this node has not called init" in joining.text()
    (folder / "1").write_text(_process(os.getpid()))
    assert "of this node" not in joining.text()


def test_a_killed_rank_of_an_earlier_job_is_not_there(waiting: Any) -> None:
    joining, folder = waiting
    (folder / "1").write_text(_process(os.getpid()))
    ended = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    (folder / "2").write_text(_process(ended.pid))
    ended.communicate()
    assert "join: rank 2 of this node has not called init" in joining.text()


def test_a_number_that_was_given_again_is_another_process(waiting: Any) -> None:
    """With 32,768 numbers, as many systems have, a job soon gets those of a killed one."""
    joining, folder = waiting
    (folder / "1").write_text(_process(os.getpid()))
    for noted in ("", f"{os.getpid()} 1"):
        (folder / "2").write_text(noted)
        assert "join: rank 2 of this node has not called init" in joining.text()


def test_a_folder_of_somebody_else_is_left_alone(
    waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name can be guessed, and what lies there may lead to any file."""
    joining, folder = waiting
    (folder / "0").write_text("theirs")
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    joining._note()
    assert (folder / "0").read_text() == "theirs"


def test_ranks_of_other_nodes_are_not_guessed_at(waiting: Any) -> None:
    joining, _ = waiting
    joining._environ["MPI_LOCALNRANKS"] = "2"
    assert "of this node" not in joining.text()
