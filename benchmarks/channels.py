#!/usr/bin/env python3
"""Time and memory of solving from a large conda channel, beside py-rattler alone.

    python benchmarks/channels.py [--records 50000] [--rounds 5] [--limit RATIO]

A channel of so many made-up records is served on loopback. Alone: a Python that imports py-rattler
solves, and no more. envbuild: reads the channel, plans, and solves. Each begins with empty caches,
in a process of its own. Then a second plan, from what was read: what is left of it is what a plan
takes from a channel of any size, the start of Python and of envbuild included. One follows the
other in each round. Printed are the medians, and the median and the quartiles of two ratios of a
round: of the whole, and of what the channel takes, without the second plan. The second is what the
limit is for: how the time grows with a channel. Exit code 1 if envbuild takes more than the limit
times the CPU seconds for the channel or the memory, or more than 2 CPU seconds for the second plan.
conda-forge has some 500,000 records for an architecture.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RELEASES = 20
SERIES = ("3.9", "3.10", "3.11", "3.12")
NAMES = ["python", "numpy", "mpi4py", "openmpi", "pip", "pytorch"]

Taken = dict[str, tuple[float, float, float]]
"""What each took in a round: seconds, CPU seconds, MB."""

ALONE = """
import asyncio, json, os, sys
from envbuilder.target_tools.conda_engine import answer_to
said = answer_to(json.loads(sys.argv[1]))
assert said["records"], said
os._exit(0)
"""
OURS = """
import io, os, sys
from datetime import datetime, timezone
from pathlib import Path
from envbuilder.cli import start_fast
start_fast()  # as the program does
from envbuilder.workflow.channels import solved
from envbuilder.workflow.context import Context
from envbuilder.workflow.load import load
from envbuilder.workflow.plan_options import PlanOptions
from envbuilder.reporter import Report

folder, what = Path(sys.argv[1]), sys.argv[2]
said = io.StringIO()
report = Report(said, said, as_json=False)
context = Context(dict(os.environ), folder, lambda: datetime.now(timezone.utc), report, (folder,))
inputs = load(PlanOptions("large", site="local"), context, "to " + what)
planned = inputs.planned
assert solved(planned, inputs, context) if what == "lock" else planned.pins
"""


def records(count: int) -> dict[str, dict[str, Any]]:
    """Return a repodata's packages: each of 20 releases, which need some others."""
    drawn = random.Random(1)
    own: dict[str, list[tuple[str, list[str]]]] = {
        "python": [(f"{series}.{n}", []) for series in SERIES for n in range(5)],
        "openmpi": [(f"4.1.{n}", ["libp7 >=1"]) for n in range(6)],
    }
    for_series = [f"python >={each},<3.{int(each.partition('.')[2]) + 1}.0a0" for each in SERIES]
    for name, needs in {
        "numpy": ["libp1 >=2", "libp2"],
        "mpi4py": ["openmpi"],
        "pytorch": ["numpy >=1.5", "libp3", "libp5 >=3"],
    }.items():
        own[name] = [(f"1.{n}.0", [py, *needs]) for n in range(RELEASES) for py in for_series]
    own["pip"] = [(f"24.{n}", ["python >=3.8"]) for n in range(4)]
    names = [f"libp{n}" for n in range(max(10, count // RELEASES))]
    for number, name in enumerate(names):
        # Of earlier ones alone, so that there is an answer.
        below = (
            [f"{each} >={drawn.randrange(3)}" for each in drawn.sample(names[:number], 3)]
            if (number > 10)
            else []
        )
        own[name] = [(f"{release}.0", below) for release in range(RELEASES)]
    found: dict[str, dict[str, Any]] = {}
    for name, releases in own.items():
        for number, (version, depends) in enumerate(releases):
            build = f"h{number:07x}_0"
            found[f"{name}-{version}-{build}.conda"] = {
                "name": name,
                "version": version,
                "build": build,
                "build_number": 0,
                "depends": depends,
                "md5": f"{number:032x}",
                "sha256": f"{len(found):064x}",
                "size": 1000,
                "subdir": "linux-64",
                "license": "BSD-3-Clause",
                "timestamp": 1600000000000,
            }
    return found


def write_channel(folder: Path, count: int) -> int:
    """Write the index of a channel; return how many records it has."""
    from backports import zstd  # of conda-package-streaming

    found = records(count)
    for subdir, packages in (("linux-64", found), ("noarch", {})):
        (folder / subdir).mkdir(parents=True)
        said = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
        text = json.dumps({**said, "removed": [], "repodata_version": 1}).encode()
        (folder / subdir / "repodata.json").write_bytes(text)
        packed = zstd.compress(text)
        (folder / subdir / "repodata.json.zst").write_bytes(packed)
    return len(found)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(folder))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()


def write_recipe(folder: Path, url: str) -> None:
    """Write a recipe of that channel, and what is known of it: nothing."""
    (folder / "knowledge").mkdir(parents=True)
    channel = {"url": url, "recorded": "2026-11-01", "sources": ["made up"], "packages": {}}
    known = {"schema": 1, "recorded": "2026-11-01", "source": "made up"}
    (folder / "knowledge" / "versions.yaml").write_text(
        json.dumps({**known, "channels": {"large": channel}})
    )
    stack = {name: "*" for name in NAMES if name != "pip"}
    recipe = {"schema": 1, "name": "large", "summary": "Large", "arch": ["x86_64"]}
    recipe |= {"backend": "conda", "channels": ["large"], "stack": stack}
    (folder / "large.yaml").write_text(json.dumps(recipe))


def measure(code: str, *words: str, cache: Path) -> tuple[float, float, float]:
    """Run code in a process; return its seconds, and with its children its CPU seconds and MB."""
    # As installed: its modules are compiled once, and what is known is read once.
    once = {"PYTHONPYCACHEPREFIX": "compiled", "ENVBUILD_KNOWLEDGE_CACHE": "knowledge"}
    kept = {name: str(cache.parent / each) for name, each in once.items()}
    environ = {**os.environ, "XDG_CACHE_HOME": str(cache), **kept}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.monotonic()
    running = subprocess.Popen([sys.executable, "-c", code, *words], env=environ)
    _, status, usage = os.wait4(running.pid, 0)
    seconds = time.monotonic() - begin
    if status:
        sys.exit(f"it ended with status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def rounds(folder: Path, url: str) -> Iterator[Taken]:
    """Yield what each takes, round by round."""
    request = {
        "do": "solve",
        "channels": [url],
        "platforms": ["linux-64", "noarch"],
        "names": NAMES,
        "constraints": [],
        "virtual": [["__glibc", "2.36", "0"]],
    }
    for number in itertools.count():
        asked = json.dumps({**request, "cache": str(folder / f"alone-{number}")})
        ours = folder / f"ours-{number}"
        yield {
            "alone": measure(ALONE, asked, cache=folder / "none"),
            "envbuild": measure(OURS, str(folder / "recipes"), "lock", cache=ours),
            "second plan": measure(OURS, str(folder / "recipes"), "plan", cache=ours),
        }


def main() -> int:
    """Measure, print, compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, help="times what py-rattler takes alone")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Elsewhere: what this process held would count as memory of those that it starts.
        with ProcessPoolExecutor(1) as elsewhere:
            count = elsewhere.submit(write_channel, folder / "channel", options.records).result()
        with serving(folder / "channel") as url:
            write_recipe(folder / "recipes", url)
            # The first one compiles, and is left out.
            taken = [*itertools.islice(rounds(folder, url), options.rounds + 1)][1:]
    print(f"{count} records, medians of {options.rounds} rounds")
    for name in taken[0]:
        medians = map(statistics.median, zip(*(each[name] for each in taken), strict=True))
        print("{:12} {:6.2f} s {:6.2f} CPU s {:6.0f} MB".format(name, *medians))
    print("envbuild to py-rattler alone, [quartiles]")
    ratios = {
        "the channel, CPU": [channel(each, 1) / each["alone"][1] for each in taken],
        "the channel, time": [channel(each, 0) / each["alone"][0] for each in taken],
        "the memory": [each["envbuild"][2] / each["alone"][2] for each in taken],
        "the whole, CPU": [each["envbuild"][1] / each["alone"][1] for each in taken],
        "the whole, time": [each["envbuild"][0] / each["alone"][0] for each in taken],
    }
    for name, those in ratios.items():
        low, middle, high = statistics.quantiles(those, n=4)
        print(f"{name:18} {middle:5.2f} [{low:.2f}, {high:.2f}]")
    limited = [statistics.median(ratios[name]) for name in ("the channel, CPU", "the memory")]
    second = statistics.median(each["second plan"][1] for each in taken)
    return int(options.limit is not None and (max(limited) > options.limit or second > 2))


def channel(taken: Taken, which: int) -> float:
    """Return what envbuild takes for the channel: what the first plan takes more than a second."""
    return taken["envbuild"][which] - taken["second plan"][which]


if __name__ == "__main__":
    sys.exit(main())
