"""Ways in which a rank of a job may end, or stop: python endings.py WAY.

The odd rank (the last) takes the way; the others ask for a collective that it never joins, or
that it leaves before it is complete.
"""

import os
import signal
import sys
import time
from typing import List

import numpy as np

import distributed_dl_training.numpy as hvd
from distributed_dl_training import _fusion, _session

WAY = sys.argv[1]
RANK = next(os.environ[n] for n in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "RANK") if n in os.environ)
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def start() -> None:
    if WAY == "mpi_not_started_by_mpi4py":
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    hvd.init(abort_on_exception=not WAY.startswith("unguarded"))


def signal_inside(number: int) -> None:
    """Send this process a signal when a part of an allreduce is done.

    The others have gone inside the next part by then, or will: they have agreed on all of it.
    """
    session = _session._session
    assert session is not None
    engine = session.world.engine
    real = engine.allreduce
    done: List[int] = []

    def allreduce(values: "np.ndarray", op: hvd.Op) -> None:
        if done:
            print("signal while inside")
            os.kill(os.getpid(), number)
            # The main thread takes the signal, and this one would go on until it has.
            time.sleep(300)
        real(values, op)
        done.append(values.size)

    engine.allreduce = allreduce  # type: ignore[method-assign]


def large() -> None:
    """Reduce what is cut in parts."""
    values = np.ones(2 * _fusion.LONGEST_CHUNK // 4, dtype="f4")
    hvd.barrier()
    hvd.allreduce(values, name="large", op=hvd.Sum)
    print("went on without the last rank")


def slow() -> None:
    """The last rank calculates for 5.5 s; all go on afterwards, it with what others asked last."""
    last = hvd.rank() == hvd.size() - 1
    if last:
        end = time.monotonic() + 5.5  # between two of its looks for questions
        while time.monotonic() < end:
            sum(range(1000))
    first, then = ("other", "late") if last else ("late", "other")
    handle = hvd.allreduce_async(2.0, name=first)
    if last:
        hvd.synchronize(handle)
    assert hvd.allreduce(2.0, name=then) == 2.0
    assert hvd.synchronize(handle) == 2.0
    print("all went on")


def stall_error_caught() -> None:
    """A program that goes on after the error still comes to its end."""
    if hvd.rank() == hvd.size() - 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    try:
        hvd.allreduce(1.0, name="waiting")
    except hvd.StallError:
        print("caught it")
        if WAY == "stall_error_caught_and_shutdown":
            hvd.shutdown()
        if WAY == "stall_error_after_shutdown":
            hvd.shutdown()
            raise


def leave() -> None:
    """End, or go on to the end of the program, as the last rank."""
    if WAY in ("exception", "unguarded_exception"):
        raise ValueError("deliberate")
    if WAY == "sys_exit_text":
        sys.exit("deliberate")
    if WAY in ("sys_exit_0", "sys_exit_3"):
        sys.exit(int(WAY[-1]))
    if WAY in ("os_exit_0", "os_exit_3"):
        os._exit(int(WAY[-1]))
    if WAY in ("kill_before", "stop_before", "kill_at_shutdown", "stop_at_shutdown"):
        os.kill(os.getpid(), SIGNALS[WAY[:4]])
    if WAY == "sigsegv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if WAY == "hang":
        time.sleep(300)
    if WAY == "keyboard_interrupt":
        os.kill(os.getpid(), signal.SIGINT)


def settings_differ() -> None:
    os.environ["DDLT_CACHE_CAPACITY"] = RANK
    try:
        hvd.init()
    except ValueError as error:
        assert "DDLT_CACHE_CAPACITY" in str(error)
    assert not hvd.is_initialized()
    os.environ["DDLT_CACHE_CAPACITY"] = "7"
    hvd.init()
    assert hvd.allreduce(1.0) == 1.0


def main() -> None:
    if WAY == "settings_differ":
        settings_differ()
        return
    if WAY.startswith("absent") and RANK == "1":
        if WAY == "absent_stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        return
    start()
    hvd.barrier()
    if WAY == "slow":
        slow()
    elif WAY.startswith("stall_error"):
        stall_error_caught()
    elif WAY in ("kill_inside", "stop_inside"):
        if hvd.rank() == hvd.size() - 1:
            signal_inside(SIGNALS[WAY[:4]])
        large()
    elif WAY == "finalized_by_program":
        from mpi4py import MPI

        MPI.Finalize()
    elif WAY in ("no_shutdown", "mpi_not_started_by_mpi4py"):
        assert hvd.allreduce(1.0) == 1.0
    elif hvd.rank() == hvd.size() - 1:
        leave()
    elif WAY.endswith("at_shutdown"):
        hvd.shutdown()
        print("shutdown is over")
    else:
        hvd.allreduce(1.0, name="waiting")
        print("went on without the last rank")


if __name__ == "__main__":
    main()
