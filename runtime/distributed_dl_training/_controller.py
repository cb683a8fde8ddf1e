"""The controller of one group of ranks: runs negotiation cycles and what they lead to.

Threads of the program submit requests, in any order.  A *negotiation cycle* starts when this rank
has something to ask for and ends when all ranks have taken part: one small reduction finds what
everybody asks for again; what is new, or does not fit, is negotiated in full.  What is agreed on is
carried out before the next cycle.  Between cycles a rank that waits costs no traffic.

A thread of its own runs them, but for one kind: where a thread of the program waits for a small
allreduce that comes again, and nothing else is asked for, it runs the cycle itself.

``_queue`` is what is asked for and not done, ``_negotiation`` what happens in a cycle.
"""

import os
import threading
from typing import Any, Dict, Optional, Sequence

from distributed_dl_training import _timeline
from distributed_dl_training._agreement import SHUTDOWN
from distributed_dl_training._core import (
    Engine,
    NotInitializedError,
    PeerLostError,
    StallError,
    Threads,
)
from distributed_dl_training._cycle import Cycle, CycleRequests
from distributed_dl_training._handle import Handle, Item
from distributed_dl_training._negotiation import Negotiation
from distributed_dl_training._opening import Repeated
from distributed_dl_training._queue import RequestQueue
from distributed_dl_training._settings import Settings
from distributed_dl_training._signals import held_signals
from distributed_dl_training._stall import StallInspector
from distributed_dl_training._waiting import comes_soon
from distributed_dl_training._works import Nothing

# Seconds between two cycles without a result: a quarter after the first, all of it from the fourth.
_PAUSE = 0.002
# Seconds that requests nobody waits for are gathered before a cycle; Horovod's cycle time is 1 ms.
_GATHER = 0.0003
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
        self._turn = threading.Lock()  # one cycle at a time, by whatever thread
        self._cycle: Optional[Cycle] = None  # has begun; whoever has the turn goes on with it
        self._driver = 0  # the thread of the program that has the turn
        self._pid = os.getpid()
        self._owner = threading.get_ident()
        self._thread: Optional[threading.Thread] = None
        if engine.size > 1 and engine.threads is not Threads.FUNNELED:
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
            if self._thread is None or not self._negotiation.may_repeat():
                self.submit(handle, True)
            else:
                self._repeat(handle, True)
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
        if self._pid != os.getpid():
            raise NotInitializedError("this is a forked child: it has no ranks to talk to")
        if self._thread is None:
            self._wait_by_cycles(handle)
            return
        if self._driver == threading.get_ident():
            raise RuntimeError("this thread is inside a collective: what interrupts it cannot wait")
        if len(self._entries) == 1 and self._negotiation.may_repeat():
            self._repeat(handle, False)
            if handle.done:
                return
        try:  # Ctrl-C may come at any moment from here
            with self._lock:
                if handle.done:
                    return
                woken = self._active_threads.wait(handle)
            self._bell.ring()
            woken.acquire()
        finally:
            with self._lock:
                self._active_threads.resume()

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
        held_signals.put_back()
        if not self.broken:
            # It refers to this: both, and all connections, would stay until garbage is collected.
            self._shutdown_request = None

    def _wait_by_cycles(self, handle: Handle) -> None:
        """Take part in cycles in the calling thread until ``handle`` is done."""
        if self.engine.size > 1 and threading.get_ident() != self._owner:
            raise RuntimeError(
                "MPI runs with MPI_THREAD_FUNNELED: only the thread that called init() may wait "
                "for collectives"
            )
        while not handle.done:
            try:
                if self.engine.size == 1:  # nothing is waited for inside
                    held_signals.hold()
                with self._turn:
                    try:
                        self._active_threads.wait(handle)
                        self._step()
                    finally:
                        self._active_threads.resume()
            finally:
                held_signals.release()

    def _repeat(self, handle: Handle, new: bool) -> None:
        """Run a cycle in the calling thread, which is likely to bring ``handle``'s result.

        To hand it to the communication thread and back takes longer than the exchange.  What takes
        long is left to that thread: a thread of the program is never inside the layer below where
        that waits for other ranks, so that signals reach it.

        new: it is to be submitted; whatever becomes of the cycle, it has been then.
        """
        try:
            held_signals.hold()
            if self._turn.acquire(False):
                try:
                    self._driver = threading.get_ident()
                    opening = self._begin_repeated(handle, new)
                    known, new = not new, False
                    if opening is not None:
                        self._run_repeated(handle, opening, known)
                finally:
                    self._driver = 0
                    self._turn.release()
            if new:
                self.submit(handle, True)
        finally:
            held_signals.release()

    def _begin_repeated(self, handle: Handle, new: bool) -> Optional[Repeated]:
        """Return what opens a cycle for ``handle`` alone, if nothing else is under way."""
        if new and self._enter_at_once(handle):
            self._entered(handle)
            opening = self._opening_of(handle)
            if opening is None:
                self._incoming.append(handle)
            return opening
        with self._lock:
            if new:
                self._enter(handle)
            opening = self._opening_of(handle)
            if opening is not None and (new or self._take_incoming() == [handle]):
                self._unreported = []
                return opening
            if new:
                self._incoming.append(handle)
        return None

    def _opening_of(self, handle: Handle) -> Optional[Repeated]:
        alone = self._cycle is None and len(self._entries) == 1
        return self._negotiation.repeated(handle) if alone else None

    def _run_repeated(self, handle: Handle, opening: Repeated, known: bool) -> None:
        """known: whether other threads may have the handle."""
        negotiation = self._negotiation
        try:
            pending = opening.again(handle)
            came = pending.done() or comes_soon(pending, held_signals.came)
            if came and negotiation.settle(opening, handle):
                self._finish_repeated(handle, known)
                return
            opening.carry_on(handle)
        except Exception as error:  # whatever the engine raises
            self._fail_all(_lost(error))
            return
        with self._lock:
            self._cycle = negotiation.repeated_cycle(handle, self._entries, opening, pending)
        self._bell.ring()

    def _finish_repeated(self, handle: Handle, known: bool) -> None:
        if known or handle.request.name is None or _timeline.current.on:
            self.begins([Item(handle.request, handle)])
            with self._lock:
                self._finish(handle, None)
                self._active_threads.wake()
        elif self._entries.pop(handle.label, None) is not None:
            handle.done = True  # no other thread can wait for it

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
            rung = self._bell.wait(seconds)
            # With the fewest steps: what a rank does seldom is no longer near the processor.
            while idle and not rung and self._inspector.rests():
                rung = self._bell.wait(seconds)
        with self._lock:
            self._asleep = False
            nobody_waits = self._cycle is None and not self._active_threads.any_waits
            gathers = self._entries and not fruitless and nobody_waits
        if gathers:
            self._bell.wait(_GATHER)

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
        if self.ended and not self.broken and not self._closed and self.engine.alive():
            self._closed = True
            self._inspector.close()
            self._negotiation.close()
            self.engine.close()

    def _run_cycle(self) -> None:
        cycle = self._cycle
        if cycle is None:
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
