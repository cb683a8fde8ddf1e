"""The judge says the same wherever it runs, of good records and of forged ones.

What stands in a bundle is run by the oldest Python, alone; the tool's models read what it says.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from smoke_ranks import LARGE, LIBMPI, NONCE, SMALL, Rank

from envbuilder import data
from envbuilder.model.evidence import SmokeResult
from tests.pythons import find_python

CASES = 300
Lines = list[dict[str, Any]]

JUDGE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from target_tools.proving.judge import Expectations, Outcome, judge
from target_tools.proving.mpi_library import PlanMpi
from target_tools.proving.records import read_ranks
found = {}
for folder in sorted(Path(sys.argv[2]).iterdir()):
    asked = json.loads((folder / "asked.json").read_text())
    mpi = asked["expected"].pop("mpi")
    expected = Expectations(mpi=mpi and PlanMpi(**mpi), **asked["expected"])
    found[folder.name] = judge(read_ranks(folder, "NONCE"), Outcome(**asked["outcome"]), expected)
    json.dumps(found, allow_nan=False).encode("utf-8")
json.dump(found, sys.stdout)
"""

VALUES = [
    None,
    True,
    0,
    -1,
    1,
    2,
    7,
    2**70,
    1e400,
    0.5,
    "",
    "x",
    "rank 0",
    "\u202e\x1b[2J",
    "\ud800",
]
VALUES += [[], {}, ["/elsewhere/libmpi.so.40"], [1.0, "x"], [LIBMPI], {"operation": "allreduce"}]


def good(draw: random.Random) -> list[Lines]:
    """Return the records of ranks that talked."""
    size = draw.choice([1, 2, 2, 3])
    claims = [("allreduce", "mpi", "mpi4py calls MPICH 5.0.2")]
    return [
        [
            {**line, "nonce": NONCE, "time": 1.0}
            for line in Rank(n, size=size, claims=claims).lines()
        ]
        for n in range(size)
    ]


def change_a_value(ranks: list[Lines], draw: random.Random) -> None:
    line = draw.choice(draw.choice(ranks))
    line[draw.choice(sorted(line))] = draw.choice(VALUES)


def take_a_line(ranks: list[Lines], draw: random.Random) -> None:
    lines = draw.choice(ranks)
    del lines[draw.randrange(len(lines))]


def repeat_a_line(ranks: list[Lines], draw: random.Random) -> None:
    lines = draw.choice(ranks)
    lines.insert(draw.randrange(len(lines)), copy.deepcopy(draw.choice(lines)))


def stop(ranks: list[Lines], draw: random.Random) -> None:
    lines = draw.choice(ranks)
    del lines[draw.randrange(len(lines)) :]


def take_a_rank(ranks: list[Lines], draw: random.Random) -> None:
    del ranks[draw.randrange(len(ranks))]


def add_a_field(ranks: list[Lines], draw: random.Random) -> None:
    draw.choice(draw.choice(ranks))["more"] = draw.choice(VALUES)


CHANGES: list[Callable[[list[Lines], random.Random], None]] = [
    *(change_a_value,) * 4,
    take_a_line,
    repeat_a_line,
    stop,
    take_a_rank,
    add_a_field,
]


def write(folder: Path, ranks: list[Lines], size: int, draw: random.Random) -> None:
    """Write one case; some of its bytes may be others."""
    folder.mkdir()
    for number, lines in enumerate(ranks):
        text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        if draw.random() < 0.1 and text:
            at = draw.randrange(len(text))
            text = text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
        (folder / f"rank-node1-{number}.jsonl").write_bytes(text)
    transport, code = draw.choice([None, "mpi", "mpi", "nccl"]), draw.choice([0, 0, 0, 1, None])
    expected = {
        "ranks": size,
        "launch": ["/opt/mpich/bin/mpiexec", "-n", str(size)],
        "timeout": 120.0,
        "prefix": "/prefix",
        "transport": transport,
        "mpi": {"source": "the prefix /prefix", "folder": "/prefix"},
    }
    outcome = {"code": code, "timed_out": code is None, "seconds": 2.5, "log": "all is well\n"}
    (folder / "asked.json").write_text(json.dumps({"expected": expected, "outcome": outcome}))


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    draw = random.Random(14)
    for number in range(CASES):
        ranks = good(draw)
        size = len(ranks)
        for _ in range(draw.choice([0, 1, 1, 2, 4])):
            if any(ranks) and all(ranks):
                draw.choice(CHANGES)(ranks, draw)
        write(folder / f"{number:03}", ranks, size, draw)
    return folder


def verdicts(python: str, cases: Path, tools: Path) -> dict[str, Any]:
    program = JUDGE.replace("NONCE", NONCE)
    words = [python, "-I", "-S", "-B", "-c", program, str(tools), str(cases)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert len(found) == CASES
    return found


def test_every_python_judges_the_same_and_the_models_read_it(cases: Path, tmp_path: Path) -> None:
    shutil.copytree(data.TARGET_TOOLS, tmp_path / "alone" / "target_tools")
    ours = verdicts(sys.executable, cases, Path(data.TARGET_TOOLS).parent)
    oldest = find_python("3.6")
    if oldest is not None:
        # Nothing of envbuild is beside it. Which Python calls what printable differs: by Unicode.
        assert verdicts(str(oldest), cases, tmp_path / "alone") == ours
    for name, result in ours.items():
        # Nothing that is judged is lost, or refused, where the tool reads it.
        assert SmokeResult.model_validate(result).plain() == result, name
    assert {each["verdict"] for each in ours.values()} == {"passed", "failed"}


def test_what_passes_is_whole(cases: Path) -> None:
    """Said without the judge: as many good ranks as were asked for, each once, to their end."""
    for name, result in verdicts(sys.executable, cases, Path(data.TARGET_TOOLS).parent).items():
        if result["verdict"] != "passed":
            assert result["reasons"], name
            continue
        asked = json.loads((cases / name / "asked.json").read_text())
        assert asked["outcome"]["code"] == 0, name
        size, seen = asked["expected"]["ranks"], set()
        for path in (cases / name).glob("rank-*.jsonl"):
            lines = [parsed(line) for line in path.read_bytes().splitlines()]
            mine = [line for line in lines if line.get("nonce") == NONCE]
            [world] = [line for line in mine if line["event"] == "init" and "size" in line][:1]
            assert world["size"] == size, name
            seen.add(world["rank"])
            assert {line["event"] for line in mine} >= {"start", "init", "done", "libraries", "end"}
            checks = {(line["check"], line["dtype"], line["bytes"]) for line in done(mine)}
            assert {SMALL, LARGE} & checks, name
            assert all(line["passed"] is True for line in done(mine)), name
        assert seen == set(range(size)), name


def done(lines: Lines) -> Lines:
    return [line for line in lines if line["event"] == "done" and "check" in line]


def parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) and isinstance(value.get("event"), str) else {}
