"""The plan's own environment, entered for a moment: its modules, a virtualenv, its pip."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import data
from ..model.plan import Plan
from ..process import Finished
from .failures import modules_failure, venv_failure

Run = Callable[[Sequence[str]], Finished]
"""Starts a command in some environment and waits for its end."""

# The first pip that can say what it would install: https://pip.pypa.io/en/stable/news/#v22-2
REPORTS = (22, 2)
# The first that installs wheels with the platform tags of PEP 600.
TAKES_TODAYS_WHEELS = (20, 3)
# `pip --version` loads all of pip first, which takes ten times as long.
_SAY_RELEASE = "import pip; print('pip', pip.__version__)"


def load_modules(plan: Plan, run: Run) -> None:
    """Enter the environment once for nothing else, so that its failure is told as what it is."""
    if not plan.modules.loads:
        return
    entered = run(["true"])
    if not entered.ok:
        raise modules_failure(plan, entered)


def make_venv(plan: Plan, run: Run, venv: Path) -> str:
    """Make a virtualenv as the build will; return its interpreter."""
    flags = ["--system-site-packages"] if plan.system_site_packages else []
    python = venv / "bin" / "python"
    made = run([str(plan.python), "-m", "venv", "--without-pip", *flags, str(venv)])
    if made.ok:
        made = run([str(python), "-I", str(data.TARGET_TOOLS), "install-pip"])
    if not made.ok:
        raise venv_failure(plan, made)
    return str(python)


def pip_version(run: Run, python: str) -> tuple[tuple[int, int], Finished]:
    """Return version and words of an interpreter's pip; (0, 0): it has none that starts."""
    finished = run([python, "-c", _SAY_RELEASE])
    match = re.match(r"pip (\d+)\.(\d+)", finished.stdout) if finished.ok else None
    return ((int(match[1]), int(match[2])) if match else (0, 0)), finished


def packages_there(run: Run, python: str) -> dict[str, str]:
    """Return the distributions that an interpreter finds, name -> version."""
    finished = run([python, "-m", "pip", "list", "--format", "json"])
    try:
        rows = json.loads(finished.stdout) if finished.ok else []
    except json.JSONDecodeError:
        rows = []
    return {row["name"]: row["version"] for row in rows}
