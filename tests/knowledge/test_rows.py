"""What every row owes its reader: an id, sources, a condition that can be told, reasons."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.knowledge.conditions import FACTS, Condition, parse
from envbuilder.knowledge.rows import Advisory, Coupling
from tests.shipped import read_shipped

from .stacks import AnyRow

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "knowledge.md").read_text()
KNOWN = read_shipped().value
OWN: tuple[Advisory | Coupling, ...] = (*KNOWN.advisories, *KNOWN.couplings)
ROWS: tuple[AnyRow, ...] = (*OWN, *KNOWN.flag_rules)
IDS = [row.id for row in ROWS]

OPERATIONS = {"allreduce", "allgather", "broadcast", "alltoall", "reducescatter"}
LIBRARIES = {"CPU", "MPI", "NCCL", "DDL"}

# Facts of a module that rows ask for, and what each says. A site states them: docs/knowledge.md.
MODULE_FACTS = {
    "mpi.cuda_aware",
    "mpi.development",
    "openmpi.cuda_aware",
    "openmpi.external_hwloc",
    "openmpi.external_pmix",
    "openmpi.pmix_patched",
    "openmpi.reduce_patched",
    "openmpi.ucx",
    "openmpi.ucx_patched",
    "openmpi.vader_patched",
    "nccl.isend_irecv_patched",
    "nccl.static_library",
    "horovod.flatbuffers_patched",
    "spectrum-mpi.cxx",
    # Of the builds of conda packages.
    *(f"{name}.cuda" for name in ("pytorch", "tensorflow", "cudf", "cuml", "nccl", "cudnn")),
    *(f"{name}.{fact}" for name in ("pytorch", "tensorflow") for fact in ("cudnn", "nccl")),
    "pytorch.linked_mpi",
}


def conditions(row: AnyRow) -> list[Condition]:
    return [parse(row.when), *(parse(each.when) for each in row.remedies if each.when)]


def test_ids_are_given_once() -> None:
    assert [name for name, count in Counter(IDS).items() if count > 1] == []


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_row_names_its_sources(row: AnyRow) -> None:
    assert row.sources
    assert len(set(row.sources)) == len(row.sources)
    for remedy in row.remedies:
        assert remedy.source


@pytest.mark.parametrize("row", OWN, ids=[row.id for row in OWN])
def test_its_first_source_can_be_opened(row: AnyRow) -> None:
    first = row.sources[0]
    assert re.match(r"https://\S+", first) or first.startswith("release list of"), first


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_condition_asks_for_known_facts_only(row: AnyRow) -> None:
    for condition in conditions(row):
        for name in condition.names():
            owner, dot, rest = name.partition(".")
            if not dot:
                assert name in FACTS
            elif owner == "flags":
                assert rest in KNOWN.flags or not KNOWN.flags, f"{row.id}: no flag {rest}"
            elif owner == "ops":
                assert rest in OPERATIONS
            else:
                assert name in MODULE_FACTS, f"{row.id}: {name}"


def test_every_fact_of_a_module_is_asked_for_and_explained() -> None:
    asked = {name for row in ROWS for each in conditions(row) for name in each.names()}
    assert asked >= MODULE_FACTS
    for name in MODULE_FACTS:
        assert f"`{name.partition('.')[2]}`" in DOCUMENTATION, name


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_condition_asks_one_component_at_most_for_facts(row: AnyRow) -> None:
    """A fact is the provider's that fills the row: two providers would make pairs of them."""
    for condition in conditions(row):
        owners = {name.partition(".")[0] for name in condition.names() if "." in name}
        assert len(owners - {"flags", "ops"}) <= 1


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_operations_are_compared_with_libraries_that_there_are(row: AnyRow) -> None:
    for condition in conditions(row):
        for value in re.findall(r"ops\.\w+ [!=]= '(\w*)'", condition.text):
            assert value in LIBRARIES


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_an_error_can_come_true_and_its_condition_can_be_false(row: AnyRow) -> None:
    if row.severity == "error":
        assert parse(row.when).text != "false"
        assert row.demoted is None
    nothing = parse(row.when).evaluate(lambda name: None)
    assert nothing is not False or row.severity == "info"


@pytest.mark.parametrize("row", OWN, ids=[row.id for row in OWN])
def test_components_are_known(row: AnyRow) -> None:
    virtuals = {virtual for each in KNOWN.components.values() for virtual in each.fulfils}
    named = {row.component, *row.beside} if isinstance(row, Advisory) else set()
    if isinstance(row, Coupling):
        named = {*row.given, *row.needs}
        assert all(row.needs[name] == "*" for name in virtuals & set(row.needs))
    for remedy in row.remedies:
        if remedy.kind in ("component", "build-version"):
            named.add(remedy.name)
    assert named <= set(KNOWN.components) | virtuals


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_remedies_are_whole(row: AnyRow) -> None:
    assert len({each.id for each in row.remedies}) == len(row.remedies)
    for remedy in row.remedies:
        # What a build needs in any release has no range.
        if remedy.kind not in ("patch", "build-version"):
            assert remedy.value, f"{row.id}: {remedy.id} has no value"
        if remedy.kind == "flag" and KNOWN.flags:
            assert remedy.name in KNOWN.flags


def test_rows_refer_to_rows_that_there_are() -> None:
    for row in OWN:
        told = " ".join(filter(None, (row.summary, row.fix, row.note, row.demoted)))
        for name in re.findall(
            r"\b(?:OMPI|NCCL|HVD|CUDA|CUDNN|PY|TF|TORCH|GDR|DDL|MPI)-[0-9]{3}\b", told
        ):
            assert name in IDS, f"{row.id} refers to {name}"


def test_a_symptom_finds_the_line_that_it_is_for() -> None:
    lines = {
        "HVD-001": "c10/util/C++17.h:27:2: error: #error You need C++17 to compile PyTorch",
        "HVD-004": "ethtool.h:1: error: flexible array member 'a::b' not at end of 'struct c'",
        "HVD-005": "fatal error: THC/THC.h: No such file or directory",
        "HVD-024": "Compatibility with CMake < 3.5 has been removed from CMake.",
        "HVD-054": "Could not find compiler compatible with this TensorFlow installation.",
        "HVD-057": "error: invalid command 'bdist_wheel'",
        "PY-001": "TypeError: Descriptors cannot not be created directly.",
        "PY-028": "version `GLIBC_2.28' not found (required by libtorch_cpu.so)",
        "NCCL-020": "NCCL WARN Cuda failure 'CUDA driver is a stub library'",
        "HVD-055": "xlC_r: command not found",
        "HVD-048": "gcc: error: unrecognized command line option '-mf16c'",
    }
    by_id = {row.id: row for row in OWN}
    for name, line in lines.items():
        found = [row.id for row in OWN if row.symptom and re.search(row.symptom, line)]
        assert name in found
        assert by_id[name].symptom is not None


def test_the_documentation_lists_every_demoted_row() -> None:
    table = DOCUMENTATION.split("## Rows with a lower severity than their source")[1]
    listed = dict(re.findall(r"^\| ([A-Z]+-[0-9]+) \| \w+ \| (\w+) \|", table, re.M))
    assert listed == {row.id: row.severity for row in OWN if row.demoted}


def test_the_documentation_names_rows_that_there_are() -> None:
    named = set(re.findall(r"\b(?:OMPI|NCCL|HVD|CUDA|CUDNN|PY|TF|TORCH)-[0-9]{3}\b", DOCUMENTATION))
    assert named <= set(IDS)


def test_the_documentation_s_examples_are_read(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(# knowledge/(\S+)\n.*?)```", DOCUMENTATION, re.S)
    folder = tmp_path / "knowledge"
    folder.mkdir()
    for text, name in examples:
        (folder / name).write_text(text)
    read = load_knowledge([tmp_path, data.RECIPES]).value
    assert len(examples) == 7
    assert {row.id for row in (*read.advisories, *read.couplings, *read.flag_rules)} >= {
        "SITE-001",
        "SITE-101",
        "SITE-201",
    }
    assert "HOROVOD_SITE_OPERATIONS" in read.flags
    assert "2026x" in read.generations


def test_a_folder_s_row_replaces_the_shipped_one(tmp_path: Path) -> None:
    shipped = (data.RECIPES / "knowledge" / "advisories.yaml").read_text()
    assert shipped.count("  - id: OMPI-001\n    severity: error\n") == 1
    (tmp_path / "knowledge").mkdir()
    own = tmp_path / "knowledge" / "advisories.yaml"
    own.write_text(shipped.replace("OMPI-001\n    severity: error", "OMPI-001\n    severity: info"))
    read = {row.id: row for row in load_knowledge([tmp_path, data.RECIPES]).value.advisories}
    assert read["OMPI-001"].severity == "info"
    assert len(read) == len(KNOWN.advisories)
