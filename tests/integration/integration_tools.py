"""Running the installed command as a user would, and small recipes for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from envbuilder.model.plan import Edit, Lock

STAMP = ".envbuild.json"
# A variable that every process of a run under test inherits.
MARK = "TEST_MARK"
# The tests' own, so that none takes a lock that another left.
LOCK_CACHE = "ENVBUILD_LOCK_CACHE"
SUMMARY = "A small recipe of the tests"
SMALL_BYTES = 65536
# Seconds after which a command of these tests counts as hung.
PATIENCE = 240.0

BESIDE = Path(sys.executable).with_name("envbuild")
COMMAND = (str(BESIDE),) if BESIDE.is_file() else (sys.executable, "-m", "envbuilder")


@dataclass(frozen=True)
class Done:
    """A command that ended: ``code`` is negative for a signal."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def clean_environ(changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the caller's environment without what would steer the command, with these changes.

    None takes a variable away.
    """
    steering = ("ENVBUILD_", "PYTHON", "VIRTUAL_ENV", "MODULE", "LMOD", "LOADEDMODULES")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == LOCK_CACHE or not name.startswith(steering)
    }
    changed: dict[str, str | None] = {**kept, **(changes or {})}
    return {name: value for name, value in changed.items() if value is not None}


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    timeout: float = PATIENCE,
) -> Done:
    """Run any command to its end in the clean environment with these changes."""
    return finish(start(command, env=env, cwd=cwd), timeout)


def unpack_bundle(archive: str | Path, folder: Path) -> None:
    """Unpack a bundle as its users do; the first releases of 3.10 and 3.11 know no ``filter``."""
    folder.mkdir(parents=True, exist_ok=True)
    done = run(["tar", "-C", folder, "-xf", archive])
    assert done.code == 0, done.text


def start(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
) -> subprocess.Popen[str]:
    """Start any command as the leader of a process group, with pipes for its output."""
    return subprocess.Popen(
        [str(word) for word in command],
        env=clean_environ(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def read_until(said: str, running: subprocess.Popen[str]) -> str:
    """Return what a command writes on stderr until it has *said* this; fail if it never does."""
    assert running.stderr is not None
    text = b""
    while said.encode() not in text:
        some = os.read(running.stderr.fileno(), 4096)
        assert some, f"it never said {said!r}:\n{text.decode()}"
        text += some
    return text.decode()


def finish(running: subprocess.Popen[str], timeout: float = PATIENCE) -> Done:
    """Wait for a command; one that hangs is ended and fails the test."""
    try:
        out, err = running.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        out, err = running.communicate()
        pytest.fail(f"it did not end within {timeout:.0f} s:\n{out}{err}")
    return Done(running.returncode, out, err)


class Envbuild:
    """Runs the installed command in a process of its own, from an empty folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        *words: str | Path,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = PATIENCE,
        through: Sequence[str] = (),
    ) -> Done:
        """Run ``envbuild WORDS`` to its end; *through* is what it is started by (unshare...)."""
        return finish(self.start(*words, env=env, cwd=cwd, through=through), timeout)

    def start(
        self,
        *words: str | Path,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        through: Sequence[str] = (),
    ) -> subprocess.Popen[str]:
        """Start ``envbuild WORDS``; whoever calls must end it with ``finish``."""
        return start([*through, *COMMAND, *words], env=env, cwd=cwd or self._folder)


SMALL = """\
schema: 1
name: {name}
summary: {summary}
arch: [x86_64, aarch64]
backend: virtualenv
stack:
  python: ">=3.8"
  numpy: "*"
  mpi4py: ">=4"
  mpich: ">=4.2"
runtime:
  package: distributed-dl-training
env:
  VARIANT: "{summary}"
smoke:
  ranks: 2
  max-bytes: {max_bytes}
{more}"""


def small_recipe(
    folder: Path,
    name: str,
    *,
    summary: str = SUMMARY,
    max_bytes: int = SMALL_BYTES,
    more: str = "",
) -> Path:
    """Write a recipe whose smoke test is short; return its file. *more* is YAML that is added.

    Another *summary* is another environment: it is the value of a variable as well.
    """
    path = folder / f"{name}.yaml"
    path.write_text(
        SMALL.format(name=name, summary=summary, max_bytes=max_bytes, more=more), encoding="utf-8"
    )
    return path


def write_wheel(folder: Path, content: str) -> Path:
    """Write a wheel of one module."""
    path = folder / "tinywheel-1.0-py3-none-any.whl"
    info = "tinywheel-1.0.dist-info"
    files = {
        "tinywheel.py": content,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tinywheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
    return path


def small_lock(built_root: Path, name: str, summary: str = SUMMARY) -> Lock:
    """Return the lock of a small recipe, made from that of allreduce: the files are the same."""
    text = (built_root / "allreduce" / "lock.json").read_text(encoding="utf-8")
    text = text.replace("(recipe allreduce)", f"(recipe {name})")
    lock = Lock.model_validate_json(text)
    smoke = lock.plan.smoke.model_copy(update={"max_bytes": SMALL_BYTES})
    variant = Edit(kind="set", name="VARIANT", value=summary)
    # Another recipe than that of the lock decides it: else the smoke test would be derived again.
    inputs = tuple(
        each.model_copy(update={"sha256": "0" * 64}) if each.kind == "recipe" else each
        for each in lock.plan.inputs
    )
    changes = {
        "recipe": name,
        "inputs": inputs,
        "summary": summary,
        "smoke": smoke,
        "environment": (*lock.plan.environment, variant),
    }
    return lock.model_copy(update={"plan": lock.plan.model_copy(update=changes)})


def seed(root: Path, built_root: Path, *locks: Lock) -> Path:
    """Make a root in which pip was asked already: ``create`` finds these locks still fit."""
    root.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built_root / STAMP, root / STAMP)
    for lock in locks:
        folder = root / lock.plan.recipe
        folder.mkdir(exist_ok=True)
        (folder / "lock.json").write_text(lock.text(), encoding="utf-8")
    return root


def marked(mark: str) -> dict[int, str]:
    """Return the living processes that were started with TEST_MARK=*mark*: id -> command."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            command = os.fsdecode((entry / "cmdline").read_bytes().replace(b"\0", b" "))
        except OSError:
            continue
        # A zombie shows neither.
        if f"{MARK}={mark}".encode() in variables:
            found[int(entry.name)] = command
    return found


def published_state(root: Path, name: str) -> dict[str, tuple[int, int, int]]:
    """Return mode, size and time of every file that users of an environment's numbers see."""
    # Which number was given last is no part of any.
    below = (root / "modulefiles" / name).iterdir()
    modules = [path for path in below if path.name != ".last-number"]
    prefixes = [path for path in (root / name).glob("?" * 12) if not path.stat().st_mode & 0o200]
    state = {}
    for path in (*modules, *(file for prefix in prefixes for file in (prefix, *prefix.rglob("*")))):
        about = path.lstat()
        state[str(path)] = (about.st_mode, about.st_size, about.st_mtime_ns)
    return state


def without_network() -> list[str]:
    """Return what a command is started by to have no network, where that is allowed."""
    words = ["unshare", "--net", "bash", "-c", 'ip link set lo up; exec "$@"', "alone"]
    allowed = shutil.which("unshare") and shutil.which("ip") and run([*words, "true"]).code == 0
    return words if allowed else []
