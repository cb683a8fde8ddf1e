"""Runs of the smoke test whose launcher hands in the records of an earlier run."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from envbuilder import data, process
from envbuilder.build import sources
from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools.proving.runner import SmokeRequest, run_smoke
from tests.smoke.smoke_ranks import LIBMPI, Rank

# Writes the records of RECORDS with the nonce of this run.
REPLAY = """
import os, pathlib, sys
options = dict(zip(sys.argv, sys.argv[1:]))
for path in pathlib.Path(os.environ["RECORDS"]).glob("rank-*.jsonl"):
    text = path.read_text().replace(os.environ["NONCE"], options["--nonce"])
    (pathlib.Path(options["--out"]) / path.name).write_text(text)
"""


def env() -> dict[str, str]:
    """Return what a launcher of this machine needs to start."""
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    return {"PATH": os.environ["PATH"], **dict.fromkeys(as_root, "1")}


def write_records(folder: Path, hosts: tuple[str, str], **changes: str) -> Path:
    """Write the records of an earlier run of two ranks."""
    folder.mkdir()
    for number, host in enumerate(hosts):
        Rank(
            number,
            host=host,
            pid=2**22 + number,
            libraries=[LIBMPI],
            unix=time.time(),
            **changes,  # type: ignore[arg-type]
        ).write(folder)
    return folder


def run(
    folder: Path,
    launcher: str,
    program: str,
    earlier: Path,
    variables: dict[str, str] | None = None,
) -> SmokeResult:
    """Run a smoke test whose launcher is a Python program of that name."""
    place = folder / "bin"
    place.mkdir()
    path = place / launcher
    path.write_text(f"#!{sys.executable}\n{program}")
    path.chmod(0o755)
    test = folder / "run"
    test.mkdir()
    sources.copy(data.TARGET_TOOLS, test / "target_tools")
    request = SmokeRequest(
        command=(str(path), "-n", "2", "python", "target_tools", "smoke"),
        folder=test,
        ranks=2,
        timeout=30,
        max_bytes=4096,
        prefix=Path("/prefix"),
        env={**(variables or env()), "RECORDS": str(earlier), "NONCE": "c0ffee"},
        about={"environment": "demo"},
    )
    return SmokeResult.model_validate(run_smoke(request, process.start)["result"])


def replay_by(
    folder: Path,
    command: tuple[str, ...],
    earlier: Path,
    variables: dict[str, str] | None = None,
    python: str | None = sys.executable,
) -> SmokeResult:
    """Have a real launcher start processes that hand in the earlier records.

    *python*: None where the command ends with the Python that runs them. The options that the
    smoke test gives to its launcher are replaced by those of ``command``.
    """
    (folder / "replay.py").write_text(REPLAY)
    words = [*command, *([python] if python else []), str(folder / "replay.py")]
    script = f"import os, sys\nos.execv({command[0]!r}, {words!r} + sys.argv[6:])\n"
    return run(folder, Path(command[0]).name, script, earlier, variables)
