from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from envbuilder.knowledge.rows import Advisory
from envbuilder.machine.host import LocalMachine
from envbuilder.machine.item_values import Section
from envbuilder.machine.mpi_programs import MpiInstallation, identify, mpi_section, why_bad
from tests.shipped import read_shipped

from .conftest import Machine


@pytest.fixture(scope="module")
def advisories() -> tuple[Advisory, ...]:
    return read_shipped().value.advisories


RECORDED = [
    ("mpirun", "openmpi-3.1.3", "openmpi", "3.1.3"),
    ("mpirun", "openmpi-4.1.6", "openmpi", "4.1.6"),
    ("mpirun", "openmpi-4.1.4-debian", "openmpi", "4.1.4"),
    ("mpirun", "openmpi-5.0.11", "openmpi", "5.0.11"),
    ("mpicc", "openmpi-5.0.11-mpicc", "openmpi", "5.0.11"),
    ("mpiexec", "mpich-5.0.2", "mpich", "5.0.2"),
    ("mpicc", "mpich-5.0.2-mpicc", "mpich", "5.0.2"),
    ("mpiexec", "mvapich-2.3.6", "mvapich", "2.3.6"),
    ("mpicc", "mvapich-2.3.6-mpicc", "mvapich", "2.3.6"),
    ("mpirun", "spectrum-mpi-10.3.1", "spectrum-mpi", "10.3.1.02rtm0"),
    ("mpirun", "intel-mpi-2019-update-9", "intel-mpi", "2019.9"),
    ("mpirun", "intel-mpi-2021.10", "intel-mpi", "2021.10"),
    ("srun", "srun-22.05.8", "slurm", "22.05.8"),
]


@pytest.mark.parametrize(("command", "name", "implementation", "version"), RECORDED)
def test_implementations_are_told_apart(
    command: str,
    name: str,
    implementation: str,
    version: str,
    recorded: Callable[[str], str],
) -> None:
    assert identify(command, recorded(name)) == (implementation, version)


@pytest.mark.parametrize("text", ["", "\0\x1b[31m", "success", "version 3.1.3", "mpirun: 4.1.4"])
def test_what_names_no_mpi_is_no_mpi(text: str) -> None:
    assert identify("mpirun", text) == (None, None)


def test_a_compiler_behind_mpicc_is_no_mpi(recorded: Callable[[str], str]) -> None:
    assert identify("mpicc", recorded("gcc-12.2.0")) == (None, None)


def test_jsrun_and_ddlrun_are_known_by_their_names() -> None:
    assert identify("jsrun", "jsrun 10.03.01.03\n") == ("jsm", "10.03.01.03")
    assert identify("ddlrun", "no version here") == ("ddl", None)


@pytest.mark.parametrize(
    ("implementation", "version", "bad"),
    [
        ("openmpi", "3.1.3", True),
        ("openmpi", "3.1.2", False),
        ("openmpi", "4.0.0", False),
        ("spectrum-mpi", "3.1.3", False),
        ("openmpi", "not a version", False),
        ("openmpi", None, False),
    ],
)
def test_the_known_bad_version_is_flagged_and_no_other(
    implementation: str, version: str | None, bad: bool, advisories: tuple[Advisory, ...]
) -> None:
    found = MpiInstallation("mpirun", "/usr/bin/mpirun", implementation, version)
    row = why_bad(found, advisories)
    assert (None if row is None else row.id) == ("OMPI-001" if bad else None)


def row(**changes: object) -> Advisory:
    plain = {
        "id": "SITE-1",
        "severity": "error",
        "component": "mvapich2",
        "affected": "<2.3.7",
        "summary": "hangs here",
        "evidence": "run",
        "sources": ["https://cluster.example/tickets/1"],
    }
    return Advisory.model_validate({**plain, **changes})


@pytest.mark.parametrize(
    ("changes", "bad"),
    [
        ({}, True),
        ({"affected": ["<2", "==2.3.6"]}, True),
        ({"affected": "<2"}, False),
        ({"severity": "warning"}, False),
        ({"beside": {"cuda": "*"}}, False),
        ({"when": "flags.HOROVOD_WITH_MPI == '1'"}, False),
        ({"when": "network in ['infiniband']"}, False),
    ],
)
def test_only_what_forbids_the_mpi_whatever_else_is_there(
    changes: dict[str, object], bad: bool
) -> None:
    found = MpiInstallation("mpirun", "/usr/bin/mpirun", "mvapich", "2.3.6")
    assert (why_bad(found, [row(**changes)]) is not None) is bad


def by_id(section: Section) -> dict[str, str]:
    return {item.id: item.status for item in section.items}


@pytest.mark.integration
def test_known_bad_on_path_is_a_problem_with_its_reason(
    machine: Machine, advisories: tuple[Advisory, ...]
) -> None:
    machine.says("mpirun", "openmpi-3.1.3")
    section = mpi_section(LocalMachine(machine.environ), advisories)
    item = section.items[0]
    assert (item.id, item.status) == ("mpi.mpirun", "problem")
    assert item.found == "Open MPI 3.1.3, known to be bad"
    assert any(line.startswith("OMPI-001: ") and "hang" in line for line in item.details)
    assert any(line.startswith("source: ") for line in item.details)
    assert item.needed_for
    assert item.without_root


@pytest.mark.integration
def test_mpicc_is_asked_in_its_own_ways(machine: Machine) -> None:
    # As MPICH's: --version goes to the compiler, --showme:version is an error, -v names MPICH.
    machine.tool(
        "mpicc",
        'case "$1" in\n'
        "--version) echo 'gcc (Debian 12.2.0-14) 12.2.0' ;;\n"
        "-v) echo 'mpicc for MPICH version 4.0.2' ;;\n"
        "*) echo 'cc: error: unrecognized option' >&2; exit 1 ;;\nesac",
    )
    section = mpi_section(LocalMachine(machine.environ))
    item = next(item for item in section.items if item.id == "mpi.mpicc")
    assert (item.status, item.found) == ("ok", "MPICH 4.0.2")


@pytest.mark.integration
def test_two_mpis_mixed_on_path_are_a_problem(machine: Machine) -> None:
    machine.says("mpirun", "openmpi-5.0.11")
    machine.says("mpiexec", "mpich-5.0.2")
    found = by_id(mpi_section(LocalMachine(machine.environ)))
    assert found == {"mpi.mpiexec": "ok", "mpi.mpirun": "ok", "mpi.mixed": "problem"}


@pytest.mark.integration
def test_a_hidden_second_mpi_is_listed_but_no_problem(
    machine: Machine, advisories: tuple[Advisory, ...]
) -> None:
    machine.says("mpirun", "openmpi-5.0.11")
    machine.says("mpirun", "openmpi-3.1.3", folder="later")
    environ = {**machine.environ, "PATH": f"{machine.bin}:{machine.folder / 'later'}"}
    section = mpi_section(LocalMachine(environ), advisories)
    assert by_id(section) == {"mpi.mpirun": "ok", "mpi.mpirun.2": "note"}
    assert any("PATH" in line for line in section.items[1].details)


def test_no_mpi_says_what_to_do_instead(machine: Machine) -> None:
    (item,) = mpi_section(LocalMachine(machine.environ)).items
    assert (item.id, item.status) == ("mpi", "missing")
    assert "recipe allreduce" in str(item.without_root)
    assert item.debian == "openmpi-bin libopenmpi-dev"


@pytest.mark.integration
def test_a_launcher_that_only_fails_is_a_problem_whoever_made_it(machine: Machine) -> None:
    machine.tool("srun", "echo 'srun: error: no configuration' >&2; exit 1")
    items = mpi_section(LocalMachine(machine.environ)).items
    item = next(item for item in items if item.id == "mpi.srun")
    assert (item.status, item.found) == ("problem", "Slurm")
    assert "exit code 1: srun: error: no configuration" in item.details


@pytest.mark.integration
def test_an_mpirun_that_prints_success_is_no_mpi(machine: Machine) -> None:
    machine.tool("mpirun", "echo success")
    (item,) = mpi_section(LocalMachine(machine.environ)).items
    assert item.status == "problem"
    assert any(line.endswith(": success") for line in item.details)


@pytest.mark.integration
@pytest.mark.parametrize("command", ["mpiexec", "mpirun"])
def test_this_machines_mpi_is_known(command: str) -> None:
    path = shutil.which(command)
    if path is None:
        pytest.skip(f"needs {command} on PATH")
    items = mpi_section(LocalMachine(os.environ)).items
    item = next(item for item in items if item.id == f"mpi.{command}")
    assert item.facts["implementation"] != "unknown", item.details
    assert item.facts["version"]


@pytest.mark.integration
def test_a_broken_srun_is_not_mended_by_the_packages_of_an_mpi(machine: Machine) -> None:
    machine.says("mpirun", "openmpi-4.1.6")
    machine.tool("srun", "echo 'libslurm.so: cannot open' >&2; exit 127")
    items = {item.id: item for item in mpi_section(LocalMachine(machine.environ)).items}
    assert items["mpi.srun"].status == "problem"
    assert items["mpi.srun"].debian is None
    assert items["mpi.srun"].needed_for
