"""Rows of knowledge against the whole: the exact words and places of what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.load import load_recipe
from envbuilder.errors import DocumentError
from envbuilder.knowledge.conditions import FACTS
from envbuilder.knowledge.rows import Knowledge
from envbuilder.text import LONG, shown
from envbuilder.workflow.entries import entries

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


def said(*folders: Path) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return place (``advisories.yaml:4:16``), message and hints of every problem."""
    with pytest.raises(DocumentError) as caught:
        load_knowledge(folders)
    return [
        (str(each.place).rpartition("/")[2], each.message, each.hints)
        for each in caught.value.problems
    ]


def test_the_sheets_are_right(tmp_path: Path) -> None:
    known = load_knowledge([folder(tmp_path)]).value
    assert [row.id for row in known.advisories] == ["ALPHA-001"]
    assert set(known.generations) == {"2026a", "2026b"}


ADD_IT = "releases that it lacks go into versions.yaml, under 'existing'"
STAR = "write '*' for all releases, also those to come"
OWN = "a folder of your own can add it, in knowledge/components.yaml: see docs/recipes.md"
OWN_ID = "give the row an id of its own"
TAKEN = "the id 'ALPHA-001' is taken: it stands at {folder}/knowledge/advisories.yaml:3:9"
NO_RANGE = "not a version range: 'newest' (write '>=1.2,<2', '==1.14.*' or '*')"
NO_FACT = "couplings[0].when: " + shown(
    "not a condition, at character 1: \"archh == 'x'\": "
    f"no fact is called archh; there are {', '.join(FACTS)}",
    LONG,
)


# What is changed in a sheet, where the fault is then found (the text that begins there), what is
# said of it.
FAULTS = [
    # Names.
    (
        "advisories",
        "component: alpha",
        "component: alfa",
        "alfa\n",
        "unknown component 'alfa': did you mean 'alpha'?",
        OWN,
    ),
    (
        "advisories",
        "      beta: ",
        "      betta: ",
        "betta",
        "unknown component 'betta': did you mean 'beta'?",
        OWN,
    ),
    (
        "advisories",
        "name: gamma",
        "name: gama",
        "gama",
        "unknown component 'gama': did you mean 'gamma'?",
        OWN,
    ),
    (
        "advisories",
        "name: RUN_LINK",
        "name: RUN_LINC",
        "RUN_LINC",
        "unknown flag 'RUN_LINC': did you mean 'RUN_LINK'?",
        None,
    ),
    (
        "couplings",
        "{alpha:",
        "{alhpa:",
        "alhpa",
        "unknown component 'alhpa': did you mean 'alpha'?",
        OWN,
    ),
    (
        "couplings",
        "      link:",
        "      lnik:",
        "lnik",
        "unknown component 'lnik': did you mean 'link'?",
        OWN,
    ),
    (
        "versions",
        "  runner:",
        "  runer:",
        "runer",
        "unknown component 'runer': did you mean 'runner'?",
        OWN,
    ),
    (
        "versions",
        "existing:",
        'existing:\n  link: {source: s, versions: ["1"]}',
        "link",
        "'link' is not a component: beta, gamma fulfil it",
        "name one of them",
    ),
    (
        "flags",
        "one, runtime: runner",
        "one, runtime: link",
        "link",
        "'link' is not a component: beta, gamma fulfil it",
        "name one of them",
    ),
    (
        "flags",
        "kind: one",
        "kind: path, home-of: betta",
        "betta",
        "unknown component 'betta': did you mean 'beta'?",
        OWN,
    ),
    (
        "toolchains",
        "[base]",
        "[bas]",
        "bas]",
        "unknown kind of toolchain 'bas': did you mean 'base'?",
        None,
    ),
    (
        "toolchains",
        "{alpha:",
        "{alpa:",
        "alpa",
        "unknown component 'alpa': did you mean 'alpha'?",
        OWN,
    ),
    (
        "toolchains",
        "[base-2]",
        "[base-2, all-1]",
        "all-1], source",
        "the compiler 'all-1' is that of 2026a",
        None,
    ),
    (
        "components",
        "B, fulfils",
        "B, modules: [Beta, Alpha], fulfils",
        "Alpha], f",
        "the module name 'Alpha' is that of alpha",
        "a module's version is that of one component",
    ),
    # Ranges.
    (
        "advisories",
        '["<1.5", ',
        '["<1", ',
        '"<1"',
        "no release of alpha lies in '<1': known are 1.0 to 2.0",
        ADD_IT,
    ),
    (
        "advisories",
        '">=2"]',
        '"==1.11.*"]',
        '"==1.11.*"',
        "no release of alpha lies in '==1.11.*': known are 1.0 to 2.0",
        ADD_IT,
    ),
    (
        "advisories",
        '["<1.5", ">=2"]',
        '">=0.1"',
        '">=0.1"',
        "every release of alpha lies in '>=0.1'",
        STAR,
    ),
    (
        "advisories",
        '{range: "<2"',
        '{range: "<=2"',
        '"<=2"',
        "every release of runner lies in '<=2'",
        STAR,
    ),
    (
        "advisories",
        'value: ">=5"',
        'value: ">=6"',
        '">=6"',
        "no release of gamma lies in '>=6': known are 4.0 to 5.0",
        ADD_IT,
    ),
    ("advisories", 'value: ">=5"', "value: newest", "newest", NO_RANGE, None),
    (
        "advisories",
        'affected: "<1.5"',
        'affected: "<1.0"',
        '"<1.0"',
        "no release of alpha lies in '<1.0': known are 1.0 to 2.0",
        ADD_IT,
    ),
    (
        "couplings",
        '">=1.9"',
        '">=3"',
        '">=3"',
        "no release of alpha lies in '>=3': known are 1.0 to 2.0",
        ADD_IT,
    ),
    (
        "couplings",
        'link: ">=4"',
        'link: ">=3"',
        '">=3"',
        "every release of link lies in '>=3'",
        STAR,
    ),
    (
        "flags",
        '{range: "<2"',
        '{range: "<1"',
        '"<1"',
        "no release of runner lies in '<1': known are 1.0 to 2.0",
        ADD_IT,
    ),
    (
        "flags",
        'range: ">=2"',
        'range: ">=1"',
        '">=1"',
        "every release of runner lies in '>=1'",
        STAR,
    ),
    # Conditions.
    (
        "advisories",
        "not alpha.mended",
        "not alfa.mended",
        '"not alfa',
        "unknown fact 'alfa.mended': did you mean 'alpha.mended'?",
        None,
    ),
    (
        "advisories",
        "not alpha.mended",
        "flags.RUN_LIMK == '1'",
        '"flags',
        "unknown flag 'flags.RUN_LIMK': did you mean 'flags.RUN_LINK'?",
        None,
    ),
    (
        "couplings",
        "'x' in uses",
        "ops.allredcue == 'CPU'",
        '"ops',
        "unknown operation 'ops.allredcue': did you mean 'ops.allreduce'?",
        None,
    ),
    (
        "flags",
        "flags.RUN_WITH_ALPHA ==",
        "flags.RUN_WITH_ALFA ==",
        '"flags',
        "unknown flag 'flags.RUN_WITH_ALFA': did you mean 'flags.RUN_WITH_ALPHA'?",
        None,
    ),
    ("couplings", "'x' in uses", "archh == 'x'", '"archh', NO_FACT, None),
    # Ids.
    ("couplings", "id: ALPHA-002", "id: ALPHA-001", "ALPHA-001", TAKEN, OWN_ID),
]


@pytest.mark.parametrize(("sheet", "old", "new", "at", "message", "hint"), FAULTS)
def test_one_fault(
    sheet: str, old: str, new: str, at: str, message: str, hint: str | None, tmp_path: Path
) -> None:
    text = SHEETS[sheet]
    assert text.count(old) == 1
    changed = text.replace(old, new)
    before, _, _ = changed.partition(at)
    assert changed.count(at) == 1
    place = f"{sheet}.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    where = folder(tmp_path, **{sheet: changed})
    expected = message.replace("{folder}", str(where))
    assert said(where) == [(place, expected, (hint,) if hint else ())]


def test_rows_of_the_wrong_form(tmp_path: Path) -> None:
    text = ADVISORIES.replace('["<1.5", ">=2"]', "newest").replace('beta: "*"', "beta: [1]")
    text = text.replace('{range: "<2", origin: [build]}', '{rnge: "<2", origin: [built]}')
    assert said(folder(tmp_path, advisories=text)) == [
        (
            "advisories.yaml:5:15",
            "advisories[0].affected: not a version range: 'newest' "
            "(write '>=1.2,<2', '==1.14.*' or '*')",
            (),
        ),
        ("advisories.yaml:8:13", "advisories[0].beside.beta must be text, not a list", ()),
        (
            "advisories.yaml:9:15",
            "the key 'range' is missing in advisories[0].beside.runner",
            (),
        ),
        ("advisories.yaml:9:16", "unknown key 'rnge': did you mean 'range'?", ()),
        (
            "advisories.yaml:9:37",
            "unknown origin 'built': did you mean 'build'?",
            (),
        ),
    ]


def test_all_sheets_are_checked_at_once(tmp_path: Path) -> None:
    wrong = folder(
        tmp_path,
        advisories=ADVISORIES.replace("component: alpha", "component: alfa"),
        couplings=COUPLINGS.replace('">=1.9"', '">=3"'),
    )
    assert [place for place, _, _ in said(wrong)] == ["advisories.yaml:4:16", "couplings.yaml:4:20"]


def test_an_id_twice_in_one_sheet(tmp_path: Path) -> None:
    row = COUPLINGS.partition("couplings:\n")[2]
    where = folder(tmp_path, couplings=COUPLINGS + row)
    taken = f"the id 'ALPHA-002' is taken: it stands at {where}/knowledge/couplings.yaml:3:9"
    assert said(where) == [("couplings.yaml:12:9", taken, (OWN_ID,))]


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
        message = f"the id '{name}' is taken: it is one of the {kind}"
        assert said(where, data.RECIPES) == [("couplings.yaml:3:9", message, (OWN_ID,))]


def test_rows_of_ones_own_are_checked_against_the_shipped_ones(tmp_path: Path) -> None:
    where = own_row(tmp_path, "MINE-001")
    path = where / "knowledge" / "couplings.yaml"
    path.write_text(path.read_text().replace('">=3.30"', '">=33"'))
    ((place, message, _),) = said(where, data.RECIPES)
    assert place == "couplings.yaml:5:20"
    assert message.startswith("no release of cmake lies in '>=33': known are 2.8.")


def test_what_is_unknown_beside_nothing_else(tmp_path: Path) -> None:
    assert [message for _, message, _ in said(own_row(tmp_path, "MINE-001"))] == [
        "unknown component 'openmpi'",
        "unknown component 'cmake'",
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
    assert [(str(each.place), each.message, each.hints) for each in caught.value.problems] == [
        (
            f"{path}:8:11",
            "unknown flag of horovod 'HOROVOD_GPU_ALREDUCE': did you mean 'HOROVOD_GPU_ALLREDUCE'?",
            ("what programs read when they run goes under 'env:'",),
        ),
        (
            f"{path}:8:49",
            "unknown flag of horovod 'OMP_NUM_THREADS'",
            ("what programs read when they run goes under 'env:'",),
        ),
    ]


def test_flags_of_a_runtime_that_has_none_recorded(tmp_path: Path, known: Knowledge) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE.replace("package: horovod", "package: distributed-dl-training"))
    assert load_recipe(path, known, entries()).value.runtime.flags["CXX"] == "g++"
