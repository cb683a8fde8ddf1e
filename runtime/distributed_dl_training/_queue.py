"""What a rank has asked for and is not done yet, and who waits for it.

Threads of the program submit requests; whatever thread runs the cycles takes them from here, and
gives results to those who wait.
"""

import collections
import threading
import warnings
from typing import Any, Deque, Dict, Iterable, List, Optional, Sequence

from distributed_dl_training import _timeline
from distributed_dl_training._agreement import (
    JOIN,
    JOIN_LABEL,
    SHUTDOWN,
    SHUTDOWN_LABEL,
    Label,
    Request,
)
from distributed_dl_training._core import Array, DuplicateNameError, PeerLostError, StallError
from distributed_dl_training._handle import (
    ActiveThreads,
    ArrayHandle,
    Executor,
    Handle,
    Item,
    own_copy,
)
from distributed_dl_training._waiting import Bell


class RequestQueue(Executor):
    """The program's side of a controller.

    One class: what is asked for, who waits and whether the session has ended change together, under
    one lock.  ``submit`` alone goes without it, where it can.
    """

    def __init__(self) -> None:
        self._lock: Any = threading.RLock()  # guards all that follows
        self._bell = Bell()  # of the thread that runs cycles
        self._entries: Dict[Label, Handle] = {}  # in the order in which they were asked for
        self._incoming: Deque[Handle] = collections.deque()  # what the next cycle takes in
        self._unreported: List[Handle] = []  # what the others have not been told
        self._active_threads = ActiveThreads()
        self._next_unnamed = 0
        self._unnamed = 0  # how many entries have no name
        self._warned = False  # that they are matched by their order
        self._end: Optional[Exception] = None  # why nothing more is taken
        self._asleep = False  # that thread, until something is asked for

    def submit(self, handle: Handle, waits: bool = False) -> Handle:
        """Submit a request; its result comes by ``handle``.

        waits: whether this thread calls ``wait`` next.

        Raises DuplicateNameError if one of its name is under way, NotInitializedError after the
        end of the session, and what ended it if that was an error.
        """
        label = handle.request.name
        if label is None or self._end is not None or _timeline.current.on:
            return self._submit(handle, waits)
        # As a rule it is done without the lock, which takes a third of the time, by single steps of
        # a dict and of a deque: no other thread sees half of one.
        handle.label = label
        handle._executor = self
        if self._entries.setdefault(label, handle) is not handle:
            return self._submit(handle, waits)
        self._incoming.append(handle)
        if self._end is not None:
            self._refuse(handle)
        if not self._active_threads.own.has_asked:
            with self._lock:
                self._active_threads.add()
        if not waits and self._asleep:
            self._asleep = False  # it need not be told again
            self._bell.ring()
        return handle

    def _submit(self, handle: Handle, waits: bool) -> Handle:
        """Do what ``submit`` does, for anything."""
        with self._lock:
            self._enter(handle)
            self._incoming.append(handle)
            if self._asleep and not waits:
                self._asleep = False
                self._bell.ring()
        return handle

    def _refuse(self, handle: Handle) -> None:
        """Raise what ended the session meanwhile, unless the handle has failed with it."""
        with self._lock:
            assert self._end is not None
            if self._entries.pop(handle.label, None) is not None:
                raise own_copy(self._end)

    def _enter(self, handle: Handle) -> None:
        """Take a request in; see ``submit``."""
        if self._end is not None:
            raise own_copy(self._end)
        request = handle.request
        name = request.name
        label = label_of(request, self._next_unnamed) if name is None else name
        handle.label = label
        handle._executor = self
        if self._entries.setdefault(label, handle) is not handle:
            raise DuplicateNameError(
                f"{request.brief()} was asked for while one of that name is under way; "
                "synchronize it first, or give each its own name"
            )
        if _timeline.current.on:
            handle.enter("NEGOTIATE_" + request.call.upper())
        if isinstance(label, int) and label >= 0:
            if self._unnamed and not self._warned:
                under_way = list(self._entries.values())  # other threads add to it
                self._warned = warn_of_order(request, [x for x in under_way if x is not handle])
            self._next_unnamed += 1
            self._unnamed += 1
        self._active_threads.add()

    @property
    def ended(self) -> bool:
        """Whether the session is over, for this rank and all others."""
        return self._end is not None

    @property
    def failure(self) -> Optional[Exception]:
        """What it ended with, if that was a rank that was lost or did not answer."""
        return self._end if isinstance(self._end, (PeerLostError, StallError)) else None

    def _take_incoming(self) -> List[Handle]:
        """Return what the others have not been told, in the order in which it was asked for."""
        incoming = self._incoming
        self._unreported.extend([incoming.popleft() for _ in range(len(incoming))])
        return self._unreported

    def _oldest(self) -> Optional[Handle]:
        """Return the handle that has waited longest; one of join() only if there is no other."""
        oldest: Optional[Handle] = None
        for oldest in list(self._entries.values()):  # other threads add to it
            if oldest.label != JOIN_LABEL:
                break
        return oldest

    def finish(self, items: Sequence[Item]) -> None:
        """Give results or errors to those who wait for them."""
        entries, on = self._entries, _timeline.current.on
        with self._lock:
            for _, handle, _, error, _ in items:
                if handle is None:
                    continue
                if error is None and not on and type(handle.label) is str:  # as it is as a rule
                    if entries.pop(handle.label, None) is not None:
                        handle.done = True
                        if handle.notify is not None:
                            handle.notify()
                else:
                    self._finish(handle, error)
            self._active_threads.wake()

    def deliver(self, handles: Sequence[ArrayHandle], values: Sequence[Array]) -> None:
        """Give results of a burst to those who wait for them."""
        pop = self._entries.pop
        with self._lock:
            if self._unnamed:
                self._unnamed -= sum([handle.request.name is None for handle in handles])
            for handle, value in zip(handles, values):
                pop(handle.label, None)  # first: who sees the result may use the name again
                if handle.in_place:  # as ``take``, without a call for each
                    source = handle.source
                    source[:] = value if value.ndim == 1 else value.reshape(-1)
                    value = source
                handle.value = value
                handle.done = True
                if handle.notify is not None:
                    handle.notify()
            self._active_threads.wake()

    def _finish(self, handle: Handle, error: Optional[Exception]) -> None:
        """Let a handle be done; a thread that is interrupted in this may do it again."""
        if handle.done:
            return
        if self._entries.pop(handle.label, None) is not None and is_numbered(handle):
            self._unnamed -= 1
        handle.error = error
        handle.done = True
        if handle.notify is not None:
            handle.notify()
        if _timeline.current.on:
            handle.enter("")

    def _fail_all(self, error: Exception) -> None:
        """End the session: whatever waits fails, and nothing more is taken."""
        with self._lock:
            self._end = error
            for handle in list(self._entries.values()):
                self._finish(handle, None if handle.label == SHUTDOWN_LABEL else error)
            self._unreported = []
            self._incoming.clear()
            self._bell.ring()
            self._active_threads.wake()


def label_of(request: Request, number: int) -> Label:
    """Return the label of a request without a name; ``number``: the next of the unnamed ones."""
    if request.call == JOIN.call:
        return JOIN_LABEL
    return SHUTDOWN_LABEL if request.call == SHUTDOWN.call else number


def is_numbered(handle: Handle) -> bool:
    """Tell whether the handle goes by its number among the unnamed ones."""
    return isinstance(handle.label, int) and handle.label >= 0


def warn_of_order(request: Request, under_way: Iterable[Handle]) -> bool:
    """Say that allreduces which only their order tells apart are under way together, if so.

    Horovod numbers them as well, and adds up what has the same number.  Tells whether it was said.
    """
    grouped = bool(request.shape) and isinstance(request.shape[0], tuple)
    if request.call != "allreduce" or grouped:
        return False
    if not any(is_numbered(each) and each.request == request for each in under_way):
        return False
    warnings.warn(
        "allreduces without a name and of equal shape are under way together: they are "
        "matched by their order, which must be the same on all ranks; give each a name",
        stacklevel=7,
    )
    return True
