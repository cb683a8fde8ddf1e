"""Reports on ranks that do not take part, and the limit after which waiting ends.

The limit is meant for ranks that give no answer, or ask for something else.  A rank that answers
and asks for nothing is likely to calculate, and a collective that all ranks are inside of is
likely to be slow: these are given ten times as long.

While the communication thread waits for other ranks it looks itself.  Inside the layer below it
cannot: there a watchdog thread looks, and also answers other ranks' questions and asks them, if
that layer takes calls from several threads.
"""

import os
import sys
import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

from distributed_dl_training import _threads
from distributed_dl_training._agreement import SHUTDOWN, Request
from distributed_dl_training._core import Engine, StallError, Threads, name_ranks
from distributed_dl_training._settings import Settings
from distributed_dl_training._waiting import Bell

Missing = List[Tuple[Request, List[int]]]

_IDLE = "alive, asking for nothing"
_SILENT = "no answer (stopped, lost, or busy outside Python)"
# Seconds between an idle rank's looks for questions, at least and at most; between them a part of
# the shortest time after which one is asked.
_SOON = 1.0
_RARELY = 10.0
_PART = 1 / 6
# Seconds between answers to other ranks, and between the watchdog's looks.
_ANSWER = 0.2
_LOOK = 0.5
# Looks without anything to watch, after which the watchdog rests until there is.
_QUIET = 2
# Seconds between two questions to ranks past the limit.
_JUDGE = 1.0
# Characters of an answer: short messages arrive even if the receiver never looks.
_LONGEST = 1000
# How many times the limit ranks are given that answer.
_PATIENCE = 10
# Missing requests that a report lists.
_SHOWN = 8
# Of a process that is ended because the layer below does not return; 124 as of timeout(1).
STALL_EXIT_CODE = 124


def _idle_look(settings: Settings) -> float:
    """Return the seconds between looks at what other ranks ask, of a rank that asks for nothing.

    Each takes a processor out of its sleep; the less often it may be asked, the fewer there are.
    """
    times = (settings.asked_after, settings.stall_check, settings.stall_limit)
    return max(_SOON, min(_RARELY, min(filter(None, times)) * _PART))


class StallInspector:
    """What this rank is doing, since when, and what others say they are doing.

    One class with many small methods: the communication thread and the watchdog both note and
    read the same few facts.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._check = settings.stall_check
        self._limit = settings.stall_limit
        self.idle_look = _idle_look(settings)
        self._answer_limit = 2 * self.idle_look + _SOON  # seconds, of other ranks
        self._doing = ""
        self._request: Optional[Request] = None  # what it is doing that for
        self._since: Optional[float] = None  # inside the layer below
        self._talking = threading.Lock()
        self._answered = 0.0
        self._reported = 0.0
        self._judged = 0.0
        self._over = False
        self._bell = Bell()  # of the watchdog
        self._resting = False
        self._dog: Optional[threading.Thread] = None
        if engine.size > 1 and (self._check or self._limit):
            self._dog = threading.Thread(target=self._guard, name="watchdog", daemon=True)
            self._dog.start()

    def idle(self) -> None:
        """Answer other ranks: this one asks for nothing."""
        self._request = None
        self._answer()

    def waiting(self, request: Request) -> None:
        """Note what this rank waits to agree on."""
        self._doing, self._request = "waiting to agree on", request

    def look(self, waited: float, absent: Optional[float], missing: Callable[[], Missing]) -> None:
        """Answer other ranks; report after ``waited`` seconds, and raise past the limit.

        absent: seconds, of those, since some rank has taken part in anything; None before this
            rank takes part itself, when no other rank can count on it yet.
        missing: returns what is known of ranks that lack a request.
        Raises StallError.
        """
        self._answer()
        late = self._late(waited)
        if not late and not self._due(waited):
            return
        status = self._status()
        says = self._ask(True, status)
        text = self._text(waited, says, missing())
        if late and (absent is None or self._hopeless(waited, absent, says)):
            raise StallError(text)
        if min(says[status]) == self._engine.rank:
            self._report(text)  # of ranks that wait for the same the lowest tells

    def enter(self, request: Request) -> None:
        """Mark that the communication thread goes inside the layer below, until ``leave``."""
        self._doing, self._request = "inside", request
        self._since = time.monotonic()
        if self._resting:
            self._resting = False
            self._bell.ring()

    def leave(self) -> None:
        """Mark that it is back, also with an error."""
        self._since = None

    def close(self) -> None:
        """End the watchdog."""
        self._over = True
        self._bell.ring()
        if self._dog is not None and self._dog is not threading.current_thread():
            self._dog.join()

    def _guard(self) -> None:
        talks = self._engine.threads is Threads.MULTIPLE
        quiet = 0
        while True:
            self._bell.wait(-1 if self._resting else _LOOK)
            if self._over:
                return
            since = self._since
            if since is None:
                quiet += 1
                self._resting = quiet >= _QUIET
                since = self._since  # once more: who begins now may not have seen that it rests
                if since is None:
                    continue
                self._resting = False
            quiet = 0
            waited = time.monotonic() - since
            if talks:
                try:
                    self._answer()
                except Exception:  # whatever the engine raises: a lost rank is why this looks
                    talks = False
            late = self._late(waited)
            if not late and not self._due(waited):
                continue
            status = self._status()
            says = self._ask(talks, status)
            if self._since != since:
                continue  # it came back while others were asked
            text = self._text(waited, says, [])
            if late and not self._patient(waited, says):
                self._report(text)
                self._give_up(talks)
            if min(says[status]) == self._engine.rank:
                self._report(text)

    def _give_up(self, talks: bool) -> None:
        """End the process: its communication thread will not come back to raise an error."""
        sys.stdout.flush()
        sys.stderr.flush()
        if talks:
            self._engine.abort(STALL_EXIT_CODE)
        os._exit(STALL_EXIT_CODE)

    def _late(self, waited: float) -> bool:
        """Tell whether the limit is past, and it is time to ask what that means."""
        if not self._limit or waited < self._limit:
            return False
        now = time.monotonic()
        if now - self._judged < _JUDGE:
            return False
        self._judged = now
        return True

    def _due(self, waited: float) -> bool:
        """Tell whether it is time for a report, and note that it has been made."""
        if not self._check or waited < self._check:
            return False
        now = time.monotonic()
        if now - self._reported < self._check:
            return False
        self._reported = now
        return True

    def _hopeless(self, waited: float, absent: float, says: Dict[str, List[int]]) -> bool:
        """Tell whether to give up inside an exchange, which leaves those behind that come late.

        As long as others take part, now and then, the next cycle is the better moment.
        """
        return absent >= waited / 2 and not self._patient(waited, says)

    def _patient(self, waited: float, says: Dict[str, List[int]]) -> bool:
        """Tell whether what the ranks say speaks for waiting on."""
        if _SILENT in says:
            return False
        if self._request == SHUTDOWN:
            return True  # they may have work left that needs no other rank
        return waited < _PATIENCE * self._limit and (_IDLE in says or len(says) == 1)

    def _report(self, text: str) -> None:
        if text:
            sys.stderr.write(text + "\n")
            sys.stderr.flush()

    def _status(self) -> str:
        request = self._request
        return _IDLE if request is None else f"{self._doing} {request.brief()}"[:_LONGEST]

    def _answer(self) -> None:
        """Answer other ranks, unless that was done lately, or another thread is at it."""
        now = time.monotonic()
        if now - self._answered < _ANSWER or not self._talking.acquire(False):
            return
        try:
            self._answered = now
            self._engine.answer(self._status())
        finally:
            self._talking.release()

    def _ask(self, talks: bool, status: str) -> Dict[str, List[int]]:
        """Return which ranks say what, this one included, which says ``status``."""
        says: Dict[str, List[int]] = {status: [self._engine.rank]}
        found: Dict[int, Optional[str]] = dict.fromkeys(range(self._engine.size))
        try:
            if talks:
                with self._talking:
                    found = self._engine.probe(self._answer_limit)
        except Exception:  # whatever the engine raises, no other rank can be heard
            pass
        for rank, told in found.items():
            if rank != self._engine.rank:
                says.setdefault(told or _SILENT, []).append(rank)
        return says

    def _text(self, waited: float, says: Dict[str, List[int]], missing: Missing) -> str:
        """Return who waits for what, and who does not answer."""
        lines = [f"rank {self._engine.rank} has made no progress for {waited:.0f} s:"]
        for text, ranks in sorted(says.items(), key=lambda item: min(item[1])):
            lines.append(f"  {name_ranks(sorted(ranks))}: {text}")
        unseen = _threads.unseen_threads()
        if unseen:
            lines.append(
                f"  {unseen} threads here are not Python's: what they ask for is not known"
            )
        for request, lacking in missing[:_SHOWN]:
            lines.append(f"  {request.brief()} is missing on {name_ranks(lacking)}")
        if len(missing) > _SHOWN:
            lines.append(f"  and {len(missing) - _SHOWN} more are missing somewhere")
        return "\n".join(lines)
