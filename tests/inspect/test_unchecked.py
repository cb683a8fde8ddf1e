"""A check that lacks a fact says so: it neither passes nor fails."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from zoo import Made, Validate

from envbuilder.inspect.facts import Environment, TargetSite
from envbuilder.inspect.reading import read_environment
from envbuilder.model.validation import Unchecked, Validation
from envbuilder.validate import checks, view
from envbuilder.validate.command import list_checks
from envbuilder.validate.reports import junit

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


def of(value: Validation, check_id: str) -> Unchecked:
    [found] = [each for each in value.unchecked if each.id == check_id]
    return found


def test_what_is_known_is_decided(made: Made, check: Validate) -> None:
    assert check(made).unchecked == ()


@pytest.mark.parametrize(
    "requirement",
    ["a b c", f"long>={'1' * 3000}", "odd; python_version ~= 'three' and os_name < 'x' or ((("],
)
def test_a_requirement_that_cannot_be_read(made: Made, check: Validate, requirement: str) -> None:
    made.install("one", "1", f"Requires-Dist: {requirement}")
    found = of(check(made), "package.requirement-missing")
    assert found.number == 1
    assert found.examples[0].startswith("one 1: ")


def test_a_version_that_cannot_be_compared(made: Made, check: Validate) -> None:
    made.install("one", "1", "Requires-Dist: old>=2005", "Requires-Python: >=3.x.y")
    made.install("old", "2004d-final-really")
    value = check(made)
    assert of(value, "package.requirement-unmet").number == 1
    assert of(value, "package.python-unmet").examples == ("one 1: >=3.x.y",)


def test_a_file_that_cannot_be_hashed(made: Made, check: Validate) -> None:
    made.write(made.packages / "one.py", "x = 1\n")
    made.install("one", "1", record="one.py,md5=abc,6\n")
    assert of(check(made, hashes=True), "package.changed").number == 1


def with_facts(made: Made, **facts: object) -> tuple[Unchecked, ...]:
    """Return what is unchecked of an environment of which less, or something else, is known."""
    environment: Environment = read_environment(made.prefix, {})
    python = {k: facts.pop(k) for k in ("series", "version", "library") if k in facts}
    changed = replace(
        environment,
        interpreter=replace(environment.interpreter, **python),  # type: ignore[arg-type]
        **facts,  # type: ignore[arg-type]
    )
    return checks.run(changed).unchecked


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"series": None, "version": None}, {"package.python-unmet", "package.other-abi"}),
        ({"library": None}, {"library.other-machine"}),
        (
            {"native": False},
            {
                *("library.missing", "library.version-missing", "library.overruled"),
                *("mpi.two-in-process", "mpi.other-launcher"),
                *("nccl.two-in-process", "openmp.two-in-process"),
            },
        ),
        ({"mounts": ()}, {"path.no-programs", "path.cache-without-locks"}),
        ({"isa": None}, {"library.newer-processor"}),
        ({"target": TargetSite("far", ("x86_64",), None)}, {"library.newer-processor"}),
    ],
)
def test_a_fact_that_is_missing(made: Made, facts: dict[str, object], expected: set[str]) -> None:
    found = {each.id: each for each in with_facts(made, **facts)}
    assert expected <= found.keys()
    assert {found[name].number for name in expected} == {0}


@pytest.mark.parametrize(
    ("wanted", "finding", "unchecked"),
    [(">=3.11.4", 0, 1), ("<3.11.5", 0, 1), (">=3.11", 0, 0), (">=3.12", 1, 0)],
)
def test_a_series_alone_decides_what_all_its_releases_fit(
    made: Made, wanted: str, finding: int, unchecked: int
) -> None:
    made.install("one", "1", f"Requires-Python: {wanted}")
    environment = read_environment(made.prefix, {})
    python = replace(environment.interpreter, version=None, series="3.11")
    looked = checks.run(replace(environment, interpreter=python))
    name = "package.python-unmet"
    assert sum(each.id == name for each in looked.findings) == finding
    assert sum(each.number for each in looked.unchecked if each.id == name) == unchecked


def test_every_form_shows_it(made: Made, check: Validate) -> None:
    made.install("one", "1", "Requires-Dist: a b c")
    value = check(made)
    lines = [line for line in view.validation(value).splitlines() if "Unchecked: " in line]
    assert len(lines) == 1
    suite = ElementTree.fromstring(junit(value, list_checks()))
    cases = suite.findall(".//testcase[@classname='package.requirement-missing']")
    assert [case.find("skipped") is not None for case in cases] == [True]
    assert value.plain()["unchecked"][0]["id"] == "package.requirement-missing"
