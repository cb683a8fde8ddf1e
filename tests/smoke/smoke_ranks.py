"""Records of ranks as the smoke program writes them, for tests that start no process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envbuilder.model.evidence import SmokeResult
from envbuilder.target_tools.proving.answers import expected as answer
from envbuilder.target_tools.proving.judge import Expectations, Outcome, judge
from envbuilder.target_tools.proving.mpi_library import PlanMpi
from envbuilder.target_tools.proving.records import read_ranks

NONCE = "c0ffee"
# What a launcher does that computes the answers itself: that cannot be told from real ranks.
FRESH = """
import sys, time
sys.path.insert(0, ".")
from target_tools.proving.answers import expected

def fresh(lines, nonce):
    [size] = [line["size"] for line in lines if line["event"] == "init"] or [1]
    for line in lines:
        mark = dict(nonce=nonce, time=1.0)
        if line["event"] in ("start", "end"):
            mark["unix"] = time.time()
        if line["event"] == "done" and line["check"] == "allreduce":
            mark["answer"] = expected(nonce, line["dtype"], line["bytes"], size)
        yield dict(line, **mark)
"""
LIBMPI = "/prefix/lib/libmpi.so.12"
PREFIX_MPI = PlanMpi(source="the prefix /prefix", folder="/prefix")
Key = tuple[str, str | None, int | None]
Claim = tuple[str, str, str]

IMPORT: Key = ("import", None, None)
INIT: Key = ("init", None, None)
HELLO: Key = ("hello", None, None)
WORLD: Key = ("world", None, None)
SMALL: Key = ("allreduce", "int32", 4)
LARGE: Key = ("allreduce", "float32", 4096)
BARRIER: Key = ("barrier", None, None)
TIMING: Key = ("timing", "float32", 4096)
SHUTDOWN: Key = ("shutdown", None, None)
CHECKS = (IMPORT, INIT, HELLO, WORLD, SMALL, LARGE, BARRIER, TIMING, SHUTDOWN)


class Rank:
    """One process's record; every argument is a way in which it may differ from a good one."""

    def __init__(
        self,
        number: int | None,
        *,
        size: int = 2,
        host: str = "node1",
        clock: str | None = None,
        pid: int | None = None,
        launcher_rank: int | None = None,
        nonce: str = NONCE,
        libraries: Sequence[str] = (LIBMPI,),
        claims: Sequence[Claim] = (),
        left_out: Sequence[Key] = (),
        api: str = "numpy",
        problems: Mapping[Key, str] | None = None,
        facts: Mapping[Key, Mapping[str, Any]] | None = None,
        stop_in: Key | None = None,
        stop_after: Key | None = None,
        error: tuple[str, str] | None = None,
        stack: str = "",
        environment: Mapping[str, str] | None = None,
        checks: Sequence[Key] = CHECKS,
        unix: float = 0,
        pid_namespace: str = "",
        tensorflow: Mapping[str, str] | None = None,
    ) -> None:
        self.tensorflow = tensorflow
        self.unix = unix
        self.pid_namespace = pid_namespace
        self.environment = environment
        self.checks = checks
        self.number = number
        self.size = size
        self.host = host
        self.clock = clock or f"boot-{host}"
        self.pid = pid or 100 + (number or 0)
        self.launcher_rank = launcher_rank
        self.nonce = nonce
        self.libraries = libraries
        self.claims = claims
        self.left_out = left_out
        self.api = api
        self.problems = problems or {}
        self.facts = {TIMING: {"median": 0.001, "repetitions": 10}, **(facts or {})}
        self.stop_in = stop_in
        self.stop_after = stop_after
        self.error = error
        self.stack = stack

    @property
    def source(self) -> str:
        return f"rank-{self.host}-{self.pid}.jsonl"

    def lines(self) -> list[dict[str, Any]]:
        lines = [
            {
                "event": "start",
                "host": self.host,
                "pid": self.pid,
                "started": 1000 + self.pid,
                "clock": self.clock,
                "executable": "/prefix/bin/python",
                "uid": 1000,
                "launcher_rank": self.launcher_rank,
                "api": self.api,
                "unix": self.unix,
                "pid_namespace": self.pid_namespace,
                # Ranks of earlier releases did not record theirs.
                **({} if self.environment is None else {"environment": self.environment}),
            }
        ]
        for key in self.checks:
            what = {"check": key[0], "dtype": key[1], "bytes": key[2]}
            if key == SHUTDOWN:
                lines.append({"event": "libraries", "paths": list(self.libraries)})
            lines.append({"event": "begin", **what})
            if key == self.stop_in:
                return lines + self._error()
            problem = self.problems.get(key)
            done = {"event": "done", **what, "passed": problem is None, "problem": problem}
            if key[0] == "allreduce":
                done["answer"] = answer(self.nonce, key[1], key[2], self.size)
            lines.append({**done, "seconds": 0.5, **self.facts.get(key, {})})
            if key == INIT:
                lines.append(self._world())
            if key == self.stop_after:
                return lines + self._error()
        lines += [
            {"event": "left out", "check": name, "dtype": dtype, "why": "it cannot"}
            for name, dtype, _ in self.left_out
        ]
        claims = [
            {"operation": operation, "transport": transport, "source": source}
            for operation, transport, source in self.claims
        ]
        lines.append({"event": "carried", "claims": claims})
        return [*lines, {"event": "end", "failed": len(self.problems), "unix": self.unix}]

    def _error(self) -> list[dict[str, Any]]:
        if self.error is None:
            return []
        kind, message = self.error
        trace = f"Traceback (most recent call last):\n{kind}: {message}\n"
        return [{"event": "error", "type": kind, "message": message, "traceback": trace}]

    def _world(self) -> dict[str, Any]:
        return {
            "event": "init",
            "rank": self.number,
            "size": self.size,
            "local_rank": self.number,
            "local_size": self.size,
            "runtime": "distributed_dl_training",
            "runtime_version": "0.1.0",
            "runtime_file": "/prefix/lib/distributed_dl_training/__init__.py",
            "build_record": {"schema": 1, "tensorflow": self.tensorflow},
            "framework": None,
            "mpi": "MPICH",
            "mpi_version": "5.0.2",
            "python": "3.11.7",
            "numpy": "2.4.6",
        }

    def write(self, folder: Path) -> None:
        marked = [{**line, "nonce": self.nonce, "time": 1.0} for line in self.lines()]
        text = "".join(json.dumps(line) + "\n" for line in marked)
        (folder / self.source).write_text(text, encoding="utf-8")
        if self.stack:
            (folder / f"stack-{self.host}-{self.pid}.txt").write_text(self.stack, encoding="utf-8")


def expectations(**changed: Any) -> Expectations:
    """Return what a good run of two ranks is held against."""
    standard: dict[str, Any] = {
        "ranks": 2,
        "launch": ("/opt/mpich/bin/mpiexec", "-n", "2", "python", "target_tools", "smoke"),
        "timeout": 120.0,
        "prefix": "/prefix",
        "mpi": PREFIX_MPI,
    }
    return Expectations(**{**standard, **changed})


def judged(folder: Path, outcome: Outcome, expected: Expectations) -> SmokeResult:
    """Return the verdict on the records in a folder, as the tool reads it."""
    return SmokeResult.model_validate(judge(read_ranks(folder, NONCE), outcome, expected))
