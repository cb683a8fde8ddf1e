"""What is made of how a script ends; what runs there for real is tests/integration's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from envbuilder.build.emulation import EmulatedRun, install, prove_again
from envbuilder.errors import BuildError, DriftError, EnvbuildError, SmokeError, UsageError
from envbuilder.model.plan import Step


class Lines:
    """A listener that keeps what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def step_begins(self, step: Step) -> None: ...

    def step_says(self, line: str) -> None:
        self.said.append(line)

    def step_ends(self, step: Step, *, done: bool) -> None: ...


def entry(folder: Path, code: int, **environ: str) -> EmulatedRun:
    """Return what runs a script that says what it is given and ends with a code."""
    (folder / "bin").mkdir()
    tool = folder / "bin" / "unshare"
    tool.write_text(f'#!/bin/sh\necho "$@"\necho "error: as it is"\nexit {code}\n')
    tool.chmod(0o755)
    (folder / "root").mkdir()
    environ = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", **environ}
    places = (folder / "given", folder / "root", folder / "system")
    return EmulatedRun(*places, environ, folder / "log", Lines())


def test_it_has_an_environment_of_its_own_and_the_users_time_limit(tmp_path: Path) -> None:
    entered = entry(tmp_path, 0, ENVBUILD_STEP_SECONDS="7200", SECRET="of the user")
    install(entered)
    log = entered.log.read_text()
    assert isinstance(entered.listener, Lines)
    assert "\n".join([*entered.listener.said, ""]) == log
    assert " HOME=/tmp/home " in log
    assert f" ENVBUILD_STEP_SECONDS=7200 bash /given/install.sh {tmp_path / 'root'}\n" in log
    assert "of the user" not in log
    # No network.
    assert " --net " in log


def test_by_a_variable_a_user_accepts_a_licence_there_too(tmp_path: Path) -> None:
    entered = replace(entry(tmp_path, 0, ACCEPT="yes", OTHER="1"), variables=("ACCEPT", "UNSET"))
    install(entered)
    assert f" ACCEPT=yes bash /given/install.sh {tmp_path / 'root'}\n" in entered.log.read_text()


def test_wheels_are_a_place_of_the_emulated_system(tmp_path: Path) -> None:
    install(replace(entry(tmp_path, 0), wheels=tmp_path / "wheels"))
    places = f" {tmp_path / 'given'} {tmp_path / 'root'} {tmp_path / 'wheels'} HOME=/tmp/home "
    assert places in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("code", "error"), [(2, UsageError), (5, BuildError), (6, SmokeError), (1, BuildError)]
)
def test_how_it_ends_is_how_create_ends(
    tmp_path: Path, code: int, error: type[EnvbuildError]
) -> None:
    with pytest.raises(error) as raised:
        install(entry(tmp_path, code))
    assert raised.value.id == "emulation.script-failed"
    assert f"exit code {code}" in str(raised.value)
    assert str(raised.value).endswith("  | error: as it is")
    assert str(tmp_path / "log") in raised.value.problems[0].hints[0]


def test_a_smoke_test_is_of_one_number_and_names_what_was_changed(tmp_path: Path) -> None:
    entered = entry(tmp_path, 8)
    with pytest.raises(DriftError) as raised:
        prove_again(entered, "allreduce", 3)
    assert raised.value.id == "emulation.script-failed"
    assert "prove.sh" in str(raised.value)
    words = f" bash /given/prove.sh {tmp_path / 'root'} allreduce 3\n"
    assert words in entered.log.read_text()
