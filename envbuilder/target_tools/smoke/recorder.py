"""The record of one process: JSON lines."""

import json
import os
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Callable, Dict, Union

    # What a check returns: None, what is wrong, or facts with that as "problem".
    Problem = Union[None, str, Dict[str, Any]]


class Recorder:
    """Appends one JSON line per event; each is with the kernel when the call returns."""

    def __init__(self, folder: "Path", nonce: str) -> None:
        self.folder = folder
        self.identity = f"{socket.gethostname()}-{os.getpid()}"
        self.who = self.identity
        self.nonce = nonce
        self.failed = 0
        # By hand it may be a new one; every rank of a node gets here at once.
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rank-{self.identity}.jsonl"
        self.stream = path.open("a", encoding="utf-8", errors="replace", buffering=1)

    def write(self, event: str, **facts: "Any") -> None:
        facts.update(event=event, nonce=self.nonce, time=time.monotonic())
        self.stream.write(json.dumps(facts, sort_keys=True, ensure_ascii=False) + "\n")

    def check(
        self,
        name: str,
        work: "Callable[[], Problem]",
        dtype: "str | None" = None,
        nbytes: "int | None" = None,
    ) -> None:
        """Run and record a check. *work* returns None, a problem, or facts with a problem."""
        what: "dict[str, Any]" = {"check": name, "dtype": dtype, "bytes": nbytes}
        self.write("begin", **what)
        started = time.monotonic()
        found = work()
        facts: "dict[str, Any]" = found if isinstance(found, dict) else {"problem": found}
        problem = facts["problem"]
        facts.update(what, passed=problem is None, seconds=time.monotonic() - started)
        self.write("done", **facts)
        if problem is not None:
            self.failed += 1
            label = " ".join(str(word) for word in (name, dtype, nbytes) if word is not None)
            sys.stderr.write(f"{self.who}: {label}: {problem}\n")

    def leave_out(self, name: str, why: str, dtype: "str | None" = None) -> None:
        """Record that a check is omitted, because the interface does not support it."""
        self.write("left out", check=name, dtype=dtype, why=why)
