"""Conda environments: records that say of each file what it was, and what pip does to them."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import Any

import pytest
import zoo
from zoo import Made, Validate, as_conda, record

from envbuilder.inspect.conda import conda_packages

PACKAGES = f"lib/python{zoo.SERIES}/site-packages"


@pytest.fixture
def conda(made: Made) -> Made:
    """Return an environment in which conda brought PyYAML, and pip the rest."""
    return as_conda(made)


def test_a_healthy_one(conda: Made, check: Validate) -> None:
    value = check(conda, hashes=True)
    assert (value.kind, value.findings) == ("conda environment", ())


def test_a_file_that_conda_linked_was_changed(conda: Made, check: Validate) -> None:
    conda.edit(conda.packages / "yaml" / "loader.py", lambda data: data.swapcase())
    (found,) = check(conda).findings
    assert (found.id, found.summary) == (
        "package.changed",
        "pyyaml 1.0 has 1 file not as installed",
    )
    assert found.fix == "conda install --force-reinstall pyyaml=1.0"


def test_a_package_for_any_python_as_conda_itself_records_it(conda: Made, check: Validate) -> None:
    """Its paths_data says what the files are called in the package, its files where they lie."""
    file = conda.prefix / "conda-meta" / "pyyaml-1.0-0.json"
    value = json.loads(file.read_text())
    value["files"] = [each["_path"] for each in value["paths_data"]["paths"]]
    for each in value["paths_data"]["paths"]:
        each["_path"] = each["_path"].partition(f"lib/python{zoo.SERIES}/")[2]
    conda.write(file, json.dumps({**value, "noarch": "python"}))
    assert check(conda, hashes=True).findings == ()
    conda.edit(conda.packages / "yaml" / "loader.py", lambda data: data.swapcase())
    (found,) = check(conda).findings
    assert (found.id, found.summary) == (
        "package.changed",
        "pyyaml 1.0 has 1 file not as installed",
    )


def test_a_package_was_removed_by_force(conda: Made, check: Validate) -> None:
    (conda.prefix / "conda-meta" / "python_abi-1.0-0_cp311.json").unlink()
    (found,) = check(conda).findings
    assert found.id == "conda.requirement-missing"
    assert found.summary.startswith("pyyaml 1.0 depends on python_abi, ")
    assert found.evidence[0].value == "python_abi 1.* *_cp311"


def test_a_package_was_downgraded_by_force(conda: Made, check: Validate) -> None:
    record(conda, "tool", [], ["python_abi >=2,<3|4.*", "pyyaml 1.*", "pyyaml[version='>9']"])
    (found,) = check(conda).findings
    assert found.id == "conda.requirement-unmet"
    assert found.summary.startswith("tool 1.0 depends on python_abi >=2,<3|4.*, 1.0 ")
    assert [each.value for each in found.evidence] == ["python_abi >=2,<3|4.*", "1.0"]


def test_pip_over_conda(conda: Made, check: Validate) -> None:
    """Told once, not for each file: that conda knows nothing of it."""
    shutil.rmtree(conda.metadata("pyyaml"))
    conda.edit(conda.packages / "yaml" / "loader.py", lambda data: data + b"\n")
    conda.install("PyYAML", "9.0")
    (found,) = check(conda).findings
    assert (found.id, found.summary) == (
        "conda.replaced-by-pip",
        "conda has pyyaml 1.0, and PyYAML 9.0 lies over it",
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"name": 1, "version": "1"}', "[" * 100_000, "\0", '"a"']
)
def test_a_damaged_record(text: str, conda: Made, check: Validate) -> None:
    conda.write(conda.prefix / "conda-meta" / "bad-1-0.json", text)
    assert {each.id for each in check(conda).findings} == {"conda.damaged"}


def test_a_record_with_anything_in_it(made: Made) -> None:
    paths: list[Any] = [
        1,
        None,
        {},
        {"_path": 1},
        {"_path": "a", "sha256": 5, "size_in_bytes": "x"},
    ]
    paths += [{"_path": "b\0", "sha256": "g" * 64}, {"_path": "c", "path_type": "directory"}]
    for number, data in enumerate([paths, {}, 5, None]):
        value = {"name": "x", "version": "1", "depends": 5, "paths_data": {"paths": data}}
        made.write(made.prefix / "conda-meta" / f"{number}.json", json.dumps(value))
    found, damaged = conda_packages(made.prefix)
    assert damaged == {}
    assert [[file[1:] for file in each.files] for each in found] == [[("", "")] * 2, [], [], []]


def test_text_with_the_prefix_in_it_has_the_hash_that_it_got(made: Made) -> None:
    path = made.write(made.prefix / "bin" / "tool", "#!/here\n")
    file = record(made, "tool", [path])
    value = json.loads(file.read_text())
    (entry,) = value["paths_data"]["paths"]
    entry |= {"prefix_placeholder": "/there", "sha256": "0" * 64, "size_in_bytes": 99}
    made.write(file, json.dumps(value))
    ((package,), _) = conda_packages(made.prefix)
    assert package.files[0][1:] == ("", "")
    entry["sha256_in_prefix"] = hashlib.sha256(path.read_bytes()).hexdigest()
    made.write(file, json.dumps(value))
    ((package,), _) = conda_packages(made.prefix)
    assert package.files[0].digest.startswith("sha256=")
