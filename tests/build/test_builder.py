"""The builder on real scripts: marks, logs, resume, and what a failed step leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder.build.scripts import build, prepare
from envbuilder.errors import BuildError, UsageError
from envbuilder.model.plan import Lock, Plan, RuntimePlan, Step
from envbuilder.model.recipe import Smoke
from envbuilder.model.site import SiteLauncher
from envbuilder.target_tools import proc
from envbuilder.target_tools.root.publish import tidy

STEPS = (Step(id="one", title="the first"), Step(id="two", title="the second"))

GOOD = 'mkdir -p state; echo "doing $1"; touch "state/$1.done"\n'
BAD = """mkdir -p state
[ "$1" = one ] && { touch state/one.done; exit 0; }
echo "line"; echo "boom: %s"; exit 3
"""

ENV = {"PATH": "/usr/bin:/bin"}


def lock() -> Lock:
    plan = Plan(
        recipe="demo",
        summary="A demo",
        site="here",
        arch="x86_64",
        backend="virtualenv",
        system_site_packages=False,
        python="/usr/bin/python3",
        pins=(),
        runtime=RuntimePlan(package="runtime", version="0.1.0", source_sha256="0" * 64),
        launcher=SiteLauncher(command=("mpiexec",)),
        smoke=Smoke(),
        steps=STEPS,
    )
    return Lock(plan=plan, artifacts=())


class Ear:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def step_begins(self, step: Step) -> None:
        self.heard.append(f"begins {step.id}")

    def step_says(self, line: str) -> None:
        self.heard.append(line)

    def step_ends(self, step: Step, *, done: bool) -> None:
        self.heard.append(f"{'ends' if done else 'fails'} {step.id}")


def folder_with(tmp_path: Path, script: str) -> Path:
    folder = tmp_path / "a build"
    source = tmp_path / "source"
    (source / "package").mkdir(parents=True, exist_ok=True)
    (source / "package" / "__init__.py").write_text("")
    (source / "package" / "__pycache__").mkdir(exist_ok=True)
    prepare(folder, {"build.sh": script, "sub/file": "text"}, source)
    return folder


def test_a_step_that_never_ends_is_ended_and_named(tmp_path: Path) -> None:
    folder, ear = folder_with(tmp_path, 'echo "asking"; sleep 60 & echo $! >pid; wait\n'), Ear()
    with pytest.raises(BuildError) as caught:
        build(lock(), folder, {**ENV, "ENVBUILD_STEP_SECONDS": "0.5"}, ear)
    problem = caught.value.problems[0]
    assert problem.id == "build.step-failed"
    assert "step one (" in problem.message
    assert "within 0.5 s" in problem.message
    assert "  | asking" in problem.message
    assert problem.hints[0].startswith("ENVBUILD_STEP_SECONDS=SECONDS")
    assert ear.heard == ["begins one", "asking", "fails one"]
    assert proc.birth(int((folder / "pid").read_text())) is None, "what it started is ended too"


@pytest.mark.parametrize("text", ["x", "-1", "0", "1e9"])
def test_a_time_limit_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GOOD)
    with pytest.raises(UsageError) as raised:
        build(lock(), folder, {**ENV, "ENVBUILD_STEP_SECONDS": text}, Ear())
    assert raised.value.id == "build.malformed-time-limit"


def test_every_step_runs_once_and_is_heard(tmp_path: Path) -> None:
    folder, ear = folder_with(tmp_path, GOOD), Ear()
    build(lock(), folder, ENV, ear)
    assert ear.heard == [
        "begins one",
        "doing one",
        "ends one",
        "begins two",
        "doing two",
        "ends two",
    ]
    assert (folder / "logs" / "02-two.log").read_text() == "doing two\n"


def test_done_steps_are_not_run_again(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GOOD)
    (folder / "state").mkdir()
    (folder / "state" / "one.done").touch()
    ear = Ear()
    build(lock(), folder, ENV, ear)
    assert ear.heard[0] == "begins two"


def test_the_runtime_goes_along_without_what_python_left(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GOOD)
    found = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    assert "runtime/package/__init__.py" in found
    assert "target_tools/__main__.py" in found
    assert "sub/file" in found
    assert not any("__pycache__" in name for name in found)


def test_a_failed_step_leaves_its_log_its_last_lines_and_a_way_in(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, BAD % "No space left on device")

    def explain(log: Path) -> tuple[str, ...]:
        return ("disk full",) if "No space left" in log.read_text() else ()

    with pytest.raises(BuildError) as caught:
        build(lock(), folder, ENV, Ear(), explain)
    (problem,) = caught.value.problems
    assert problem.id == "build.step-failed"
    first, *output = problem.message.splitlines()
    assert "step two (" in first
    assert first.endswith("exit code 3")
    assert output == ["  | line", "  | boom: No space left on device"]
    assert problem.hints[0] == "disk full"
    assert f"{folder}/logs/02-two.log" in problem.hints[1]
    assert f"bash '{folder}/shell.sh'" in problem.hints[2]
    assert "--resume" in problem.hints[3]


def test_a_step_killed_by_a_signal_is_told_so(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "kill -9 $$\n")
    with pytest.raises(BuildError) as raised:
        build(lock(), folder, ENV, Ear())
    assert raised.value.id == "build.step-failed"


def test_success_without_the_mark_is_not_believed(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "exit 0\n")
    with pytest.raises(BuildError) as raised:
        build(lock(), folder, ENV, Ear())
    assert raised.value.id == "build.step-failed"


def test_tidying_keeps_scripts_logs_and_our_wheel(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, GOOD)
    for name in ("wheelhouse", "build-tools", "runtime-build", "wheels", "logs"):
        (folder / name).mkdir()
    tidy(folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "build.sh",
        "logs",
        "runtime",
        "sub",
        "target_tools",
        "wheels",
    ]
