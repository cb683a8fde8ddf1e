"""``horovod.runner.util.threads``: functions in threads of their own."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Sequence

__all__ = ["execute_function_multithreaded", "in_thread", "on_event"]


def execute_function_multithreaded(
    fn: Callable[..., Any],
    args_list: Sequence[Sequence[Any]],
    block_until_all_done: bool = True,
    max_concurrent_executions: int = 1000,
) -> Dict[int, Any]:
    """Call ``fn`` with each list of arguments; return the results by number.

    If it is not to block, the result is empty, as in Horovod.  The first exception is raised.
    """
    workers = max(1, min(max_concurrent_executions, len(args_list)))
    pool = ThreadPoolExecutor(workers)
    futures = [pool.submit(fn, *arguments) for arguments in args_list]
    pool.shutdown(wait=block_until_all_done)
    return dict(enumerate(one.result() for one in futures)) if block_until_all_done else {}


def in_thread(
    target: Callable[..., Any],
    args: Sequence[Any] = (),
    name: Any = None,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Start ``target`` in a thread and return that; silent: an exception in it is not printed."""
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {type(args).__name__}: (argument,)")

    def guarded(*arguments: Any) -> None:
        try:
            target(*arguments)
        except Exception:
            if not silent:
                raise

    thread = threading.Thread(target=guarded, args=args, name=name, daemon=daemon)
    thread.start()
    return thread


def on_event(
    event: threading.Event,
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    stop: Any = None,
    check_stop_interval_s: float = 1.0,
    daemon: bool = True,
    silent: bool = False,
) -> threading.Thread:
    """Call ``func`` in a thread once ``event`` is set, unless the event ``stop`` is set before."""
    if not isinstance(args, tuple):
        raise ValueError(f"args must be a tuple, not {type(args).__name__}: (argument,)")

    def wait() -> None:
        while not event.wait(check_stop_interval_s if stop is not None else None):
            if stop is not None and stop.is_set():
                return
            time.sleep(0)
        func(*args)

    return in_thread(wait, daemon=daemon, silent=silent)
