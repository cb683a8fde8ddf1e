"""A running job: waits for its node processes, gives them their tasks, and ends all with one."""

import hmac
import os
import select
import signal
import socket
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

from distributed_dl_training.launch._input import Input
from distributed_dl_training.launch._joins import Joins
from distributed_dl_training.launch._output import ClosedOutput, Output
from distributed_dl_training.launch._peer import Frame, Peer, accept_peer

_SWEEP = 6.0  # seconds that a node process may need for what its ranks have left behind
INIT_TIMEOUT = 300.0  # seconds, as ``_settings`` has it
MPI_LAUNCHER = -1  # its number among the ranks


class Limits(NamedTuple):
    """Seconds: to start all node processes; for ranks to fail on their own account after the
    first has; from SIGTERM to SIGKILL; for ranks to wait in init for one that has ended; for ranks
    to wait there for any other, 0 for ever.
    """

    start: float
    patience: float
    grace: float
    absence: float = 5.0
    init: float = INIT_TIMEOUT


class Ending(NamedTuple):
    """How a job ended: the launcher's exit code, why it is not 0, and whose rank's fault it is."""

    code: int
    reason: Optional[str] = None
    rank: Optional[int] = None


class Entrance(NamedTuple):
    """Where the ranks of an MPI job connect, and the word that lets them in."""

    listener: socket.socket
    token: str


class Job:
    """Everything between the start of the node processes and the end of the last of them.

    One class with many small methods: whatever happens may change who is waited for and when all
    has to end, and that state is held in this one place.

    size: the number of ranks.
    stdin: the descriptor whose data rank 0 reads.
    task: gives a peer that has greeted its task; it is called once for each, when all have, but
        for the MPI launcher's at once: the others come by it.
    """

    def __init__(
        self,
        size: int,
        peers: List[Peer],
        task: Callable[[Peer], Dict[str, Any]],
        output: Output,
        limits: Limits,
        entrance: Optional[Entrance] = None,
        stdin: Optional[int] = None,
    ) -> None:
        self._input = Input(stdin)
        self.peers = peers
        self._size = size
        self._task = task
        self._output = output
        self._limits = limits
        self._entrance = entrance
        self._codes: Dict[int, int] = {}
        self._joins = Joins(size)
        self._hosts: Dict[int, str] = {}
        self._running = False
        self._failure: Optional[Ending] = None
        self._signals: List[int] = []
        self._start_at = time.monotonic() + limits.start
        self._end_at: Optional[float] = None  # when ranks are told to end
        self._ending = False
        self._give_up_at: Optional[float] = None

    def run(self) -> Ending:
        """Return when no process of the job is left."""
        with self._catch_signals() as wake:
            while not self._over():
                self._step(wake)
            for peer in self.peers:
                peer.close()
        return self._failure or self._launcher_failure() or Ending(0)

    def _over(self) -> bool:
        if self._give_up_at is not None and time.monotonic() > self._give_up_at:
            return True
        # Somebody else's connection to our port does not count.
        known = (p for p in self.peers if p.process is not None or p.greeting is not None)
        return all(peer.gone for peer in known)

    # What happens

    def _step(self, wake: int) -> None:
        """Wait for the next thing to happen, and see to it."""
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        if self._entrance is not None and not self._running:
            poller.register(self._entrance.listener, select.POLLIN)
        living = {peer.infd: peer for peer in self.peers if not peer.gone}
        for fd in living:
            poller.register(fd, select.POLLIN)
        reader = self._input.wanted() if self._running and not self._ending else None
        if reader is not None:
            poller.register(reader, select.POLLIN)
        for fd, _ in poller.poll(100):
            if fd == reader:
                self._input.pass_on(next(peer for peer in self.peers if 0 in peer.ranks))
            elif fd in living:
                self._hear(living[fd])
            elif fd == wake:
                os.read(wake, 4096)
            elif self._entrance is not None:
                self.peers.append(accept_peer(self._entrance.listener))
        self._start_when_all_are_there()
        self._keep_time()

    def _hear(self, peer: Peer) -> None:
        unknown = peer.greeting is None
        frames = peer.receive()
        if unknown and peer.greeting is not None and not self._admit(peer, peer.greeting):
            return
        try:
            for frame in frames:
                self._take(peer, frame)
        except ClosedOutput:
            self._fail(Ending(128 + signal.SIGPIPE, None), at_once=True)
        except OSError as error:
            self._fail(Ending(1, f"the output of the ranks cannot be written: {error}"), True)
        if peer.gone and not self._ending:
            self._lost(peer)

    def _admit(self, peer: Peer, greeting: List[str]) -> bool:
        """Know a rank of an MPI job by its token; give the MPI launcher its task."""
        if peer.process is None:
            assert self._entrance is not None
            valid = len(greeting) == 3 and greeting[0].isdigit()
            if not valid or not hmac.compare_digest(greeting[1], self._entrance.token):
                peer.gone = True
                return False
            peer.ranks, peer.name = [int(greeting[0])], greeting[2]
        for rank in peer.ranks:
            self._hosts[rank] = peer.name
        if peer.ranks == [MPI_LAUNCHER]:
            peer.give(self._task(peer))
        return True

    def _start_when_all_are_there(self) -> None:
        if self._running or self._ending:
            return
        there = [peer for peer in self.peers if peer.greeting is not None and not peer.gone]
        ranks = [rank for peer in there for rank in peer.ranks if rank != MPI_LAUNCHER]
        if len(ranks) < self._size:
            return
        self._running = True
        for peer in there:
            if peer.ranks != [MPI_LAUNCHER]:
                peer.give(self._task(peer))

    def _take(self, peer: Peer, frame: Frame) -> None:
        if frame.kind in "oe":
            self._output.add(frame.rank, frame.kind, frame.data)
            return
        if frame.kind == "t":
            peer.told_to_end = True
            return
        if frame.kind == "j":
            self._joins.note(frame.rank, frame.data)
            return
        if frame.kind == "i":
            self._input.taken(int(frame.data))
            return
        self._output.end(frame.rank)
        if frame.kind == "f":
            self._codes[frame.rank] = 127
            text = frame.data.decode("utf-8", "replace")
            where = f"{self._name(frame.rank)} cannot start"
            self._fail(Ending(127, f"{where}: {text}", frame.rank), at_once=True)
            return
        code = self._codes[frame.rank] = int(frame.data)
        self._joins.ended(frame.rank)
        if frame.rank == MPI_LAUNCHER:
            # Its ranks are gone too, or will be; what they still say is on its way.
            self._end_soon(0.5)
        elif code and not (peer.told_to_end and self._entrance is not None):
            # What mpiexec has told to end is not the first that failed.
            reason = f"{self._name(frame.rank)} {describe_code(code)}"
            self._fail(Ending(exit_code(code), reason, frame.rank))

    def _lost(self, peer: Peer) -> None:
        """Draw the conclusion from a peer that has gone without a word."""
        if all(rank in self._codes for rank in peer.ranks) and peer.greeting is not None:
            return
        if peer.process is None:
            return  # a rank of an MPI job: the MPI launcher has killed it, and says why itself
        code = peer.process.wait()
        how = describe_code(code)
        if peer.greeting is None:
            reason = f"{peer.name}: the command that starts ranks there {how}"
            noise = peer.noise.decode("utf-8", "replace").strip()
            self._fail(Ending(1, reason + (f" and printed: {noise}" if noise else "")), True)
        else:
            self._fail(Ending(1, f"{peer.name}: the connection is lost; the command {how}"))

    # How it ends

    def _fail(self, ending: Ending, at_once: bool = False) -> None:
        """Keep the first failure; the others have ``patience`` seconds to tell of it."""
        if self._failure is None and not self._ending:
            self._failure = ending
            self._end_soon(0.0 if at_once else self._limits.patience)

    def _end_soon(self, seconds: float) -> None:
        if self._end_at is None:
            self._end_at = time.monotonic() + seconds

    def _keep_time(self) -> None:
        now = time.monotonic()
        if not self._running and not self._ending and now > self._start_at:
            self._fail(Ending(1, self._missing()), at_once=True)
        if self._failure is None:
            self._look_for_absent()
        if self._signals and self._failure is None:
            number = signal.Signals(self._signals[0])
            self._failure = Ending(128 + number, f"ended by {number.name}")
        if len(self._signals) > 1 and self._signals[0] != 0:
            self._signals[0] = 0
            self._tell("kill")
        if self._signals:
            self._output.hurry = True
            self._end_at = now
        if self._end_at is not None and now >= self._end_at and not self._ending:
            self._ending = True
            self._give_up_at = now + self._limits.grace + _SWEEP
            self._tell("end")

    def _look_for_absent(self) -> None:
        """End the job if ranks wait in init for one that has ended, or that does not come."""
        ended = self._joins.absent(self._limits.absence)
        late = self._joins.late(self._limits.init)
        if ended is not None:
            text = f"{self._name(ended)} has ended before it joined the others, which wait in init"
            self._fail(Ending(1, text, ended), at_once=True)
        elif late:
            names = ", ".join(self._name(rank) for rank in late[:8])
            more = f" and {len(late) - 8} more" if len(late) > 8 else ""
            text = f"not joined within {self._limits.init:g} s of init: {names}{more}"
            self._fail(Ending(1, text, late[0]), at_once=True)

    def _tell(self, word: str) -> None:
        for peer in self.peers:
            if peer.greeting is None:
                peer.kill()
            elif not peer.gone:
                peer.send(word)

    def _missing(self) -> str:
        limit = f"{self._limits.start:g} s"
        silent = [p.name for p in self.peers if p.greeting is None and p.process is not None]
        if silent or self._entrance is None:
            return f"after {limit} there is no answer from {', '.join(silent)}"
        there = {rank for peer in self.peers for rank in peer.ranks if rank != MPI_LAUNCHER}
        return f"after {limit} {len(there)} of {self._size} ranks have been started by mpiexec"

    def _launcher_failure(self) -> Optional[Ending]:
        code = self._codes.get(MPI_LAUNCHER, 0)
        if code:
            return Ending(exit_code(code), f"mpiexec {describe_code(code)}", MPI_LAUNCHER)
        for rank, code in self._codes.items():  # MPICH's may end with 0 all the same
            if code:
                return Ending(exit_code(code), f"{self._name(rank)} {describe_code(code)}", rank)
        missing = [rank for rank in range(self._size) if rank not in self._codes]
        if missing:
            return Ending(1, f"{self._name(missing[0])} was lost without an exit code", missing[0])
        return None

    def _name(self, rank: int) -> str:
        host = self._hosts.get(rank)
        label = "mpiexec" if rank == MPI_LAUNCHER else f"rank {rank}"
        return label if host is None else f"{label} on {host}"

    @contextmanager
    def _catch_signals(self) -> Iterator[int]:
        """Yield a descriptor that becomes readable when a signal has come.

        Other threads than the main one cannot catch signals; the program's handlers stay.
        """
        wake, wakeup = os.pipe()
        for fd in (wake, wakeup):
            os.set_blocking(fd, False)
        main = threading.current_thread() is threading.main_thread()

        def note(number: int, _frame: Any) -> None:
            self._signals.append(number)
            self._output.hurry = True

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if main else ()
        earlier = {number: signal.signal(number, note) for number in numbers}
        earlier_fd = signal.set_wakeup_fd(wakeup) if main else -1
        try:
            yield wake
        finally:
            if main:
                signal.set_wakeup_fd(earlier_fd)
            for number, handler in earlier.items():
                signal.signal(number, handler)
            os.close(wake)
            os.close(wakeup)


def exit_code(code: int) -> int:
    """Return a rank's exit code as the shell gives it: 128 and the number for a signal."""
    return 128 - code if code < 0 else code


def describe_code(code: int) -> str:
    """Return ``ended with exit code 3`` or ``was killed by signal 9 (SIGKILL)``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "a real-time signal"
    return f"was killed by signal {-code} ({name})"
