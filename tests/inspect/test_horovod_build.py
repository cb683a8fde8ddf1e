"""A Horovod that does not fit its PyTorch: another release, another C++ ABI, other symbols.

The framework is a library of one function, compiled by g++ in either ABI; in the long test it is
the PyTorch of TORCH_PYTHON. Horovod's library is one that calls this function.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zoo
from zoo import TORCH, Made, Validate, horovod_metadata, install_horovod, install_torch

from envbuilder.data import RECIPES
from envbuilder.model.validation import Finding, Validation
from envbuilder.target_tools.distributions import INSIDE
from envbuilder.target_tools.files import sha256_of

NOWHERE = """
namespace c10 { void gone_since_then(int); }
extern "C" void start() { c10::gone_since_then(1); }
"""


@pytest.fixture(autouse=True)
def compiler(need: Callable[[str], str]) -> None:
    need("g++")


def findings(value: Validation) -> list[Finding]:
    """Return the findings of these checks: advisories speak of what is not installed beside it."""
    return [each for each in value.findings if each.id.startswith("horovod.")]


def ids(value: Validation) -> list[str]:
    return [each.id for each in findings(value)]


def unchecked(value: Validation) -> list[str]:
    return [each.id for each in value.unchecked if each.id.startswith("horovod.")]


@pytest.mark.parametrize("abi", [0, 1])
def test_one_that_fits_has_no_finding(made: Made, check: Validate, abi: int) -> None:
    install_horovod(made, install_torch(made, abi=abi), abi=abi)
    value = check(made)
    assert (ids(value), unchecked(value)) == ([], [])


@pytest.mark.parametrize(
    ("built", "severity"),
    [("2.9.1+cpu", "error"), ("2.13.1+cpu", "error"), ("2.13.0+cu130", "warning")],
)
def test_one_for_another_release(made: Made, check: Validate, built: str, severity: str) -> None:
    install_horovod(made, install_torch(made))
    file = horovod_metadata(made, pytorch=built)
    (finding,) = findings(check(made))
    assert (finding.id, finding.severity) == ("horovod.other-framework", severity)
    places = [(each.file, each.field, each.value) for each in finding.evidence]
    packages = made.packages.relative_to(made.prefix)
    assert places == [
        (str(file.relative_to(made.prefix)), "pytorch", built),
        (f"{packages}/torch/version.py", "__version__", TORCH),
    ]


@pytest.mark.parametrize("abi", [0, 1])
def test_one_of_the_other_abi(made: Made, check: Validate, abi: int) -> None:
    install_horovod(made, install_torch(made, abi=abi), abi=1 - abi)
    (finding,) = findings(check(made))
    assert (finding.id, finding.severity) == ("horovod.other-abi", "error")
    spelled = "RKNSt7__cxx11" if abi == 0 else "RKSs"
    assert finding.evidence[0].value.startswith(f"_ZN3c106DeviceC1E{spelled}")


def test_one_with_a_symbol_that_is_gone(made: Made, check: Validate) -> None:
    install_horovod(made, install_torch(made), NOWHERE)
    (finding,) = findings(check(made))
    assert (finding.id, finding.severity) == ("horovod.symbol-missing", "error")
    assert finding.evidence[0].value == "_ZN3c1015gone_since_thenEi"


def test_the_rebuild_has_flags_and_patch_and_is_a_shell_line(made: Made, check: Validate) -> None:
    """The line itself runs, with a pip that shows its words and environment."""
    install_horovod(made, install_torch(made, abi=0))
    folder = made.metadata("horovod")
    flags = {"HOROVOD_WITH_PYTORCH": "1", "HOROVOD_GPU_OPERATIONS": "NCCL"}
    made.write(folder / INSIDE, json.dumps({"facts": {"flags": flags}}))
    made.say("horovod", "WHEEL", "Tag: cp3-none-linux_x86_64\n")
    (finding,) = findings(check(made))
    outside = made.prefix.parent / "outside"
    source = outside / "horovod-0.28.1"
    for name in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt"):
        made.write(source / name, "")
    pip, patch, log = outside / "bin" / "pip", outside / "bin" / "patch", outside / "log"
    made.write(
        pip, f'#!/bin/sh\necho "pip $HOROVOD_WITH_PYTORCH $HOROVOD_GPU_OPERATIONS $@" >>{log}\n'
    )
    made.write(patch, f'#!/bin/sh\necho "patch $@ $(cat | sha256sum)" >>{log}\n')
    made.write(outside / "bin" / "tar", f'#!/bin/sh\necho "tar $@" >>{log}\n')
    for each in (outside / "bin").iterdir():
        each.chmod(0o755)
    env = {"PATH": f"{outside / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-c", finding.fix], cwd=outside, env=env, check=True)
    words = [line.split() for line in log.read_text().splitlines()]
    file = RECIPES / "patches" / "torch-cxx17.patch"
    digest = sha256_of(file)
    assert [each[0] for each in words] == ["pip", "tar", "patch", "pip"]
    assert words[2][1:5] == ["-p1", "-d", "horovod-0.28.1", digest]
    assert words[3][1:4] == ["1", "NCCL", "install"]
    assert {"--no-build-isolation", "--no-deps", "./horovod-0.28.1"} <= {*words[3]}


def test_no_rebuild_where_none_works(made: Made, check: Validate) -> None:
    """Before 0.25 no patch makes Horovod compile for PyTorch 2.1 and later: HVD-002."""
    install_horovod(made, install_torch(made))
    folder = made.metadata("horovod")
    made.install("horovod", "0.24.3")
    shutil.rmtree(folder)
    horovod_metadata(made, pytorch="1.9.0")
    (finding,) = findings(check(made))
    assert "HVD-002" in finding.fix
    assert "pip install" not in finding.fix


@pytest.mark.parametrize("name", ["tensorflow", "tensorflow_cpu"])
def test_tensorflow_by_the_metadata_of_its_package(made: Made, check: Validate, name: str) -> None:
    made.install("horovod", "0.28.1")
    made.install(name, "2.15.0")
    made.write(made.packages / "tensorflow" / "__init__.py", "")
    zoo.compile_c(made.packages / "horovod" / "tensorflow" / f"mpi_lib{zoo.SUFFIX}")
    for built, expected in (("2.15.0", []), ("2.14.1", ["horovod.other-framework"])):
        horovod_metadata(made, tensorflow=built)
        value = check(made)
        assert (ids(value), unchecked(value)) == (expected, [])


def test_the_record_of_envbuild_counts_where_horovod_writes_none(
    made: Made, check: Validate
) -> None:
    install_horovod(made, install_torch(made)).unlink()
    assert unchecked(check(made)) == ["horovod.other-framework"]
    built = {"torch": {"version": "2.9.1+cpu"}}
    text = json.dumps({"facts": {"flags": {}, "frameworks": built}})
    made.write(made.metadata("horovod") / INSIDE, text)
    assert "horovod.other-framework" in ids(check(made))


def test_what_lacks_a_fact_is_unchecked(made: Made, check: Validate) -> None:
    library = install_torch(made)
    install_horovod(made, library)
    (made.packages / "torch" / "__init__.py").unlink()
    assert unchecked(check(made)) == ["horovod.other-framework", "horovod.symbol-missing"]
    made.write(made.packages / "torch" / "__init__.py", "")
    library.unlink()
    value = check(made)
    assert unchecked(value) == ["horovod.symbol-missing"]
    assert "library.missing" in [each.id for each in value.findings]


def test_a_damaged_record_is_not_taken_for_a_fitting_one(made: Made, check: Validate) -> None:
    file = install_horovod(made, install_torch(made))
    for text in ("", "[]", '{"pytorch": 2}', '{"dummy": "none"}'):
        made.write(file, text)
        assert unchecked(check(made)) == ["horovod.other-framework"]


@pytest.mark.long
@pytest.mark.parametrize("abi", [0, 1])
def test_beside_the_pytorch_of_the_index(made: Made, check: Validate, abi: int) -> None:
    """Its wheels have the C++11 ABI: one library of this ABI fits, one of the other does not."""
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        pytest.skip("TORCH_PYTHON names no Python with PyTorch")
    code = "import torch, os; print(os.path.dirname(torch.__file__), torch.__version__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    real, version = done.stdout.split()
    (info,) = Path(real).parent.glob("torch-*.dist-info")
    for each in (Path(real), info):
        shutil.copytree(each, made.packages / each.name, copy_function=os.link)
    install_horovod(made, made.packages / "torch" / "lib" / "libc10.so", abi=abi)
    horovod_metadata(made, pytorch=version)
    value = check(made)
    assert ids(value) == ([] if abi else ["horovod.other-abi"])
    assert unchecked(value) == []
