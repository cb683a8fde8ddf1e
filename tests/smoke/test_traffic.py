"""What Horovod's timeline and NCCL's log say of who carried the data."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from envbuilder import data

# As 0.28.1 wrote it: several events on a line, and a list that is closed after every one.
TODAY = """[
{"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "allgather.rows.int64"}},
{"name": "process_sort_index", "ph": "M", "pid": 1, "args": {"sort_index": 1}},
{"ph": "B", "name": "NEGOTIATE_ALLGATHER", "ts": 52120, "pid": 1},{"ph": "X", "name": "0", \
"ts": 52121, "pid": 1, "dur": 0},{"ph": "E", "ts": 114380, "pid": 1},{"ph": "B", "name": \
"ALLGATHER", "ts": 114450, "pid": 1},{"ph": "B", "name": "ALLOCATE_OUTPUT", "ts": 114452, \
"pid": 1},{"ph": "E", "ts": 114567, "pid": 1},{"ph": "B", "name": "MPI_ALLGATHER", "ts": 114569, \
"pid": 1},{"ph": "E", "ts": 114580, "pid": 1},{"ph": "E", "ts": 114585, "pid": 1, "args": \
{"dtype": "int64", "shape": "[2]"}},{"name": "process_name", "ph": "M", "pid": 2, "args": \
{"name": "allreduce.sum.int32"}},
{"ph": "B", "name": "ALLREDUCE", "ts": 129326, "pid": 2},{"ph": "B", "name": "MPI_ALLREDUCE", \
"ts": 129331, "pid": 2},{"ph": "E", "ts": 129373, "pid": 2},{"ph": "B", "name": "ALLREDUCE", \
"ts": 129426, "pid": 2},{"ph": "B", "name": "MPI_ALLREDUCE", "ts": 129431, "pid": 2}]"""

# As 0.18 writes it: one event a line, a list that is never closed; here cut by a kill, with the
# hierarchical allreduce: NCCL inside a node, MPI between nodes.
HIERARCHICAL = """[
{"ph": "B", "name": "ALLREDUCE", "ts": 1, "pid": 7},
{"ph": "B", "name": "NCCL_REDUCESCATTER", "ts": 2, "pid": 7},
{"ph": "B", "name": "MEMCPY_IN_HOST_BUFFER", "ts": 3, "pid": 7},
{"ph": "B", "name": "MPI_ALLREDUCE", "ts": 4, "pid": 7},
{"ph": "B", "name": "NCCL_ALLGATHER", "ts": 5, "pid": 7},
{"ph": "B", "name": "BROADCAST", "ts": 6, "pid": 8},
{"ph": "B", "name": "MPI_BCAST", "ts": 7, "pid": 8},
{"ph": "B", "name": "NCCL_ALL"""

NCCL = """\
node1:4242:4260 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node1:4242:4260 [0] NCCL INFO Using network IB
node1:4242:4260 [0] NCCL INFO comm 0x55d0 rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE
node1:4242:4260 [0] NCCL INFO comm 0x55d8 rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE
"""


@pytest.fixture(scope="module")
def traffic() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(data.SMOKE_PROGRAM))
        return importlib.import_module("smoke_program.traffic")


def told(claims: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(each["operation"], each["transport"], each["source"]) for each in claims]


def test_a_timeline_of_today(traffic: Any) -> None:
    assert told(traffic.from_timeline(TODAY)) == [
        ("allgather", "mpi", "Horovod's timeline: MPI_ALLGATHER 1 times"),
        ("allreduce", "mpi", "Horovod's timeline: MPI_ALLREDUCE 2 times"),
    ]


def test_a_hierarchical_allreduce_is_carried_by_both(traffic: Any) -> None:
    assert told(traffic.from_timeline(HIERARCHICAL)) == [
        ("allreduce", "mpi", "Horovod's timeline: MPI_ALLREDUCE 1 times"),
        ("allreduce", "nccl", "Horovod's timeline: NCCL_ALLGATHER 1 times"),
        ("allreduce", "nccl", "Horovod's timeline: NCCL_REDUCESCATTER 1 times"),
        ("broadcast", "mpi", "Horovod's timeline: MPI_BCAST 1 times"),
    ]


@pytest.mark.parametrize("text", ["", "[\n", "nothing of the kind", '[{"ph": "B"}]'])
def test_no_timeline_says_nothing(traffic: Any, text: str) -> None:
    assert traffic.from_timeline(text) == []


def test_the_network_that_nccl_uses_itself(traffic: Any) -> None:
    assert traffic.from_nccl(NCCL) == "nranks 4, Using network IB"
    assert traffic.from_nccl("") == ""
