"""Running the smoke test: start the ranks, wait, get stacks out of a hang, leave nothing behind."""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from .. import proc
from ..files import IrregularFileError, read_end
from ..processes import now, start
from .binding import new_nonce
from .findings import end_time, execution
from .judge import Expectations, LauncherNode, Outcome, judge
from .mpi_library import PlanMpi, of_prefix, of_wrapper
from .processes import MARK, POLL, collect_stacks, end_all, find, states
from .records import RankRecords, read_ranks
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, ContextManager, Mapping

    from ..processes import Running

    # See ``processes.start``.
    Start = Callable[..., ContextManager[Running]]

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


class SmokeRequest(NamedTuple):
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
        whose answer the command puts into *folder*; one of the ``files`` that are named, or of
        those, which are the ``host``'s there; None: it holds none.
    mpi_files: these.
    about: what the run proves, see ``binding``; the nonce of the run is bound to it.
    """

    command: "tuple[str, ...]"
    folder: Path
    ranks: int
    timeout: float
    max_bytes: int
    prefix: Path
    env: "Mapping[str, str]"
    launch: "tuple[str, ...]" = ()
    api: str = "numpy"
    transport: "str | None" = None
    mpi_from: "str | None" = None
    mpi_files: "tuple[str, ...]" = ()
    about: "Mapping[str, Any]" = {}  # noqa: RUF012 - never changed


def run_smoke(request: SmokeRequest, start: "Start" = start) -> "dict[str, Any]":
    """Run the test; a failure is a result, not an error.

    Returns the keys ``execution`` (native or emulated), ``time``, ``run`` and ``result`` of an
    Evidence, as JSON.
    *start* starts the command, as ``processes.start``; its errors are raised.
    """
    nonce = new_nonce(request.about)
    folder = request.folder.resolve() / RECORDS
    folder.mkdir(exist_ok=True)
    try:
        records, outcome = run(request, folder, nonce, start)
    finally:
        # Also when the user interrupts: ranks may live in sessions of their own.
        end_all(nonce, END_PATIENCE)
    told = execution(records.ranks) if records.ranks else proc.execution()
    result = judge(records, outcome, expectations(request)._replace(nonce=nonce))
    observation = outcome.observation
    assert observation is not None  # noqa: S101 - every run has one
    return {
        "execution": told,
        "time": end_time(records.ranks, observation.end),
        "run": observation_json(observation),
        "result": result,
    }


def observation_json(observation: LauncherNode) -> "dict[str, Any]":
    """Return an observation as the ``run`` of an Evidence."""
    fields = observation._asdict().items()
    return {name.replace("_", "-"): value for name, value in fields}


def run(
    request: SmokeRequest, folder: Path, nonce: str, start: "Start"
) -> "tuple[RankRecords, Outcome]":
    """Return the records of a run and how it came to its end."""
    log = request.folder / LOG
    env = dict(request.env, ENVBUILD_RANKS=str(request.ranks), **{MARK: nonce})
    command = [*request.command, "--out", str(folder), "--nonce", nonce]
    command += ["--ranks", str(request.ranks), "--max-bytes", str(request.max_bytes)]
    command += ["--timeout", f"{request.timeout:g}"]
    begin, begin_unix = now(), time.time()
    with start(command, env=env, log=log, cwd=request.folder) as running:
        watched = Watch(folder, nonce, request.ranks).wait(running, request.timeout)
        seconds = now() - begin
        if watched.code is not None:
            records, left_behind = settle(folder, nonce, request.ranks, watched.code)
            snapshots: "dict[str, str]" = {}
            # What the fault handlers of ranks that crashed wrote: the stack at the crash.
            stacks = {r.source: r.stack.strip() for r in records.ranks if not r.ended}
            stacks = {source: text for source, text in stacks.items() if text}
        else:
            records, left_behind = read_ranks(folder, nonce), 0
            snapshots = states(records.ranks, nonce)
            stacks = collect_stacks(records.ranks, folder, nonce, STACK_PATIENCE)
        outcome = Outcome(
            code=watched.code,
            timed_out=watched.code is None and not watched.lost,
            seconds=seconds,
            log=tail(log),
            states=snapshots,
            stacks=stacks,
            left_behind=left_behind,
            first_gone=watched.first_gone,
            observation=LauncherNode(
                host=os.uname().nodename,
                boot_id=proc.boot_id(),
                pid_namespace=proc.pid_namespace(),
                begin=begin_unix,
                end=time.time(),
                observed=watched.observed,
            ),
        )
    return records, outcome


def settle(folder: Path, nonce: str, ranks: int, code: int) -> "tuple[RankRecords, int]":
    """Return the records and the number of processes that are left some time after the end."""
    until = now() + SETTLING
    while True:
        left = len(find(nonce))
        records = read_ranks(folder, nonce)
        complete = sum(record.ended for record in records.ranks) >= ranks
        settled = left == 0 and (complete or code != 0)
        if settled or now() > until:
            return records, left
        time.sleep(POLL)


def tail(log: Path) -> str:
    """Return the end of a log."""
    try:
        return read_end(log, LOG_BYTES)
    except IrregularFileError as error:
        return f"{log.name}: {error}"


def expectations(request: SmokeRequest) -> Expectations:
    """Return the expectations that the records are judged by."""
    prefix = request.prefix.resolve()
    files = tuple(request.mpi_files)
    sources = {
        "prefix": lambda: of_prefix(prefix),
        "wrapper": lambda: of_wrapper(request.folder),
        "files": lambda: PlanMpi(source=", ".join(files), files=files),
        "host": lambda: PlanMpi(source=f"{', '.join(files)}, the host's", files=files),
    }
    return Expectations(
        ranks=request.ranks,
        launch=request.launch or request.command,
        timeout=request.timeout,
        prefix=str(prefix),
        api=request.api,
        transport=request.transport,
        mpi=sources[request.mpi_from]() if request.mpi_from else None,
        host=files if request.mpi_from == "host" else (),
    )
