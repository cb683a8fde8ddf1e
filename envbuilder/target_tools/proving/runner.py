"""Running the smoke test: start the ranks, wait, get stacks out of a hang, leave nothing behind."""

import contextlib
import os
import select
import time
from pathlib import Path
from typing import Any, Iterable, NamedTuple

from .. import proc
from ..files import IrregularFileError, read_end
from ..processes import Running, now, start
from .binding import new_nonce
from .findings import end_time, execution
from .judge import Expectations, LauncherNode, Outcome, judge
from .mpi_library import PlanMpi, of_prefix, of_wrapper
from .processes import MARK, POLL, collect_stacks, end_all, find, of_record, states
from .records import RECORD_FILES, RankRecord, RankRecords, read_rank, read_ranks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, ContextManager, Mapping

    Start = Callable[..., ContextManager[Running]]

# A rank that dies takes the others with it, or leaves them waiting until the time is up. Launchers
# do not always notice (MPICH's hydra: a rank that exits before MPI starts), and seldom say who was
# first. Here the first one to go is remembered, and useless waiting is cut short.

# Seconds between two looks, where the kernel does not wake us at a death.
TICK = 0.1
# Seconds for which a launcher may go on after a rank died.
PATIENCE = 5.0
# A rank that failed stays this long after saying so (the program's PARTING, less what a look may
# take): whoever is lost by then was ended by the launcher, or by the failure.
STAYS = 0.4


class WatchResult(NamedTuple):
    """The result of waiting. Without a code and a rank that went: the time limit passed.

    observed: the records whose processes were seen alive.
    """

    code: "int | None" = None
    first_gone: "str | None" = None
    lost: bool = False
    observed: "tuple[str, ...]" = ()


class LivingRank(NamedTuple):
    """A rank that was seen alive."""

    path: Path
    pid: int
    started: int

    def goes(self) -> bool:
        """Return whether the process is gone or on its way out.

        A launcher may end the others once a rank's files are closed: they can be gone sooner.
        """
        return proc.birth(self.pid) != self.started or proc.is_exiting(self.pid)


class Alarm:
    """Wakes the waiting process when another one ends.

    Without Linux 5.3 and Python 3.9 it only waits, and processes are polled.
    """

    def __init__(self, descriptors: contextlib.ExitStack) -> None:
        self._descriptors = descriptors
        self._poll = select.poll()
        self._pids: "dict[int, int]" = {}

    def watch(self, pid: int) -> None:
        """Watch one more process."""
        with contextlib.suppress(OSError, AttributeError):
            descriptor = os.pidfd_open(pid)
            self._descriptors.callback(os.close, descriptor)
            self._poll.register(descriptor, select.POLLIN)
            self._pids[descriptor] = pid

    def wait(self, seconds: float) -> "set[int]":
        """Wait at most *seconds*, or until watched processes end; return these."""
        gone = [descriptor for descriptor, _ in self._poll.poll(1000 * seconds)]
        for descriptor in gone:
            self._poll.unregister(descriptor)
        return {self._pids[descriptor] for descriptor in gone}


class Watch:
    """The living ranks of one run on this machine."""

    def __init__(self, folder: "Path", nonce: str, ranks: int) -> None:
        self.folder = folder
        self.nonce = nonce
        self.ranks = ranks
        self.noticed: "set[Path]" = set()
        self.observed: "set[str]" = set()
        self.living: "list[LivingRank]" = []
        self.all_seen = True
        self.first_gone: "str | None" = None
        self.gone_since: "float | None" = None

    def wait(self, running: Running, timeout: float) -> WatchResult:
        """Wait for the launcher's end, at most *timeout* seconds, or until a rank is lost."""
        until = now() + timeout
        ended: "set[int]" = set()
        with contextlib.ExitStack() as descriptors:
            alarm = Alarm(descriptors)
            while True:
                code = running.wait(0)
                for pid in self._notice():
                    alarm.watch(pid)
                self._look(ended)
                time = now()
                lost = self.gone_since is not None and time - self.gone_since > PATIENCE
                if code is not None or time > until or lost:
                    lost = lost and code is None
                    return WatchResult(code, self.first_gone, lost, tuple(sorted(self.observed)))
                ended = alarm.wait(min(TICK, until - time))

    def _read(self, paths: "Iterable[Path]") -> "list[RankRecord]":
        records = [read_rank(path, self.nonce) for path in paths]
        return [record for record in records if isinstance(record, RankRecord)]

    def _notice(self) -> "list[int]":
        """Take note of ranks that have begun since the last look; return their process ids."""
        if len(self.noticed) >= self.ranks:
            return []
        begun = self._read(set(self.folder.glob(RECORD_FILES)) - self.noticed)
        processes = find(self.nonce) if begun else []
        new = []
        for record in begun:
            path = self.folder / record.source
            self.noticed.add(path)
            one = of_record(record, processes)
            if one:
                new.append(LivingRank(path, one.pid, one.started))
                self.observed.add(record.source)
            else:
                self.all_seen = False  # on another node, out of our sight, or gone already
        self.living += new
        return [rank.pid for rank in new]

    def _look(self, ended: "set[int]") -> None:
        """Determine which ranks are gone, and whether they had finished.

        ``ended``: processes that are known to be gone. They are checked first, because only a
        process that is alive after another was gone has outlived it.
        """
        ranks = sorted(self.living, key=lambda rank: rank.pid not in ended)
        gone = [rank for rank in ranks if rank.goes()]
        if gone and gone[0] is not ranks[0]:
            gone = [rank for rank in ranks if rank.goes()]
        self.living = [rank for rank in self.living if rank not in gone]
        records = {rank.pid: one for rank in gone for one in self._read([rank.path])}
        lost = {pid: one for pid, one in records.items() if not one.ended}
        if lost and self.gone_since is None:
            self.gone_since = now()
            # Nobody can say who was first if one was out of sight; an exception is told anyway.
            all_seen = self.all_seen and len(self.noticed) == self.ranks
            first = first_death([lost[pid] for pid in ended & set(lost)], list(lost.values()))
            if not all_seen or not first or first.failure:
                return
            if not failed_before(self._read(self.noticed), self.gone_since):
                self.first_gone = first.source


def failed_before(records: "Iterable[RankRecord]", now: float) -> bool:
    """Return whether a rank failed by itself before another one was found lost at *now*.

    A rank whose peer died fails as well, but then the peer is found lost at once.
    """
    return any(record.failure and now - record.failure.time > STAYS for record in records)


def first_death(ended: "list[RankRecord]", lost: "list[RankRecord]") -> "RankRecord | None":
    """Return the rank that died first among those found lost together; None if it is unknown.

    The order of their deaths can be chance. It is not if the others were ahead of the one that is
    gone, because they waited for it.
    """
    if len(lost) == 1:
        return lost[0]
    if len(ended) != 1:
        return None
    others = [len(record.events) for record in lost if record is not ended[0]]
    return ended[0] if len(ended[0].events) < min(others) else None


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
