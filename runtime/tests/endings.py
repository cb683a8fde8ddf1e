"""Ways in which a rank of a job may end, as an MPI program: python endings.py WAY.

The odd rank (the last) takes the way; the others ask for a collective that it never joins.
"""

import os
import signal
import sys
import time

import distributed_dl_training.numpy as hvd

WAY = sys.argv[1]


def start() -> None:
    if WAY == "mpi_not_started_by_mpi4py":
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    hvd.init(abort_on_exception=not WAY.startswith("unguarded"))


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
    if WAY == "sigkill":
        os.kill(os.getpid(), signal.SIGKILL)
    if WAY == "sigsegv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if WAY == "hang":
        time.sleep(300)
    if WAY == "keyboard_interrupt":
        os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    start()
    hvd.barrier()
    if WAY == "finalized_by_program":
        from mpi4py import MPI

        MPI.Finalize()
    elif WAY in ("no_shutdown", "mpi_not_started_by_mpi4py"):
        assert hvd.allreduce(1.0) == 1.0
    elif hvd.rank() == hvd.size() - 1:
        leave()
    else:
        hvd.allreduce(1.0, name="waiting")
        print("went on without the last rank")


if __name__ == "__main__":
    main()
