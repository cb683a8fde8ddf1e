"""What is read, and the exact words and places of each kind of error."""

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
from envbuilder.errors import DocumentError, EnvbuildError, Place, UsageError
from envbuilder.knowledge.rows import Knowledge
from envbuilder.model.site import Site
from envbuilder.workflow.entries import entries
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

QUOTES = "write the value itself; if it begins with this character, put it in quotes"

Row = tuple[str, str, tuple[str, ...]]


def rows(path: Path, known: Knowledge, kind: str = "recipe") -> list[Row]:
    """Return place (without the file), message and hints of every problem."""
    load = load_recipe if kind == "recipe" else load_site
    with pytest.raises(EnvbuildError) as caught:
        load(path, known, entries())
    return [
        (
            str(problem.place).replace(str(path), "F"),
            problem.message.replace(str(path), "F"),
            problem.hints,
        )
        for problem in caught.value.problems
    ]


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
        ("F:4:8", "unknown arch '\u65e5\u672c'", ("there are: x86_64, ppc64le, aarch64",)),
        ("F:4:14", "unknown arch 'x86': did you mean 'x86_64'?", ()),
    ]


def test_facts_of_modules_and_networks_are_those_that_conditions_read(
    tmp_path: Path, known: Knowledge
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
    where = ("docs/knowledge.md lists the facts of modules, in its section Conditions",)
    networks = (
        "there are: aries, ethernet, infiniband, omnipath, roce, slingshot; a site with another "
        "one alone has none of these",
    )
    assert rows(written(tmp_path, text), known, "site") == [
        ("F:7:13", "'cuda_aware' is true or false, not 'maybe'", where),
        ("F:7:32", "'ucx' is false, without quotes", where),
        ("F:7:46", "unknown fact 'external_pmx': did you mean 'external_pmix'?", where),
        ("F:8:39", "'cxx' is a text, not true", where),
        ("F:9:19", "unknown network 'infinband': did you mean 'infiniband'?", networks),
        ("F:10:66", "unknown network 'ib'", networks),
    ]


def test_all_problems_at_once(tmp_path: Path, known: Knowledge) -> None:
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
    there_are = "there are: x86_64, ppc64le, aarch64"
    assert rows(written(tmp_path, text), known) == [
        ("F:1:1", "the key 'summary' is missing", ()),
        ("F:1:9", "unknown schema '2': this envbuild reads schema 1", ("write 'schema: 1'",)),
        (
            "F:2:7",
            "the name 'other' is not the file's: 'mine'",
            ("rename the file or change the name",),
        ),
        ("F:3:1", "unknown key 'sumary': did you mean 'summary'?", ()),
        ("F:4:8", "unknown arch 'x86-64': did you mean 'x86_64'?", ()),
        ("F:4:16", "unknown arch '3'", (there_are,)),
        ("F:5:10", "unknown backend 'virtualnv': did you mean 'virtualenv'?", ()),
        (
            "F:6:23",
            "system-site-packages must be true or false, not yes or no",
            ("write true",),
        ),
        (
            "F:8:11",
            "stack.python must be text, not a number",
            ('write "==3.10.*" for that series, or ">=3.10"',),
        ),
        (
            "F:9:3",
            "unknown component 'numpyy': did you mean 'numpy'?",
            ("a package that envbuild need not know goes under 'packages:', as a pip requirement",),
        ),
        (
            "F:10:3",
            "'mpi' is not a component: impi, mpich, mvapich2, openmpi, spectrum-mpi fulfil it",
            ("name one of them",),
        ),
        (
            "F:11:10",
            "stack.mpich: not a version range: '1.2.x' (write '>=1.2,<2', '==1.14.*' or '*')",
            (),
        ),
        ("F:12:11", "packages must be a list, not text", ("write [pandas]",)),
        ("F:13:7", "env: the name 'A B' must be a variable name: letters, digits and '_'", ()),
        ("F:13:15", "env: PATH is managed by envbuild itself and cannot be set here", ()),
        ("F:13:29", "env.FOO must be text, not yes or no", ('write "on"',)),
        ("F:13:36", "env.D must be text, not a date", ('write "2020-01-01"',)),
        ("F:13:51", "env.E must be text, not empty", ()),
        ("F:14:1", "unknown key 'runtim': did you mean 'runtime'?", ()),
        ("F:15:16", "smoke.ranks must be at least 2", ()),
        ("F:15:19", "and at least 2 more problems", ()),
    ]


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ('"*"', "off", ("F:6:11", "stack.python must be text, not yes or no", ('write "off"',))),
        (
            '"*"',
            "1e5",
            ("F:6:11", "stack.python must be text, not a number", ('write "1e5"',)),
        ),
        (
            '"*"',
            '"===1.0"',
            ("F:6:11", "stack.python: '===' compares text, not versions: write '=='", ()),
        ),
        ('"*"', '"" ', ("F:6:11", "stack.python must not be empty", ())),
        (
            "[x86_64]",
            "[]",
            ("F:4:7", "arch must have at least 1 entry", ()),
        ),
        (
            "summary: Mine",
            f"summary: {'x' * 501}",
            ("F:3:10", "summary must have at most 500 characters", ()),
        ),
        (
            "summary: Mine",
            'summary: "a\\nb"',
            ("F:3:10", "summary: must be one line of printable characters", ()),
        ),
        (
            "schema: 1",
            "schema: true",
            (
                "F:1:9",
                "unknown schema 'true': this envbuild reads schema 1",
                ("write 'schema: 1'",),
            ),
        ),
        (
            "schema: 1\n",
            "",
            ("F:1:1", "the key 'schema' is missing", ("begin with 'schema: 1'",)),
        ),
        (
            "name: mine\n",
            "name: mine\nname: twice\n",
            ("F:3:1", "duplicate key 'name', first written at F:2:1", ("keep one of them",)),
        ),
        (
            '"*"',
            "*",
            ("F:6:11", "a value cannot begin with '*'", ("put the value in quotes",)),
        ),
        (
            '"*"',
            ">=3.8",
            ("F:6:11", "a value cannot begin with '>'", ("put the value in quotes",)),
        ),
        (
            "summary: Mine",
            "summary: &a Mine",
            ("F:3:10", "anchors are not allowed: '&a'", (QUOTES,)),
        ),
        (
            "summary: Mine",
            "summary: *a",
            ("F:3:10", "aliases are not allowed: '*a'", (QUOTES,)),
        ),
        (
            "summary: Mine",
            "summary: !!str Mine",
            ("F:3:10", "tags are not allowed: '!!str'", (QUOTES,)),
        ),
        (
            "summary: Mine",
            "<<: {summary: Mine}",
            ("F:3:1", "merge keys are not allowed: '<<'", ("write the keys out",)),
        ),
        (
            "  python",
            "\tpython",
            ("F:6:1", "a tab cannot indent", ("indent with spaces",)),
        ),
        (
            "summary: Mine",
            "summary: 'Mine",
            ("F:3:10", "a quote is opened and not closed", ("close it on the same line",)),
        ),
        (
            "summary: Mine",
            "summary: Mine\x07",
            (
                "F:3:14",
                "a character that no document needs: U+0007",
                ("delete it; is the file UTF-8 text?",),
            ),
        ),
        (
            "summary: Mine",
            "summary: Mine\n---\nname: x",
            ("F:4:1", "a second document begins here", ("keep one document in a file",)),
        ),
        (
            "summary: Mine",
            "summary: Mine\n? [a]\n: 1",
            ("F:4:3", "a key must be plain text, not a list or mapping", ()),
        ),
    ],
)
def test_one_problem(old: str, new: str, row: Row, tmp_path: Path, known: Knowledge) -> None:
    assert MINIMAL.count(old) == 1
    assert rows(written(tmp_path, MINIMAL.replace(old, new)), known) == [row]


def test_missing_in_a_part(tmp_path: Path, known: Knowledge) -> None:
    text = SITE.replace("kind: srun, ", "knd: srun, ") + "partitions: {ml: {arch: ppc64le}}\n"
    path = written(tmp_path, text, "broken.yaml")
    found = rows(path, known, "site")
    assert ("F:15:12", "unknown key 'knd': did you mean 'kind'?", ()) in found, found
    assert any("the key 'summary' is missing in partitions.ml" in each[1] for each in found), found


def test_file_name_with_control_characters(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, "a: 1", "a\n\x1b[31m.yaml")
    with pytest.raises(DocumentError) as caught:
        load_recipe(path, known, entries())
    assert all(str(each.place).isprintable() for each in caught.value.problems)


def test_number_of_problems_is_bounded(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, MINIMAL + "".join(f"k{n}: 1\n" for n in range(100)))
    found = rows(path, known)
    assert len(found) == MAX_PROBLEMS + 1
    assert found[-1][1] == f"and at least {100 - MAX_PROBLEMS} more problems"


def test_keys_are_known_at_every_depth() -> None:
    assert "module-trees" in field_names(Site, ())
    assert {"name", "provides", "loads"} < set(field_names(Site, ("modules", 3)))
    assert field_names(Site, ("launcher",)) == ["kind", "command"]
    assert field_names(Site, ("modules", 3, "provides")) == []


def test_no_such_file(tmp_path: Path, known: Knowledge) -> None:
    assert rows(tmp_path / "no.yaml", known) == [("F", "no such file", ())]


def test_folder(tmp_path: Path, known: Knowledge) -> None:
    assert rows(tmp_path, known) == [("F", "not a file but a folder", ())]


def test_pipe_is_not_waited_for(tmp_path: Path, known: Knowledge) -> None:
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    assert rows(path, known) == [("F", "not a file but a pipe", ())]


def test_device(known: Knowledge) -> None:
    assert rows(Path("/dev/zero"), known) == [("F", "not a file but a device or socket", ())]


def test_file_that_hides_its_size(tmp_path: Path, known: Knowledge) -> None:
    # Such files claim to have no bytes, as those under /proc do.
    with pytest.raises(DocumentError):
        load_recipe(Path("/proc/self/status"), known, entries())


def test_path_through_a_file(tmp_path: Path, known: Knowledge) -> None:
    path = written(tmp_path, MINIMAL) / "x.yaml"
    assert rows(path, known) == [("F", "cannot be read: Not a directory", ())]


def test_nul_in_the_path(known: Knowledge) -> None:
    with pytest.raises(UsageError, match="not a path"):
        load_recipe(Path("a\0b.yaml"), known, entries())


def test_size_limit_is_exact(tmp_path: Path, known: Knowledge) -> None:
    fits = MINIMAL + "#" * (1024 * 1024 - len(MINIMAL))
    assert load_recipe(written(tmp_path, fits), known, entries()).value.name == "mine"
    assert rows(written(tmp_path, fits + "#"), known) == [
        (
            "F",
            "too large for a document: more than 1048576 bytes",
            ("is this the right file?",),
        )
    ]


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
    assert problem.message == "unknown key 'pyp': did you mean 'pip'?"


def test_release_of_an_unknown_component(tmp_path: Path) -> None:
    path = written(tmp_path, VERSIONS.replace("numpy", "numpi"), "knowledge/versions.yaml")
    with pytest.raises(DocumentError) as caught:
        load_knowledge([tmp_path, data.RECIPES])
    (problem,) = caught.value.problems
    assert problem.place == Place(str(path), 5, 3)
    assert problem.message == "unknown component 'numpi': did you mean 'numpy'?"


@pytest.mark.parametrize("word", ["ddlrn", "ddllrun", "mpirn", "srrun"])
def test_a_launcher_that_is_nearly_known_is_a_slip(
    tmp_path: Path, known: Knowledge, word: str
) -> None:
    text = re.sub(r"command: \[.*?\]", f"command: [{word}, -np, 2]", SITE)
    found = rows(written(tmp_path, text, "broken.yaml"), known, "site")
    assert any(f"unknown launcher '{word}': did you mean" in each[1] for each in found), found


@pytest.mark.parametrize("word", ["ddlrun", "/opt/bin/ddlrn", "our-own-starter"])
def test_a_launcher_of_ones_own_is_fine(tmp_path: Path, known: Knowledge, word: str) -> None:
    text = re.sub(r"command: \[.*?\]", f"command: [{word}]", SITE)
    site = load_site(written(tmp_path, text, "broken.yaml"), known, entries()).value
    assert site.launcher is not None
    assert site.launcher.command == (word,)
