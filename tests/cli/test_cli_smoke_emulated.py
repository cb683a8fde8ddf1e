"""``smoke`` of an environment of another architecture; what runs there for real: integration."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.build.emulation import NAMED
from envbuilder.build.emulation import system as emulated
from envbuilder.cli import app
from envbuilder.target_tools.root.layout import Home
from tests.cli.published import planned, publish_plan
from tests.verbs import problem_ids

# Nothing in it depends on the Python.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(platform.machine() == "ppc64le", reason="this machine needs no emulator"),
]

PYTHON = Path("/usr/bin/python3")

# In place of unshare(1), the mounts and the change of the root: what would run there runs here.
HERE = """#!/bin/bash
[[ $* != *" true" ]] || exit 0
while [[ $1 != enter ]]; do shift; done
given=$6 root=$7
shift 8
while [[ $1 == *=* ]]; do shift; done
exec env -i HOME=/ PATH=/usr/bin:/bin "$1" "$given/${2#/given/}" "${@:3}"
"""


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    return planned("allreduce", "--arch", "ppc64le")


@pytest.fixture
def home(plan: dict[str, Any], tmp_path: Path) -> Home:
    root = tmp_path / "root"
    publish_plan(root, plan, {"lib/module.py": "VALUE = 1\n"})
    return Home(root, "allreduce")


@pytest.fixture
def has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let this machine have an emulator and a system that is named; return its search path."""
    monkeypatch.setattr(emulated, "emulator", lambda _host, _arch: "enabled\nflags: PF\n")
    mark = tmp_path / "system" / "usr" / "bin" / "env"
    mark.parent.mkdir(parents=True)
    mark.touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "unshare").write_text(HERE, encoding="utf-8")
    (tools / "unshare").chmod(0o755)
    monkeypatch.setenv(NAMED, str(tmp_path / "system"))
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tools


def smoke(home: Home, *words: str, name: str = "allreduce") -> Result:
    return CliRunner().invoke(
        app, ["smoke", name, "--root", str(home.root), *words], env={"COLUMNS": "400"}
    )


def test_it_is_refused_and_says_where_it_can_be_proved(home: Home, has: Path) -> None:
    told = smoke(home, "--json")
    assert (told.exit_code, problem_ids(told.stdout)) == (2, ["environment.other-arch"])
    assert all(each in told.stderr for each in ("ppc64le", platform.machine(), "--emulate"))
    there = f"envbuild smoke allreduce/1 --root {home.root}\n"
    assert there in told.stderr
    (has / "unshare").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    told = smoke(home)
    assert told.exit_code == 2
    assert "--emulate" not in told.stderr
    assert there in told.stderr


def test_without_an_emulator_it_says_what_is_missing_and_what_to_do(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emulated, "emulator", lambda _host, _arch: None)
    told = smoke(home, "--emulate", "--json")
    assert (told.exit_code, problem_ids(told.stdout)) == (9, ["emulation.no-emulator"])
    packages = "qemu-user-static binfmt-support mmdebstrap"
    assert packages in told.stderr
    assert "envbuild smoke allreduce/1" in told.stderr
    assert "bundle" not in told.stderr


def test_a_changed_file_is_drift_and_nothing_is_entered(home: Home, has: Path) -> None:
    [module] = home.folder.glob("*/lib/module.py")
    module.chmod(0o644)
    module.write_text("VALUE = 2\n", encoding="utf-8")
    module.chmod(0o444)
    (has / "unshare").write_text("#!/bin/sh\ntouch /entered\nexit 1\n", encoding="utf-8")
    told = smoke(home, "--emulate")
    assert told.exit_code == 8
    assert "\n  lib/module.py: other content\n" in told.stderr
    assert [each.name for each in home.folder.glob("*.evidence/*")] == ["manifest.json"]


@pytest.mark.skipif(not PYTHON.exists(), reason=f"{PYTHON}, of the plan, is not here")
def test_there_it_compares_once_more_and_keeps_the_verdict(home: Home, has: Path) -> None:
    told = smoke(home, "--emulate", "--ranks", "3", "--json")
    # There is no Python in the prefix, so no rank can start; the judge says so, and it is kept.
    assert told.exit_code == 6, told.stderr
    assert problem_ids(told.stdout) == ["smoke.failed"]
    [file] = home.folder.glob("*.evidence/0001/evidence.json")
    record = json.loads(file.read_text(encoding="utf-8"))
    assert (record["arch"], record["result"]["verdict"]) == ("ppc64le", "failed")
    assert record["request"]["ranks"] == 3
    assert record["id"] == file.parent.parent.name.partition(".")[0]
    # What runs there compares itself: here between the two a file is changed.
    [module] = home.folder.glob("*/lib/module.py")
    script = f"chmod 644 {module}; echo >>{module}; chmod 444 {module}\n"
    (has / "unshare").write_text(HERE.replace("given=$6", f"{script}given=$6"), encoding="utf-8")
    told = smoke(home, "--emulate", "--json")
    assert told.exit_code == 8, told.stderr
    assert problem_ids(told.stdout) == ["emulation.script-failed"]
    assert "lib/module.py: 11 bytes" in told.stderr
    assert len([*home.folder.glob("*.evidence/0*")]) == 1


def test_what_is_for_this_machine_needs_no_emulation(tmp_path: Path) -> None:
    root = tmp_path / "root"
    publish_plan(root, planned("allreduce"))
    told = smoke(Home(root, "allreduce"), "--emulate", "--json")
    assert (told.exit_code, problem_ids(told.stdout)) == (2, ["emulation.native-arch"])
    assert platform.machine() in told.stderr


def test_in_a_shared_root_it_is_refused(
    home: Home, has: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Home, "group", 1)
    told = smoke(home, "--emulate", "--json")
    assert (told.exit_code, problem_ids(told.stdout)) == (2, ["emulation.shared-root"])
