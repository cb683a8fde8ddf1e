"""Reading the files of snapshots: good ones, and every kind of bad one with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envbuilder import data
from envbuilder.documents.snapshots import load_snapshot
from envbuilder.errors import DocumentError, EnvbuildError, Problem, UsageError
from envbuilder.machine.detection import snapshot_text
from envbuilder.model.site import Snapshot, StatedModule, Tree

SHIPPED = (data.RECIPES / "sites" / "taurus-ml.snapshot.json").read_text()


def said(path: Path) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        load_snapshot(path)
    return [f"{problem.place}: {problem.message}" for problem in caught.value.problems]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s.json"


def test_what_is_written_is_what_is_read(file: Path) -> None:
    snapshot = Snapshot(
        schema_=1,
        taken="2026-11-21",
        module_system="Lmod 8.6",
        preload=("modenv/ml",),
        trees=(Tree(path="/sw/über uns", sha256="0" * 64),),
        modules=(
            StatedModule(name="A/1"),
            StatedModule(name="B/.2", parents=(("A/1",), ("C/1", "D/1")), facts={"x": False}),
        ),
    )
    file.write_text(snapshot_text(snapshot))
    assert load_snapshot(file) == snapshot


@pytest.mark.parametrize("end", [1, 100, 1000, len(SHIPPED) - 2])
def test_a_truncated_file(file: Path, end: int) -> None:
    text = SHIPPED[:end]
    file.write_text(text)
    (problem,) = said(file)
    stripped = text.rstrip()
    line, column = stripped.count("\n") + 1, len(stripped) - (stripped.rfind("\n") + 1) + 1
    assert problem == f"{file}:{line}:{column}: the snapshot is truncated: it ends in the middle"


def test_an_empty_file(file: Path) -> None:
    file.write_text("\n")
    assert said(file) == [f"{file}:1:1: the snapshot is empty"]


def test_what_is_no_json(file: Path) -> None:
    file.write_text('{"schema": 1,\n "modules": [}\n')
    assert said(file) == [f"{file}:2:14: not JSON: Expecting value"]


def test_every_wrong_field_has_its_place(file: Path) -> None:
    file.write_text(
        '{"schema": 1,\n'
        ' "modlues": [],\n'
        ' "taken": "yesterday",\n'
        ' "modules": [\n'
        '  {"name": "A/1", "homee": "/x"},\n'
        '  {"name": "B 1", "home": "relative", "default": 1},\n'
        '  {"loads": ["C/1"]}\n'
        " ]}\n"
    )
    assert said(file) == [
        f"{file}:2:2: unknown key 'modlues': did you mean 'modules'?",
        f"{file}:3:11: taken must be a date such as 2021-12-01, not 'yesterday'",
        f"{file}:5:19: unknown key 'homee': did you mean 'home'?",
        f"{file}:6:12: modules[1].name must be a module name such as "
        "OpenMPI/3.1.4-gcccuda-2018b, not 'B 1'",
        f"{file}:6:27: modules[1].home: must be an absolute path: 'relative'",
        f"{file}:6:50: modules[1].default must be true or false, not a number",
        f"{file}:7:3: the key 'name' is missing in modules[2]",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 2}', "1:12: unknown schema '2': this envbuild reads schema 1"),
        ("[]", "1:1: a snapshot must be a mapping of keys to values"),
        ('{"modules": {"A/1": {}}}', "1:13: modules must be a list, not a mapping"),
        ('{"kind": "guessed"}', "1:10: unknown kind 'guessed'"),
        ("[" * 100_000, "1:1: nested too deeply for a snapshot"),
        ('{"a":' * 900 + "1" + "}" * 900, "1:1: nested too deeply for a snapshot"),
    ],
    ids=["schema", "list", "mapping", "kind", "deep list", "deep mapping"],
)
def test_other_forms(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    assert said(file) == [f"{file}:{message}"]


def test_a_hundred_problems_are_not_all_shown(file: Path) -> None:
    modules = ",\n".join('{"name": "a b"}' for _ in range(100))
    file.write_text(f'{{"modules": [\n{modules}]}}')
    lines = said(file)
    assert len(lines) == 21
    assert lines[-1].endswith("80 more problems")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_snapshot(tmp_path / "gone.json")
    assert raised.value.id == "document.not-found"
    with pytest.raises(UsageError) as raised:
        load_snapshot(tmp_path)
    assert raised.value.id == "document.not-a-file"
    (tmp_path / "bytes").write_bytes(b'{"schema": 1, "source": "\xff"}')
    with pytest.raises(DocumentError) as raised:
        load_snapshot(tmp_path / "bytes")
    assert raised.value.id == "document.not-utf8"
    assert "UTF-8" in str(raised.value)


@settings(max_examples=200)
@given(st.data())
def test_damage_anywhere_is_an_error_with_a_place_or_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(SHIPPED) - 1))
    length = data.draw(st.integers(0, 3))
    put = data.draw(st.sampled_from(['"', "}", "]", "{", ",", "x", "", "\\", "1", "\ud7ff", "\n"]))
    path = tmp_path_factory.mktemp("damaged") / "s.json"
    path.write_text(SHIPPED[:at] + put + SHIPPED[at + length :])
    problems: tuple[Problem, ...] = ()
    try:
        load_snapshot(path)
    except EnvbuildError as error:
        problems = error.problems
    assert all(problem.place and problem.place.line for problem in problems)
