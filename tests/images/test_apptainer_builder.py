"""What Apptainer is started with; a real one: tests/integration/test_image.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.images.apptainer import MOUNT, Builder


class Silent:
    """Listens to steps and says nothing."""

    def __getattr__(self, _name: str) -> object:
        return lambda *_: None


@pytest.mark.parametrize("program", ["apptainer", "singularity"])
def test_what_builds_in_a_base_is_handed_what_the_user_accepted(
    program: str, tmp_path: Path
) -> None:
    tool, log = tmp_path / program, tmp_path / "log"
    tool.write_text("#!/bin/sh\nenv\n")
    tool.chmod(0o755)
    environ = {"PATH": "/usr/bin:/bin", "ACCEPTED": "yes", "OTHER": "1"}
    builder = Builder(str(tool), environ, handed=("ACCEPTED", "NOT_SET"))
    builder.build_root(tmp_path / "x.def", tmp_path / "root", log, Silent())  # type: ignore[arg-type]
    said = log.read_text().splitlines()
    assert [each for each in said if "ENV_" in each] == [f"{program.upper()}ENV_ACCEPTED=yes"]


def test_build_with_a_cache_of_wheels_sees_it_in_the_base(tmp_path: Path) -> None:
    tool, log = tmp_path / "apptainer", tmp_path / "log"
    tool.write_text('#!/bin/sh\necho "$@"\nenv\n')
    tool.chmod(0o755)
    # As if binds were forbidden, and the build had put its wheel into the image.
    kept = tmp_path / "root" / MOUNT.lstrip("/")
    (kept / "0123").mkdir(parents=True)
    builder = Builder(str(tool), {"PATH": "/usr/bin:/bin"}, wheels=tmp_path / "wheels")
    builder.build_root(tmp_path / "x.def", tmp_path / "root", log, Silent())  # type: ignore[arg-type]
    line, *environ = log.read_text().splitlines()
    assert f"--bind {tmp_path / 'wheels'}:{MOUNT} " in line
    assert f"APPTAINERENV_ENVBUILD_WHEEL_CACHE={MOUNT}" in environ
    assert [*kept.iterdir()] == []
