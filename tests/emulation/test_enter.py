"""What is made of how an installer ends; what runs there for real is tests/integration's."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.emulation import install
from envbuilder.errors import BuildError, EnvbuildError, SmokeError, UsageError
from envbuilder.model.plan import Step


class Lines:
    """A listener that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def step_begins(self, step: Step) -> None: ...

    def step_says(self, line: str) -> None:
        self.said.append(line)

    def step_ends(self, step: Step, *, done: bool) -> None: ...


def run(folder: Path, code: int, **environ: str) -> tuple[Lines, str]:
    """Run an installer that says what it is given and ends with a code; return what was said."""
    (folder / "bin").mkdir()
    tool = folder / "bin" / "unshare"
    tool.write_text(f'#!/bin/sh\necho "$@"\necho "error: as it is"\nexit {code}\n')
    tool.chmod(0o755)
    (folder / "root").mkdir()
    places = (folder / "bundle", folder / "root", folder / "system")
    listener, log = Lines(), folder / "log"
    environ = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", **environ}
    install(*places, environ, log, listener)
    return listener, log.read_text()


def test_it_has_an_environment_of_its_own_and_the_users_time_limit(tmp_path: Path) -> None:
    listener, log = run(tmp_path, 0, ENVBUILD_STEP_SECONDS="7200", SECRET="of the user")
    assert "\n".join([*listener.said, ""]) == log
    assert " HOME=/tmp/home " in log
    assert " ENVBUILD_STEP_SECONDS=7200\n" in log
    assert "of the user" not in log
    # No network.
    assert " --net " in log


@pytest.mark.parametrize(
    ("code", "error"), [(2, UsageError), (5, BuildError), (6, SmokeError), (1, BuildError)]
)
def test_how_it_ends_is_how_create_ends(
    tmp_path: Path, code: int, error: type[EnvbuildError]
) -> None:
    with pytest.raises(error, match=r"  \| error: as it is") as raised:
        run(tmp_path, code)
    assert f"ended with exit code {code}" in str(raised.value)
    assert str(tmp_path / "log") in raised.value.problems[0].hints[0]
