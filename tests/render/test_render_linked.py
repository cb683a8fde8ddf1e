"""Building against the NCCL of a wheel, which has libnccl.so.2 and no libnccl.so."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from envbuilder.cli import app
from envbuilder.render.templates import render

MODULES = ("python/3.10.4", "openmpi/4.1.6", "cuda/12.1.1", "gcc/11.3.0", "cmake/3.24.3")
SITE = {
    "schema": 1,
    "name": "cuda-twelve",
    "summary": "CUDA 12, and no NCCL",
    "arch": ["x86_64"],
    "module-system": "lmod",
    "module-init": "/usr/share/lmod/lmod/init/bash",
    "origins": ["module", "pip", "build"],
    "facts": {"glibc": "2.28", "gpu": ["sm_80"], "network": ["infiniband"]},
    "launcher": {"kind": "srun", "command": ["srun"]},
    "modules": [{"name": name, "home": f"/opt/{name}"} for name in MODULES],
}
PACKAGE = "lib/python3.10/site-packages/nvidia/nccl"


@pytest.fixture
def step(tmp_path: Path) -> str:
    """Return the step that builds Horovod where NCCL is a wheel."""
    site = tmp_path / "cuda-twelve.yaml"
    site.write_text(yaml.safe_dump(SITE))
    words = ["render", "horovod-cuda", "--site", str(site), "--as", "script", "--root", "/apps"]
    done = CliRunner().invoke(app, words, env={"COLUMNS": "100"})
    assert done.exit_code == 0, done.stderr
    return done.stdout.partition("step_build-horovod() {")[2].partition("\n}\n")[0]


def test_the_home_is_a_folder_of_links_beside_the_prefix(step: str) -> None:
    assert f'link_libraries HOROVOD_NCCL_HOME "$PREFIX"/{PACKAGE}\n' in step
    assert 'export HOROVOD_NCCL_HOME="$HERE"/linked/HOROVOD_NCCL_HOME\n' in step
    assert "export HOROVOD_CUDA_HOME=/opt/cuda/12.1.1\n" in step
    assert step.index("link_libraries") < step.index("build_wheel horovod")


def run(tmp_path: Path, package: Path) -> subprocess.CompletedProcess[str]:
    functions = render("bash/sources.sh.j2", builds=True, links=True, scorep=False)
    script = (
        'say() { echo "$*" >&2; }\n'
        f'{functions}\nlink_libraries IT "$1" && echo "$LDFLAGS" && ls linked/IT/lib'
    )
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script, "bash", str(package)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "LDFLAGS"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_linker_s_name_is_made_and_the_package_left_as_it_is(tmp_path: Path) -> None:
    package = tmp_path / "a prefix" / "nccl"
    for name in ("lib/libnccl.so.2", "include/nccl.h"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(name)
    done = run(tmp_path, package)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"-Wl,-rpath,{package}/lib",
        "libnccl.so",
        "libnccl.so.2",
    ]
    linked = tmp_path / "linked" / "IT"
    assert (linked / "lib" / "libnccl.so").read_text() == "lib/libnccl.so.2"
    assert (linked / "include" / "nccl.h").read_text() == "include/nccl.h"
    assert [each.name for each in (package / "lib").iterdir()] == ["libnccl.so.2"]


def test_a_package_without_libraries_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, tmp_path / "nothing")
    assert done.returncode == 1
    assert f"there are no libraries in {tmp_path}/nothing/lib" in done.stderr
