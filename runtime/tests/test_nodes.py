"""Allreduce by node, on two nodes that network namespaces stand for."""

import os
import re
import subprocess
import sys
from typing import Optional, Tuple

import pytest

import launcher
import nodes


def why_not() -> Optional[str]:
    """Return why no MPI job can run over the two nodes, or None."""
    reason = nodes.why_not() or launcher.why_not()
    if reason is None and not launcher.is_open_mpi(str(launcher.find_mpiexec())):
        # Its UCX finds out that the nodes share a machine, and their memory.
        return "needs Open MPI: MPICH does not keep to the network between the two nodes"
    return reason


REASON = why_not()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

BYTES = 4 * (4 << 20)  # what hierarchical.py reduces
ALTERNATE = [[0, 2, 0, 2], [0, 2, 1, 2], [1, 2, 0, 2], [1, 2, 1, 2]]
BLOCKS = [[0, 2, 0, 2], [1, 2, 0, 2], [0, 2, 1, 2], [1, 2, 1, 2]]


def run(monkeypatch: pytest.MonkeyPatch, hierarchical: str, alternate: bool) -> Tuple[str, int]:
    """Run hierarchical.py on 4 ranks; return the places it prints and the bytes between nodes."""
    environ = {
        **launcher.variables("by-node", {"DDLT_ENGINE": "mpi"}),
        "DDLT_HIERARCHICAL_ALLREDUCE": hierarchical,
        # Open MPI 5 has a reduction by node of its own, which would hide what ours saves.
        "OMPI_MCA_coll_han_priority": "0",
    }
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    mpiexec = launcher.find_mpiexec()
    assert mpiexec is not None
    program = [sys.executable, os.path.join(os.path.dirname(__file__), "hierarchical.py")]
    with nodes.TwoNodes() as two:
        hosts = dict.fromkeys(two.hosts, 2)
        words = nodes.open_mpi_words(mpiexec, two.agent, hosts, alternate) + program
        before = two.sent()
        done = subprocess.run(
            two.command(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120
        )
        output = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, output
        return output, two.sent() - before


def places(output: str) -> str:
    found = re.search(r"places (\[.*\])", output)
    assert found, output
    return found.group(1)


@pytest.mark.parametrize("alternate", [False, True])
def test_each_byte_goes_to_each_node_once(monkeypatch: pytest.MonkeyPatch, alternate: bool) -> None:
    output, sent = run(monkeypatch, "1", alternate)
    assert places(output) == str(ALTERNATE if alternate else BLOCKS)
    assert BYTES <= sent < 1.1 * BYTES


def test_fewer_bytes_than_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI's own choice, with neighbours on different nodes, moves each byte twice."""
    _, with_nodes = run(monkeypatch, "1", alternate=True)
    _, without = run(monkeypatch, "0", alternate=True)
    assert with_nodes < 0.6 * without
