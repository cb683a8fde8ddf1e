"""Which bases a user can begin with, who is not root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envbuilder.errors import UsageError
from envbuilder.images.apptainer import check_rights
from envbuilder.machine.host import LocalMachine

USER = 50001


@pytest.mark.parametrize(
    ("user", "ranges", "fits"),
    [
        (0, "", True),
        (os.getuid(), "", True),
        (USER, f"{USER}:100000:65536\n", True),
        (USER, "", False),
        (USER, f"someone:100000:65536\n{USER}1:1:1\n", False),
    ],
)
def test_a_base_of_whose_files_a_user_can_be_the_owner(
    user: int, ranges: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/subuid").write_text(ranges)
    host = LocalMachine({}, files=tmp_path)
    if fits:
        check_rights(tmp_path, host)
        return
    with pytest.raises(UsageError) as e:
        check_rights(tmp_path, host)
    assert e.value.id == "base.no-subuid-range"
    assert "/etc/subuid" in str(e.value)
    assert e.value.problems[0].hints
