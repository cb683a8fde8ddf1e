"""Proving an environment: smoke -> record, for a fresh build and for a published one alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .. import data, process, sources
from ..backends import prefix_parts
from ..model.backend import PrefixParts
from ..model.evidence import Evidence, FindingNote, LaunchRecord
from ..model.knowledge import Knowledge
from ..model.launch import LaunchRequest
from ..model.places import Places
from ..model.plan import Lock, Proof
from ..model.proofs import mpi_of, proofs_of
from ..record import append, next_run, read_build_facts
from ..render.build import render_smoke
from ..target_tools.proving.runner import LOG, SmokeRequest, run_smoke
from ..target_tools.root.store import Home
from .context import Context
from .hosts import find_smoke_hosts
from .launch_requests import LaunchFacts, record, smoke_request, start_command


@dataclass(frozen=True)
class SmokeStart:
    """One smoke test, and what starts its ranks."""

    proof: Proof
    request: LaunchRequest


def smoke_starts(
    facts: LaunchFacts, context: Context, ranks: int | None = None
) -> tuple[SmokeStart, ...]:
    """Return what starts the ranks of every smoke test, in the job that the shell is in.

    Raises UsageError where nothing can: before an environment is built, not after.
    """
    hosts = find_smoke_hosts(facts.launch_node, context)
    starts = tuple(
        SmokeStart(proof, smoke_request(facts, proof, ranks or facts.plan.smoke.ranks, hosts))
        for proof in proofs_of(facts.plan)
    )
    for start in starts:
        start_command(start.request)
    return starts


def prove(
    lock: Lock,
    home: Home,
    identity: str,
    starts: Sequence[SmokeStart],
    knowledge: Knowledge,
    context: Context,
) -> tuple[Evidence, ...]:
    """Run every smoke test of the plan and keep each one's record, in a folder of its own.

    *identity*: what the folders of the environment are called by.

    The first that fails is the last that is run: the others would say nothing new of an
    environment that is refused. There is always at least one record.
    """
    proved: list[Evidence] = []
    parts = prefix_parts(lock.plan, knowledge.components)
    for start in starts:
        proved.append(_prove(start, lock, home, identity, parts, context))
        if proved[-1].result.verdict != "passed":
            break
    return tuple(proved)


def _prove(
    start: SmokeStart,
    lock: Lock,
    home: Home,
    identity: str,
    parts: PrefixParts,
    context: Context,
) -> Evidence:
    proof, request = start.proof, start.request
    run = next_run(home.evidence(identity))
    prefix = home.prefix(identity)
    _write_run(start, lock, Places(prefix=prefix, build=run), parts)
    told = run_smoke(
        SmokeRequest(
            command=("bash", "smoke.sh"),
            folder=run,
            ranks=request.ranks,
            timeout=lock.plan.smoke.timeout,
            max_bytes=lock.plan.smoke.max_bytes,
            prefix=prefix,
            api=proof.api,
            transport=proof.transport,
            mpi_from=_mpi_from(lock),
            env=dict(context.environ),
            launch=(*start_command(request).words, "python", data.TARGET_TOOLS.name, "smoke"),
        ),
        process.start,
    )
    evidence = _evidence(told, record(request), lock, home, identity, context, run)
    append(run, evidence)
    return evidence


def _evidence(
    told: Mapping[str, Any],
    request: LaunchRecord,
    lock: Lock,
    home: Home,
    identity: str,
    context: Context,
    run: Path,
) -> Evidence:
    return Evidence(
        environment=home.name,
        id=identity,
        lock_sha256=lock.sha256(),
        site=lock.plan.site,
        arch=lock.plan.arch,
        time=context.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
        log=f"{run.name}/{LOG}",
        findings=tuple(FindingNote(id=each.id, status=each.status) for each in lock.plan.findings),
        build_facts=read_build_facts(lock.plan, home.build(identity)),
        request=request,
        **told,
    )


def _write_run(start: SmokeStart, lock: Lock, places: Places, parts: PrefixParts) -> None:
    command = start_command(start.request)
    for name, text in render_smoke(lock, places, parts, command, start.proof).items():
        (places.build / name).write_text(text, encoding="utf-8")
    sources.copy(data.TARGET_TOOLS, places.build / data.TARGET_TOOLS.name)


def _mpi_from(lock: Lock) -> Literal["prefix", "wrapper"] | None:
    """Return who knows where libmpi must lie: for pip and our own builds it is the prefix."""
    pin = mpi_of(lock.plan)
    if pin is None:
        return None
    return "wrapper" if pin.origin in ("module", "system") else "prefix"
