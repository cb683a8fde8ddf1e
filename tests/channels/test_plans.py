"""Plans and locks of a recipe whose packages come from channels."""

from __future__ import annotations

import functools
import io
import os
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest
import yaml
from channel_tools import package, pip, python, without_pip
from test_contents import Quiet

from envbuilder.errors import NoSolutionError
from envbuilder.model.plan import Lock, Plan
from envbuilder.reporter import Report
from envbuilder.target_tools.root.layout import Home
from envbuilder.views import plan as views
from envbuilder.workflow import lock as lock_command
from envbuilder.workflow import root_lock
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import Planned, Reading, load, plan_recipe
from envbuilder.workflow.lock import obtain_lock
from envbuilder.workflow.plan_options import PlanOptions
from envbuilder.workflow.root_lock import lock_of_root
from tests.conda_channel import Package, write_channel
from tests.serving import serving_by

RECIPE = """\
schema: 1
name: small
summary: From a channel of the tests
arch: [x86_64]
backend: conda
channels: [tests]
stack: {python: "*", numpy: "*", mpi4py: "*", mpich: "*"}
"""
KNOWLEDGE = """\
schema: 1
recorded: "2026-11-01"
source: made by the tests
channels:
  tests: {url: "URL", recorded: "2026-11-01", sources: [made by the tests], packages: PACKAGES}
"""
PY = "python >=3.11,<3.12.0a0"
REST = (package("mpi4py", "4.0.1", PY, "mpich"), package("mpich", "4.2.3"), pip())


def inputs(
    folder: Path,
    url: str,
    reading: Reading,
    packages: str = "{}",
    site: str = "local",
    lines: str = "",
) -> tuple[Planned, Context, io.StringIO]:
    (folder / "knowledge").mkdir(exist_ok=True)
    knowledge = KNOWLEDGE.replace("URL", url).replace("PACKAGES", packages)
    (folder / "knowledge" / "versions.yaml").write_text(knowledge, encoding="utf-8")
    (folder / "small.yaml").write_text(RECIPE + lines, encoding="utf-8")
    said = io.StringIO()
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    report = Report(said, said, as_json=False)
    context = Context(environ, folder, lambda: datetime.now(timezone.utc), report, (folder,))
    loaded = load(PlanOptions("small", site=site), context)
    return plan_recipe(loaded, context, reading), context, said


def versions(planned: Plan) -> dict[str, str]:
    return {pin.component: pin.version for pin in planned.pins if pin.origin == "conda"}


def test_what_is_recorded_of_a_channel_is_planned_with_and_read_for_a_lock(tmp_path: Path) -> None:
    channel = [python("3.11.7"), package("numpy", "1.26.4", PY), *REST]
    folder = write_channel(tmp_path / "channel", channel)
    row = "[{version: VERSION}]"
    names = {"python": "3.11", "numpy": "1.20", "mpi4py": "4.0", "mpich": "4.2"}
    recorded = [f"{name}: {row.replace('VERSION', repr(each))}" for name, each in names.items()]
    with serving_by(functools.partial(Quiet, directory=str(folder))) as url:  # type: ignore[arg-type]
        asked = url, "to plan", f"{{{', '.join(recorded)}}}"
        to_plan, _, said = inputs(tmp_path, *asked)  # type: ignore[arg-type]
        assert versions(to_plan.plan) == names
        assert "channels tests" not in said.getvalue()
        to_lock, _, said = inputs(tmp_path, url, "to lock", asked[2])
        assert versions(to_lock.plan) == {
            "python": "3.11.7",
            "numpy": "1.26.4",
            "mpi4py": "4.0.1",
            "mpich": "4.2.3",
        }
        assert "channels tests" in said.getvalue()
    assert to_lock.plan.channels[0].url == url


def test_a_record_without_a_solution_is_an_excerpt_and_the_channel_is_read(
    tmp_path: Path,
) -> None:
    packages = [python("3.11.7"), package("numpy", "1.26.4", PY), *REST]
    folder = write_channel(tmp_path / "channel", packages)
    excerpt = "{python: [{version: '3.6', arch: [ppc64le]}]}"
    with serving_by(functools.partial(Quiet, directory=str(folder))) as url:  # type: ignore[arg-type]
        planned, _, _ = inputs(tmp_path, url, "to plan", excerpt)
    assert versions(planned.plan)["python"] == "3.11.7"
    # It cannot be read any more: the error is that of the record.
    with pytest.raises(NoSolutionError):
        inputs(tmp_path, "https://127.0.0.1:9/c", "to plan", excerpt)


def test_a_channel_that_is_gone_stands_first_in_a_plan(tmp_path: Path) -> None:
    made, _, _ = inputs(tmp_path, "https://127.0.0.1:9/c", "to plan", GONE)
    assert made.plan.channels[0].gone_since == "2023-11-18"
    first, *_ = views.plan(made.plan).splitlines()
    assert first.startswith("channel tests gone since 2023-11-18; a copy is needed")
    # With a copy, as a site keeps it, it is not.
    site = {"schema": 1, "name": "kept", "summary": "A site with a copy", "arch": ["x86_64"]}
    site |= {"origins": ["pip"], "channels": {"tests": copy_of(tmp_path)}}
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "kept.yaml").write_text(yaml.safe_dump(site), encoding="utf-8")
    made, _, _ = inputs(tmp_path, "https://127.0.0.1:9/c", "to plan", GONE, "kept")
    assert made.plan.channels[0].gone_since is None
    assert "gone since" not in views.plan(made.plan)


GONE = """{python: [{version: "3.11"}], numpy: [{version: "1.20"}], mpi4py: [{version: "4.0"}],
    mpich: [{version: "4.2"}]}, withdrawal: {since: "2023-11-18", sources: [made by the tests]}"""


def copy_of(tmp_path: Path) -> str:
    packages = [python("3.11.7"), package("numpy", "1.26.4", PY), *REST]
    return write_channel(tmp_path / "copy", packages).as_uri()


def locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packages: Sequence[Package], lines: str = ""
) -> tuple[Lock, str]:
    monkeypatch.setattr(lock_command, "make_lock", without_pip)
    folder = write_channel(tmp_path / "channel", packages)
    made, context, said = inputs(tmp_path, folder.as_uri(), "to lock", lines=lines)
    return obtain_lock(made, context, tmp_path / "scratch"), said.getvalue()


def test_a_release_that_fits_nothing_is_left_out_and_the_stack_solved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = [
        python("3.11.7"),
        package("numpy", "1.26.4", PY),
        # What it needs no channel has.
        package("numpy", "2.0.1", PY, "libnowhere"),
        package("numpy", "2.0.0", PY, "__cuda >=12"),
        *REST,
    ]
    lock, said = locked(tmp_path, monkeypatch, packages)
    assert versions(lock.plan)["numpy"] == "1.26.4"
    assert [each.filename for each in lock.conda_packages if each.name == "numpy"] == [
        "numpy-1.26.4-0.conda"
    ]
    assert "numpy 2.0.1: resolving again" in said
    # It needs what the target lacks, and is no candidate: none is refused for that.
    assert "numpy 2.0.0" not in said


def test_a_build_string_with_dots_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every PyTorch of the channel pytorch has one."""
    build = "py3.11_cuda11.3_cudnn8.3.2_0"
    numpy = [package("numpy", "1.26.4", PY, build=each) for each in (build, "py3.11_cpu_0")]
    packages = [python("3.11.7"), *numpy, *REST]
    lines = f"conda-packages: [numpy ==1.26.4 {build}]\n"
    lock, _ = locked(tmp_path, monkeypatch, packages, lines)
    assert [each.build for each in lock.conda_packages if each.name == "numpy"] == [build]


def test_what_no_release_of_fits_ends_it_with_what_the_engine_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = [python("3.11.7"), package("numpy", "2.0", PY, "libnowhere >=3"), *REST]
    with pytest.raises(NoSolutionError) as caught:
        locked(tmp_path, monkeypatch, packages)
    (problem,) = caught.value.problems
    assert problem.id == "channel.no-solution"
    assert "numpy" in problem.message
    assert any("libnowhere" in hint for hint in problem.hints)


def test_packages_that_were_solved_within_the_hour_serve_another_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_command, "make_lock", without_pip)
    # Nor what pip would have brought.
    monkeypatch.setattr(root_lock, "contradictions", lambda *_, **__: ())
    monkeypatch.setenv("ENVBUILD_LOCK_CACHE", str(tmp_path / "locks"))
    folder = write_channel(
        tmp_path / "channel", [python("3.11.7"), package("numpy", "1.2", PY), *REST]
    )

    def locked(root: str) -> tuple[Lock, bool]:
        """Return the lock of a new root, and whether it was solved for that."""
        planned, context, said = inputs(tmp_path, folder.as_uri(), "to lock")
        home = Home(tmp_path / root, "small")
        home.root.mkdir()
        made = lock_of_root(planned, home, context, relock=False)
        return made, "resolve packages" in said.getvalue()

    first, solved = locked("one")
    assert solved
    assert locked("two") == (first, False)
    write_channel(folder, [package("numpy", "1.3", PY)])
    later, solved = locked("three")
    assert solved
    assert {each.version for each in later.conda_packages if each.name == "numpy"} == {"1.3"}
