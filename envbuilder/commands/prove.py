"""Proving an environment: smoke -> record, for a fresh build and for a published one alike."""

from __future__ import annotations

import shutil
from pathlib import Path

from .. import data
from ..model.evidence import Evidence, Noted
from ..model.places import Places
from ..model.plan import Lock
from ..record import append, next_run
from ..render import launch, render_smoke
from ..root.store import Home
from ..smoke import SmokeRequest, run_smoke
from .context import Context

LOG = "smoke.log"
MPI = ("mpich", "openmpi", "spectrum-mpi")


def prove(lock: Lock, home: Home, context: Context, *, ranks: int | None = None) -> Evidence:
    """Run the smoke test in a folder of its own beside the prefix and keep its record there."""
    asked = ranks or lock.plan.smoke.ranks
    run = next_run(home.evidence(lock.id()))
    prefix = home.prefix(lock.id())
    _write_run(lock, prefix, run)
    result = run_smoke(
        SmokeRequest(
            command=("bash", "smoke.sh"),
            folder=run,
            ranks=asked,
            timeout=lock.plan.smoke.timeout,
            max_bytes=lock.plan.smoke.max_bytes,
            prefix=prefix,
            mpi_owner=_mpi_owner(lock),
            env=context.environ,
            launch=launch(lock.plan.launcher, str(asked), ("python", "smoke.py")),
        )
    )
    evidence = Evidence(
        environment=home.name,
        id=lock.id(),
        lock_sha256=lock.sha256(),
        site=lock.plan.site,
        arch=lock.plan.arch,
        execution="native",
        time=context.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
        log=f"{run.name}/{LOG}",
        findings=tuple(Noted(id=each.id, status=each.status) for each in lock.plan.findings),
        result=result,
    )
    append(run, evidence)
    return evidence


def _write_run(lock: Lock, prefix: Path, run: Path) -> None:
    for name, text in render_smoke(lock, Places(prefix=prefix, build=run)).items():
        (run / name).write_text(text, encoding="utf-8")
    shutil.copyfile(data.SMOKE_PROGRAM, run / "smoke.py")


def _mpi_owner(lock: Lock) -> str | None:
    """Return where libmpi must come from: the prefix where pip brought the MPI; None: anywhere."""
    for pin in lock.plan.pins:
        if pin.component in MPI:
            return "prefix" if pin.origin == "pip" else None
    return None
