"""An MPI from the package index, and runs of the smoke test in a folder of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envbuilder import data, sources
from envbuilder.model.evidence import SmokeResult
from envbuilder.smoke import SmokeRequest, run_smoke

# Every process of a run carries this variable, whatever it is and whoever started it.
TEST_MARK = "SMOKE_TEST_FOLDER"


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
    commands = [
        [sys.executable, "-m", "venv", str(prefix)],
        [str(prefix / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages],
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
        sources.add(data.SMOKE_PROGRAM, run)
        launcher = launcher or (self.mpi.mpiexec,)
        return {
            "command": (*launcher, "-n", str(ranks), self.mpi.python, "smoke.py"),
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
