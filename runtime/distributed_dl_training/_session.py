"""The one session of a process: init to shutdown, turns at the engine, and no rank left waiting.

The API that users know has no handle, so the process holds one session here; every framework
module shares it.
"""

import atexit
import os
import sys
import threading
import time
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Iterator, Optional, Type

from distributed_dl_training._core import (
    Engine,
    MismatchError,
    NotInitializedError,
    agree,
    describe,
)

_SHUTDOWN = describe("shutdown")


class _Session:
    """An engine, how many collectives have been agreed on, and the process it belongs to."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pid = os.getpid()
        self.calls = 0


# Seconds between a traceback and the abort.  Launchers drop what they have not yet read when a
# rank aborts: without a pause MPICH's lost the traceback in one run of fifteen.
_LAST_WORDS = 0.5

# One collective at a time in a process: threads that interleave would break the order that
# the ranks agree on.  Reentrant, because an exit handler may run inside a call.
_lock = threading.RLock()
_session: Optional[_Session] = None
_first: Optional[_Session] = None  # the one that may have started MPI


def init(comm: Any = None, abort_on_exception: bool = True) -> None:
    """Join the other ranks; collective over the ranks of ``comm``.

    comm: None for every rank of the job, a mpi4py communicator (each sub-communicator is a
        world of its own; it is duplicated, so the program may use or free it), or a list of
        ranks of the world.
    abort_on_exception: let an exception that nobody catches print its traceback and then end
        the whole job with exit code 1 (``MPI_Abort``).  Without it the other ranks learn of
        the loss only at their next collective, and not at all if the exiting rank hangs in
        somebody else's exit handler.  A job of one process is never aborted.

    MPI is started unless somebody has done so; only an MPI started here is finalized, when the
    process ends.  A second init over the same ranks does nothing, as in Horovod.

    Raises ValueError if the session runs over other ranks, or ``comm`` is null or lacks this
    rank; TypeError if ``comm`` is something else; MPIUnavailableError without mpi4py or MPI;
    RuntimeError if MPI is finalized already, or in a forked child of an initialized process.
    """
    from distributed_dl_training._mpi import MpiEngine

    with _lock:
        if _session is None:
            start(MpiEngine(comm), abort_on_exception)
        elif _session.pid != os.getpid():
            raise RuntimeError("a forked child cannot join: MPI does not survive a fork")
        elif not _session.engine.same_group(comm):
            raise ValueError("already initialized over other ranks; call shutdown() first")


def start(engine: Engine, abort_on_exception: bool) -> None:
    """Open the session over ``engine``."""
    global _session, _first
    _session = _Session(engine)
    if _first is None:
        atexit.register(_at_exit)
        _first = _session
    if abort_on_exception and engine.world_size > 1:
        _install_hook(_session)


def shutdown() -> None:
    """Leave; collective.  Without a session it does nothing, and init may follow.

    Ranks that ask for a collective while another one leaves get a MismatchError, and their
    session is closed as well: nobody is left to answer them.  The same happens when a rank
    ends without a call of shutdown.
    """
    with _lock:
        session = _session
        if session is None or session.pid != os.getpid():
            return
        try:
            if session.engine.alive():
                agree(session.engine, session.calls, _SHUTDOWN)
        except MismatchError:
            pass  # raised where it matters: on the ranks that wanted to go on
        _close()


def is_initialized() -> bool:
    """Tell whether this process has a session: after init, before shutdown, not in a fork."""
    return _session is not None and _session.pid == os.getpid()


def size() -> int:
    """Return the number of ranks.  Raises NotInitializedError."""
    return _current().engine.size


def rank() -> int:
    """Return this process's rank, from 0 to size() - 1.  Raises NotInitializedError."""
    return _current().engine.rank


def local_size() -> int:
    """Return the number of ranks that share this node's memory.  Raises NotInitializedError."""
    return _current().engine.local_size


def local_rank() -> int:
    """Return this rank's place on its node, from 0 to local_size() - 1.

    Raises NotInitializedError.
    """
    return _current().engine.local_rank


def mpi_threads_supported() -> bool:
    """Tell whether MPI runs with MPI_THREAD_MULTIPLE, so that other threads may use it too.

    Raises NotInitializedError.
    """
    return _current().engine.threads_supported


@contextmanager
def turn(request: str, refusal: Optional[Exception] = None) -> Iterator[Engine]:
    """Hold the engine for one collective, once all ranks have asked for ``request``.

    refusal: what is wrong with this rank's arguments.  It is raised only after the ranks have
        agreed: an error raised earlier, on one rank, would leave the others waiting.  It is
        part of what they agree on, so either all ranks refuse or all see a MismatchError.

    Raises NotInitializedError, MismatchError or the refusal.
    """
    with _lock:
        session = _current()
        number = session.calls
        session.calls += 1
        if refusal is not None:
            request = f"{request} refused: {type(refusal).__name__}"
        try:
            agree(session.engine, number, request)
        except MismatchError as error:
            if _SHUTDOWN in error.requests:
                _close()
            raise error from refusal
        if refusal is not None:
            raise refusal
        yield session.engine


def _current() -> _Session:
    session = _session
    if session is None:
        raise NotInitializedError("not initialized: call init() first")
    if session.pid != os.getpid():
        raise NotInitializedError("this is a forked child: it has no ranks to talk to")
    return session


def _close() -> None:
    global _session
    session, _session = _session, None
    if session is not None:
        session.engine.close()


def _at_exit() -> None:
    """Leave in order, so that ranks that still wait for this one get an error and not a hang."""
    shutdown()
    if _first is not None and _first.pid == os.getpid():
        _first.engine.finalize()


def _install_hook(session: _Session) -> None:
    """Make an exception that nobody catches end the job, for as long as ``session`` is open."""
    earlier = sys.excepthook

    def hook(
        kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        try:
            earlier(kind, error, trace)
        finally:
            # A later library may keep calling this hook: it only acts for its own session.
            if _session is session and session.pid == os.getpid():
                sys.stdout.flush()
                sys.stderr.flush()
                time.sleep(_LAST_WORDS)
                session.engine.abort(1)

    sys.excepthook = hook
