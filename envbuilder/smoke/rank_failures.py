"""Which rank died of what, as far as the launcher says so in its log.

A rank that dies takes the others with it, and their records stop just the same: only the launcher
saw who was first. The forms are those of MPICH's hydra, Open MPI 4 and 5, Slurm's srun, torchrun
and horovodrun; a log in another form tells nothing, and nothing is made of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .phrases import exit_text, signal_text
from .records import RankRecord

# hydra ends ranks with SIGKILL itself, and may then name one of those.
_HYDRA_ENDS_WITH = 9
# hydra: "=   PID 12087 RUNNING AT vm\n=   EXIT CODE: 9"; the same number for a signal, which only
# the exit string further down tells apart.
_HYDRA = re.compile(r"PID (\d+) RUNNING AT \S+\s*=\s*EXIT CODE: (\d+)")
_HYDRA_SIGNAL = re.compile(r"TERMINATED WITH THE EXIT STRING: .*\(signal (\d+)\)")
# Open MPI: "mpirun noticed that process rank 1 with PID 12513 on node vm exited on\nsignal 9"
_OPEN_MPI_SIGNAL = re.compile(
    r"noticed that process rank (\d+) with PID \d+ on node \S+\s+exited\s+on\s+signal\s+(\d+)"
)
# Open MPI: "Process name: [prterun-vm-12499@1,1]\n  Exit code:    3"; the rank comes last.
_OPEN_MPI_EXIT = re.compile(r"Process name: \[[^\]]*,(\d+)\]\s+Exit code:\s+(\d+)")
# Slurm: "srun: error: node1: task 1: Killed" or "... Exited with exit code 3"
_SLURM_EXIT = re.compile(r"srun: error: \S+: task (\d+): Exited with exit code (\d+)")
_SLURM_KILLED = re.compile(r"srun: error: \S+: task (\d+): Killed")
# torchrun: "failed (exitcode: -9) local_rank: 1 (pid: 12513) of binary: ..."
_TORCHRUN = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: \d+ \(pid: (\d+)\)")
# horovodrun --gloo names every process that did not end well, also those that it ended itself
# after the first one: "Process 1 exit with status code 137."
_HOROVODRUN = re.compile(r"Process (\d+) exit with status code (\d+)\.")
_HOROVODRUN_FIRST = re.compile(r"remaining workers after failure of Process (\d+)\.")


@dataclass(frozen=True)
class RankFailures:
    """What the launcher says ended a process, by process id or by rank.

    ``doubtful``: processes that the launcher may have ended itself.
    """

    by_pid: dict[int, str] = field(default_factory=dict)
    by_rank: dict[int, str] = field(default_factory=dict)
    doubtful: frozenset[int] = frozenset()

    def of(self, record: RankRecord) -> str | None:
        """Return what ended the rank, or None if the launcher did not say."""
        cause = self.by_pid.get(record.start.pid)
        if cause is None and record.rank is not None:
            cause = self.by_rank.get(record.rank)
        return cause

    def certain(self, record: RankRecord) -> bool:
        """Return whether the launcher named the rank as one that it did not end itself."""
        return self.of(record) is not None and record.start.pid not in self.doubtful


def read_deaths(log: str) -> RankFailures:
    """Return the deaths that a launcher's log tells of."""
    by_pid = {}
    doubtful = set()
    hydra_signal = _HYDRA_SIGNAL.search(log)
    for pid, code in _HYDRA.findall(log):
        killed = hydra_signal and hydra_signal[1] == code
        by_pid[int(pid)] = f"killed by {signal_text(int(code))}" if killed else f"exit code {code}"
        if killed and int(code) == _HYDRA_ENDS_WITH:
            doubtful.add(int(pid))
    by_pid |= {int(pid): exit_text(int(code)) for code, pid in _TORCHRUN.findall(log)}
    by_rank = _of_horovodrun(log)
    by_rank |= {int(rank): exit_text(int(code)) for rank, code in _OPEN_MPI_EXIT.findall(log)}
    by_rank |= {int(rank): exit_text(int(code)) for rank, code in _SLURM_EXIT.findall(log)}
    for rank, number in _OPEN_MPI_SIGNAL.findall(log):
        by_rank[int(rank)] = f"killed by {signal_text(int(number))}"
    for rank in _SLURM_KILLED.findall(log):
        by_rank[int(rank)] = f"killed by {signal_text(9)}"
    return RankFailures(by_pid, by_rank, frozenset(doubtful))


def _of_horovodrun(log: str) -> dict[int, str]:
    first = set(_HOROVODRUN_FIRST.findall(log))
    return {
        int(rank): exit_text(int(code))
        for rank, code in _HOROVODRUN.findall(log)
        if not first or rank in first
    }
