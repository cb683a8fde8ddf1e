from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envbuilder.documents import yaml_nodes
from envbuilder.documents.load import load_recipe, load_site
from envbuilder.errors import EnvbuildError, ExitCode, Problem
from envbuilder.knowledge.rows import Knowledge
from envbuilder.workflow.entries import entries

from .hostile import CASES, RECIPE, SITE, STEM, WITHOUT_LINE, Case, file_name

pytestmark = pytest.mark.thorough

LOADERS = {"c": yaml.CSafeLoader, "python": yaml.SafeLoader}


def load_any(path: Path, kind: str, known: Knowledge) -> Any:
    load = load_recipe if kind == "recipe" else load_site
    return load(path, known, entries())


def write(folder: Path, case: Case) -> Path:
    path = folder / file_name(case)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case.data)
    return path


def test_ids_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 150


def test_the_bases_are_right(tmp_path: Path, known: Knowledge) -> None:
    for kind, text in (("recipe", RECIPE), ("site", SITE)):
        path = write(tmp_path, Case("base", kind, text.encode(), ""))  # type: ignore[arg-type]
        assert load_any(path, kind, known).value.name == STEM


# PyYAML has no C part on ppc64le: the same must be refused in the same words without it.
@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.sample(120)
def test_refused(
    case: Case, loader: str, tmp_path: Path, known: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_nodes, "LOADER", LOADERS[loader])
    path = write(tmp_path, case)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(EnvbuildError) as caught:
        load_any(path, case.kind, known)
    problems = caught.value.problems
    assert caught.value.code is ExitCode.USAGE
    assert any(case.is_expected(problem.id, problem.message) for problem in problems)
    lines = 0
    for problem in problems:
        assert problem.place is not None
        assert problem.place.file == str(path)
        assert (problem.place.line == 0) == (case.id in WITHOUT_LINE)
        for text in (problem.message, *problem.hints):
            assert text.isprintable()
            assert len(text) < 400 + 2 * len(str(path))
            lines += 1
    assert lines <= 60
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("value", ["$HOME `id` $(id)", 'it\'s "quoted"', "a;b|c&d>e", "100 %"])
def test_what_is_harmless_is_allowed(value: str, tmp_path: Path, known: Knowledge) -> None:
    quoted = "'" + value.replace("'", "''") + "'"
    text = RECIPE.replace("A recipe that is right but for one thing", quoted)
    path = tmp_path / f"{STEM}.yaml"
    path.write_text(text.replace('"2"', quoted))
    recipe = load_recipe(path, known, entries()).value
    assert recipe.summary == value
    assert recipe.env == {"OMP_NUM_THREADS": value}


# A guard against what never ends, far above what any document takes.
BOUND = 20.0


def problems_of(path: Path, data: bytes, known: Knowledge) -> tuple[Problem, ...]:
    """Load what may be anything; what it raises must be of the kind that users see."""
    path.write_bytes(data)
    try:
        load_recipe(path, known, entries())
    except EnvbuildError as error:
        return error.problems
    return ()


def check(path: Path, data: bytes, known: Knowledge) -> None:
    begin = time.monotonic()
    problems = problems_of(path, data, known)
    assert all(problem.place and problem.message.isprintable() for problem in problems)
    assert time.monotonic() - begin < BOUND


hypothesis_settings = settings(
    max_examples=300,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.thorough
@hypothesis_settings
@given(data=st.binary(max_size=400))
def test_random_bytes(data: bytes, tmp_path: Path, known: Knowledge) -> None:
    check(tmp_path / f"{STEM}.yaml", data, known)


@pytest.mark.thorough
@hypothesis_settings
@given(data=st.text(alphabet=" \n\t-:[]{},&*!|>'\"%@`#?<a1._~", max_size=200))
def test_random_yaml(data: str, tmp_path: Path, known: Knowledge) -> None:
    check(tmp_path / f"{STEM}.yaml", data.encode(), known)


@pytest.mark.thorough
@hypothesis_settings
@given(
    position=st.integers(0, len(RECIPE)),
    length=st.integers(0, 30),
    text=st.text(max_size=30)
    | st.sampled_from(["\n", "- ", "{", "<<: ", "3.10", "yes", "\\", "&a"]),
)
def test_mutations(position: int, length: int, text: str, tmp_path: Path, known: Knowledge) -> None:
    mutated = RECIPE[:position] + text + RECIPE[position + length :]
    check(tmp_path / f"{STEM}.yaml", mutated.encode("utf-8", "surrogatepass"), known)
