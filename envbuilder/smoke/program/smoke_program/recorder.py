"""The record of one process: JSON lines, and what the kernel knows of the process."""

import json
import os
import socket
import sys
import time
from pathlib import Path


class Recorder:
    """Appends one JSON line per event; each is with the kernel when the call returns."""

    def __init__(self, folder, nonce):
        self.folder = folder
        self.identity = f"{socket.gethostname()}-{os.getpid()}"
        self.who = self.identity
        self.nonce = nonce
        self.failed = 0
        path = folder / f"rank-{self.identity}.jsonl"
        self.stream = path.open("a", encoding="utf-8", errors="replace", buffering=1)

    def write(self, event, **facts):
        facts.update(event=event, nonce=self.nonce, time=time.monotonic())
        self.stream.write(json.dumps(facts, sort_keys=True, ensure_ascii=False) + "\n")

    def check(self, name, work, dtype=None, nbytes=None):
        """Run *work*, which returns None or what is wrong, or a dict of facts with a problem."""
        what = {"check": name, "dtype": dtype, "bytes": nbytes}
        self.write("begin", **what)
        started = time.monotonic()
        found = work()
        facts = found if isinstance(found, dict) else {"problem": found}
        problem = facts["problem"]
        facts.update(what, passed=problem is None, seconds=time.monotonic() - started)
        self.write("done", **facts)
        if problem is not None:
            self.failed += 1
            label = " ".join(str(word) for word in (name, dtype, nbytes) if word is not None)
            sys.stderr.write(f"{self.who}: {label}: {problem}\n")

    def leave_out(self, name, why, dtype=None):
        """Say that a check is not made, because what is talked through cannot do it."""
        self.write("left out", check=name, dtype=dtype, why=why)


def read(path):
    """Return the text of a file of /proc, or nothing where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def start_time():
    """Return when this process started, in clock ticks after boot; 0 if the kernel hides it.

    proc(5): field 22 of /proc/self/stat. The second field may hold spaces and brackets.
    """
    fields = read("/proc/self/stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 else 0
