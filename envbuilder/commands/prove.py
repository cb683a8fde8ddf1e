"""Proving an environment: smoke -> record, for a fresh build and for a published one alike."""

from __future__ import annotations

from typing import Literal

from .. import data, process, sources
from ..backends import prefix_parts
from ..model.backend import PrefixParts
from ..model.evidence import Evidence, FindingNote
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


def smoke_starts(
    facts: LaunchFacts, context: Context, ranks: int | None = None
) -> list[tuple[Proof, LaunchRequest]]:
    """Return what starts the ranks of every smoke test, in the job that the shell is in.

    Raises UsageError where nothing can: before an environment is built, not after.
    """
    hosts = find_smoke_hosts(facts.launch_node, context)
    ranks = ranks or facts.plan.smoke.ranks
    proofs = proofs_of(facts.plan)
    starts = [(proof, smoke_request(facts, proof, ranks, hosts)) for proof in proofs]
    for _, request in starts:
        start_command(request)
    return starts


def prove(
    lock: Lock,
    home: Home,
    identity: str,
    facts: LaunchFacts,
    context: Context,
    ranks: int | None = None,
) -> tuple[Evidence, ...]:
    """Run every smoke test of the plan and keep each one's record, in a folder of its own.

    *identity*: what the folders of the environment are called by. *ranks*: None for the recipe's.

    The first that fails is the last that is run: the others would say nothing new of an
    environment that is refused. There is always at least one record.
    """
    starts = smoke_starts(facts, context, ranks)
    parts = prefix_parts(lock.plan, facts.components)
    proved: list[Evidence] = []
    with context.reporter.working(f"smoke test on {ranks or lock.plan.smoke.ranks} ranks"):
        for proof, request in starts:
            proved.append(_prove(proof, request, lock, home, identity, parts, context))
            if proved[-1].result.verdict != "passed":
                break
    return tuple(proved)


def _prove(
    proof: Proof,
    request: LaunchRequest,
    lock: Lock,
    home: Home,
    identity: str,
    parts: PrefixParts,
    context: Context,
) -> Evidence:
    plan, prefix, run = lock.plan, home.prefix(identity), next_run(home.evidence(identity))
    command = start_command(request)
    for name, text in render_smoke(lock, Places(prefix, run), parts, command, proof).items():
        (run / name).write_text(text, encoding="utf-8")
    sources.copy(data.TARGET_TOOLS, run / data.TARGET_TOOLS.name)
    told = run_smoke(
        SmokeRequest(
            command=("bash", "smoke.sh"),
            folder=run,
            ranks=request.ranks,
            timeout=plan.smoke.timeout,
            max_bytes=plan.smoke.max_bytes,
            prefix=prefix,
            api=proof.api,
            transport=proof.transport,
            mpi_from=_mpi_from(lock),
            env=dict(context.environ),
            launch=(*command.words, "python", data.TARGET_TOOLS.name, "smoke"),
        ),
        process.start,
    )
    evidence = Evidence(
        environment=home.name,
        id=identity,
        lock_sha256=lock.sha256(),
        site=plan.site,
        arch=plan.arch,
        time=context.clock().strftime("%Y-%m-%dT%H:%M:%SZ"),
        log=f"{run.name}/{LOG}",
        findings=tuple(FindingNote(id=each.id, status=each.status) for each in plan.findings),
        build_facts=read_build_facts(plan, home.build(identity)),
        request=record(request),
        **told,
    )
    append(run, evidence)
    return evidence


def _mpi_from(lock: Lock) -> Literal["prefix", "wrapper"] | None:
    """Return who knows where libmpi must lie: for pip and our own builds it is the prefix."""
    pin = mpi_of(lock.plan)
    if pin is None:
        return None
    return "wrapper" if pin.origin in ("module", "system") else "prefix"
