"""An MPI from the package index, and runs of the smoke test in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envbuilder import data, process
from envbuilder.build import sources
from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools import processes
from envbuilder.target_tools.proving.runner import SmokeRequest, Watch, WatchResult
from envbuilder.target_tools.proving.runner import run_smoke as run

# Every process of a run carries this variable, whatever it is and whoever started it.
TEST_MARK = "SMOKE_TEST_FOLDER"


def run_smoke(request: SmokeRequest) -> SmokeResult:
    """Run a smoke test as the tool does, and read what it says."""
    return SmokeResult.model_validate(run(request, process.start)["result"])


@dataclass(frozen=True)
class Mpi:
    """A folder with Python, numpy, mpi4py and an MPI."""

    prefix: Path

    @property
    def mpiexec(self) -> str:
        return str(self.prefix / "bin" / "mpiexec")

    @property
    def python(self) -> str:
        return str(self.prefix / "bin" / "python")


def virtualenv(prefix: Path, *packages: str) -> Mpi:
    """Install *packages* from the index that pip is configured for; skip where there is none."""
    python = str(prefix / "bin" / "python")
    commands = [
        [sys.executable, "-m", "venv", "--without-pip", str(prefix)],
        [python, "-I", str(data.TARGET_TOOLS), "install-pip"],
        [python, "-m", "pip", "install", "--quiet", *packages],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            last = (done.stdout + done.stderr).strip().splitlines()[-1:]
            pytest.skip(f"needs {', '.join(packages)} from the package index: {last}")
    return Mpi(prefix)


@dataclass
class Runs:
    """Starts smoke tests; each leaves no process behind, or the test fails."""

    mpi: Mpi
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(
        self,
        *,
        sabotage: str = "",
        launcher: tuple[str, ...] = (),
        ranks: int = 2,
        timeout: float = 60,
        max_bytes: int = 4096,
        options: tuple[str, ...] = (),
        **changed: Any,
    ) -> SmokeResult:
        """Run the test; *sabotage* is appended to a copy of the runtime's module.

        *options* are given to the program, *changed* to the request.
        """
        request = self.request(sabotage, launcher, ranks, timeout, max_bytes)
        request["command"] += options
        begin = time.monotonic()
        result = run_smoke(SmokeRequest(**{**request, **changed}))
        assert time.monotonic() - begin < timeout + 15, "the time limit must hold"
        assert self.left() == []
        return result

    def request(
        self,
        sabotage: str = "",
        launcher: tuple[str, ...] = (),
        ranks: int = 2,
        timeout: float = 60,
        max_bytes: int = 4096,
    ) -> dict[str, Any]:
        runtime = data.RUNTIME
        if sabotage:
            runtime = self.folder / "sabotaged"
            shutil.copytree(
                data.RUNTIME / "distributed_dl_training", runtime / "distributed_dl_training"
            )
            with (runtime / "distributed_dl_training" / "numpy.py").open("a") as module:
                module.write("\n\n" + sabotage)
        run = self.folder / "run"
        run.mkdir()
        sources.copy(data.TARGET_TOOLS, run / "target_tools")
        launcher = launcher or (self.mpi.mpiexec,)
        return {
            "command": (*launcher, "-n", str(ranks), self.mpi.python, "target_tools", "smoke"),
            "folder": run,
            "ranks": ranks,
            "timeout": timeout,
            "max_bytes": max_bytes,
            "prefix": self.mpi.prefix,
            "mpi_from": "prefix",
            "env": {
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "PYTHONPATH": str(runtime),
                "PYTHONDONTWRITEBYTECODE": "1",
                TEST_MARK: str(self.folder),
                **self.environ,
            },
        }

    @property
    def flag(self) -> Path:
        """A file for a rank to write when it has come to where it is to hang."""
        return self.folder / "flag"

    def hang(self, what: str) -> str:
        """Return a statement that writes the flag before it does *what*."""
        return f"open({str(self.flag)!r}, 'w').close(); {what}"

    def all_reported(self, ranks: int = 2) -> str:
        """Return a statement that waits until so many ranks have a record.

        The launcher ends the others with the first that dies: one that had not yet begun would be
        missing, which is another reason than its neighbour's death.
        """
        pattern = str(self.folder / "run/ranks/*.jsonl")
        files = f"__import__('glob').glob({pattern!r})"
        begun = f"sum(open(path).read().endswith('\\n') for path in {files})"
        return f"while {begun} < {ranks}: __import__('time').sleep(0.02)"

    @contextlib.contextmanager
    def hung(self, where: str, ranks: int = 2) -> Iterator[None]:
        """Let the time be up a second after the flag is written and the ranks are where they wait.

        *where*: what then stands in the records of so many ranks. How long they take to come there
        depends on what else the machine does.
        """
        wait = Watch.wait

        def all_there() -> bool:
            records = [path.read_text() for path in self.folder.glob("run/ranks/*.jsonl")]
            return self.flag.exists() and sum(where in record for record in records) == ranks

        def held(watch: Watch, running: processes.Running, timeout: float) -> WatchResult:
            until = time.monotonic() + timeout
            while not all_there():
                assert time.monotonic() < until, "they never hung"
                time.sleep(0.05)
            return wait(watch, running, 1.0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Watch, "wait", held)
            yield

    def script(self, text: str, name: str = "mpiexec") -> tuple[str, ...]:
        """Return the command of a launcher that is this shell script."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return (str(path),)

    def left(self) -> list[str]:
        """Return the command lines of processes of this run that still live."""
        mark = f"{TEST_MARK}={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                marked = entry.name.isdigit() and mark in (entry / "environ").read_bytes()
                words = (entry / "cmdline").read_bytes() if marked else b""
            except OSError:
                continue
            if words:
                found.append(words.replace(b"\0", b" ").decode())
        return found
