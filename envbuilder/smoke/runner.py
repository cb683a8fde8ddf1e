"""Running the smoke test: start the ranks, wait, get stacks out of a hang, leave nothing behind."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .. import process
from ..model.evidence import SmokeResult
from ..model.plan import Api, Transport
from .judge import judge
from .mpi_library import PlanMpi, of_prefix, of_wrapper
from .outcome import Expectations, Outcome
from .processes import MARK, POLL, collect_stacks, end_all, find, states
from .records import Records, read_ranks
from .watch import Watch

LOG = "smoke.log"
RECORDS = "ranks"
# Seconds that hung ranks have to write their stacks.
STACK_PATIENCE = 2.0
# Seconds after the launcher's end in which ranks may still end, and a shared file system may
# still show what other nodes wrote.
SETTLING = 2.0
# Seconds that ended processes have to go.
END_PATIENCE = 3.0
# So much of the end of the log is looked at.
LOG_BYTES = 65536

MpiFrom = Literal["prefix", "wrapper"]


@dataclass(frozen=True)
class SmokeRequest:
    """One smoke test.

    command: starts the ranks; it is run in *folder*, with their program's options added, and
        must hand them to the program on every rank. ``ENVBUILD_RANKS`` holds the number of ranks.
    folder: of this run alone; nothing is written anywhere else.
    timeout: seconds until a run counts as hung; ending it takes some seconds more.
    max_bytes: largest message in bytes.
    prefix: libraries below it are the environment's own.
    launch: the words that start the ranks, as shown and kept; none: those of *command*.
    api, transport: what *command* lets the ranks talk through, and what must carry the data then;
        a transport of None: anything.
    mpi_from: where the plan has its MPI: in the ``prefix``, or where its compiler ``wrapper`` says,
        whose answer the command puts into *folder*; None: it holds none.
    """

    command: tuple[str, ...]
    folder: Path
    ranks: int
    timeout: float
    max_bytes: int
    prefix: Path
    env: Mapping[str, str]
    launch: tuple[str, ...] = ()
    api: Api = "numpy"
    transport: Transport | None = None
    mpi_from: MpiFrom | None = None


def run_smoke(request: SmokeRequest) -> SmokeResult:
    """Run the test to its verdict; a failed one is a result, not an error.

    Raises MissingToolError if the command cannot be started.
    """
    nonce = secrets.token_hex(16)
    folder = request.folder.resolve() / RECORDS
    folder.mkdir(exist_ok=True)
    try:
        records, outcome = _run(request, folder, nonce)
    finally:
        # Also when the user interrupts: ranks may live in sessions of their own.
        end_all(nonce, END_PATIENCE)
    return judge(records, outcome, _expectations(request))


def _run(request: SmokeRequest, folder: Path, nonce: str) -> tuple[Records, Outcome]:
    log = request.folder / LOG
    env = {**request.env, MARK: nonce, "ENVBUILD_RANKS": str(request.ranks)}
    command = (*request.command, *_options(request, folder, nonce))
    begin = process.now()
    with process.start(command, env=env, log=log, cwd=request.folder) as running:
        watched = Watch(folder, nonce, request.ranks).wait(running, request.timeout)
        seconds = process.now() - begin
        if watched.code is not None:
            records, left_behind = _settle(folder, nonce, request.ranks, watched.code)
            snapshots, stacks = {}, _crashes(records)
        else:
            records, left_behind = read_ranks(folder, nonce), 0
            snapshots = states(records.ranks, nonce)
            stacks = collect_stacks(records.ranks, folder, nonce, STACK_PATIENCE)
        outcome = Outcome(
            code=watched.code,
            timed_out=watched.code is None and not watched.lost,
            seconds=seconds,
            log=_tail(log),
            states=snapshots,
            stacks=stacks,
            left_behind=left_behind,
            first_gone=watched.first_gone,
        )
    return records, outcome


def _options(request: SmokeRequest, folder: Path, nonce: str) -> tuple[str, ...]:
    return (
        "--out",
        str(folder),
        "--nonce",
        nonce,
        "--ranks",
        str(request.ranks),
        "--max-bytes",
        str(request.max_bytes),
        "--timeout",
        f"{request.timeout:g}",
    )


def _settle(folder: Path, nonce: str, ranks: int, code: int) -> tuple[Records, int]:
    """Return the records and the number of processes that are left some time after the end."""
    until = process.now() + SETTLING
    while True:
        left = len(find(nonce))
        records = read_ranks(folder, nonce)
        complete = sum(record.ended for record in records.ranks) >= ranks
        settled = left == 0 and (complete or code != 0)
        if settled or process.now() > until:
            return records, left
        time.sleep(POLL)


def _crashes(records: Records) -> dict[str, str]:
    """Return what the fault handlers of ranks that crashed wrote: the stack at the crash."""
    return {
        record.source: record.stack.strip()
        for record in records.ranks
        if record.stack.strip() and not record.ended
    }


def _tail(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - LOG_BYTES))
        return stream.read().decode("utf-8", "replace")


def _expectations(request: SmokeRequest) -> Expectations:
    return Expectations(
        ranks=request.ranks,
        launch=request.launch or request.command,
        timeout=request.timeout,
        prefix=str(request.prefix.resolve()),
        api=request.api,
        transport=request.transport,
        mpi=_plan_mpi(request),
    )


def _plan_mpi(request: SmokeRequest) -> PlanMpi | None:
    if request.mpi_from is None:
        return None
    if request.mpi_from == "prefix":
        return of_prefix(request.prefix.resolve())
    return of_wrapper(request.folder)
