"""The builder: writes what was rendered, runs its steps one by one, keeps a log of each.

What you read is what runs: every step is ``bash build.sh STEP``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import data, process, sources
from ..errors import BuildError
from ..model.knowledge import Symptom
from ..model.plan import Lock, Step
from ..model.progress import Listener

LAST_LINES = 12


@dataclass(frozen=True)
class BuildPlaces:
    """Where one build happens."""

    prefix: Path
    folder: Path

    def log(self, number: int, step: Step) -> Path:
        return self.folder / "logs" / f"{number:02}-{step.id}.log"

    def mark(self, step: Step) -> Path:
        return self.folder / "state" / f"{step.id}.done"


def prepare(folder: Path, files: Mapping[str, str], runtime_source: Path) -> None:
    """Write the build folder: the rendered files, what they call, the runtime's sources."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sources.copy(data.TARGET_TOOLS, folder / data.TARGET_TOOLS.name)
    sources.copy(runtime_source, folder / "runtime")


def hand_over(lock: Lock, downloads: Path, places: BuildPlaces) -> None:
    """Give the build what of its files is in *downloads*: it checks the hash of each.

    Both folders are on one file system.
    """
    wheelhouse = places.folder / "wheelhouse"
    wheelhouse.mkdir(exist_ok=True)
    for artifact in lock.index_files:
        if (downloads / artifact.filename).is_file():
            (downloads / artifact.filename).replace(wheelhouse / artifact.filename)


def build(
    lock: Lock,
    places: BuildPlaces,
    env: Mapping[str, str],
    listener: Listener,
    symptoms: tuple[Symptom, ...] = (),
) -> None:
    """Run every step that has no mark yet; raises BuildError with the log of the one that failed.

    *symptoms* are looked for in the log of a step that failed.
    """
    (places.folder / "logs").mkdir(exist_ok=True)
    for number, step in enumerate(lock.plan.steps, start=1):
        if places.mark(step).exists():
            continue
        listener.step_begins(step)
        log = places.log(number, step)
        log.unlink(missing_ok=True)
        code = process.follow(
            ["bash", str(places.folder / "build.sh"), step.id],
            env=env,
            log=log,
            cwd=places.folder,
            on_line=listener.step_says,
        )
        done = code == 0 and places.mark(step).exists()
        listener.step_ends(step, done=done)
        if not done:
            raise _failure(step, code, log, places, symptoms)


def _failure(
    step: Step, code: int, log: Path, places: BuildPlaces, symptoms: tuple[Symptom, ...]
) -> BuildError:
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if code == 0:
        how = "ended without leaving its mark"
    hints = [symptom.hint for symptom in symptoms if re.search(symptom.pattern, text)]
    return BuildError(
        "\n".join([f"step {step.id} ({step.title}) {how}", *(f"  | {line}" for line in lines)]),
        *hints,
        f"the whole log: {log}",
        f"its environment: bash '{places.folder / 'shell.sh'}'",
        "after a repair, the same command with --resume goes on with this step",
    )


# What the finished environment no longer needs; scripts, logs, lock and our wheel stay.
SCAFFOLDING = ("wheelhouse", "build-tools", "runtime-build")


def tidy(places: BuildPlaces) -> None:
    """Remove what only the build needed, after the environment was proved."""
    for name in SCAFFOLDING:
        shutil.rmtree(places.folder / name, ignore_errors=True)
