"""The one session of a process: init to shutdown, its process sets, and no rank left waiting.

The API that users know has no handle, so the process holds one session here; every framework
module shares it.
"""

import atexit
import operator
import os
import sys
import threading
from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Type, Union

from distributed_dl_training import _settings, _threads, _timeline
from distributed_dl_training._agreement import Request
from distributed_dl_training._controller import Controller
from distributed_dl_training._core import Engine, NotInitializedError, Threads, forks
from distributed_dl_training._engines import choose, make_engine
from distributed_dl_training._handle import Handle
from distributed_dl_training._joining import Joining
from distributed_dl_training._works import Subset


class ProcessSet:
    """Some of the ranks, among which collectives may run without the others.

    Make one with ``add_process_set``; ``global_process_set`` is all ranks.
    """

    def __init__(self, ranks: Sequence[int]) -> None:
        """Name the ranks, in the order that they shall have in the set.  Raises TypeError."""
        self.ranks = [operator.index(rank) for rank in ranks]
        self.process_set_id: Optional[int] = None

    def included(self) -> bool:
        """Tell whether this process is one of the set.  Raises NotInitializedError."""
        return _engine_of(self) is not None

    def rank(self) -> int:
        """Return this process's rank in the set.  Raises NotInitializedError, ValueError."""
        session = facts()
        if self.process_set_id not in session.sets:
            raise ValueError(f"{self} is not there: add_process_set() makes it usable")
        engine = _engine_of(self)
        if engine is None:
            raise ValueError(f"rank {session.world.engine.rank} is not in {self}")
        return engine.rank

    def size(self) -> int:
        """Return the number of ranks in the set.  Raises NotInitializedError."""
        engine = _engine_of(self)
        return len(self.ranks) if engine is None else engine.size

    def __reduce__(self) -> Any:
        """Pickle what the set means: all ranks, or those it names."""
        return _process_set_of, (None if self is global_process_set else self.ranks,)

    def __repr__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


class _Session:
    """The controllers of a process: of all ranks, and of each process set that it is in."""

    def __init__(self, engine: Engine, settings: _settings.Settings) -> None:
        self.pid = os.getpid()
        settings = _settings.agree(engine, settings)
        self.world = Controller(engine, settings)
        self.sets: Dict[int, Optional[Controller]] = {0: self.world}
        self.members: Dict[int, ProcessSet] = {0: global_process_set}

    def controllers(self) -> List[Controller]:
        """Return those of the sets that this process is in, the world's last."""
        found = (self.sets[number] for number in sorted(self.sets, reverse=True))
        return [each for each in found if each is not None]

    @property
    def failure(self) -> Optional[Exception]:
        """What told of a lost rank, for which MPI would wait when it is finalized."""
        failures = (each.failure for each in self.controllers())
        return next((each for each in failures if each is not None), None)


global_process_set = ProcessSet([])
global_process_set.process_set_id = 0
_lock = threading.RLock()
_session: Optional[_Session] = None
_first: Optional[_Session] = None  # the one that may have started MPI
_lost: Optional[_Session] = None  # one that shutdown() has closed after the loss of a rank


def init(
    comm: Any = None,
    process_sets: Union[str, Sequence[Union[ProcessSet, Sequence[int]]], None] = None,
    abort_on_exception: bool = True,
) -> None:
    """Join the other ranks; collective over the ranks of ``comm``.

    comm: None for every rank of the job, a mpi4py communicator (each sub-communicator is a
        world of its own; it is duplicated, so the program may use or free it), or a list of
        ranks of the world.
    process_sets: sets to add at once, see ``add_process_set``; None and Horovod's "dynamic" mean
        none, as sets can be added at any time anyway.
    abort_on_exception: let an exception that nobody catches print its traceback and then end
        the whole job with exit code 1.  Without it the other ranks learn of the loss only at
        their next collective, and not at all if the exiting rank hangs in somebody else's exit
        handler.  A job of one process is never aborted.

    The engine is the one that DDLT_ENGINE names (mpi, gloo, nccl, single), else the one that
    fits what launched the job.  MPI is started unless somebody has done so; only an MPI started
    here is finalized, when the process ends.  A second init over the same ranks does nothing, as
    in Horovod.

    Raises ValueError if the session runs over other ranks, or ``comm`` is null or lacks this
    rank, or a setting is wrong or differs between ranks, or a set cannot be added; TypeError if
    ``comm`` or a set is something else; EngineUnavailableError (MPIUnavailableError without
    mpi4py or MPI); RuntimeError if MPI is finalized already, or in a forked child of an
    initialized process.
    """
    join(comm, process_sets, abort_on_exception)


def join(
    comm: Any,
    process_sets: Any,
    abort_on_exception: bool,
    horovod_rules: bool = False,
) -> None:
    """Do what ``init`` says; ``horovod_rules`` is what the compatibility layer asks for."""
    with _lock:
        _forget_ended()
        if _session is None:
            settings = _settings.read()  # wrong ones are told before anybody waits
            settings = settings._replace(horovod_rules=int(horovod_rules))
            wanted = _wanted(process_sets)
            with Joining(settings.init_timeout, choose(comm)):
                with _threads.starting_engine():
                    engine = make_engine(comm, settings)
            start(engine, settings, abort_on_exception)
            try:
                for each in wanted:
                    add_process_set(each)
            except (ValueError, RuntimeError):  # on all ranks
                shutdown()
                raise
        elif _session.pid != os.getpid():
            raise RuntimeError("a forked child cannot join: MPI does not survive a fork")
        elif not _session.world.engine.same_group(comm):
            raise ValueError("already initialized over other ranks; call shutdown() first")


def start(engine: Engine, settings: _settings.Settings, abort_on_exception: bool) -> None:
    """Open the session over ``engine``.

    Raises ValueError, on all ranks, if their settings differ.
    """
    global _session, _first
    try:
        _session = _Session(engine, settings)
    except ValueError:
        engine.close()
        raise
    global_process_set.ranks = list(range(engine.size))
    if _first is None:
        atexit.register(_at_exit)
        _first = _session
    if abort_on_exception and engine.world_size > 1:
        _install_hook(_session)
    _timeline.start_from_environ(engine.rank, engine.size)


def start_timeline(path: str, mark_cycles: bool = False) -> None:
    """Write what happens to each tensor from now on to ``path``, as a Chrome trace (Perfetto).

    path: with ``{rank}`` in it each rank writes its own file, else rank 0 alone writes.
    mark_cycles: write when a negotiation cycle starts.

    DDLT_TIMELINE starts it with ``init``, and marks cycles if DDLT_TIMELINE_MARK_CYCLES is 1.
    Raises NotInitializedError, ValueError if one is running, and OSError if the file cannot be
    written.
    """
    engine = _current().world.engine
    _timeline.start_timeline(path, engine.rank, engine.size, mark_cycles)


def stop_timeline() -> None:
    """Complete the timeline's file; without one it does nothing.  ``shutdown`` does it too."""
    _timeline.stop_timeline()


def shutdown() -> None:
    """Leave; collective.  Without a session it does nothing, and init may follow.

    Ranks that ask for a collective while another one shuts down get a MismatchError, and their
    session is closed as well: nobody is left to answer them.  The same happens when a rank
    ends without a call of shutdown.  Process sets are gone with it.

    After a StallError or PeerLostError it does not wait; the job still ends with the program.
    """
    global _session, _lost
    if _session is None or _session.pid != os.getpid():
        return  # also because a forked child may have inherited the lock as taken
    with _lock:
        session = _session
        if session is None:
            return
        told = session.failure is not None
        # First all, then wait: a rank that waits in one set may be waited for in another.
        for each in session.controllers():
            each.request_shutdown()
        for each in session.controllers():
            each.shutdown()
        for number, each_set in session.members.items():
            each_set.process_set_id = None if number else 0
        if session.failure is not None:
            _lost = session
            if not told:  # it came to light here, and nobody asks for what would raise it
                sys.stderr.write(f"shutdown: {session.failure}\n")
        _session = None
        _timeline.stop_timeline()


def is_initialized() -> bool:
    """Tell whether this process has a session: after init, before shutdown.

    A forked child has its parent's: ranks and sizes can be asked for there, collectives cannot.
    """
    return _session is not None and not _session.world.ended


def horovod_rules() -> bool:
    """Tell whether the session was opened by the compatibility layer, whose rules hold then."""
    return _session is not None and bool(_session.world.settings.horovod_rules)


def add_process_set(process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
    """Make a set of ranks usable; collective over all ranks, with the same ranks in the same order.

    Each set has a communication thread of its own, so that sets cannot wait for each other.

    Raises ValueError if a rank is twice in it or is none, or if the set was added before or has
    the ranks of another one; RuntimeError where MPI does not let several threads call it;
    MismatchError, NotInitializedError.
    """
    added = process_set if isinstance(process_set, ProcessSet) else ProcessSet(process_set)
    session = _current()
    engine = session.world.engine
    refusal: Optional[Exception] = None
    ranks = added.ranks
    if not ranks or len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(engine.size)):
        refusal = ValueError(f"ranks {ranks} are not different ranks from 0 to {engine.size - 1}")
    elif sorted(ranks) in [sorted(other.ranks) for other in session.members.values()]:
        refusal = ValueError(f"there is a process set of the ranks {ranks} already")
    elif added.process_set_id is not None:
        refusal = ValueError(f"{added} has been added before")
    elif engine.size > 1 and engine.threads is not Threads.MULTIPLE:
        refusal = RuntimeError("process sets need an MPI that runs with MPI_THREAD_MULTIPLE")
    request = Request(
        "add_process_set",
        shape=tuple(ranks) if refusal is None else (),
        refusal=type(refusal).__name__ if refusal else "",
    )
    made = session.world.submit(Handle(request, Subset(ranks), refusal)).synchronize()
    number = max(session.sets) + 1
    session.sets[number] = None if made is None else Controller(made, session.world.settings)
    session.members[number] = added
    added.process_set_id = number
    return added


def remove_process_set(process_set: ProcessSet) -> bool:
    """Undo ``add_process_set``; collective over all ranks.  Returns False for the global set.

    Raises NotInitializedError, MismatchError, and ValueError if the set is not there.
    """
    session = _current()
    number = process_set.process_set_id
    if number == 0:
        return False
    refusal = None if number in session.sets else ValueError(f"{process_set} is not there")
    request = Request(
        "remove_process_set", root=number or -1, refusal="ValueError" if refusal else ""
    )
    session.world.submit(Handle(request, Subset(None), refusal)).synchronize()
    assert number is not None
    controller = session.sets.pop(number)
    del session.members[number]
    if controller is not None:
        controller.shutdown()
    process_set.process_set_id = None
    return True


def controller(process_set: Optional[ProcessSet] = None) -> Controller:
    """Return what carries out the collectives of a set.

    Raises NotInitializedError, and ValueError if the set is not there or lacks this rank.
    """
    session = _session
    # Asked here, as it is for each tensor: to ask for the process takes a part of its time.
    if session is None or session.pid != (forks.pid or os.getpid()):
        session = _current()
    if process_set is None:
        return session.world
    number = process_set.process_set_id
    if number is None or number not in session.sets:
        raise ValueError(f"{process_set} is not there: add_process_set() makes it usable")
    found = session.sets[number]
    if found is None:
        raise ValueError(f"rank {session.world.engine.rank} is not in {process_set}")
    return found


def _process_set_of(ranks: Optional[List[int]]) -> ProcessSet:
    """Return the set of these ranks, of this session if it has one, else one to be added."""
    if ranks is None:
        return global_process_set
    members = [] if _session is None else list(_session.members.values())
    return next((each for each in members if each.ranks == ranks), ProcessSet(ranks))


def _wanted(process_sets: Any) -> List[ProcessSet]:
    """Return the sets that ``init`` is to add.  Raises TypeError, ValueError."""
    if process_sets is None or process_sets == "dynamic":
        return []
    if isinstance(process_sets, str):
        raise ValueError(f"process_sets={process_sets!r} is neither 'dynamic' nor a list of sets")
    return [one if isinstance(one, ProcessSet) else ProcessSet(one) for one in process_sets]


def _engine_of(process_set: ProcessSet) -> Optional[Engine]:
    found = facts().sets.get(
        -1 if process_set.process_set_id is None else process_set.process_set_id
    )
    return None if found is None else found.engine


def facts() -> _Session:
    """Return the session to read from; also in a forked child, say a worker that loads data."""
    session = _session
    if session is None:
        raise NotInitializedError("not initialized: call init() first")
    return session


def _current() -> _Session:
    """Return the session to talk by.  Raises NotInitializedError."""
    session = facts()
    if session.pid != os.getpid():
        raise NotInitializedError("this is a forked child: it has no ranks to talk to")
    return session


def _forget_ended() -> None:
    """Close a session that other ranks have ended, so that init can open another."""
    if _session is not None and _session.pid == os.getpid() and _session.world.ended:
        shutdown()


def _at_exit() -> None:
    """Leave in order, so that ranks that still wait for this one get an error and not a hang."""
    shutdown()
    if _first is None or _first.pid != os.getpid():
        return
    if _lost is not None:
        # MPI would wait for the lost rank when it is finalized, also if somebody else does that,
        # so the job ends here; the launcher sees that it failed.
        sys.stdout.flush()
        sys.stderr.flush()
        _lost.world.engine.abort(1)
    else:
        _first.world.engine.finalize()


def _install_hook(session: _Session) -> None:
    """Make an exception that nobody catches end the job while ``session`` is open or broken."""
    earlier = sys.excepthook

    def hook(
        kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]
    ) -> None:
        try:
            earlier(kind, error, trace)
        finally:
            # A later library may keep calling this hook: it only acts for its own session.
            if session in (_session, _lost) and session.pid == os.getpid():
                sys.stdout.flush()
                sys.stderr.flush()
                session.world.engine.abort(1)

    sys.excepthook = hook
