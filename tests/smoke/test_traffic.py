"""What Horovod's timeline and NCCL's log say of who carried the data."""

from __future__ import annotations

import pytest

from envbuilder.target_tools.smoke import traffic

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

# As 2.28.3 wrote it on an H100, of two ranks that were made hosts of their own (NCCL_HOSTID).
SOCKETS = """\
vm:5524:5561 [0] NCCL INFO cudaDriverVersion 13000
vm:5524:5561 [0] NCCL INFO NCCL version 2.28.3+cuda13.0
vm:5524:5561 [0] NCCL INFO Failed to initialize NET plugin IB
vm:5524:5561 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>
vm:5524:5561 [0] NCCL INFO Using network Socket
vm:5524:5561 [0] NCCL INFO ncclCommInitRank comm 0x7f7d6c258100 rank 0 nranks 2 cudaDev 0 nvmlDev \
0 busId 60 commId 0x88e089288c3d822a - Init START
vm:5524:5561 [0] NCCL INFO Channel 00/02 : 0 1
vm:5524:5561 [0] NCCL INFO ncclCommInitRank comm 0x7f7d6c258100 rank 0 nranks 2 cudaDev 0 nvmlDev \
0 busId 60 commId 0x88e089288c3d822a - Init COMPLETE
vm:5524:5561 [0] NCCL INFO Init timings - ncclCommInitRank: rank 0 nranks 2 total 0.50
vm:5524:5561 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0
vm:5524:5561 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/0
"""

# As 0.28.1 wrote it with GPU operations by NCCL: the group is made inside the first operation.
ON_GPU = """[
{"ph": "B", "name": "NEGOTIATE_ALLREDUCE", "ts": 1004082, "pid": 2},{"ph": "X", "name": "1", \
"ts": 1004083, "pid": 2, "dur": 0},{"ph": "E", "ts": 1005107, "pid": 2},{"ph": "B", "name": \
"ALLREDUCE", "ts": 1005150, "pid": 2},{"ph": "B", "name": "INIT_NCCL", "ts": 1005150, "pid": 2},\
{"ph": "E", "ts": 1005160, "pid": 2},{"ph": "B", "name": "WAIT_FOR_DATA", "ts": 1005166, "pid": 2},\
{"ph": "E", "ts": 1005177, "pid": 2},{"ph": "B", "name": "WAIT_FOR_OTHER_TENSOR_DATA", "ts": \
1005179, "pid": 2},{"ph": "E", "ts": 1005242, "pid": 2},{"ph": "B", "name": "QUEUE", "ts": \
1005360, "pid": 2},{"ph": "E", "ts": 1005378, "pid": 2},{"ph": "B", "name": "NCCL_ALLREDUCE", \
"ts": 1005380, "pid": 2},{"ph": "E", "ts": 1007494, "pid": 2},{"ph": "E", "ts": 1007511, "pid": \
2, "args": {"dtype": "int32", "shape": "[1]"}}]"""


def told(claims: list[dict[str, str]]) -> list[tuple[str, str, str]]:
    return [(each["operation"], each["transport"], each["source"]) for each in claims]


def test_a_timeline_of_today() -> None:
    assert told(traffic.from_timeline(TODAY)) == [
        ("allgather", "mpi", "Horovod's timeline: MPI_ALLGATHER 1 times"),
        ("allreduce", "mpi", "Horovod's timeline: MPI_ALLREDUCE 2 times"),
    ]


def test_a_hierarchical_allreduce_is_carried_by_both() -> None:
    assert told(traffic.from_timeline(HIERARCHICAL)) == [
        ("allreduce", "mpi", "Horovod's timeline: MPI_ALLREDUCE 1 times"),
        ("allreduce", "nccl", "Horovod's timeline: NCCL_ALLGATHER 1 times"),
        ("allreduce", "nccl", "Horovod's timeline: NCCL_REDUCESCATTER 1 times"),
        ("broadcast", "mpi", "Horovod's timeline: MPI_BCAST 1 times"),
    ]


@pytest.mark.parametrize("text", ["", "[\n", "nothing of the kind", '[{"ph": "B"}]'])
def test_no_timeline_says_nothing(text: str) -> None:
    assert traffic.from_timeline(text) == []


def test_the_network_that_nccl_uses_itself() -> None:
    assert traffic.from_nccl(NCCL) == "nranks 4, Using network IB"
    assert traffic.from_nccl("") == ""


def test_which_nccl_ran_and_by_which_way() -> None:
    words = "NCCL 2.28.3+cuda13.0, nranks 2, via NET/Socket, Using network Socket"
    assert traffic.from_nccl(SOCKETS) == words
    # With GPUDirect RDMA, and inside a node.
    ways = "".join(
        f"n:1:1 [0] NCCL INFO Channel 0{n}/0 : 1[0] -> 0[0] [send] via {way}\n"
        for n, way in enumerate(("NET/IB/3/GDRDMA", "P2P/CUMEM", "SHM/direct/direct"))
    )
    assert traffic.from_nccl(ways) == "via NET/IB/GDRDMA, via P2P/CUMEM, via SHM/direct/direct"


def test_a_timeline_of_gpu_operations() -> None:
    assert told(traffic.from_timeline(ON_GPU)) == [
        ("allreduce", "nccl", "Horovod's timeline: NCCL_ALLREDUCE 1 times")
    ]
