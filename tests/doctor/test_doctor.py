from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from envbuilder.doctor.examine import examine as doctor
from envbuilder.machine.item_values import Capability, DoctorReport, Item
from envbuilder.machine.items import texts
from envbuilder.model.site import Site
from envbuilder.target_tools.messages import one_line
from tests.shipped import read_shipped

from .conftest import Machine

SECTIONS = [
    "machine", "modules", "mpi", "compilers", "conda", "containers", "scheduler", "pythons",
    "python-settings", "network", "gpu", "places",
]  # fmt: skip
ABILITIES = ["virtualenv", "conda", "container", "module", "smoke", "jobs"]


def examine(machine: Machine, **environ: str) -> DoctorReport:
    return doctor({**machine.environ, **environ}, files=machine.files, patience=2.0)


def items(report: DoctorReport) -> list[Item]:
    return [each for section in report.sections for each in section.items]


def item(report: DoctorReport, item_id: str) -> Item | None:
    return next((each for each in items(report) if each.id == item_id), None)


def ability(report: DoctorReport, ability_id: str) -> Capability:
    return next(each for each in report.abilities if each.id == ability_id)


def can(report: DoctorReport) -> dict[str, bool]:
    return {ability.id: ability.can for ability in report.abilities}


def test_an_empty_machine_is_reported_whole(machine: Machine) -> None:
    report = examine(machine)
    assert [section.id for section in report.sections] == SECTIONS
    assert [ability.id for ability in report.abilities] == ABILITIES
    assert not ability(report, "virtualenv").can
    assert item(report, "pythons").status == "missing"


def test_a_report_is_json_and_comes_back_equal(machine: Machine) -> None:
    report = examine(machine)
    assert DoctorReport.model_validate(json.loads(json.dumps(report.plain()))) == report


def test_looking_twice_says_the_same(machine: Machine) -> None:
    first, second = examine(machine), examine(machine)
    assert first.abilities == second.abilities
    # Free space changes while others write.
    assert [s for s in first.sections if s.id != "places"] == [
        s for s in second.sections if s.id != "places"
    ]


def test_item_ids_are_unique(machine: Machine) -> None:
    ids = [item.id for item in items(examine(machine))]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"PATH": ""},
        {"PATH": ":.:relative:/no/such:/no/such"},
        {"HOME": ""},
        {"HOME": "relative", "TMPDIR": "relative"},
        {"HOME": "/proc", "TMPDIR": "/proc"},
        {"HOME": "/no/such/home\nwith a line break", "MODULEPATH": "\n:\x07"},
        {"PYTHONPATH": "x" * 100_000, "LOADEDMODULES": "a:" * 1000},
        {"HOME": "/\udcff", "VIRTUAL_ENV": "\udcff", "LMOD_CMD": "/\udcff"},
        {"HOME": "/dev/null", "TMPDIR": "/dev/null/x"},
        {"http_proxy": "http://[", "PIP_CONFIG_FILE": "/no/such", "PIP_INDEX_URL": "://"},
    ],
)
def test_no_environment_makes_it_raise(environ: dict[str, str], machine: Machine) -> None:
    report = doctor(environ | {"PATH": environ.get("PATH", "")}, files=machine.files)
    assert [section.id for section in report.sections] == SECTIONS
    assert report.plain()


def test_a_section_that_cannot_look_costs_only_itself(machine: Machine) -> None:
    # No operating system hands out such a variable: it stands for what nobody foresaw.
    report = examine(machine, HOME="/nul\0")
    found = [section.id for section in report.sections]
    assert set(SECTIONS) - set(found) == {"network"}
    told = item(report, "network-settings.looked")
    assert told.status == "problem"
    assert "embedded null byte" in told.found
    assert told.without_root


def test_what_is_missing_or_wrong_says_for_what_and_how(machine: Machine) -> None:
    machine.file("/etc/pip.conf", "no section\n")
    report = examine(machine, HOME="", PYTHONPATH="/x", PYTHONHOME="/x", MODULEPATH="/gone")
    bad = [item for item in items(report) if item.status in {"missing", "problem"}]
    assert len(bad) > 15
    for item in bad:
        assert item.needed_for, item.id
        assert item.without_root, item.id


def test_what_is_kept_of_items_is_title_and_advice_in_lines() -> None:
    for item_id, words in texts().items():
        assert set(words) <= {"title", "needed-for", "without-root", "debian"}, item_id
        assert "needed-for" in words or "without-root" not in words, item_id
        assert all(text == one_line(text) for text in words.values()), item_id


def broken_machine(machine: Machine) -> None:
    """Every tool that doctor knows, each failing in one of several ways."""
    ways = [
        "exec /bin/sleep 1000",
        "exit 3",
        "/usr/bin/head -c 3000000 /dev/zero | /usr/bin/tr '\\000' x",
        "kill -9 $$",
        "echo; echo success",
        "printf '\\033[31m\\000\\377'",
    ]
    names = [
        "python", "python3", "python3.12", "mpiexec", "mpirun", "srun", "jsrun", "ddlrun", "mpicc",
        "bash", "gcc", "g++", "gfortran", "nvcc", "cmake", "make", "conda", "mamba", "micromamba",
        "pixi", "apptainer", "singularity", "podman", "docker", "unshare", "sinfo", "sbatch",
        "bsub", "qsub", "nvidia-smi", "newuidmap",
    ]  # fmt: skip
    for number, name in enumerate(names):
        machine.tool(name, ways[number % len(ways)])
    machine.file("/usr/share/lmod/lmod/libexec/lmod", "#!/bin/sh\nexec /bin/sleep 1000\n").chmod(
        0o755
    )
    machine.file("/proc/sys/user/max_user_namespaces", "5")


@pytest.mark.integration
def test_a_machine_where_everything_is_broken_is_still_reported(machine: Machine) -> None:
    broken_machine(machine)
    report = doctor(machine.environ, files=machine.files, patience=0.5)
    assert [section.id for section in report.sections] == SECTIONS
    able = can(report)
    assert [a for a in ("virtualenv", "container", "module") if able[a]] == []
    troubles = [item for item in items(report) if item.status == "problem"]
    assert len(troubles) > 20
    assert all(item.needed_for and item.without_root for item in troubles)
    assert report.plain()


def listing(folder: Path) -> list[tuple[str, int, int, int]]:
    return sorted(
        (str(path), status.st_mode, status.st_size, status.st_mtime_ns)
        for path in (folder, *folder.rglob("*"))
        for status in [path.lstat()]
    )


@pytest.mark.integration
def test_looking_writes_nothing(machine: Machine, base_python: str) -> None:
    broken_machine(machine)
    for name in ("bash", "gcc", "make"):
        (machine.bin / name).unlink()
        (machine.bin / name).symlink_to(shutil.which(name) or "/nowhere")
    (machine.bin / "python3.12").unlink()
    (machine.bin / "python3.12").symlink_to(base_python)
    work = machine.folder / "work"
    work.mkdir()
    before = listing(machine.folder)
    report = doctor(
        machine.environ,
        cwd=work,
        root=machine.folder / "root",
        cache=machine.folder / "cache",
        files=machine.files,
        patience=0.5,
    )
    assert ability(report, "virtualenv").can == bool(shutil.which("bash"))
    assert listing(machine.folder) == before


@pytest.mark.integration
def test_a_good_machine_can_do_everything(machine: Machine, base_python: str) -> None:
    (machine.bin / "python3").symlink_to(base_python)
    (machine.bin / "bash").symlink_to("/bin/sh")
    machine.says("mpirun", "openmpi-5.0.11")
    machine.says("mpiexec", "openmpi-5.0.11")
    machine.says("sbatch", "srun-22.05.8")
    machine.says("bash", "bash-5.2.15", folder="first")
    machine.tool("micromamba", "echo 1.5.6")
    machine.tool("apptainer", "echo 'apptainer version 1.4.5'")
    machine.file("/proc/sys/user/max_user_namespaces", "1000")
    lmod = machine.file("/usr/share/lmod/lmod/libexec/lmod", "#!/bin/sh\necho Lua: Version 8.6\n")
    lmod.chmod(0o755)
    machine.file("/usr/share/lmod/lmod/init/bash", "")
    report = examine(machine, PATH=f"{machine.folder / 'first'}:{machine.bin}")
    assert can(report) == dict.fromkeys(ABILITIES, True)
    assert ability(report, "smoke").why == "mpiexec: Open MPI 5.0.11"


@pytest.mark.integration
def test_a_known_bad_mpi_does_not_count_for_the_smoke_test(machine: Machine) -> None:
    machine.says("mpiexec", "openmpi-3.1.3")
    known = read_shipped().value.advisories
    report = doctor(machine.environ, files=machine.files, advisories=known)
    assert "Open MPI" not in ability(report, "smoke").why
    assert "OMPI-001" in " ".join(item(report, "mpi.mpiexec").details)


@pytest.mark.integration
def test_the_sites_own_interpreters_are_shown(machine: Machine, base_python: str) -> None:
    site = Site(schema_=1, name="s", summary="s", arch=("x86_64",), pythons=(base_python,))
    report = doctor(machine.environ, site=site, files=machine.files)
    assert item(report, "pythons.1").facts["path"] == base_python


@pytest.mark.integration
def test_this_machine_is_seen_as_it_is(tmp_path: Path) -> None:
    report = doctor(os.environ, root=tmp_path / "root")
    assert [section.id for section in report.sections] == SECTIONS
    for name in ("gcc", "make", "cmake"):
        expected = "missing" if shutil.which(name) is None else "ok"
        assert item(report, f"compilers.{name}").status == expected
    assert item(report, "machine.cores").facts["cores"] <= len(os.sched_getaffinity(0))
    assert (item(report, "mpi") is None) == bool(shutil.which("mpiexec") or shutil.which("mpirun"))
    assert item(report, "places.root").status == "ok"
    assert list(tmp_path.iterdir()) == []
