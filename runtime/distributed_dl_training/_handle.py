"""What a program holds of a collective under way, and which of its threads wait for one."""

import copy
import functools
import threading
import time
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

import numpy

from distributed_dl_training import _threads, _timeline
from distributed_dl_training._agreement import Label, Request
from distributed_dl_training._core import Array, Protocol
from distributed_dl_training._works import Allreduce, Arithmetic, Nothing, Work


class Executor(Protocol):
    """What carries a handle's request out.

    finishing: a lock that guards results that are being made.
    """

    finishing: Any

    def poll(self, handle: "Handle") -> bool:
        """Tell whether ``handle`` is done."""
        raise NotImplementedError

    def wait(self, handle: "Handle") -> None:
        """Return when ``handle`` is done."""
        raise NotImplementedError


class Handle:
    """A collective under way: ``poll()`` looks whether it is complete, ``synchronize()`` waits."""

    # How all begin, without the time to set it for each.
    label: Label = ""
    phase = ""  # as the timeline has it
    done = False
    error: Optional[Exception] = None
    reported = False
    since = 0.0  # when it became the oldest that waits
    opening: Any = None  # of the cycle that its thread runs for it alone
    settled = False  # that cycle has brought its result
    # Called once it is done, maybe earlier than it is set; by a thread that holds the queue's lock.
    notify: Optional[Callable[[], None]] = None
    _executor: Optional[Executor] = None

    def __init__(
        self,
        request: Request,
        work: Work,
        refusal: Optional[Exception] = None,
        finish: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        """Prepare a request; ``finish`` turns the work into what the caller gets."""
        self.request = request
        self.work = work
        self.refusal = refusal
        self.finish = finish

    def enter(self, phase: str) -> None:
        """Write to the timeline that it leaves its phase and enters another, or none."""
        row = f"{self.request.call}.{self.request.name or 'noname'}"
        if self.phase:
            _timeline.current.end(row, self.phase)
        if phase:
            _timeline.current.begin(row, phase)
        self.phase = phase

    def poll(self) -> bool:
        """Tell whether the result is there, so that ``synchronize`` will not wait."""
        assert self._executor is not None
        return self._executor.poll(self)

    def synchronize(self) -> Any:
        """Wait for the collective and return its result; a second call returns the same.

        Raises MismatchError, StallError, PeerLostError, or what is wrong with the arguments.
        """
        assert self._executor is not None
        if not self.done:
            self._executor.wait(self)
        if self.error is not None:
            raise own_copy(self.error, self.refusal)
        if self.finish is not None:
            with self._executor.finishing:  # another thread may ask for the same result
                if self.finish is not None:
                    self.work, self.finish = Nothing(self.finish(self.work)), None
        return self.work.value


def synchronize(handle: Any) -> Any:
    """Wait for a collective and return its result; a second call returns the same.

    Raises MismatchError, StallError, PeerLostError, or what is wrong with the arguments.
    """
    return handle.synchronize()


def poll(handle: Any) -> bool:
    """Tell whether a collective is complete, so that ``synchronize`` will not wait.

    Where MPI has no thread support that lets a communication thread run, it waits itself.
    """
    done: bool = handle.poll()
    return done


class ArrayRequest(Arithmetic, Protocol):
    """What is asked for with an array: what its handle needs to know."""

    request: Request
    shape: Tuple[int, ...]


class ArrayHandle(Handle):
    """An allreduce of an array of the host, for which little is made beforehand.

    Where many come together ``value`` is cut from what was exchanged.  Else ``work`` is what is
    exchanged, and has the result.

    in_place: the result replaces ``source``.
    """

    in_place = False
    refusal = None
    finish = None
    value: Optional[Array] = None

    def __init__(
        self, executor: Executor, reduction: ArrayRequest, source: Array, tensor: Any = None
    ) -> None:
        """source: the array, flat and contiguous; tensor: what the program calls it."""
        self._executor = executor
        self.request = reduction.request
        self.reduction = reduction
        self.source = source
        self.tensor = tensor

    def __getattr__(self, name: str) -> Any:
        """Make ``work`` when it is asked for first, by the thread whose turn it is."""
        if name != "work":
            raise AttributeError(name)
        source, how = self.source, self.reduction
        target = source if self.in_place else numpy.empty(source.size, source.dtype)
        work = self.work = Allreduce([source], target, how.op, how.prescale, how.postscale)
        if len(how.shape) != 1:
            work.value = target.reshape(how.shape)
        return work

    def take(self, value: Array) -> None:
        """Take what it was reduced to, in the shape of the result."""
        if self.in_place:
            self.source[:] = value if value.ndim == 1 else value.reshape(-1)
            value = self.source
        self.value = value

    def synchronize(self) -> Any:
        if not self.done:
            assert self._executor is not None
            self._executor.wait(self)
        if self.error is not None:
            raise own_copy(self.error)
        return self.work.value if self.value is None else self.value


def own_copy(error: Exception, cause: Optional[Exception] = None) -> Exception:
    """Return ``error`` for one raise of many: raising adds a traceback to the object itself.

    cause: what was wrong on this rank; it may be the error itself.
    """
    if error is cause:
        return error
    made = copy.copy(error)
    made.__cause__ = cause or error.__cause__
    return made


class Item(NamedTuple):
    """What all ranks have agreed on, and this rank's part in it; none if it has joined.

    done: its data has come with the agreement.
    """

    request: Request
    handle: Optional[Handle]
    work: Optional[Work] = None
    error: Optional[Exception] = None
    done: bool = False


# From all fields as a tuple, in a third of the time.
make_item: Callable[[Tuple[Any, ...]], Item] = functools.partial(tuple.__new__, Item)


class _ThreadState(threading.local):
    """What each thread has of its own: whether it has asked for a collective."""

    has_asked = False


class ActiveThreads:
    """The threads that ask for collectives, and what each of them waits for.

    The controller's lock guards it.
    """

    def __init__(self) -> None:
        # Whoever opens the session is likely to ask, and other threads may wait for it to do so.
        self._threads = {threading.current_thread()}
        self.own = _ThreadState()
        self._blocked: FrozenSet[int] = frozenset()  # what all have waited for, by id
        self._blocked_since = 0.0
        # What threads wait for, by the lock that wakes each.
        self.waiting: Dict[Any, Tuple[threading.Thread, Handle]] = {}

    def add(self) -> None:
        """Note that this thread asks for a collective."""
        if self.own.has_asked:
            return
        self.own.has_asked = True
        me = threading.current_thread()
        # A thread that Python has not started, such as torch's for gradients, works for another
        # one that waits for it; it would count as alive for ever.
        if me not in self._threads and _threads.is_pythons(me):
            self._threads = {thread for thread in self._threads if thread.is_alive()}
            self._threads.add(me)

    def wait(self, handle: Handle, woken: Any) -> None:
        """Note that this thread waits for ``handle``, and is woken by releasing the lock ``woken``.

        To acquire it may be interrupted at any moment without harm, unlike to wait for a condition,
        which holds a lock before and after.  A handler may wait where its thread waits.
        """
        self.waiting[woken] = threading.current_thread(), handle

    def wake(self) -> None:
        """Let the threads go on whose handles are done."""
        for woken, (_, handle) in list(self.waiting.items()):
            if handle.done and woken.locked():
                woken.release()

    def resume(self, woken: Any) -> None:
        """Note that this thread waits no more."""
        self.waiting.pop(woken, None)

    def all_wait(self) -> bool:
        """Tell whether every thread that could ask for more has waited for a while.

        One that has asked for nothing yet may still do so, and so may handlers of signals.  Of
        threads that Python has not started nothing is known: there is no conclusion with them.
        """
        self._threads = {thread for thread in self._threads if thread.is_alive()}
        waiting = [each for each in list(self.waiting.values()) if not each[1].done]
        threads = {thread for thread, _ in waiting}
        handles = frozenset(id(handle) for _, handle in waiting)
        now = time.monotonic()
        if handles != self._blocked:
            self._blocked, self._blocked_since = handles, now
        return (
            bool(self._threads)
            and self._threads.union(threads_that_may_ask()) <= threads
            and not _threads.unseen_threads()
            and now - self._blocked_since > _WHILE
        )


# Seconds.
_WHILE = 1.0
# Where the threads of this runtime and of libraries are at home that ask for no collectives.
_SILENT = (
    "distributed_dl_training.",
    "multiprocessing.",
    "torch.utils.data.",
    "torch._inductor.",
    "tqdm.",
    "tensorboard.",
)


def threads_that_may_ask() -> List[threading.Thread]:
    """Return this process's threads that may ask for a collective, though they have not yet."""
    return [
        thread
        for thread in threading.enumerate()
        if _threads.is_pythons(thread) and not _home(thread).startswith(_SILENT)
    ]


def _home(thread: threading.Thread) -> str:
    """Return the module that a thread's code is from."""
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", None) or type(thread).__module__
