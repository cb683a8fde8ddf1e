"""Proving an environment: smoke -> record, for a fresh build and for a published one alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import process
from ..build.backends import prefix_parts
from ..model.evidence import Evidence
from ..model.launch import LaunchRequest
from ..model.plan import Lock, Proof, mpi_from, proofs_of
from ..record import subject_of
from ..render.build import render_smoke
from ..root.environments import places_of
from ..runtimes import other_api
from ..target_tools.proving.evidence import prove as run_proofs
from ..target_tools.root.layout import Home
from .context import Context
from .hosts import find_smoke_hosts
from .launch_requests import LaunchFacts, record, smoke_request, start_command

Starts = list[tuple[Proof, LaunchRequest]]
"""Every smoke test with what starts its ranks."""


def smoke_starts(facts: LaunchFacts, context: Context, ranks: int | None = None) -> Starts:
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
    """Run every smoke test of the plan and keep each one's record, until one fails.

    *identity*: what the folders of the environment are called by. *ranks*: None for the recipe's.
    """
    starts = smoke_starts(facts, context, ranks)
    proving = proving_in(lock, starts, home, identity, facts)
    with context.reporter.working(f"smoke test on {ranks or lock.plan.smoke.ranks} ranks"):
        environ = dict(context.environ)
        proved = run_proofs(proving, home, identity, environ, process.start)
    return evidence_of(proved, lock)


def evidence_of(proved: Iterable[dict[str, Any]], lock: Lock) -> tuple[Evidence, ...]:
    """Return the records of smoke tests, as JSON, that were made now."""
    records = (Evidence.model_validate(each) for each in proved)
    return tuple(
        each.model_copy(update={"by": other_api(lock.plan, each.result.api)}) for each in records
    )


def proving_in(
    lock: Lock, starts: Starts, home: Home, identity: str, facts: LaunchFacts
) -> dict[str, Any]:
    """Return what is to be proved of what is in a root, as JSON, with the scripts of each proof."""
    parts, places = prefix_parts(lock.plan, facts.components), places_of(home, identity)
    proving = proving_of(lock, starts, identity, facts.partition)
    for described, (proof, request) in zip(proving["proofs"], starts, strict=True):
        described["files"] = render_smoke(lock, places, parts, start_command(request), proof)
    return proving


def proving_of(
    lock: Lock, starts: Starts, identity: str, partition: str | None = None
) -> dict[str, Any]:
    """Return what is to be proved, as JSON, for ``target_tools``; the scripts are still to come."""
    plan = lock.plan
    return {
        "about": {
            "schema": 1,
            **{name: value for name, value in subject_of(lock, identity).items() if value},
            **({"partition": partition} if partition else {}),
            "findings": [{"id": each.id, "status": each.status} for each in plan.findings],
            **({"stand-ins": list(lock.stand_ins)} if lock.stand_ins else {}),
        },
        "components": sorted({each.component for each in (*plan.builds, *plan.verified)}),
        "timeout": plan.smoke.timeout,
        "max-bytes": plan.smoke.max_bytes,
        "mpi-from": mpi_from(plan),
        "proofs": [
            {
                "api": proof.api,
                "transport": proof.transport,
                "launch": list(start_command(request).words),
                "request": record(request).plain(),
            }
            for proof, request in starts
        ],
    }


def script_starts(facts: LaunchFacts, ranks: int | None = None) -> Starts:
    """Return what starts the ranks of every smoke test where it is not known yet: on one node."""
    ranks = ranks or facts.plan.smoke.ranks
    return [(proof, smoke_request(facts, proof, ranks)) for proof in proofs_of(facts.plan)]
