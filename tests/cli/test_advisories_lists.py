"""``advisories check`` of what package managers and module systems print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from envbuilder.cli import app
from tests.verbs import problem_ids


def check(*words: str | Path, text: str | None = None) -> Result:
    line = ["advisories", "check", *map(str, words), "--json"]
    return CliRunner().invoke(app, line, input=text)


def asked(done: Result) -> set[str]:
    told: dict[str, Any] = json.loads(done.stdout)
    return set(told["asked"])


def row_ids(done: Result) -> set[str]:
    return {row["id"] for row in json.loads(done.stdout)["rows"]}


@pytest.mark.parametrize(
    ("word", "component"),
    [
        ("torch==2.5.1", "pytorch==2.5.1"),
        ("nvidia-nccl-cu12==2.20.5", "nccl==2.20.5"),
        ("tensorflow_gpu==2.4.0", "tensorflow==2.4.0"),
        ("intel-mpi==2021.4", "impi==2021.4"),
        ("rocm==6.0.1", "rocm==6.0.1"),
        ("driver==535.54", "driver=535.54"),
        ("OpenMPI/4.1.4-GCC-11.3.0", "openmpi==4.1.4"),
        ("nccl/cuda-11.4_2.11.4", "nccl==2.11.4"),
    ],
)
def test_names_of_packages_and_modules_are_components(word: str, component: str) -> None:
    done = check(word)
    assert (done.exit_code, asked(done)) == (0, {component})


LISTS = {
    "requirements": "tensorflow-gpu==2.4.1  # pinned\n"
    "horovod[tensorflow]==0.21.3 ; python_version<'4'\n",
    "freeze": "horovod==0.21.3\ntensorflow==2.4.1\nrequests==2.0\n",
    "pip-list": "Package    Version\n---------- -------\nhorovod    0.21.3\ntensorflow 2.4.1\n",
    "conda-export": "# platform: linux-64\nhorovod=0.21.3=pypi_0\ntensorflow=2.4.1=py38_0\n",
    "conda-list": "# Name  Version  Build  Channel\nhorovod  0.21.3  pypi_0  pypi\n"
    "tensorflow  2.4.1  gpu_py38h8a7d6ce_0\n",
}


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_of_packages_is_checked(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text(LISTS[kind])
    done = check("--file", file)
    assert (done.exit_code, asked(done)) == (0, {"horovod==0.21.3", "tensorflow==2.4.1"})
    # CVE-2022-0315
    assert "HVD-039" in row_ids(done)
    assert asked(check("-f", "-", text=LISTS[kind])) == asked(done)


def test_loaded_modules_are_checked() -> None:
    text = (
        "Currently Loaded Modulefiles:\n 1) gcc/9.3.0   2) openmpi/3.1.3(default)\n"
        " 3) mvapich2-gdr/2.3.6 (D)\n"
    )
    done = check("-f", "-", "flags.x=1", text=text)
    assert problem_ids(done.stdout) == ["component.invalid-version"]
    done = check("-f", "-", text=text)
    assert (done.exit_code, asked(done)) == (4, {"gcc==9.3.0", "openmpi==3.1.3"})
    # What looks like an MPI and is not read is listed with its line.
    assert "standard input:3:" in done.stderr


def test_lines_that_are_not_read_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("-r base.txt\nhorovod @ git+https://example.org/horovod\ntorch==1.9.0\n")
    done = check("--file", file)
    assert asked(done) == {"pytorch==1.9.0"}
    assert [f"{file}:{line}:" in done.stderr for line in (1, 2, 3)] == [True, True, False]


def test_two_versions_in_a_list_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("torch==1.9.0\npytorch==1.8.0\n")
    done = check("--file", file)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, ["component.two-versions"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "component.none"),
        (("-f", "missing.txt"), "document.not-found"),
        (("hdf5/1.12",), "component.invalid-version"),
        (("unheard==1",), "component.unknown"),
    ],
)
def test_what_cannot_be_checked_is_refused(words: tuple[str, ...], problem: str) -> None:
    done = check(*words)
    assert (done.exit_code, problem_ids(done.stdout)) == (2, [problem])


def test_a_build_of_a_release_is_that_release() -> None:
    assert "no known release" not in check("torch==2.5.1+cu121").stderr
    assert "no known release" in check("torch==2.5.99+cu121").stderr


def test_a_remedy_of_envbuild_lifts_nothing_in_a_list(tmp_path: Path) -> None:
    """Somebody else built what a list contains."""
    verdicts = []
    for words in (("horovod==0.28.1", "torch==2.1.0"), ("-f", "-")):
        done = check(*words, text="horovod==0.28.1\ntorch==2.1.0\n")
        rows = {row["id"]: row["verdict"] for row in json.loads(done.stdout)["rows"]}
        verdicts.append(rows["HVD-030"])
    assert verdicts == ["lifted", "holds"]


def test_a_file_of_any_format_is_checked(tmp_path: Path) -> None:
    files = {
        "environment.yml": "dependencies: [horovod=0.21.3=py_0, tensorflow==2.4.1]\n",
        "pyproject.toml": "[project]\ndependencies = ['horovod==0.21.3', 'tensorflow==2.4.1']\n",
        "spack.yaml": "spack:\n  specs: [py-horovod@=0.21.3, py-tensorflow@2.4.1]\n",
        "Dockerfile": "FROM x\nRUN pip install horovod==0.21.3 \\\n  tensorflow==2.4.1\n",
        "Horovod.eb": "name = 'Horovod'\nversion = '0.21.3'\ntoolchain = SYSTEM\n"
        "dependencies = [('TensorFlow', '2.4.1')]\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        done = check("-f", tmp_path / name)
        assert asked(done) == {"horovod==0.21.3", "tensorflow==2.4.1"}, name


def test_a_release_for_another_python_is_no_second_one() -> None:
    text = (
        "numpy==2.2.6 ; python_version < '3.11'\nnumpy==2.4.2 ; python_version >= '3.11'\n"
        "torch==2.2.0 ; sys_platform == 'darwin'\ntorch==2.3.0 ; sys_platform == 'linux'\n"
    )
    done = check("-f", "-", text=text)
    assert (done.exit_code in (0, 4), asked(done)) == (True, {"numpy==2.2.6", "pytorch==2.3.0"})
    assert "standard input:2:1" in done.stderr
