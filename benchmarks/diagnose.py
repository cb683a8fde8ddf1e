#!/usr/bin/env python3
"""CPU seconds and memory of ``envbuild diagnose`` over long logs, which come through a pipe.

    python benchmarks/diagnose.py [--limit MEGABYTES] [SIZE...]

SIZE is in megabytes. A log is that of a training on 8 ranks, with other programs' logs of
tests/diagnosis/logs that have no error between its lines, and one error at its end. Exit code 1 if
the memory is over the limit, or if a megabyte of the longest takes 1.5 times the seconds that one
of the shortest takes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

LOGS = Path(__file__).parent.parent / "tests" / "diagnosis" / "logs"
MEGABYTE = 1_000_000
LINES = 5000
END = b"ImportError: libmpi.so.40: cannot open shared object file: No such file or directory\n"


class Cost(NamedTuple):
    """What a program took: CPU seconds, and megabytes of memory at most."""

    seconds: float
    memory: float


def log(megabytes: int, others: list[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a log."""
    written = step = 0
    while written < megabytes * MEGABYTE:
        numbers = range(step, step + LINES)
        piece = b"".join(b"[1,%d]<stdout>:step %d: loss %d\n" % (n % 8, n, -n) for n in numbers)
        piece += others[step // LINES % len(others)]
        step += LINES
        written += len(piece)
        yield piece
    yield END


def diagnose(pieces: Iterator[bytes]) -> Cost:
    """Return what it takes to find the error at the end."""
    command = [sys.executable, "-m", "envbuilder", "diagnose", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdin
        assert started.stdout
        for piece in pieces:
            started.stdin.write(piece)
        started.stdin.close()
        said = started.stdout.read()
        _, status, usage = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    assert b"library-not-found" in said, said.decode()
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 300, 1000], metavar="SIZE")
    parser.add_argument("--limit", type=float, default=100.0, metavar="MEGABYTES")
    options = parser.parse_args()
    index = yaml.safe_load((LOGS / "index.yaml").read_text(encoding="utf-8"))
    others = [(LOGS / f"{name}.log").read_bytes() for name in index["harmless"]]
    costs = {}
    for size in sorted(options.sizes):
        costs[size] = cost = diagnose(log(size, others))
        speed = size / cost.seconds
        print(
            f"{size} MB: {cost.seconds:.1f} s CPU, {speed:.1f} MB/s, {cost.memory:.0f} MB of memory"
        )
        sys.stdout.flush()
    first, last = min(costs), max(costs)
    grown = (costs[last].seconds / last) / (costs[first].seconds / first)
    if costs[last].memory > options.limit or grown > 1.5:
        sys.exit(1)


if __name__ == "__main__":
    main()
