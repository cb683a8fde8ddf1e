"""The controller of one group of ranks: runs negotiation cycles and what they lead to.

Threads of the program submit requests, in any order.  A *negotiation cycle* starts when this rank
has something to ask for and ends when all ranks have taken part: one small reduction finds what
everybody asks for again; what is new, or does not fit, is negotiated in full.  What is agreed on is
carried out before the next cycle.  Between cycles a rank that waits costs no traffic.

A thread of its own runs them, but for one kind: where a thread of the program waits for a small
allreduce that comes again, and nothing else is asked for, it runs the cycle itself.  Handlers of
signals are the program's: none is replaced or held back.

``_queue`` is what is asked for and not done, ``_negotiation`` what happens in a cycle.
"""

import os
import threading
import time
from typing import Any, Dict, Optional, Sequence

from distributed_dl_training import _timeline
from distributed_dl_training._agreement import SHUTDOWN, Request
from distributed_dl_training._core import (
    Engine,
    NotInitializedError,
    PeerLostError,
    StallError,
    Threads,
    forks,
)
from distributed_dl_training._cycle import Cycle, CycleRequests
from distributed_dl_training._handle import ArrayHandle, Handle, Item
from distributed_dl_training._negotiation import Negotiation
from distributed_dl_training._opening import Repeated
from distributed_dl_training._queue import RequestQueue
from distributed_dl_training._settings import Settings
from distributed_dl_training._stall import StallInspector
from distributed_dl_training._waiting import comes_soon, raised_in_python
from distributed_dl_training._works import Nothing

# Seconds between two cycles without a result: a quarter after the first, all of it from the fourth.
_PAUSE = 0.002
# Seconds that requests nobody waits for are gathered before a cycle; Horovod's cycle time is 1 ms.
_GATHER = 0.0003
# They are gathered further while at least so many more come each time, or fewer are there than
# there were before when the program waited; so many seconds at most.  All ranks then begin with the
# whole of a burst, and none with a part that the others do not have.
_BURST, _LONGEST_GATHER = 8, 0.05
# Of so many bursts it is known.
_KEPT = 16
# Bytes of a burst that is waited for, at most: to exchange more takes longer than to gather it.
_LARGEST_BURST = 4 << 20
# Seconds.  A signal that comes just before a thread sleeps does not wake it, and its handler, which
# other ranks may wait for, runs only then.
_LONGEST_SLEEP = 0.2
# Negotiation without a result after which blocked ranks say so.
_PATIENCE = 3


class Controller(RequestQueue):
    """One group: its engine, what this rank has asked for, and the thread that sees to it.

    Many small methods: whatever thread has the turn takes the same steps.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        super().__init__()
        self.engine = engine
        self.settings = settings
        self.finishing = threading.RLock()  # guards results that are being made
        # Of ``_reductions``: what was asked before, by arguments, and what was last, by name.
        self.remembered: Dict[Any, Any] = {}
        self.arrays: Dict[Optional[str], Any] = {}
        self.optimizers = 0  # how many have been made over this group
        self._inspector = StallInspector(engine, settings)
        self._negotiation = Negotiation(engine, settings, self._inspector)
        self._shutdown_request: Optional[Handle] = None
        self._closed = False
        # One cycle at a time, by whatever thread.  It tells whether the calling thread has it.
        self._turn: Any = threading.RLock()
        self._usual: Dict[Request, int] = {}  # of requests that come on, by the first of them
        self._cycle: Optional[Cycle] = None  # has begun; whoever has the turn goes on with it
        self._direct: Dict[int, Handle] = {}  # by the thread of the program that runs its cycle
        self._pid = os.getpid()
        self._owner = threading.get_ident()
        self._thread: Optional[threading.Thread] = None
        if engine.size == 1 or engine.threads is not Threads.FUNNELED:
            self._thread = threading.Thread(
                target=self._run, name=f"collectives of {engine.size} ranks", daemon=True
            )
            self._thread.start()

    # What threads of the program call.

    def run(self, handle: Handle) -> None:
        """Submit a request that this thread waits for, and return when it is done.

        Raises as ``submit`` and ``wait``.
        """
        try:
            self.submit(handle, True)
            if self._thread is not None and not self._turn._is_owned():
                self._repeat(handle)  # ``wait``, without what only others need
            if not handle.done:
                self.wait(handle)
        except BaseException:
            self._bell.ring()  # who is interrupted before it waits has asked all the same
            raise

    def wait(self, handle: Handle) -> None:
        """Return when ``handle`` is done.

        Raises NotInitializedError in a forked child, and RuntimeError in a thread that must not
        call the layer below.
        """
        if handle.done:
            return
        if self._pid != (forks.pid or os.getpid()):
            raise NotInitializedError("this is a forked child: it has no ranks to talk to")
        if self._thread is None:
            self._wait_by_cycles(handle)
            return
        if self._turn._is_owned():
            self._give_turn()  # in a handler that has interrupted this thread in a cycle
        if len(self._entries) == 1 and not handle.reported:
            self._repeat(handle)
            if handle.done:
                return
        # A handler may have interrupted this thread where it has the lock, which others need.
        held = self._lock._release_save() if self._lock._is_owned() else None
        woken = threading.Lock()
        try:  # Ctrl-C may come at any moment from here
            woken.acquire()
            self._active_threads.wait(handle, woken)
            if not handle.done:
                self._bell.ring()
                while not woken.acquire(True, _LONGEST_SLEEP):
                    pass
        finally:
            self._active_threads.resume(woken)
            if held is not None:
                self._lock._acquire_restore(held)

    def poll(self, handle: Handle) -> bool:
        """Tell whether ``handle`` is done; without a communication thread it waits for it."""
        if self._thread is None:
            self.wait(handle)
        return handle.done

    def request_shutdown(self) -> None:
        """Tell the other ranks that this one will ask for nothing more; see ``shutdown``."""
        try:
            if self._shutdown_request is None and self.engine.alive():
                self._shutdown_request = self.submit(Handle(SHUTDOWN, Nothing()))
        except (ValueError, RuntimeError):
            pass  # it is over already, whatever has ended it

    def shutdown(self) -> None:
        """End the session, and the thread; collective unless a peer is lost."""
        self.request_shutdown()
        if self._shutdown_request is not None and self.engine.alive():
            self.wait(self._shutdown_request)
        if self._end is None:
            self._fail_all(NotInitializedError("the layer below has been finalized"))
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._inspector.close()
        if self.failure is None:
            # It refers to this: both, and all connections, would stay until garbage is collected.
            self._shutdown_request = None

    def _wait_by_cycles(self, handle: Handle) -> None:
        """Take part in cycles in the calling thread until ``handle`` is done."""
        if threading.get_ident() != self._owner:
            raise RuntimeError(
                "MPI runs with MPI_THREAD_FUNNELED: only the thread that called init() may wait "
                "for collectives"
            )
        if self._turn._is_owned():
            raise RuntimeError("this thread is inside a collective: what interrupts it cannot wait")
        while not handle.done:
            with self._turn:
                woken = threading.Lock()
                try:
                    self._active_threads.wait(handle, woken)
                    self._step()
                finally:
                    self._active_threads.resume(woken)

    def _repeat(self, handle: Handle) -> None:
        """Run a cycle in the calling thread, if it is likely to bring ``handle``'s result.

        To hand it to the communication thread and back takes longer than the exchange.  What takes
        long is left to that thread.

        A handler of a signal may run between any two steps.  If it raises, or asks for collectives
        itself, the communication thread finishes what this thread has begun: it has lost the turn.
        """
        try:
            if self._turn.acquire(False):
                self._run_directly(handle)
        finally:
            try:
                self._give_turn()
            finally:
                if self._turn._is_owned():  # that was interrupted
                    self._give_turn()

    def _run_directly(self, handle: Handle) -> None:
        asked = len(self._incoming) + len(self._unreported)
        if self._cycle is not None or asked != 1 or len(self._entries) != 1 or handle.reported:
            return
        opening, has_turn = self._negotiation.repeated(handle), self._turn._is_owned
        if opening is None:
            return
        opening.reset()
        handle.opening = opening
        # From here on it is taken from this thread if it is interrupted.
        me = threading.get_ident()
        self._direct[me] = handle
        if not has_turn():
            return
        opening.begin(handle)
        if not has_turn():  # then a part of it may not have been started
            return
        try:
            came = opening.done() or comes_soon(opening, stays=has_turn)
        except PeerLostError as error:
            self._fail_all(error)
            return
        # If ranks ask for different things, ``Negotiation.agree`` finds out for what.
        if not came or not opening.unanimous():
            return
        value = opening.result()
        if not has_turn():  # and others may have written where that was read
            return
        if opening.plain and type(handle) is ArrayHandle and not handle.in_place:
            handle.value = value
        elif opening.carries:
            opening.finish(handle, value)
        if not opening.steady:
            self._negotiation.note(opening)
        handle.settled = True
        self._finish_directly(handle, me)

    def _finish_directly(self, handle: Handle, me: int) -> None:
        """Let a handle be done; a thread that is interrupted in this may do it again."""
        try:
            self._incoming.remove(handle)
        except ValueError:
            if handle in self._unreported:
                self._unreported.remove(handle)
        if handle.request.name is None or _timeline.current.on:
            self.begins([Item(handle.request, handle)])
            with self._lock:
                self._finish(handle, None)
        elif not handle.done:
            self._entries.pop(handle.label, None)
            handle.done = True
        if self._active_threads.waiting:  # who waits from now on sees that it is done
            with self._lock:
                self._active_threads.wake()
        self._direct.pop(me, None)

    def _give_turn(self) -> None:
        """Give back the turn, if this thread has it, and what it has begun with it.

        A handler may interrupt this at any step, and call it as well.
        """
        me = threading.get_ident()
        if not self._turn._is_owned():  # a handler has seen to it
            self._direct.pop(me, None)
            return
        handle = self._direct.get(me)
        if handle is not None:
            if self._end is None:
                self._end_directly(handle, handle.opening)
            self._direct.pop(me, None)
        try:
            self._turn.release()
        except RuntimeError as error:  # a handler has given it back
            if raised_in_python(error):
                raise

    def _end_directly(self, handle: Handle, opening: Repeated) -> None:
        """Finish a cycle that this thread has begun, or leave it to the communication thread."""
        if handle.settled:
            self._finish_directly(handle, threading.get_ident())
            return
        opening.leave()
        self._negotiation.forget_openings()
        if not opening.started:
            return
        for asked in (self._incoming, self._unreported):
            if handle in asked:
                asked.remove(handle)
        cycle = self._negotiation.repeated_cycle(handle, self._entries, opening)
        if self._turn._is_owned():
            self._cycle = cycle
        self._bell.ring()

    # The communication thread.

    def _run(self) -> None:
        while self._end is None:
            self._rest()
            with self._turn:
                self._step()

    def _rest(self) -> None:
        """Sleep until there is something to do, or it is time to look what others do."""
        fruitless = self._negotiation.fruitless
        with self._lock:
            self._asleep = True
            idle = not self._entries
            seconds = self._inspector.idle_look if idle else min(fruitless, 4) * _PAUSE / 4
        if seconds:
            self._bell.wait(seconds)
        with self._lock:
            self._asleep = False
        if not fruitless:
            self._gather()

    def _gather(self) -> None:
        """Let requests come together that nobody waits for yet."""
        end = time.monotonic() + _LONGEST_GATHER
        more = _BURST
        while self._entries and self._cycle is None:
            count = len(self._incoming)
            burst = list(self._incoming) if count >= _BURST else []
            usual = self._usual.get(burst[0].request, 0) if burst else 0
            if self._active_threads.waiting:
                self._learn(burst, usual)
                return
            if more < _BURST and count >= usual:
                return
            if time.monotonic() > end:
                if usual:  # the program does not ask for the rest before it has these
                    del self._usual[burst[0].request]
                return
            self._bell.wait(_GATHER)
            more = len(self._incoming) - count

    def _learn(self, burst: Sequence[Handle], usual: int) -> None:
        """Note how many requests come from the first of these on, if they are a small burst."""
        if len(burst) == usual:
            return
        sizes = [each.source.nbytes for each in burst if isinstance(each, ArrayHandle)]
        if len(sizes) == len(burst) and sum(sizes) <= _LARGEST_BURST:
            if len(self._usual) >= _KEPT:
                self._usual.clear()
            self._usual[burst[0].request] = len(burst)

    def _step(self) -> None:
        """Take part in one cycle; an error of the engine ends the session."""
        try:
            self._run_cycle()
        except Exception as error:  # whatever the engine raises, nobody else would see it
            self._fail_all(_lost(error))
        except BaseException:
            # Only where this is a thread of the program: Ctrl-C in the middle of an exchange.
            self._fail_all(PeerLostError("interrupted inside a collective: no longer in step"))
            raise
        if self.ended and self.failure is None and not self._closed and self.engine.alive():
            self._closed = True
            self._inspector.close()
            self.engine.close()

    def _run_cycle(self) -> None:
        cycle = self._cycle
        if cycle is None or cycle.opening.agreed:
            self._cycle = cycle = self._begin()
        if cycle is None:
            self._inspector.idle()
        else:
            items, burst = self._negotiation.agree(cycle)
            if burst is not None:
                self._cycle = None
                self._negotiation.carry_out_burst(burst, cycle.asked.new, self)
            else:
                self._finish_cycle(cycle, items)

    def _begin(self) -> Optional[Cycle]:
        """Begin a cycle if anything is asked for."""
        with self._lock:
            oldest = self._oldest()
            if oldest is None:
                return None
            asked = CycleRequests(
                self._take_incoming(),
                self._entries,
                self._unnamed > 1,
                self._negotiation.fruitless >= _PATIENCE and self._active_threads.all_wait(),
                oldest,
            )
            self._unreported = []
        return self._negotiation.begin(asked)

    def _finish_cycle(self, cycle: Cycle, items: Sequence[Item]) -> None:
        """Carry out what was agreed on; what was not is asked for again in the next cycle."""
        with self._lock:
            self._cycle = None
            new = cycle.asked.new
            new.extend(self._unreported)
            self._unreported = [each for each in new if not each.reported]
            self._next_unnamed = max(self._next_unnamed, self._negotiation.epoch << 40)
        self._negotiation.carry_out(items, self)

    def begins(self, items: Sequence[Item]) -> None:
        """Take note that what was agreed on is about to be carried out."""
        if not _timeline.current.on:
            return
        for item in items:
            if item.handle is not None:
                item.handle.enter(f"{self.engine.name.upper()}_{item.request.call.upper()}")

    def end(self, error: Optional[Exception]) -> None:
        """End the session in order: all ranks have requested it, or ``error`` tells who has."""
        self._fail_all(error or NotInitializedError("not initialized: call init() first"))


def _lost(error: Exception) -> Exception:
    if isinstance(error, (PeerLostError, StallError)):
        return error
    lost = PeerLostError(f"{type(error).__name__}: {error}")
    lost.__cause__ = error
    return lost
