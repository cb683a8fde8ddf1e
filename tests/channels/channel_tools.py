"""Small channels of made-up packages, and what is asked of them."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from render_cases import make_plan

from envbuilder.clone import command as clone
from envbuilder.commands import lock_listed
from envbuilder.conda.engine import Engine
from envbuilder.knowledge.artifacts import CondaArchive
from envbuilder.model.plan import Lock, Pin, Plan, PlanChannel
from envbuilder.reporter import Report
from envbuilder.workflow import channels, lock
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import load, plan_recipe
from envbuilder.workflow.plan_options import PlanOptions
from tests.conda_channel import File, Package

GLIBC = (("__unix", "0", "0"), ("__glibc", "2.28", "0"))


def package(name: str, version: str, *depends: str, build: str = "0", **more: object) -> Package:
    """Return a package with one file that says which it is."""
    text = f"{name} {version} {build}\n".encode()
    return Package(
        name=name,
        version=version,
        build=build,
        depends=depends,
        files={f"share/{name}": File(text)},
        **more,  # type: ignore[arg-type]
    )


def python(version: str, build: str = "0_cpython") -> Package:
    return package("python", version, build=build)


def pip() -> Package:
    return package("pip", "24.0", "python >=3.8", build="pyh0", subdir="noarch", noarch="python")


def engine(folder: Path) -> Engine:
    """Return an engine for many requests: starting one each time takes most of their time."""
    return LiveEngine(dict(os.environ), folder / "cache")


class LiveEngine(Engine):
    """Asks one process, which all tests share; it ends with that of the tests."""

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        child = _child()
        assert child.stdin
        assert child.stdout
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
        answer: dict[str, Any] = json.loads(child.stdout.readline())
        return answer


# As the engine itself, it ends without the clean-up in which rattler may crash.
_ANSWERS = """
import json, os, sys
from envbuilder.target_tools.conda_engine import answer_to
for line in sys.stdin:
    print(json.dumps(answer_to(json.loads(line))), flush=True)
os._exit(0)
"""


@cache
def _child() -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", _ANSWERS], stdin=pipe, stdout=pipe, text=True)

    def end() -> None:
        child.communicate()

    atexit.register(end)
    return child


def plan(places: Sequence[Path | str], **pins: str) -> Plan:
    """Return a plan for conda with these pins, in that order, and python."""
    named = tuple(
        PlanChannel(name=f"c{number}", url=each if isinstance(each, str) else each.as_uri())
        for number, each in enumerate(places)
    )
    return make_plan(
        backend="conda",
        python=None,
        channels=named,
        pins=tuple(
            Pin(component=name, version=version, origin="conda", locator=f"c0/{name}", why="test")
            for name, version in pins.items()
        ),
    )


def planned(folder: Path, channels_of: Mapping[str, Path], **stack: str) -> Plan:
    """Return the plan of a recipe of these channels, by name, and this stack beside Python."""
    (folder / "knowledge").mkdir(exist_ok=True)
    about = {"recorded": "2026-11-01", "sources": ["a test"], "packages": {}}
    known = {name: {**about, "url": path.as_uri()} for name, path in channels_of.items()}
    said = {"schema": 1, "recorded": "2026-11-01", "source": "a test", "channels": known}
    (folder / "knowledge" / "versions.yaml").write_text(json.dumps(said), encoding="utf-8")
    recipe = {"schema": 1, "name": "small", "summary": "A test", "arch": ["x86_64"]}
    recipe |= {"backend": "conda", "channels": [*channels_of], "stack": {"python": "*", **stack}}
    (folder / "small.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    said_to = io.StringIO()
    report = Report(said_to, said_to, as_json=False)
    context = Context(environ, folder, lambda: datetime.now(timezone.utc), report, (folder,))
    return plan_recipe(load(PlanOptions("small", site="local"), context), context).plan


def context(folder: Path) -> tuple[Context, io.StringIO]:
    """Return the world of a verb that runs in a folder, and what it says."""
    said = io.StringIO()
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    report = Report(said, said, as_json=False)
    return Context(environ, folder, lambda: datetime.now(timezone.utc), report), said


def without_pip(
    plan: Plan, _environment: object, _known: object, conda: Sequence[CondaArchive]
) -> Lock:
    """Return a lock without what pip would bring: to be put in the place of ``make_lock``."""
    return Lock(plan=plan, artifacts=tuple(conda))


@contextlib.contextmanager
def one_engine(folder: Path) -> Iterator[None]:
    """Let verbs ask the one process, and no pip, which has nothing to bring."""
    live = LiveEngine(dict(os.environ), folder)
    with pytest.MonkeyPatch.context() as patch:
        for module in (channels, clone, lock_listed):
            patch.setattr(module, "engine", lambda _: live)
        for module in (lock, lock_listed):
            patch.setattr(module, "make_lock", without_pip)
        yield
