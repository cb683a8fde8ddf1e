"""What is read, and the ids and places of each kind of error; golden files hold the messages."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import pytest

from envbuilder import data
from envbuilder.documents.knowledge import load_knowledge
from envbuilder.documents.load import load_recipe, load_site
from envbuilder.documents.messages import MAX_PROBLEMS, field_names
from envbuilder.errors import DocumentError, EnvbuildError, Place, Problem, UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.site import Site
from envbuilder.workflow.entries import entries
from tests.golden_texts import Golden
from tests.shipped import read_shipped

from .hostile import RECIPE, SITE

MINIMAL = """\
schema: 1
name: mine
summary: Mine
arch: [x86_64]
stack:
  python: "*"
"""

Row = tuple[str, str]


def problems(path: Path, known: Knowledge, kind: str = "recipe") -> tuple[Problem, ...]:
    load = load_recipe if kind == "recipe" else load_site
    with pytest.raises(EnvbuildError) as caught:
        load(path, known, entries())
    return caught.value.problems


def rows(path: Path, known: Knowledge, kind: str = "recipe") -> list[Row]:
    """Return place (without the file) and id of every problem."""
    found = problems(path, known, kind)
    return [(str(problem.place).replace(str(path), "F"), problem.id) for problem in found]


def texts(path: Path, known: Knowledge, kind: str = "recipe") -> list[str]:
    """Return message and hints of every problem."""
    found = problems(path, known, kind)
    return [text for problem in found for text in (problem.message, *problem.hints)]


def written(folder: Path, text: str | bytes, name: str = "mine.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_defaults(tmp_path: Path, known: Knowledge) -> None:
    recipe = load_recipe(written(tmp_path, MINIMAL), known, entries()).value
    assert recipe.backend == "virtualenv"
    assert recipe.system_site_packages is False
    assert recipe.smoke.ranks == 2


def test_everything(tmp_path: Path, known: Knowledge) -> None:
    recipe = load_recipe(written(tmp_path, RECIPE, "broken.yaml"), known, entries()).value
    assert recipe.arch == ("x86_64", "aarch64")
    assert recipe.documented_for == {"x86_64": "some-site"}
    assert dict(recipe.stack) == {"python": ">=3.9", "numpy": "*", "mpich": ">=4.2"}
    assert recipe.env == {"OMP_NUM_THREADS": "2"}
    assert recipe.smoke.max_bytes == 1024
    site = load_site(written(tmp_path, SITE, "broken.yaml"), known, entries()).value
    assert site.modules[0].provides == {"python": "3.6.6"}
    assert site.launcher is not None
    assert site.launcher.command == ("srun", "--mpi=pmix")


def test_path_hash_and_places(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, RECIPE, "broken.yaml")
    loaded = load_recipe(path, known, entries())
    assert loaded.path == path
    assert loaded.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    file = str(path)
    assert loaded.place("stack", "mpich") == Place(file, 11, 3)
    assert loaded.place("arch", 1) == Place(file, 4, 16)
    assert loaded.place("smoke", "ranks") == Place(file, 17, 9)
    assert loaded.place() == Place(file, 1, 1)
    # What is not written has the place of what it would stand in.
    assert loaded.place("stack", "nccl") == Place(file, 8, 1)
    assert loaded.place("modules", 0, "name") == Place(file, 1, 1)


@pytest.mark.parametrize(
    "data_",
    [
        MINIMAL.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + MINIMAL.encode(),
        b"---\n" + MINIMAL.encode() + b"...\n",
        MINIMAL.replace(
            "summary: Mine", "summary: '\u65e5\u672c\u8a9e \U0001f680 f\u00fcr'"
        ).encode(),
        MINIMAL.replace("summary: Mine", "summary: >-\n  folded\n  text").encode(),
    ],
    ids=["crlf", "bom", "markers", "unicode", "folded"],
)
def test_harmless_forms(data_: bytes, tmp_path: Path, known: Knowledge) -> None:
    loaded = load_recipe(written(tmp_path, data_), known, entries())
    assert loaded.value.name == "mine"
    assert loaded.sha256 == hashlib.sha256(data_).hexdigest()


def test_columns_count_characters(tmp_path: Path, known: Knowledge) -> None:
    text = MINIMAL.replace("arch: [x86_64]", 'arch: ["\u65e5\u672c", x86]')
    assert rows(written(tmp_path, text), known) == [
        ("F:4:8", "document.unknown-value"),
        ("F:4:14", "document.unknown-value"),
    ]


def test_facts_of_modules_and_networks_are_those_that_conditions_read(
    tmp_path: Path, known: Knowledge, golden: Golden
) -> None:
    text = """\
schema: 1
name: mine
summary: Mine
arch: [x86_64]
modules:
  - name: OpenMPI/4.1.4
    facts: {cuda_aware: maybe, ucx: "false", external_pmx: true, external_hwloc: true}
  - {name: spectrum-mpi/10.3, facts: {cxx: true}}
facts: {network: [infinband, roce]}
partitions: {old: {summary: Old, arch: x86_64, facts: {network: [ib]}}}
"""
    golden(*texts(written(tmp_path, text), known, "site"))
    assert rows(written(tmp_path, text), known, "site") == [
        ("F:7:13", "fact.not-recognised"),
        ("F:7:32", "fact.not-recognised"),
        ("F:7:46", "fact.not-recognised"),
        ("F:8:39", "fact.not-recognised"),
        ("F:9:19", "fact.not-recognised"),
        ("F:10:66", "fact.not-recognised"),
    ]


def test_all_problems_at_once(tmp_path: Path, known: Knowledge, golden: Golden) -> None:
    text = """\
schema: 2
name: other
sumary: on
arch: [x86-64, 3]
backend: virtualnv
system-site-packages: yes
stack:
  python: 3.10
  numpyy: ">=1"
  mpi: "*"
  mpich: 1.2.x
packages: pandas
env: {A B: x, PATH: y, FOO: on, D: 2020-01-01, E: ~}
runtim: {}
smoke: {ranks: 1, timeut: 3, timeout: "3"}
"""
    golden(*texts(written(tmp_path, text), known))
    assert rows(written(tmp_path, text), known) == [
        ("F:1:1", "document.missing-key"),
        ("F:1:9", "document.unknown-schema"),
        ("F:2:7", "document.name-mismatch"),
        ("F:3:1", "document.unknown-key"),
        ("F:4:8", "document.unknown-value"),
        ("F:4:16", "document.unknown-value"),
        ("F:5:10", "document.unknown-value"),
        ("F:6:23", "document.wrong-type"),
        ("F:8:11", "document.wrong-type"),
        ("F:9:3", "component.unknown"),
        ("F:10:3", "component.unknown"),
        ("F:11:10", "document.invalid-value"),
        ("F:12:11", "document.wrong-type"),
        ("F:13:7", "document.invalid-key"),
        ("F:13:15", "document.invalid-key"),
        ("F:13:29", "document.wrong-type"),
        ("F:13:36", "document.wrong-type"),
        ("F:13:51", "document.wrong-type"),
        ("F:14:1", "document.unknown-key"),
        ("F:15:16", "document.invalid-value"),
        ("F:15:19", "document.more-problems"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ('"*"', "off", ("F:6:11", "document.wrong-type")),
        (
            '"*"',
            "1e5",
            ("F:6:11", "document.wrong-type"),
        ),
        (
            '"*"',
            '"===1.0"',
            ("F:6:11", "document.invalid-value"),
        ),
        ('"*"', '"" ', ("F:6:11", "document.invalid-value")),
        (
            "[x86_64]",
            "[]",
            ("F:4:7", "document.invalid-value"),
        ),
        (
            "summary: Mine",
            f"summary: {'x' * 501}",
            ("F:3:10", "document.invalid-value"),
        ),
        (
            "summary: Mine",
            'summary: "a\\nb"',
            ("F:3:10", "document.invalid-value"),
        ),
        (
            "schema: 1",
            "schema: true",
            ("F:1:9", "document.unknown-schema"),
        ),
        (
            "schema: 1\n",
            "",
            ("F:1:1", "document.missing-key"),
        ),
        (
            "name: mine\n",
            "name: mine\nname: twice\n",
            ("F:3:1", "document.duplicate-key"),
        ),
        (
            '"*"',
            "*",
            ("F:6:11", "document.missing-quotes"),
        ),
        (
            '"*"',
            ">=3.8",
            ("F:6:11", "document.missing-quotes"),
        ),
        (
            "summary: Mine",
            "summary: &a Mine",
            ("F:3:10", "document.not-allowed"),
        ),
        (
            "summary: Mine",
            "summary: *a",
            ("F:3:10", "document.not-allowed"),
        ),
        (
            "summary: Mine",
            "summary: !!str Mine",
            ("F:3:10", "document.not-allowed"),
        ),
        (
            "summary: Mine",
            "<<: {summary: Mine}",
            ("F:3:1", "document.not-allowed"),
        ),
        (
            "  python",
            "\tpython",
            ("F:6:1", "document.tab"),
        ),
        (
            "summary: Mine",
            "summary: 'Mine",
            ("F:3:10", "document.not-yaml"),
        ),
        (
            "summary: Mine",
            "summary: Mine\x07",
            ("F:3:14", "document.control-character"),
        ),
        (
            "summary: Mine",
            "summary: Mine\n---\nname: x",
            ("F:4:1", "document.several"),
        ),
        (
            "summary: Mine",
            "summary: Mine\n? [a]\n: 1",
            ("F:4:3", "document.invalid-key"),
        ),
    ],
)
def test_one_problem(
    old: str, new: str, row: Row, tmp_path: Path, known: Knowledge, golden: Golden
) -> None:
    assert MINIMAL.count(old) == 1
    path = written(tmp_path, MINIMAL.replace(old, new))
    assert rows(path, known) == [row]
    golden(*texts(path, known), F=path)


def test_missing_in_a_part(tmp_path: Path, known: Knowledge) -> None:
    text = SITE.replace("kind: srun, ", "knd: srun, ") + "partitions: {ml: {arch: ppc64le}}\n"
    path = written(tmp_path, text, "broken.yaml")
    found = rows(path, known, "site")
    assert ("F:15:12", "document.unknown-key") in found, found
    missing = [each for each in problems(path, known, "site") if each.id == "document.missing-key"]
    assert any("partitions.ml" in each.message for each in missing), found


def test_file_name_with_control_characters(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, "a: 1", "a\n\x1b[31m.yaml")
    with pytest.raises(DocumentError) as caught:
        load_recipe(path, known, entries())
    assert all(str(each.place).isprintable() for each in caught.value.problems)


def test_number_of_problems_is_bounded(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, MINIMAL + "".join(f"k{n}: 1\n" for n in range(100)))
    found = problems(path, known)
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1].id == "document.more-problems"
    assert f" {100 - MAX_PROBLEMS} " in found[-1].message


def test_keys_are_known_at_every_depth() -> None:
    assert "module-trees" in field_names(Site, ())
    assert {"name", "provides", "loads"} < set(field_names(Site, ("modules", 3)))
    assert field_names(Site, ("launcher",)) == ["kind", "command"]
    assert field_names(Site, ("modules", 3, "provides")) == []


def test_no_such_file(tmp_path: Path, known: Knowledge) -> None:
    assert rows(tmp_path / "no.yaml", known) == [("F", "document.not-found")]


def test_folder(tmp_path: Path, known: Knowledge) -> None:
    assert rows(tmp_path, known) == [("F", "document.not-a-file")]


def test_pipe_is_not_waited_for(tmp_path: Path, known: Knowledge) -> None:
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    assert rows(path, known) == [("F", "document.not-a-file")]


def test_device(known: Knowledge) -> None:
    assert rows(Path("/dev/zero"), known) == [("F", "document.not-a-file")]


def test_file_that_hides_its_size(tmp_path: Path, known: Knowledge) -> None:
    # Such files claim to have no bytes, as those under /proc do.
    with pytest.raises(DocumentError):
        load_recipe(Path("/proc/self/status"), known, entries())


def test_path_through_a_file(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, MINIMAL) / "x.yaml"
    assert rows(path, known) == [("F", "document.not-readable")]


def test_nul_in_the_path(known: Knowledge) -> None:
    with pytest.raises(UsageError) as caught:
        load_recipe(Path("a\0b.yaml"), known, entries())
    assert caught.value.id == "document.not-a-path"


def test_size_limit_is_exact(tmp_path: Path, known: Knowledge) -> None:
    fits = MINIMAL + "#" * (1024 * 1024 - len(MINIMAL))
    assert load_recipe(written(tmp_path, fits), known, entries()).value.name == "mine"
    assert rows(written(tmp_path, fits + "#"), known) == [("F", "document.too-large")]


COMPONENTS = """\
schema: 1
components:
  numpy: {summary: Ours, pip: our-numpy}
  solver: {summary: Our solver}
"""
VERSIONS = """\
schema: 1
recorded: "2026-01-01"
source: our mirror
releases:
  numpy:
    - {version: "9.9.9"}
"""
SYMPTOMS = """\
schema: 1
symptoms:
  - {id: ours, pattern: 'our error', hint: ask us}
  - {id: no-network, pattern: 'x', hint: ours comes first}
"""


def test_knowledge_of_an_earlier_folder_wins(tmp_path: Path, known: Knowledge) -> None:
    written(tmp_path, COMPONENTS, "knowledge/components.yaml")
    written(tmp_path, VERSIONS, "knowledge/versions.yaml")
    written(tmp_path, SYMPTOMS, "knowledge/symptoms.yaml")
    merged = load_knowledge([tmp_path, data.RECIPES])
    assert merged.value.components["numpy"].pip == "our-numpy"
    assert merged.value.components["mpich"] == known.components["mpich"]
    assert [release.version for release in merged.value.releases["numpy"]] == ["9.9.9"]
    hints = {symptom.id: symptom.hint for symptom in merged.value.symptoms}
    assert hints["no-network"] == "ours comes first"
    assert set(hints) == {"ours", *(symptom.id for symptom in known.symptoms)}
    assert load_knowledge([data.RECIPES, tmp_path]).value.components["numpy"].pip == "numpy"
    assert merged.sha256 != read_shipped().sha256


def test_hash_of_knowledge_says_nothing_of_its_folder(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        written(tmp_path, COMPONENTS, f"{folder}/knowledge/components.yaml")
    first, second = (load_knowledge([tmp_path / folder]) for folder in ("a", "b"))
    assert first.sha256 == second.sha256
    assert first.paths == (tmp_path / "a" / "knowledge" / "components.yaml",)


def test_no_knowledge(tmp_path: Path) -> None:
    assert load_knowledge([tmp_path]).value == Knowledge(components={}, releases={})


def test_broken_knowledge(tmp_path: Path) -> None:
    path = written(tmp_path, COMPONENTS.replace("pip:", "pyp:"), "knowledge/components.yaml")
    with pytest.raises(DocumentError) as caught:
        load_knowledge([tmp_path])
    (problem,) = caught.value.problems
    assert problem.place == Place(str(path), 3, 26)
    assert problem.id == "document.unknown-key"
    assert all(each in problem.message for each in ("'pyp'", "'pip'"))


def test_release_of_an_unknown_component(tmp_path: Path) -> None:
    path = written(tmp_path, VERSIONS.replace("numpy", "numpi"), "knowledge/versions.yaml")
    with pytest.raises(DocumentError) as caught:
        load_knowledge([tmp_path, data.RECIPES])
    (problem,) = caught.value.problems
    assert problem.place == Place(str(path), 5, 3)
    assert problem.id == "component.unknown"
    assert all(each in problem.message for each in ("'numpi'", "'numpy'"))


@pytest.mark.parametrize("word", ["ddlrn", "ddllrun", "mpirn", "srrun"])
def test_a_launcher_that_is_nearly_known_is_a_slip(
    tmp_path: Path, known: Knowledge, word: str
) -> None:
    text = re.sub(r"command: \[.*?\]", f"command: [{word}, -np, 2]", SITE)
    found = problems(written(tmp_path, text, "broken.yaml"), known, "site")
    assert [each.id for each in found if f"'{word}'" in each.message] == ["launcher.unknown"]


@pytest.mark.parametrize("word", ["ddlrun", "/opt/bin/ddlrn", "our-own-starter"])
def test_a_launcher_of_ones_own_is_fine(tmp_path: Path, known: Knowledge, word: str) -> None:
    text = re.sub(r"command: \[.*?\]", f"command: [{word}]", SITE)
    site = load_site(written(tmp_path, text, "broken.yaml"), known, entries()).value
    assert site.launcher is not None
    assert site.launcher.command == (word,)
