"""``envbuild hang``: two looks at the ranks of a running job, and who is waited for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import UsageError
from ..launching.schedulers import SCHEDULERS
from ..machine.host import LocalMachine
from ..process import run
from ..text import counted
from ..workflow.context import Context
from .conclusion import conclude, place_of
from .processes import Rank, below, cpu_seconds, living, look, of_job, ranks
from .stacks import CallStack, read_stack
from .values import Hang, HangRank, RankState

# Seconds that py-spy gets for one process.
_PATIENCE = 30.0
_NO_PY_SPY = (
    "py-spy is not available, so the stacks of the ranks are unknown: pip install py-spy "
    "(x86_64, aarch64), or envbuild's extra: pip install 'envbuild[hang]'"
)


class _RankSample(NamedTuple):
    """What one rank did at one time. ``time``: seconds of a clock; ``cpu``: seconds used so far."""

    stack: CallStack
    time: float
    cpu: float


def hang(pids: Sequence[int], job: str | None, seconds: float, context: Context) -> Hang:
    """Look twice at ranks of this machine, and return who is waited for.

    *pids*: launchers or ranks. *job*: a scheduler's. *seconds*: between the looks. Raises
    UsageError where no rank is found.
    """
    found = _ranks(pids, job)
    program = _py_spy(context)
    if program is None:
        context.reporter.warn(_NO_PY_SPY)
    with context.reporter.working(f"sample {counted(len(found), 'rank')} twice"):
        before = _looks(found, program, context.environ)
        time.sleep(seconds)
        after = _looks(found, program, context.environ)
    lived = [each for each in found if each.process.pid in after and each.process.pid in before]
    if not lived:
        raise UsageError(
            "hang.ranks-ended",
            "all ranks ended while they were sampled",
            "read the log of the job: envbuild diagnose LOG",
        )
    values = tuple(
        _value(each, before[each.process.pid], after[each.process.pid]) for each in lived
    )
    size = max((each.size for each in found if each.size is not None), default=None)
    told = conclude(values, size)
    return Hang(
        host=os.uname().nodename,
        seconds=seconds,
        size=size,
        ranks=values,
        verdict=told.verdict,
        culprits=told.culprits,
        says=told.says[:1].upper() + told.says[1:],
        hint=told.hint,
    )


def _ranks(pids: Sequence[int], job: str | None) -> tuple[Rank, ...]:
    every = living()
    gone = [pid for pid in pids if pid not in every]
    if gone:
        raise UsageError(
            "hang.no-such-process",
            f"there is no process {gone[0]} on this machine",
            "use the process of the launcher; ps -ef lists the processes",
        )
    if job is None:
        found = ranks(below(pids, every))
        where = f"at or below process {', '.join(map(str, pids))}"
    else:
        variables = [each.JOB_ID for each in SCHEDULERS.values()]
        found = ranks(of_job(job, variables, every))
        where = f"of job {job}"
    if not found:
        raise UsageError(
            "hang.no-ranks",
            f"found no rank {where} on this machine; a rank has a number from its launcher, and "
            "you must be allowed to examine it",
            "for ranks of srun, use --job NUMBER on a node of the job",
        )
    return found


def _py_spy(context: Context) -> str | None:
    """Return py-spy's path: of the same environment as envbuild, or of PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    if os.access(beside, os.X_OK):
        return str(beside)
    return LocalMachine(context.environ, cwd=context.cwd).which("py-spy")


def _looks(
    found: Sequence[Rank], program: str | None, environ: Mapping[str, str]
) -> dict[int, _RankSample]:
    """Return what each rank does, by its process; what ended meanwhile is not in it."""
    ticks = os.sysconf("SC_CLK_TCK")
    looks: dict[int, _RankSample] = {}
    for each in found:
        pid = each.process.pid
        now = look(pid)
        if now is None or now.started != each.process.started:
            continue
        stack = CallStack((), "py-spy is not available")
        if program:
            stack = read_stack(
                program,
                pid,
                lambda words: run(words, env=environ, timeout=_PATIENCE),
                stopped=now.state in "Tt",
            )
        looks[pid] = _RankSample(stack, time.monotonic(), cpu_seconds(pid, ticks))
    return looks


def _value(rank: Rank, before: _RankSample, after: _RankSample) -> HangRank:
    place = place_of(after.stack.frames)
    used = (after.cpu - before.cpu) / max(after.time - before.time, 0.001)
    earlier = place_of(before.stack.frames)
    return HangRank(
        rank=rank.number,
        pid=rank.process.pid,
        state=_state(rank.process.pid, used),
        cpu=round(max(used, 0.0), 2),
        moved=bool(before.stack.frames and after.stack.frames) and earlier != place,
        call=place.call,
        at=place.at,
        frames=after.stack.frames,
        unseen=after.stack.unseen,
    )


def _state(pid: int, cpu: float) -> RankState:
    now = look(pid)
    if now is not None and now.state in "Tt":
        return "stopped"
    if now is not None and now.state == "D":
        return "in the kernel"
    return "busy" if cpu > _BUSY else "asleep"


# Cores; what only waits, and looks now and then whether it has to, uses less.
_BUSY = 0.2
