"""Proving an environment: smoke -> record, for a fresh build and for a published one alike."""

from __future__ import annotations

from pathlib import Path

from .. import data, sources
from ..model.evidence import Evidence, Noted, SmokeResult
from ..model.places import Places
from ..model.plan import Lock, Proof
from ..model.proofs import mpi_of, proofs_of
from ..record import append, next_run
from ..render import launch, render_smoke
from ..root.store import Home
from ..smoke import MpiFrom, SmokeRequest, run_smoke
from .context import Context

LOG = "smoke.log"


def prove(
    lock: Lock, home: Home, context: Context, *, ranks: int | None = None
) -> tuple[Evidence, ...]:
    """Run every smoke test of the plan and keep each one's record, in a folder of its own.

    The first that fails is the last that is run: the others would say nothing new of an
    environment that is refused. There is always at least one record.
    """
    proved: list[Evidence] = []
    for proof in proofs_of(lock.plan):
        proved.append(_prove(proof, lock, home, context, ranks or lock.plan.smoke.ranks))
        if proved[-1].result.verdict != "passed":
            break
    return tuple(proved)


def _prove(proof: Proof, lock: Lock, home: Home, context: Context, ranks: int) -> Evidence:
    run = next_run(home.evidence(lock.id()))
    prefix = home.prefix(lock.id())
    _write_run(proof, lock, prefix, run)
    result = run_smoke(
        SmokeRequest(
            command=("bash", "smoke.sh"),
            folder=run,
            ranks=ranks,
            timeout=lock.plan.smoke.timeout,
            max_bytes=lock.plan.smoke.max_bytes,
            prefix=prefix,
            api=proof.api,
            transport=proof.transport,
            mpi_from=_mpi_from(lock),
            env=context.environ,
            launch=launch(proof.launcher, str(ranks), ("python", "smoke.py"), proof.transport),
        )
    )
    evidence = _evidence(result, lock, home, context, run)
    append(run, evidence)
    return evidence


def _evidence(result: SmokeResult, lock: Lock, home: Home, context: Context, run: Path) -> Evidence:
    return Evidence(
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


def _write_run(proof: Proof, lock: Lock, prefix: Path, run: Path) -> None:
    for name, text in render_smoke(lock, Places(prefix=prefix, build=run), proof).items():
        (run / name).write_text(text, encoding="utf-8")
    sources.add(data.SMOKE_PROGRAM, run)


def _mpi_from(lock: Lock) -> MpiFrom | None:
    """Return who knows where libmpi must lie: for pip and our own builds it is the prefix."""
    pin = mpi_of(lock.plan)
    if pin is None:
        return None
    return "wrapper" if pin.origin in ("module", "system") else "prefix"
