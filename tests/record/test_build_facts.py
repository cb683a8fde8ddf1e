"""What was found in built libraries comes in checked: facts of the plan's builds, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envbuilder.errors import BuildError
from envbuilder.model.evidence import BuildFact
from envbuilder.target_tools.proving.evidence import FACTS, build_facts

COMPONENTS = {"horovod", "mpi4py"}
GOOD: dict[str, Any] = {
    "schema": 1,
    "passed": True,
    "facts": [
        {"component": "horovod", "topic": "mpi", "passed": True, "text": "finds /p/libmpi.so.12"},
        {"component": "mpi4py", "passed": None, "text": "links no NCCL; not stated"},
    ],
}


def read_build_facts(folder: Path) -> tuple[BuildFact, ...]:
    """Return the facts as a record of a smoke test has them."""
    return tuple(map(BuildFact.model_validate, build_facts(folder, COMPONENTS)))


def read(folder: Path, value: object) -> tuple[BuildFact, ...]:
    text = value if isinstance(value, str) else json.dumps(value)
    (folder / FACTS).write_text(text, encoding="utf-8", errors="surrogateescape")
    return read_build_facts(folder)


def test_facts_come_in_as_they_are_written(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == (
        BuildFact(component="horovod", topic="mpi", passed=True, text="finds /p/libmpi.so.12"),
        BuildFact(component="mpi4py", passed=None, text="links no NCCL; not stated"),
    )


def test_a_component_without_a_fact_is_not_judged(tmp_path: Path) -> None:
    every = [("horovod", None), ("mpi4py", None)]
    assert [(each.component, each.passed) for each in read_build_facts(tmp_path)] == every
    told = read(tmp_path, {**GOOD, "facts": []})
    assert [(each.component, each.passed) for each in told] == every
    told = read(tmp_path, {**GOOD, "facts": GOOD["facts"][:1]})
    assert [(each.component, each.passed) for each in told] == [("horovod", True), every[1]]
    assert build_facts(tmp_path / "none", ()) == []


def test_a_text_is_one_short_line(tmp_path: Path) -> None:
    fact = {"component": "horovod", "passed": True, "text": "a\n\x1b[31m" + "b" * 9999}
    told, _ = read(tmp_path, {**GOOD, "facts": [fact]})
    assert told.text.startswith("a\\n\\x1b[31mbbb")
    assert len(told.text) < 500


@pytest.mark.parametrize(
    "value",
    [
        "",
        "{",
        "[]",
        "\udcff",
        {**GOOD, "schema": 2},
        {**GOOD, "passed": False},
        {**GOOD, "more": 1},
        {**GOOD, "facts": [{**GOOD["facts"][0], "passed": "yes"}]},
        {**GOOD, "facts": [{**GOOD["facts"][0], "topic": "weather"}]},
        {**GOOD, "facts": [{**GOOD["facts"][0], "component": "tensorflow"}]},
    ],
    ids=str,
)
def test_what_is_no_record_of_these_builds_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(BuildError) as caught:
        read(tmp_path, value)
    assert caught.value.id == "evidence.unreadable"
    assert str(tmp_path / "build.sh") in caught.value.problems[0].hints[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_a_forged_record_is_an_error_or_facts_never_a_traceback(
    tmp_path: Path, data: st.DataObject
) -> None:
    value = json.loads(json.dumps(GOOD))
    holder = data.draw(st.sampled_from([value, *value["facts"]]))
    key = data.draw(st.sampled_from([*holder, "other"]))
    holder[key] = data.draw(JSON)
    try:
        facts = read(tmp_path, value)
    except BuildError:
        return
    assert {each.component for each in facts} <= {"horovod", "mpi4py"}
