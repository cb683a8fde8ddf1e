"""Which rank died of what, as far as the launcher says so in its log.

A rank that dies takes the others with it, and their records stop just the same: only the launcher
saw who was first. The forms are those of MPICH's hydra, Open MPI 4 and 5, Slurm's srun, torchrun
and horovodrun; a log in another form tells nothing, and nothing is made of it.
"""

import re

from ..messages import exit_text, signal_text
from .records import RankRecord

# hydra: "=   PID 12087 RUNNING AT vm\n=   EXIT CODE: 9"; the same number for a signal, which only
# the exit string further down tells apart.
HYDRA = re.compile(r"PID (\d+) RUNNING AT \S+\s*=\s*EXIT CODE: (\d+)")
HYDRA_SIGNAL = re.compile(r"TERMINATED WITH THE EXIT STRING: .*\(signal (\d+)\)")
# hydra ends ranks with SIGKILL itself, and may then name one of those.
HYDRA_ENDS_WITH = "9"
# torchrun: "failed (exitcode: -9) local_rank: 1 (pid: 12513) of binary: ..."
TORCHRUN = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: \d+ \(pid: (?P<pid>\d+)\)")
# horovodrun --gloo names every process that did not end well, also those that it ended itself
# after the first one: "Process 1 exit with status code 137."
HOROVODRUN = re.compile(r"Process (\d+) exit with status code (\d+)\.")
HOROVODRUN_FIRST = re.compile(r"remaining workers after failure of Process (\d+)\.")
BY_RANK = [
    # Open MPI: "Process name: [prterun-vm-12499@1,1]\n  Exit code:    3"; the rank comes last.
    re.compile(r"Process name: \[[^\]]*,(?P<rank>\d+)\]\s+Exit code:\s+(?P<code>\d+)"),
    # Slurm: "srun: error: node1: task 1: Killed" or "... Exited with exit code 3"
    re.compile(r"srun: error: \S+: task (?P<rank>\d+): Exited with exit code (?P<code>\d+)"),
    # Open MPI: "mpirun noticed that process rank 1 with PID 12513 on node vm exited on\nsignal 9"
    re.compile(
        r"noticed that process rank (?P<rank>\d+) with PID \d+ on node \S+\s+exited\s+on\s+"
        r"signal\s+(?P<signal>\d+)"
    ),
    re.compile(r"srun: error: \S+: task (?P<rank>\d+): (?P<killed>Killed)"),
]


class RankFailures:
    """The causes of death in a launcher's log, by process id or by rank.

    ``doubtful``: processes that the launcher may have ended itself. ``crash``: the signal that
    ended some process, if the log names only a process that the launcher ended.
    """

    def __init__(self, log: str) -> None:
        self.by_pid, self.by_rank, self.doubtful = {}, of_horovodrun(log), set()
        self.crash = None
        hydra_signal = HYDRA_SIGNAL.search(log)
        for pid, code in HYDRA.findall(log):
            killed = hydra_signal is not None and hydra_signal.group(1) == code
            self.by_pid[int(pid)] = killed_by(code) if killed else f"exit code {code}"
            if hydra_signal and code == HYDRA_ENDS_WITH:
                self.doubtful.add(int(pid))
                self.by_pid[int(pid)] = killed_by(code)
                # Of processes that end in one moment hydra may name one, and the other's signal.
                self.crash = None if killed else killed_by(hydra_signal.group(1))
        for code, pid in TORCHRUN.findall(log):
            self.by_pid[int(pid)] = exit_text(int(code))
        for form in BY_RANK:
            for match in form.finditer(log):
                found = match.groupdict()
                ending = exit_text(int(found["code"])) if "code" in found else None
                self.by_rank[int(found["rank"])] = ending or killed_by(found.get("signal", 9))

    def of(self, record: "RankRecord") -> "str | None":
        """Return the cause of death of a rank, or None if the log has none."""
        return self.by_pid.get(record.start.pid) or self.by_rank.get(record.rank)

    def certain(self, record: "RankRecord") -> bool:
        """Return whether the launcher named the rank as one that it did not end itself."""
        return self.of(record) is not None and record.start.pid not in self.doubtful


def killed_by(number: "int | str") -> str:
    """Return ``killed by signal 9 (SIGKILL)``."""
    return f"killed by {signal_text(int(number))}"


def of_horovodrun(log: str) -> "dict[int, str]":
    """Return the causes of death by rank, from the log of horovodrun."""
    first = set(HOROVODRUN_FIRST.findall(log))
    found = HOROVODRUN.findall(log)
    return {int(r): exit_text(int(code)) for r, code in found if not first or r in first}
