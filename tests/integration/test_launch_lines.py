"""Launch lines, taken by the real launchers: Open MPI of this machine, Open MPI 5 and MPICH."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import run
from module_tools import AS_ROOT

from envbuilder.launching.hosts import hosts_argument
from envbuilder.launching.launchers import launch_line
from envbuilder.model.launch import LaunchRequest, Mpi, TransportOptions

RANK: Mapping[str, str] = {
    "openmpi": '"$OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE"',
    "mpich": '"$PMI_RANK of $PMI_SIZE"',
}


@dataclass(frozen=True)
class Installed:
    """An MPI and the path of what starts its ranks."""

    mpi: Mpi
    program: str


def from_index(component: str, folder: Path) -> Installed:
    """Install an MPI's wheel alone into a virtual environment."""
    made = run([sys.executable, "-m", "venv", "--without-pip", folder])
    assert made.code == 0, made.text
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    got = run([*pip, "install", "--quiet", "--no-deps", "--only-binary", ":all:", component])
    if got.code != 0:
        pytest.skip(f"no wheel of {component} for this machine: {got.err.strip()[-200:]}")
    shown = run([*pip, "list", "--format=freeze"]).out
    version = re.search(rf"^{component}==(\S+)$", shown, re.MULTILINE)
    assert version, shown
    return Installed(Mpi(component, version[1]), str(folder / "bin" / "mpiexec"))


@pytest.fixture(scope="module", params=["openmpi", "mpich", "openmpi of this machine"])
def installed(
    request: pytest.FixtureRequest, index: None, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    if request.param != "openmpi of this machine":
        return from_index(request.param, tmp_path_factory.mktemp(request.param) / "mpi")
    program = shutil.which("mpirun")
    found = program and re.search(r"\(Open MPI\) ([0-9.]+)", run([program, "--version"]).out)
    if not program or not found:
        pytest.skip("mpirun of Open MPI is not on this machine")
    return Installed(Mpi("openmpi", found[1]), program)


def request_for(installed: Installed, **transport: bool) -> LaunchRequest:
    component = installed.mpi.component
    return LaunchRequest(
        "hydra" if component == "mpich" else "openmpi",
        ("bash", "-c", f'echo {RANK[component]} "$NCCL_DEBUG" "$1"', "probe", "it's $HOME"),
        ranks=2,
        hosts=hosts_argument("localhost:2"),
        command=(installed.program,),
        mpi=installed.mpi,
        transport=TransportOptions(**transport),
        exports=("NCCL_DEBUG=INFO", "LD_LIBRARY_PATH", "PATH"),
    )


@pytest.mark.parametrize("ucx", [False, True], ids=["plain", "ucx"])
@pytest.mark.sample(2)
def test_every_rank_starts_with_what_is_exported(installed: Installed, ucx: bool) -> None:
    line = launch_line(request_for(installed, ucx=ucx))
    done = run(line, env={**AS_ROOT, "LD_LIBRARY_PATH": "/nowhere"})
    assert done.code == 0, done.text
    assert sorted(done.out.splitlines()) == ["0 of 2 INFO it's $HOME", "1 of 2 INFO it's $HOME"]


@pytest.mark.parametrize("installed", ["openmpi"], indirect=True)
def test_open_mpi_5_does_not_take_the_documents_spelling(installed: Installed) -> None:
    """The reason for long options; a release that takes them again is worth knowing of."""
    assert installed.mpi.series >= 5
    words = [installed.program, "-n", "1", "-bind-to", "none", "-map-by", "slot", "true"]
    assert run(words, env=AS_ROOT).code != 0
