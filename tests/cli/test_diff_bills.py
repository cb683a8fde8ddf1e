"""``diff`` of bills of materials and provenance: with one another, and with locks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from envbuilder.commands.texts import bill_of
from envbuilder.model.plan import Lock, Plan
from envbuilder.record.bills import read_bill
from envbuilder.render.provenance import render_predicate
from envbuilder.target_tools.root.attestations import statement
from tests.cli.published import planned, publish_plan
from tests.made_up_files import locked

# Nothing in it depends on the Python.
pytestmark = pytest.mark.thorough


def diff(*words: str | Path) -> Result:
    line = ["diff", *map(str, words)]
    return CliRunner().invoke(app, line, env={"COLUMNS": "80"})


@pytest.fixture(scope="module")
def lock() -> Lock:
    return locked(Plan.model_validate_json(json.dumps(planned("allreduce", "--site", "local"))))


@pytest.fixture
def write(lock: Lock, tmp_path: Path) -> Callable[..., Path]:
    """Return what writes the lock, its bill or its provenance, changed."""

    def written(name: str, edit: Callable[[dict[str, Any]], object] = dict) -> Path:
        kind, _, _ = name.partition("-")
        texts = {
            "lock": lock.text,
            "bill": lambda: bill_of(lock),
            "made": lambda: statement(render_predicate(lock), {"it": "0" * 64}),
        }
        value = json.loads(texts[kind]())
        edit(value)
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return written


def newer_numpy(bill: dict[str, Any], version: str = "99.1") -> None:
    numpy = next(each for each in bill["components"] if each["name"] == "numpy")
    numpy["version"] = version
    numpy["hashes"] = [{"alg": "SHA-256", "content": "f" * 64}]
    # Licences and order decide nothing.
    numpy["licenses"] = [{"expression": "MIT"}]
    bill["components"].reverse()


@pytest.mark.parametrize("pair", [("bill", "lock"), ("made", "lock"), ("bill", "made")])
def test_what_is_of_one_lock_does_not_differ(
    write: Callable[..., Path], pair: tuple[str, str]
) -> None:
    one, other = map(write, pair)
    for words in ((one, other), (other, one)):
        done = diff(*words)
        assert done.exit_code == 0, done.output
        assert done.stdout.endswith("\nnothing differs\n")


def test_another_file_is_named_with_both_hashes(write: Callable[..., Path], lock: Lock) -> None:
    (numpy,) = [each for each in lock.artifacts if each.name == "numpy"]
    for before in (write("lock"), write("bill"), write("made")):
        done = diff(before, write("bill-newer", newer_numpy))
        assert done.exit_code == 8
        assert f"  - pypi/numpy: {numpy.version}\n  + pypi/numpy: 99.1\n" in done.stdout
        assert "bill-newer.json (CycloneDX)\n" in done.stdout.replace("\n    ", " ")
    # Where the release is the same, its hash is told.
    done = diff(write("bill"), write("bill-again", lambda bill: newer_numpy(bill, numpy.version)))
    assert f"  - pypi/numpy sha256: {numpy.sha256}\n" in done.stdout.replace("\n     ", "")
    assert "f" * 64 in done.stdout


def test_an_environment_and_what_is_around_it(
    write: Callable[..., Path], tmp_path: Path, lock: Lock
) -> None:
    root = tmp_path / "root"
    publish_plan(root, json.loads(lock.plan.model_dump_json(by_alias=True)), attested=True)
    (bill,) = root.glob("*/*.evidence/sbom.cdx.json")
    done = diff("allreduce/1", bill, "--root", root)
    assert done.exit_code == 0, done.output
    external = {"name": "cuda", "version": "12", "isExternal": True, "type": "library"}
    done = diff(bill, write("bill-more", lambda value: value["components"].append(external)))
    assert done.exit_code == 8
    assert "\ncomponents of modules and the system\n  + cuda: 12\n" in done.stdout


def test_one_that_other_tools_wrote(write: Callable[..., Path], tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.cdx"
    packages = [{"name": "numpy", "version": "1", "purl": "pkg:pypi/numpy@1", "type": "library"}]
    theirs.write_text(json.dumps({"bomFormat": "CycloneDX", "components": packages * 2}))
    told = json.loads(diff(theirs, write("bill"), "--json").stdout)
    assert ("files", "pypi/numpy #2", "1", None) in {
        (each["section"], each["name"], each["before"], each["after"])
        for each in told["differences"]
    }


def test_what_is_refused(write: Callable[..., Path], tmp_path: Path) -> None:
    done = diff(write("bill"), "live")
    assert done.exit_code == 2
    assert "names files, and a plan has none" in done.stderr
    for number, damaged in enumerate(({"components": 3}, {"components": [{"version": "1"}]})):
        file = tmp_path / f"damaged-{number}.json"
        file.write_text(json.dumps({"bomFormat": "CycloneDX", **damaged}))
        done = diff(file, write("bill"))
        assert done.exit_code == 2
        assert "cannot be read: it is damaged" in done.stderr.replace("\n", " ")
    (tmp_path / "none.json").write_text('{"bomFormat": "SPDX"}')
    assert diff(tmp_path / "none.json", write("bill")).exit_code == 2


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["components", "name", "purl", "hashes", "alg", "content", "version"]),
            inside,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(value=_JSON)
def test_whatever_a_bill_holds_is_read_or_damaged(value: Any) -> None:
    for document in (
        {"bomFormat": "CycloneDX", "components": value},
        {"predicateType": "https://slsa.dev/provenance/v1", "predicate": value},
    ):
        with contextlib.suppress(ValueError):
            assert read_bill(json.dumps(document))
