"""The meaning of Horovod's build variables, against the table of what its releases do."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from pypi_simple import PyPISimple
from requests import RequestException

from envbuilder.model.runtime import FlagMeaning
from envbuilder.resolve.flag_table import any_text_counts, reads, takes
from envbuilder.runtimes.horovod import meaning
from tests.shipped import read_shipped

TABLE = yaml.safe_load(Path(__file__).with_name("horovod_flags.yaml").read_text(encoding="utf-8"))
RELEASES: dict[str, dict[str, Any]] = TABLE["releases"]
FLAGS = read_shipped().value.flags
# Variables of others, such as CC and MAKEFLAGS, are in no table.
OWN = re.compile(r"(HOROVOD|CCL|MLSL)_\w+")
EVERY = {name for each in RELEASES.values() for name in (*each["reads"], *each["further"])}


def words(means: FlagMeaning) -> set[str]:
    """Return a meaning as the table writes it."""
    return {
        *(part for part, built in means.parts.items() if built),
        *(f"{operation}={library}" for operation, library in means.operations.items()),
        *(f"without={each}" for each in means.left_out),
        *([f"cpu={means.cpu_operations}"] if means.cpu_operations else []),
    }


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: str(case["flags"]))
def test_what_flags_mean_to_each_release(case: dict[str, Any]) -> None:
    expected = ""
    for release in RELEASES:
        expected = case["meaning"].get(release, expected)
        assert words(meaning(case["flags"], release)) == {*expected.split()}, release
    # Without a release: as the newest one, which reads all that any release of today does.
    assert words(meaning(case["flags"], None)) == {*expected.split()}


def test_the_table_has_a_case_for_every_flag_with_a_meaning() -> None:
    used = {name for case in TABLE["cases"] for name in case["flags"]}
    assert {name for name in EVERY if "_WITHOUT_" in name} - used == {"HOROVOD_WITHOUT_NVTX"}
    values = {name for each in RELEASES.values() for name in each["values"]}
    assert values - used == {"HOROVOD_GPU_ALLGATHER"}


@pytest.mark.parametrize("release", RELEASES)
def test_the_knowledge_says_what_a_release_reads_and_takes(release: str) -> None:
    table = RELEASES[release]
    known = {
        name: flag
        for name, flag in FLAGS.items()
        if OWN.fullmatch(name) and not flag.run_time and reads(flag, release)
    }
    assert known.keys() == {*table["reads"], *table["further"]}
    for name, values in table["values"].items():
        tried = ("MPI", "NCCL", "DDL", "mpi", "nccl", "CPU")
        assert [each for each in tried if takes(known[name], release, each)] == values, name
    for name, flag in known.items():
        if re.match(r"HOROVOD_WITH(OUT)?_", name):
            assert any_text_counts(flag, release) is table["any-text"], name


# ---------------------------------------------------------------- the sources themselves

BUILD_FILES = re.compile(
    r"[^/]+/(setup\.py|CMakeLists\.txt|cmake/.*\.(cmake|py)|horovod/.*CMakeLists\.txt)"
)
READ = re.compile(
    r"(?:environ(?:\.get)?[(\[]|getenv\()\s*'(\w+)'|ENV\{(\w+)\}|set_gpu_op\((\w+)"
    r"|'(\w+)' in os\.environ"
)
# setup.py names the accepted values in its message; CMake has them as a list or as a pattern.
BY_SETUP = re.compile(r"'(HOROVOD_GPU_\w+)=%s is invalid, supported '\s*'values are \"\", (.*?)\.'")
BY_CMAKE = re.compile(
    r'set_gpu_op\((\w+) "([A-Z;]+)"\)|"\$\{(HOROVOD_GPU_OPERATIONS)\}" MATCHES "\^\(([A-Z|]+)\)\$"'
)


def build_text(release: str, folder: Path) -> str:
    """Return the files of a release's build, one after the other, from its sdist."""
    try:
        with PyPISimple() as index:
            packages = index.get_project_page("horovod").packages
            (found,) = (p for p in packages if p.filename == f"horovod-{release}.tar.gz")
            index.download_package(found, folder / found.filename, timeout=60)
    except RequestException as error:
        pytest.skip(f"the package index is out of reach: {error}")
    with tarfile.open(folder / found.filename) as archive:
        files = [each for each in archive if BUILD_FILES.fullmatch(each.name)]
        streams = [archive.extractfile(each) for each in files]
        return "\n".join(each.read().decode() for each in streams if each)


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_the_table_says_what_the_sources_do(release: str, tmp_path: Path) -> None:
    text, table = build_text(release, tmp_path), RELEASES[release]
    names = {name for groups in READ.findall(text) for name in groups if OWN.fullmatch(name)}
    assert names == {*table["reads"], *table["further"]}
    values = {name: re.findall(r"[A-Z]+", words) for name, words in BY_SETUP.findall(text)}
    for one, these, other, those in BY_CMAKE.findall(text):
        values[one or other] = re.findall(r"[A-Z]+", these or those)
    assert values == table["values"]
    for name in ("WITHOUT_TENSORFLOW", "WITHOUT_PYTORCH", "WITHOUT_MXNET"):
        exactly = f'"$ENV{{HOROVOD_{name}}}" STREQUAL "1"' in text
        assert exactly is not table["any-text"], name
    if "HOROVOD_CPU_OPERATIONS" in names:
        assert ("cpu_operation.upper()" in text) is table["any-text"]
    # Whether NCCL is looked for: for the allreduce alone, or for any operation.
    assert ("if gpu_allreduce == 'NCCL':" in text) is table["any-text"]
    assert (' OR HOROVOD_GPU_BROADCAST STREQUAL "N"' in text) is not table["any-text"]
