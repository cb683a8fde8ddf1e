"""Waiting for the launcher while looking after the ranks of this machine.

A rank that dies takes the others with it, or leaves them waiting until the time is up. Launchers
do not always notice (MPICH's hydra: a rank that exits before MPI starts), and seldom say who was
first. Here the first one to go is remembered, and useless waiting is cut short.
"""

import contextlib
import os
import select
from pathlib import Path
from typing import Iterable, NamedTuple

from .. import proc
from ..processes import Running, now
from .processes import find, of_record
from .records import RECORD_FILES, RankRecord, read_rank

# Seconds between two looks, where the kernel does not wake us at a death.
TICK = 0.1
# Seconds for which a launcher may go on after a rank died.
PATIENCE = 5.0
# A rank that failed stays this long after saying so (the program's PARTING, less what a look may
# take): whoever is lost by then was ended by the launcher, or by the failure.
STAYS = 0.4


class WatchResult(NamedTuple):
    """The result of waiting. Without a code and a rank that went: the time limit passed.

    observed: the records whose processes were seen alive.
    """

    code: "int | None" = None
    first_gone: "str | None" = None
    lost: bool = False
    observed: "tuple[str, ...]" = ()


class LivingRank(NamedTuple):
    """A rank that was seen alive."""

    path: Path
    pid: int
    started: int

    def goes(self) -> bool:
        """Return whether the process is gone or on its way out.

        A launcher may end the others once a rank's files are closed: they can be gone sooner.
        """
        return proc.birth(self.pid) != self.started or proc.is_exiting(self.pid)


class Alarm:
    """Wakes the waiting process when another one ends.

    Without Linux 5.3 and Python 3.9 it only waits, and processes are polled.
    """

    def __init__(self, descriptors: contextlib.ExitStack) -> None:
        self._descriptors = descriptors
        self._poll = select.poll()
        self._pids: "dict[int, int]" = {}

    def watch(self, pid: int) -> None:
        """Watch one more process."""
        with contextlib.suppress(OSError, AttributeError):
            descriptor = os.pidfd_open(pid)
            self._descriptors.callback(os.close, descriptor)
            self._poll.register(descriptor, select.POLLIN)
            self._pids[descriptor] = pid

    def wait(self, seconds: float) -> "set[int]":
        """Wait at most *seconds*, or until watched processes end; return these."""
        gone = [descriptor for descriptor, _ in self._poll.poll(1000 * seconds)]
        for descriptor in gone:
            self._poll.unregister(descriptor)
        return {self._pids[descriptor] for descriptor in gone}


class Watch:
    """The living ranks of one run on this machine."""

    def __init__(self, folder: "Path", nonce: str, ranks: int) -> None:
        self.folder = folder
        self.nonce = nonce
        self.ranks = ranks
        self.noticed: "set[Path]" = set()
        self.observed: "set[str]" = set()
        self.living: "list[LivingRank]" = []
        self.all_seen = True
        self.first_gone: "str | None" = None
        self.gone_since: "float | None" = None

    def wait(self, running: Running, timeout: float) -> WatchResult:
        """Wait for the launcher's end, at most *timeout* seconds, or until a rank is lost."""
        until = now() + timeout
        ended: "set[int]" = set()
        with contextlib.ExitStack() as descriptors:
            alarm = Alarm(descriptors)
            while True:
                code = running.wait(0)
                for pid in self._notice():
                    alarm.watch(pid)
                self._look(ended)
                time = now()
                lost = self.gone_since is not None and time - self.gone_since > PATIENCE
                if code is not None or time > until or lost:
                    lost = lost and code is None
                    return WatchResult(code, self.first_gone, lost, tuple(sorted(self.observed)))
                ended = alarm.wait(min(TICK, until - time))

    def _read(self, paths: "Iterable[Path]") -> "list[RankRecord]":
        records = [read_rank(path, self.nonce) for path in paths]
        return [record for record in records if isinstance(record, RankRecord)]

    def _notice(self) -> "list[int]":
        """Take note of ranks that have begun since the last look; return their process ids."""
        if len(self.noticed) >= self.ranks:
            return []
        begun = self._read(set(self.folder.glob(RECORD_FILES)) - self.noticed)
        processes = find(self.nonce) if begun else []
        new = []
        for record in begun:
            path = self.folder / record.source
            self.noticed.add(path)
            one = of_record(record, processes)
            if one:
                new.append(LivingRank(path, one.pid, one.started))
                self.observed.add(record.source)
            else:
                self.all_seen = False  # on another node, out of our sight, or gone already
        self.living += new
        return [rank.pid for rank in new]

    def _look(self, ended: "set[int]") -> None:
        """Determine which ranks are gone, and whether they had finished.

        ``ended``: processes that are known to be gone. They are checked first, because only a
        process that is alive after another was gone has outlived it.
        """
        ranks = sorted(self.living, key=lambda rank: rank.pid not in ended)
        gone = [rank for rank in ranks if rank.goes()]
        if gone and gone[0] is not ranks[0]:
            gone = [rank for rank in ranks if rank.goes()]
        self.living = [rank for rank in self.living if rank not in gone]
        records = {rank.pid: one for rank in gone for one in self._read([rank.path])}
        lost = {pid: one for pid, one in records.items() if not one.ended}
        if lost and self.gone_since is None:
            self.gone_since = now()
            # Nobody can say who was first if one was out of sight; an exception is told anyway.
            all_seen = self.all_seen and len(self.noticed) == self.ranks
            first = first_death([lost[pid] for pid in ended & set(lost)], list(lost.values()))
            if not all_seen or not first or first.failure:
                return
            if not failed_before(self._read(self.noticed), self.gone_since):
                self.first_gone = first.source


def failed_before(records: "Iterable[RankRecord]", now: float) -> bool:
    """Return whether a rank failed by itself before another one was found lost at *now*.

    A rank whose peer died fails as well, but then the peer is found lost at once.
    """
    return any(record.failure and now - record.failure.time > STAYS for record in records)


def first_death(ended: "list[RankRecord]", lost: "list[RankRecord]") -> "RankRecord | None":
    """Return the rank that died first among those found lost together; None if it is unknown.

    The order of their deaths can be chance. It is not if the others were ahead of the one that is
    gone, because they waited for it.
    """
    if len(lost) == 1:
        return lost[0]
    if len(ended) != 1:
        return None
    others = [len(record.events) for record in lost if record is not ended[0]]
    return ended[0] if len(ended[0].events) < min(others) else None
