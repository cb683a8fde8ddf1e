"""Run ``envbuild WORDS`` no further than to a moment, until a gate is opened.

    python held.py FOLDER PATTERN SINCE GATE WORDS...

The moment is there when a file of FOLDER that fits PATTERN is written after SINCE, in nanoseconds.
What the command runs then goes on to its end, which the command does not see before a file GATE is
there. A test that looks for the file instead may look when the moment is over.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Moment:
    """When it begins, and the gate at which it ends."""

    folder: Path
    pattern: str
    since: int
    gate: Path

    def has_come(self) -> bool:
        files = self.folder.glob(self.pattern)
        try:
            return any(path.lstat().st_mtime_ns >= self.since for path in files)
        except FileNotFoundError:
            return False

    def words(self) -> list[str]:
        return [str(self.folder), self.pattern, str(self.since), str(self.gate)]


def hold_at(moment: Moment) -> None:
    """From now on, see the end of no process while the moment lasts."""
    wait = subprocess.Popen.wait

    def held(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        code = wait(process, timeout)
        while moment.has_come() and not moment.gate.exists():
            time.sleep(0.02)
        return code

    subprocess.Popen.wait = held  # type: ignore[method-assign]


def main() -> None:
    del sys.path[0]  # this folder
    from envbuilder import cli

    # The tests may run where it is ignored, under nohup say; what is tested is one that is heard.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    folder, pattern, since, gate = sys.argv[1:5]
    hold_at(Moment(Path(folder), pattern, int(since), Path(gate)))
    sys.argv = ["envbuild", *sys.argv[5:]]
    cli.main()


if __name__ == "__main__":
    main()
