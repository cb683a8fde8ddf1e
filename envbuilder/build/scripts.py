"""The builder: writes what was rendered, runs its steps one by one, keeps a log of each.

What you read is what runs: every step is ``bash build.sh STEP``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from .. import data, process
from ..errors import BuildError
from ..model.plan import Lock, Step
from ..model.progress import Listener
from ..target_tools.files import IrregularFileError, read_end
from ..target_tools.steps import MORE_TIME, ending, limit_of, stated_limit
from ..text import last_lines
from . import sources

# What is read of the end of a log, in bytes.
_LOG_BYTES = 65536


def prepare(folder: Path, files: Mapping[str, str], runtime_source: Path) -> None:
    """Write the build folder: the rendered files, what they call, the runtime's sources."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sources.copy(data.TARGET_TOOLS, folder / data.TARGET_TOOLS.name)
    sources.copy(runtime_source, folder / "runtime")


def hand_over(lock: Lock, downloads: Path, folder: Path) -> None:
    """Give the build what of its files is in *downloads*: it checks the hash of each.

    Both folders are on one file system.
    """
    wheelhouse = folder / "wheelhouse"
    wheelhouse.mkdir(exist_ok=True)
    for artifact in lock.wheelhouse:
        if (downloads / artifact.filename).is_file():
            (downloads / artifact.filename).replace(wheelhouse / artifact.filename)


def build(
    lock: Lock,
    folder: Path,
    env: Mapping[str, str],
    listener: Listener,
    explain: Callable[[Path], tuple[str, ...]] = lambda _log: (),
) -> None:
    """Run every step that has no mark yet; raises BuildError with the log of the one that failed.

    A step that does not end in time is ended, and failed. *explain* returns hints for the log of a
    step that failed. Raises UsageError for a time limit in *env* that is none.
    """
    stated = stated_limit(env)
    (folder / "logs").mkdir(exist_ok=True)
    for number, step in enumerate(lock.plan.steps, start=1):
        mark, log = (
            folder / "state" / f"{step.id}.done",
            folder / "logs" / f"{number:02}-{step.id}.log",
        )
        if mark.exists():
            continue
        listener.step_begins(step)
        log.unlink(missing_ok=True)
        limit = limit_of(step.id, stated)
        code = process.follow(
            ["bash", str(folder / "build.sh"), step.id],
            env=env,
            log=log,
            cwd=folder,
            on_line=listener.step_says,
            timeout=limit,
        )
        done = code == 0 and mark.exists()
        listener.step_ends(step, done=done)
        if not done:
            how = ending(code, limit)
            raise _failure(step, how, log, folder, explain(log))


def _failure(step: Step, how: str, log: Path, folder: Path, hints: tuple[str, ...]) -> BuildError:
    try:
        text = read_end(log, _LOG_BYTES)
    except IrregularFileError as error:
        text = f"{log}: {error}"
    return BuildError(
        "build.step-failed",
        "\n".join([f"step {step.id} ({step.title}) {how}", *last_lines(text)]),
        *hints,
        *([MORE_TIME] if "did not end" in how else []),
        f"complete log: {log}",
        f"its environment: bash '{folder / 'shell.sh'}'",
        "after fixing the cause, run the same command with --resume to continue with this step",
    )
