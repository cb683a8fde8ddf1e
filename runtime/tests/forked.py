"""Ranks that are forks of one process, which has loaded for all of them what takes long.

    python forked.py ENVIRONMENTS MODULES PROGRAM [WORD ...]

ENVIRONMENTS is a list in JSON of what each rank has in its environment besides; MODULES are names
with commas.  PyTorch takes 1.8 s of a core to be imported, and its optimizers as much again: more
than most programs of the tests then need.  A fork goes on as ``python PROGRAM WORD ...`` does, to
the end of the interpreter.  The exit code is the first one, by rank, that is not 0.
"""

import gc
import importlib
import json
import os
import signal
import sys
import time
from typing import Dict, List


def start(environs: List[Dict[str, str]]) -> List[int]:
    """Return the processes of the ranks; none in each of them."""
    ranks: List[int] = []
    for environ in environs:
        rank = os.fork()
        if rank == 0:
            os.environ.update(environ)
            return []
        ranks.append(rank)
    return ranks


def wait(ranks: List[int]) -> int:
    """Return the exit code; once some have ended, kill those that are stopped by a signal."""
    codes: Dict[int, int] = {}
    while len(codes) < len(ranks):
        running = [rank for rank in ranks if rank not in codes]
        for rank in running:
            ended, status = os.waitpid(rank, os.WNOHANG)
            if ended:
                killed = os.WIFSIGNALED(status)
                codes[rank] = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)
        if codes and all(stopped(rank) for rank in running if rank not in codes):
            for rank in running:
                if rank not in codes:
                    os.kill(rank, signal.SIGKILL)
        time.sleep(0.01)
    return next((codes[rank] for rank in ranks if codes[rank]), 0)


def stopped(process: int) -> bool:
    """Tell whether a process that nobody has waited for has been stopped by a signal."""
    with open(f"/proc/{process}/stat", "rb") as stream:
        return stream.read().rpartition(b") ")[2][:1] == b"T"


for name in sys.argv[2].split(","):
    importlib.import_module(name)
if hasattr(gc, "freeze"):  # from 3.7 on: what was loaded is not looked through in each rank
    gc.freeze()
started = start(json.loads(sys.argv[1]))
if started:
    os._exit(wait(started))  # the end of an interpreter that has loaded PyTorch takes 0.5 s
sys.argv = sys.argv[3:]
with open(sys.argv[0], "rb") as program:
    __file__ = sys.argv[0]
    exec(compile(program.read(), __file__, "exec"))
