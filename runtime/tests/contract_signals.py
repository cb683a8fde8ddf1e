"""Cases of the contract: handlers of signals are the program's, in Python and in the kernel."""

import asyncio
import ctypes
import faulthandler
import io
import os
import pdb
import signal
import tempfile
import time
from typing import Any, Dict, List, Tuple

import numpy as np

from contract import only
from frameworks import Framework

NUMBERS = [n for n in range(1, 32) if n not in (signal.SIGKILL, signal.SIGSTOP)]


class Action(ctypes.Structure):
    """The C library's struct sigaction (sigaction(2)) on x86-64 and 64-bit POWER and Arm."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_ubyte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def kernel_actions() -> Dict[int, Tuple[Any, int]]:
    """Return the handler and the flags (SA_RESTART, ...) of each signal, as the kernel has them."""
    library = ctypes.CDLL(None, use_errno=True)
    found = {}
    for number in NUMBERS:
        action = Action()
        assert library.sigaction(number, None, ctypes.byref(action)) == 0
        found[number] = action.handler, action.flags
    return found


def masks() -> List[str]:
    """Return which signals are blocked, ignored and caught, as /proc has them."""
    with open("/proc/self/status") as stream:
        return [line for line in stream if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]


def reduce_often(t: Framework, times: int = 50) -> None:
    """Reduce so that the calling thread runs the cycles, and so that another thread does."""
    hvd = t.hvd
    for step in range(times):
        got = hvd.allreduce(t.tensor(np.full(3, float(step))), op=hvd.Sum, name="signals")
        t.same(got, np.full(3, float(step * hvd.size())))
    hvd.synchronize(hvd.allreduce_async(t.tensor(np.ones(5)), op=hvd.Sum, name="later"))


def case_signals_stay_as_they_are(t: Framework) -> None:
    """Also flags that the program has set in the kernel, and the descriptor for wakeups."""
    ran: List[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: ran.append(number))
    signal.siginterrupt(signal.SIGUSR1, False)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    wakeup = signal.set_wakeup_fd(writer)
    actions, noted = kernel_actions(), masks()
    assert actions[signal.SIGUSR1][1] & 0x10000000  # SA_RESTART
    handlers = [signal.getsignal(number) for number in NUMBERS]
    reduce_often(t)
    assert kernel_actions() == actions and masks() == noted
    assert [signal.getsignal(number) for number in NUMBERS] == handlers
    os.kill(os.getpid(), signal.SIGUSR1)
    assert os.read(reader, 9) == bytes([signal.SIGUSR1]) and ran == [signal.SIGUSR1]
    assert signal.set_wakeup_fd(wakeup) == writer
    signal.signal(signal.SIGUSR1, before)
    os.close(reader)
    os.close(writer)


def case_faulthandler_before_a_handler(t: Framework) -> None:
    """It writes the stacks, and calls the handler that was there."""
    ran: List[int] = []
    before = signal.signal(signal.SIGUSR2, lambda number, _: ran.append(number))
    with tempfile.TemporaryFile() as stream:
        faulthandler.register(signal.SIGUSR2, stream, chain=True)
        reduce_often(t)
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in range(1000):
            if ran:
                break
            time.sleep(0.001)
        faulthandler.unregister(signal.SIGUSR2)
        stream.seek(0)
        assert b"case_faulthandler_before_a_handler" in stream.read()
    assert ran == [signal.SIGUSR2]
    signal.signal(signal.SIGUSR2, before)


@only(framework="numpy")
def case_asyncio(t: Framework) -> None:
    """A loop's handlers are called, whichever of its threads asks for collectives."""
    ran: List[int] = []
    loop = asyncio.new_event_loop()

    async def body() -> None:
        loop.add_signal_handler(signal.SIGUSR1, ran.append, 1)
        reduce_often(t, 20)
        await loop.run_in_executor(None, reduce_often, t, 20)
        os.kill(os.getpid(), signal.SIGUSR1)
        while not ran:
            await asyncio.sleep(0.001)
        loop.remove_signal_handler(signal.SIGUSR1)

    loop.run_until_complete(asyncio.wait_for(body(), 60))
    loop.close()


@only(framework="numpy")
def case_debugger(t: Framework) -> None:
    """It steps over collectives, and its handler of SIGINT opens it again."""
    before = signal.getsignal(signal.SIGINT)
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("n\nn\nc\np 3 * 5\nc\n"), stdout=out, readrc=False)
    debugger.set_trace()
    reduce_often(t, 3)
    reduce_often(t, 3)
    actions = kernel_actions()
    assert signal.getsignal(signal.SIGINT) == debugger.sigint_handler
    reduce_often(t)
    assert kernel_actions() == actions
    assert signal.getsignal(signal.SIGINT) == debugger.sigint_handler
    os.kill(os.getpid(), signal.SIGINT)
    reduce_often(t, 3)
    assert "15" in out.getvalue().split()
    signal.signal(signal.SIGINT, before)


def case_handler_that_raises_an_error(t: Framework) -> None:
    """As that of torch's DataLoader does when a worker has died; the collective goes on."""
    hvd = t.hvd

    def handler(number: int, frame: Any) -> None:
        raise RuntimeError("a worker has died")

    before = signal.signal(signal.SIGCHLD, handler)
    late = hvd.rank() == hvd.size() - 1
    for step in range(4):
        reduce_often(t, 3)
        if late:
            time.sleep(0.05 * (step % 3))  # the others wait in the collective meanwhile
        x = t.tensor(np.full(3, float(step)))
        handle = hvd.allreduce_async(x, op=hvd.Sum, name="signals")
        child = 0
        died = False
        while True:
            try:
                child = child or _end_soon(0.02 * (1 + step % 2))
                got = hvd.synchronize(handle)
                while not died:
                    time.sleep(0.001)
                break
            except RuntimeError as error:
                assert str(error) == "a worker has died", error
                died = True
        t.same(got, np.full(3, float(step * hvd.size())))
        os.waitpid(child, 0)
    signal.signal(signal.SIGCHLD, before)


def _end_soon(seconds: float) -> int:
    """Return the number of a process that ends so much later."""
    arguments = ["sleep", str(seconds)]
    return os.spawnvp(os.P_NOWAIT, arguments[0], arguments)


def case_handler_that_asks(t: Framework) -> None:
    """At any moment, as one does that agrees with the other ranks on stopping."""
    hvd = t.hvd
    results: List[float] = []

    def handler(number: int, frame: Any) -> None:
        results.append(float(hvd.allreduce(t.tensor(np.ones(2)), op=hvd.Sum, name="stop?")[0]))

    before = signal.signal(signal.SIGALRM, handler)
    for step in range(30):
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 3e-5 * step)
        reduce_often(t, 3)
        while len(results) <= step:
            time.sleep(0.0001)
    assert results == [float(hvd.size())] * 30
    signal.signal(signal.SIGALRM, before)


@only(framework="numpy")
def case_interrupted_again_and_again(t: Framework) -> None:
    """Handlers raise in quick succession, also while the first interruption is seen to."""
    hvd = t.hvd
    left = [0]  # how often the handler still raises

    class Interrupted(Exception):
        pass

    def interrupt(number: int, frame: Any) -> None:
        if left[0]:
            signal.setitimer(signal.ITIMER_REAL, 1e-5)
            if "distributed_dl_training" in frame.f_code.co_filename:
                left[0] -= 1
                raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    total, step = 0, 0
    while step < 80 or step % 80 or not _all(hvd, total > 20, step):
        step += 1
        handle = hvd.allreduce_async(t.tensor(np.full(3, step)), name="interrupted", op=hvd.Sum)
        got = None
        left[0] = 3
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (1 + step % 40))
        while got is None:
            try:
                got = hvd.synchronize(handle)
            except Interrupted:
                pass
        total += 3 - left[0]
        left[0] = 0  # for signals that come too late
        t.same(got, np.full(3, step * hvd.size()))
    time.sleep(0.01)
    signal.signal(signal.SIGALRM, before)


def _all(hvd: Any, enough: bool, step: int) -> bool:
    """Tell whether all ranks have been interrupted often enough."""
    assert step < 4000
    return bool(hvd.allreduce(np.array([enough], np.int64), op=hvd.Min, name="enough")[0])
