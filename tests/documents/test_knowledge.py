"""Rows of knowledge against the whole: the exact words and places of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.load import load_recipe
from envbuilder.errors import DocumentError, Problem
from envbuilder.knowledge.rows import Knowledge
from envbuilder.workflow.entries import entries
from tests.golden_texts import Golden

COMPONENTS = """\
schema: 1
components:
  alpha: {summary: A, modules: [Alpha], pip: alpha}
  beta: {summary: B, fulfils: [link]}
  gamma: {summary: C, fulfils: [link]}
  runner: {summary: R, pip: runner}
"""
VERSIONS = """\
schema: 1
recorded: "2026-01-01"
source: our mirror
releases:
  runner:
    - {version: "1.0"}
    - {version: "2.0"}
existing:
  alpha:
    source: its site
    versions: ["1.0", "1.9", "1.10"]
    announced: ["2.0"]
  beta: {source: its site, versions: ["3.0"]}
  gamma: {source: its site, versions: ["4.0", "5.0"]}
"""
FLAGS = """\
schema: 1
flags:
  RUN_WITH_ALPHA: {summary: x, kind: one, runtime: runner, sources: [s]}
  RUN_LINK:
    summary: x
    kind: choice
    runtime: runner
    values:
      - {range: "<2", values: [FAST]}
    sources: [s]
rules:
  - id: RUN-001
    runtime: runner
    range: ">=2"
    when: "flags.RUN_WITH_ALPHA == '1' and ops.alltoall == 'CPU'"
    severity: error
    summary: x
    evidence: derived
    sources: [s]
"""
ADVISORIES = """\
schema: 1
advisories:
  - id: ALPHA-001
    component: alpha
    affected: ["<1.5", ">=2"]
    when: "not alpha.mended and link.fast"
    beside:
      beta: "*"
      runner: {range: "<2", origin: [build]}
    severity: error
    summary: x
    evidence: derived
    sources: [s]
    remedies:
      - {id: newer, kind: component, name: gamma, value: ">=5", source: s}
      - {id: less, kind: flag, name: RUN_LINK, value: FAST, affected: "<1.5", source: s}
"""
COUPLINGS = """\
schema: 1
couplings:
  - id: ALPHA-002
    given: {alpha: ">=1.9"}
    needs:
      link: ">=4"
    when: "'x' in uses"
    severity: warning
    summary: x
    evidence: derived
    sources: [s]
"""
TOOLCHAINS = """\
schema: 1
kinds:
  base: {source: s}
  more: {"on": [base], source: s}
generations:
  2026a: {compilers: [base-1, all-1], components: {alpha: "1.0"}, source: s}
  2026b: {compilers: [base-2], source: s}
"""
SHEETS = {
    "components": COMPONENTS,
    "versions": VERSIONS,
    "flags": FLAGS,
    "advisories": ADVISORIES,
    "couplings": COUPLINGS,
    "toolchains": TOOLCHAINS,
}


def folder(place: Path, **changed: str) -> Path:
    """Write the sheets above, some of them changed, into a folder of recipes."""
    knowledge = place / "knowledge"
    knowledge.mkdir(parents=True)
    for name, text in {**SHEETS, **changed}.items():
        (knowledge / f"{name}.yaml").write_text(text)
    return place


def problems(*folders: Path) -> tuple[Problem, ...]:
    with pytest.raises(DocumentError) as caught:
        load_knowledge(folders)
    return caught.value.problems


def said(*folders: Path) -> list[tuple[str, str]]:
    """Return place (``advisories.yaml:4:16``) and id of every problem."""
    return [(str(each.place).rpartition("/")[2], each.id) for each in problems(*folders)]


def test_the_sheets_are_right(tmp_path: Path) -> None:
    known = load_knowledge([folder(tmp_path)]).value
    assert [row.id for row in known.advisories] == ["ALPHA-001"]
    assert set(known.generations) == {"2026a", "2026b"}


# What is changed in a sheet, where the fault is then found (the text that begins there), its id.
FAULTS = [
    # Names.
    (
        "advisories",
        "component: alpha",
        "component: alfa",
        "alfa\n",
        "component.unknown",
    ),
    (
        "advisories",
        "      beta: ",
        "      betta: ",
        "betta",
        "component.unknown",
    ),
    (
        "advisories",
        "name: gamma",
        "name: gama",
        "gama",
        "component.unknown",
    ),
    (
        "advisories",
        "name: RUN_LINK",
        "name: RUN_LINC",
        "RUN_LINC",
        "flag.unknown",
    ),
    (
        "couplings",
        "{alpha:",
        "{alhpa:",
        "alhpa",
        "component.unknown",
    ),
    (
        "couplings",
        "      link:",
        "      lnik:",
        "lnik",
        "component.unknown",
    ),
    (
        "versions",
        "  runner:",
        "  runer:",
        "runer",
        "component.unknown",
    ),
    (
        "versions",
        "existing:",
        'existing:\n  link: {source: s, versions: ["1"]}',
        "link",
        "component.unknown",
    ),
    (
        "flags",
        "one, runtime: runner",
        "one, runtime: link",
        "link",
        "component.unknown",
    ),
    (
        "flags",
        "kind: one",
        "kind: path, home-of: betta",
        "betta",
        "component.unknown",
    ),
    (
        "toolchains",
        "[base]",
        "[bas]",
        "bas]",
        "toolchain.unknown-kind",
    ),
    (
        "toolchains",
        "{alpha:",
        "{alpa:",
        "alpa",
        "component.unknown",
    ),
    (
        "toolchains",
        "[base-2]",
        "[base-2, all-1]",
        "all-1], source",
        "knowledge.ambiguous-name",
    ),
    (
        "components",
        "B, fulfils",
        "B, modules: [Beta, Alpha], fulfils",
        "Alpha], f",
        "knowledge.ambiguous-name",
    ),
    # Ranges.
    (
        "advisories",
        '["<1.5", ',
        '["<1", ',
        '"<1"',
        "knowledge.empty-range",
    ),
    (
        "advisories",
        '">=2"]',
        '"==1.11.*"]',
        '"==1.11.*"',
        "knowledge.empty-range",
    ),
    (
        "advisories",
        '["<1.5", ">=2"]',
        '">=0.1"',
        '">=0.1"',
        "knowledge.full-range",
    ),
    (
        "advisories",
        '{range: "<2"',
        '{range: "<=2"',
        '"<=2"',
        "knowledge.full-range",
    ),
    (
        "advisories",
        'value: ">=5"',
        'value: ">=6"',
        '">=6"',
        "knowledge.empty-range",
    ),
    ("advisories", 'value: ">=5"', "value: newest", "newest", "knowledge.invalid-range"),
    (
        "advisories",
        'affected: "<1.5"',
        'affected: "<1.0"',
        '"<1.0"',
        "knowledge.empty-range",
    ),
    (
        "couplings",
        '">=1.9"',
        '">=3"',
        '">=3"',
        "knowledge.empty-range",
    ),
    (
        "couplings",
        'link: ">=4"',
        'link: ">=3"',
        '">=3"',
        "knowledge.full-range",
    ),
    (
        "flags",
        '{range: "<2"',
        '{range: "<1"',
        '"<1"',
        "knowledge.empty-range",
    ),
    (
        "flags",
        'range: ">=2"',
        'range: ">=1"',
        '">=1"',
        "knowledge.full-range",
    ),
    # Conditions.
    (
        "advisories",
        "not alpha.mended",
        "not alfa.mended",
        '"not alfa',
        "fact.unknown",
    ),
    (
        "advisories",
        "not alpha.mended",
        "flags.RUN_LIMK == '1'",
        '"flags',
        "fact.unknown",
    ),
    (
        "couplings",
        "'x' in uses",
        "ops.allredcue == 'CPU'",
        '"ops',
        "fact.unknown",
    ),
    (
        "flags",
        "flags.RUN_WITH_ALPHA ==",
        "flags.RUN_WITH_ALFA ==",
        '"flags',
        "fact.unknown",
    ),
    ("couplings", "'x' in uses", "archh == 'x'", '"archh', "document.invalid-value"),
    # Ids.
    ("couplings", "id: ALPHA-002", "id: ALPHA-001", "ALPHA-001", "knowledge.duplicate-id"),
]


@pytest.mark.parametrize(("sheet", "old", "new", "at", "problem"), FAULTS)
def test_one_fault(
    sheet: str, old: str, new: str, at: str, problem: str, tmp_path: Path, golden: Golden
) -> None:
    text = SHEETS[sheet]
    assert text.count(old) == 1
    changed = text.replace(old, new)
    before, _, _ = changed.partition(at)
    assert changed.count(at) == 1
    place = f"{sheet}.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    where = folder(tmp_path, **{sheet: changed})
    assert said(where) == [(place, problem)]
    (found,) = problems(where)
    golden(found.message, *found.hints, folder=where)


def test_rows_of_the_wrong_form(tmp_path: Path) -> None:
    text = ADVISORIES.replace('["<1.5", ">=2"]', "newest").replace('beta: "*"', "beta: [1]")
    text = text.replace('{range: "<2", origin: [build]}', '{rnge: "<2", origin: [built]}')
    assert said(folder(tmp_path, advisories=text)) == [
        ("advisories.yaml:5:15", "document.invalid-value"),
        ("advisories.yaml:8:13", "document.wrong-type"),
        ("advisories.yaml:9:15", "document.missing-key"),
        ("advisories.yaml:9:16", "document.unknown-key"),
        ("advisories.yaml:9:37", "document.unknown-value"),
    ]


def test_all_sheets_are_checked_at_once(tmp_path: Path) -> None:
    wrong = folder(
        tmp_path,
        advisories=ADVISORIES.replace("component: alpha", "component: alfa"),
        couplings=COUPLINGS.replace('">=1.9"', '">=3"'),
    )
    assert [place for place, _ in said(wrong)] == ["advisories.yaml:4:16", "couplings.yaml:4:20"]


def test_an_id_twice_in_one_sheet(tmp_path: Path) -> None:
    row = COUPLINGS.partition("couplings:\n")[2]
    where = folder(tmp_path, couplings=COUPLINGS + row)
    assert said(where) == [("couplings.yaml:12:9", "knowledge.duplicate-id")]
    (problem,) = problems(where)
    assert "'ALPHA-002'" in problem.message
    assert f"{where}/knowledge/couplings.yaml:3:9" in problem.message


MINE = """\
schema: 1
couplings:
  - id: ID
    given: {openmpi: "*"}
    needs: {cmake: ">=3.30"}
    severity: info
    summary: Ours
    evidence: run
    sources: [us]
"""


def own_row(place: Path, name: str) -> Path:
    path = place / "knowledge" / "couplings.yaml"
    path.parent.mkdir()
    path.write_text(MINE.replace("ID", name))
    return place


def test_a_row_of_ones_own_replaces_the_shipped_one(tmp_path: Path, known: Knowledge) -> None:
    shipped = known.couplings[0].id
    merged = load_knowledge([own_row(tmp_path, shipped), data.RECIPES]).value
    assert [row.summary for row in merged.couplings if row.id == shipped] == ["Ours"]
    assert len(merged.couplings) == len(known.couplings)
    assert merged.advisories == known.advisories


def test_an_id_of_another_kind_cannot_be_taken(tmp_path: Path, known: Knowledge) -> None:
    for name, kind in (
        (known.advisories[0].id, "advisories"),
        (known.flag_rules[0].id, "flag rules"),
    ):
        (tmp_path / kind).mkdir()
        where = own_row(tmp_path / kind, name)
        assert said(where, data.RECIPES) == [("couplings.yaml:3:9", "knowledge.duplicate-id")]
        (problem,) = problems(where, data.RECIPES)
        assert f"'{name}'" in problem.message
        assert problem.message.endswith(kind)


def test_rows_of_ones_own_are_checked_against_the_shipped_ones(tmp_path: Path) -> None:
    where = own_row(tmp_path, "MINE-001")
    path = where / "knowledge" / "couplings.yaml"
    path.write_text(path.read_text().replace('">=3.30"', '">=33"'))
    assert said(where, data.RECIPES) == [("couplings.yaml:5:20", "knowledge.empty-range")]
    (problem,) = problems(where, data.RECIPES)
    assert all(each in problem.message for each in ("cmake", "'>=33'", " 2.8."))


def test_what_is_unknown_beside_nothing_else(tmp_path: Path) -> None:
    found = problems(own_row(tmp_path, "MINE-001"))
    assert [(each.id, each.message.split()[-1]) for each in found] == [
        ("component.unknown", "'openmpi'"),
        ("component.unknown", "'cmake'"),
    ]


RECIPE = """\
schema: 1
name: mine
summary: Mine
arch: [x86_64]
stack: {python: "*"}
runtime:
  package: horovod
  flags: {HOROVOD_GPU_ALREDUCE: NCCL, CXX: g++, OMP_NUM_THREADS: 1}
"""


def test_flags_of_a_recipe(tmp_path: Path, known: Knowledge) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE)
    with pytest.raises(DocumentError) as caught:
        load_recipe(path, known, entries())
    found = caught.value.problems
    assert [(str(each.place), each.id) for each in found] == [
        (f"{path}:8:11", "flag.unknown"),
        (f"{path}:8:49", "flag.unknown"),
    ]
    assert "'HOROVOD_GPU_ALLREDUCE'" in found[0].message
    assert "'OMP_NUM_THREADS'" in found[1].message
    assert all("'env:'" in hint for each in found for hint in each.hints)


def test_flags_of_a_runtime_that_has_none_recorded(tmp_path: Path, known: Knowledge) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.replace("package: horovod", "package: distributed-dl-training"))
    assert load_recipe(path, known, entries()).value.runtime.flags["CXX"] == "g++"
