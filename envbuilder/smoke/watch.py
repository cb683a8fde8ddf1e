"""Waiting for the launcher while looking after the ranks of this machine.

A rank that dies takes the others with it, or leaves them waiting until the time is up. Launchers
do not always notice (MPICH's hydra: a rank that exits before MPI starts), and seldom say who was
first. Here the first one to go is remembered, and useless waiting is cut short.
"""

from __future__ import annotations

import contextlib
import os
import select
from dataclasses import dataclass, field
from pathlib import Path

from .. import process
from .processes import find, of_record, same_machine
from .records import RECORD_FILES, RankRecord, read_rank

# Seconds between two looks, where the kernel does not wake us at a death.
TICK = 0.1
# Seconds for which a launcher may go on after a rank died.
PATIENCE = 5.0


@dataclass(frozen=True)
class Watched:
    """How the waiting ended. All None: the time was up."""

    code: int | None = None
    first_gone: str | None = None
    lost: bool = False


@dataclass
class _Rank:
    path: Path
    pid: int
    started: int


@dataclass
class Watch:
    """The living ranks of one run on this machine."""

    folder: Path
    nonce: str
    ranks: int
    noticed: set[Path] = field(default_factory=set)
    living: list[_Rank] = field(default_factory=list)
    all_seen: bool = True
    first_gone: str | None = None
    gone_since: float | None = None

    def wait(self, running: process.Running, timeout: float) -> Watched:
        """Wait for the launcher's end, at most *timeout* seconds, or until a rank is lost."""
        until = process.now() + timeout
        with contextlib.ExitStack() as descriptors:
            alarm = select.poll()
            while True:
                code = running.wait(0)
                for pid in self._notice():
                    _wake_at_death_of(pid, alarm, descriptors)
                self._look()
                now = process.now()
                lost = self.gone_since is not None and now - self.gone_since > PATIENCE
                if code is not None or now > until or lost:
                    return Watched(code, self.first_gone, lost and code is None)
                for descriptor, _ in alarm.poll(1000 * min(TICK, until - now)):
                    alarm.unregister(descriptor)

    def _notice(self) -> list[int]:
        """Take note of ranks that have begun since the last look; return their process ids."""
        if len(self.noticed) >= self.ranks:
            return []
        begun = []
        for path in set(self.folder.glob(RECORD_FILES)) - self.noticed:
            record = read_rank(path, self.nonce)
            if isinstance(record, RankRecord):
                self.noticed.add(path)
                begun.append((path, record))
        found = find(self.nonce) if begun else []
        new = []
        for path, record in begun:
            one = of_record(record, found) if same_machine(record) else None
            if one:
                new.append(_Rank(path, one.pid, one.started))
            else:
                self.all_seen = False  # on another node, out of our sight, or gone already
        self.living += new
        return [rank.pid for rank in new]

    def _look(self) -> None:
        """See which ranks are gone, and whether they had come to their end."""
        gone = [rank for rank in self.living if process.birth(rank.pid) != rank.started]
        self.living = [rank for rank in self.living if rank not in gone]
        records = (read_rank(rank.path, self.nonce) for rank in gone)
        lost = [one for one in records if isinstance(one, RankRecord) and not one.ended]
        if lost and self.gone_since is None:
            self.gone_since = process.now()
            # Of several at one look nobody can say who was first, nor if one was out of sight;
            # an exception is told anyway.
            all_seen = self.all_seen and len(self.noticed) == self.ranks
            if all_seen and len(lost) == 1 and not lost[0].failure:
                self.first_gone = lost[0].source


def _wake_at_death_of(pid: int, alarm: select.poll, descriptors: contextlib.ExitStack) -> None:
    """Let *alarm* go off when the process ends. Without it (Linux < 5.3) the tick has to do."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.pidfd_open(pid)
        descriptors.callback(os.close, descriptor)
        alarm.register(descriptor, select.POLLIN)
