"""Machine, tools and GPU against recorded files."""

from __future__ import annotations

import os
import resource
from importlib.metadata import PackageNotFoundError, version

import pytest

from envbuilder.doctor.capabilities import abilities
from envbuilder.machine import tools
from envbuilder.machine.gpu import capabilities, driver_version, gpu_section
from envbuilder.machine.hardware import (
    container_kind,
    cpu_quota,
    emulated_archs,
    memory_limit,
    memory_total,
    os_release,
)
from envbuilder.machine.host import LocalMachine, arch_name
from envbuilder.machine.item_values import Section
from envbuilder.machine.items import make
from envbuilder.machine.local_site import local_site

from .conftest import Machine, host, item


@pytest.mark.parametrize(
    ("machine_word", "arch"), [("amd64", "x86_64"), ("arm64", "aarch64"), ("ppc64le", "ppc64le")]
)
def test_architectures_have_one_name(machine_word: str, arch: str) -> None:
    assert arch_name(machine_word) == arch


def test_cgroup_2_limits_hold_from_above(machine: Machine) -> None:
    machine.file("/proc/self/cgroup", "0::/slurm/job_1/step_0\n")
    machine.file("/sys/fs/cgroup/slurm/job_1/step_0/cpu.max", "max 100000\n")
    machine.file("/sys/fs/cgroup/slurm/job_1/cpu.max", "150000 100000\n")
    machine.file("/sys/fs/cgroup/slurm/cpu.max", "800000 100000\n")
    machine.file("/sys/fs/cgroup/slurm/job_1/memory.max", f"{4 * 2**30}\n")
    machine.file("/sys/fs/cgroup/slurm/memory.max", "max\n")
    assert cpu_quota(host(machine)) == 1.5
    assert memory_limit(host(machine)) == 4 * 2**30


def test_cgroup_1_limits_in_a_container_whose_path_is_not_visible(machine: Machine) -> None:
    machine.file(
        "/proc/self/cgroup", "5:memory:/docker/ab12\n3:cpu,cpuacct:/docker/ab12\n1:name=systemd:/\n"
    )
    machine.file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n")
    machine.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", f"{2 * 2**30}\n")
    assert cpu_quota(host(machine)) == 2.0
    assert memory_limit(host(machine)) == 2 * 2**30


@pytest.mark.parametrize("text", ["max 100000", "-1", "", "garbage here", "100 0"])
def test_no_quota_is_no_quota(text: str, machine: Machine) -> None:
    machine.file("/proc/self/cgroup", "0::/\n")
    machine.file("/sys/fs/cgroup/cpu.max", text)
    assert cpu_quota(host(machine)) is None


def test_no_memory_limit_is_none(machine: Machine) -> None:
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        pytest.skip("ulimit -v is set in this shell")
    machine.file("/proc/self/cgroup", "4:memory:/a\n")
    machine.file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n")
    assert memory_limit(host(machine)) is None


def test_memory_total_is_in_bytes(machine: Machine) -> None:
    machine.file("/proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n")
    assert memory_total(host(machine)) == 16384 * 1024
    machine.file("/proc/meminfo", "MemTotal: much\n")
    assert memory_total(host(machine)) is None


def test_os_release_is_read_as_shells_do(machine: Machine) -> None:
    machine.file("/etc/os-release", '# c\nPRETTY_NAME="Red Hat 7.9 (Maipo)"\nID=\'rhel\'\nBAD="x\n')
    assert os_release(host(machine)) == {
        "PRETTY_NAME": "Red Hat 7.9 (Maipo)",
        "ID": "rhel",
        "BAD": "x",
    }


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/.dockerenv", "docker"),
        ("/run/.containerenv", "podman"),
        ("/.singularity.d/x", "apptainer or singularity"),
    ],
)
def test_containers_are_told_by_what_they_leave(path: str, kind: str, machine: Machine) -> None:
    assert container_kind(host(machine)) is None
    machine.file(path, "")
    assert container_kind(host(machine)) == kind


def test_emulated_architectures_are_listed(machine: Machine) -> None:
    machine.file("/proc/sys/fs/binfmt_misc/qemu-ppc64le", "enabled\ninterpreter /usr/bin/qemu\n")
    machine.file("/proc/sys/fs/binfmt_misc/qemu-aarch64", "disabled\n")
    assert emulated_archs(host(machine)) == ["ppc64le"]


@pytest.mark.parametrize(
    ("name", "recorded_as", "version"),
    [
        ("gcc", "gcc-12.2.0", "12.2.0"),
        ("gcc", "gcc-8.5.0-redhat", "8.5.0"),
        ("nvcc", "nvcc-13.0.88", "13.0.88"),
        ("docker", "docker-28.2.2", "28.2.2"),
        ("bash", "bash-5.2.15", "5.2.15"),
        ("singularity", "singularity-3.7.1", "3.7.1"),
        ("bsub", "bsub-10.1", "10.1.0.13"),
        ("srun", "srun-22.05.8", "22.05.8"),
    ],
)
@pytest.mark.integration
def test_versions_are_read_from_what_tools_print(
    name: str, recorded_as: str, version: str, machine: Machine
) -> None:
    machine.says(name, recorded_as)
    kinds = (*tools.COMPILERS, *tools.CONTAINERS, *tools.SCHEDULERS)
    (found,) = tools.find_tools(host(machine), kinds)
    assert (found.version, found.trouble) == (version, None)


@pytest.mark.integration
def test_a_tool_that_fails_is_a_problem_with_its_words(machine: Machine) -> None:
    machine.tool("gcc", "echo 'license expired' >&2; exit 1")
    found = item(tools.compilers_section(host(machine)), "compilers.gcc")
    assert found.status == "problem"
    assert "exit code 1: license expired" in found.details
    assert found.without_root


@pytest.mark.integration
def test_conda_as_a_shell_function_is_found_by_its_variable(machine: Machine) -> None:
    conda = machine.tool("conda", "echo 'conda 24.1.2'", folder="hidden")
    _, found = tools.conda_section(host(machine, CONDA_EXE=str(conda)), None).items
    assert (found.id, found.found) == ("conda.conda", "24.1.2")


def test_missing_families_are_one_item_each(machine: Machine) -> None:
    for rattler, status in ((None, "missing"), ("0.28.1", "note")):
        found = tools.conda_section(host(machine), rattler).items
        assert [(each.id, each.status) for each in found[1:]] == [("conda", status)]
    assert tools.containers_section(host(machine)).items[0].id == "containers"
    assert [i.id for i in tools.scheduler_section(host(machine)).items] == ["scheduler"]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("/proc/sys/user/max_user_namespaces", "0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ],
)
def test_each_setting_that_forbids_user_namespaces_is_named(
    setting: str, text: str, machine: Machine
) -> None:
    machine.file("/proc/sys/user/max_user_namespaces", "1000\n")
    assert item(tools.containers_section(host(machine)), "containers.userns").status == "ok"
    machine.file(setting, text)
    found = item(tools.containers_section(host(machine)), "containers.userns")
    assert found.status == "problem"
    assert setting.rsplit("/", 1)[1] in " ".join(found.details)


def test_subordinate_ids_that_are_missing_are_named_with_a_way_to_get_them(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = item(tools.containers_section(host(machine, USER="me")), "containers.subuid")
    assert (found.status, found.found) == ("missing", "no range in /etc/subuid")
    assert found.needed_for
    machine.file("/etc/subuid", "me:100000:65536\n")
    found = item(tools.containers_section(host(machine, USER="me")), "containers.subuid")
    assert (found.status, found.found) == ("missing", "a range, but no newuidmap")
    machine.tool("newuidmap", "exit 0")
    found = item(tools.containers_section(host(machine, USER="me")), "containers.subuid")
    assert (found.status, found.found) == ("ok", "a range and newuidmap")


@pytest.mark.parametrize(
    ("program", "root", "spaces", "can", "why"),
    [
        ("apptainer", False, True, True, "apptainer 1.4"),
        ("singularity", True, False, True, "singularity 1.4"),
        ("apptainer", False, False, False, "user namespaces"),
        ("podman", True, True, False, "podman"),
        ("docker", True, True, False, "docker"),
        ("other", True, True, False, "apptainer nor singularity"),
    ],
)
def test_images_are_built_with_what_the_verb_image_takes(
    program: str, root: bool, spaces: bool, can: bool, why: str
) -> None:
    items = (
        make("machine.user", "ok", "me", facts={"root": root}),
        make("containers.userns", "ok", "as told", facts={"usable": spaces}),
        make(f"containers.{program}", "ok", "1.4"),
    )
    found = abilities([Section(id="containers", title="Containers", items=items)])
    container = next(each for each in found if each.id == "container")
    assert (container.can, why in container.why) == (can, True)
    assert "backend" not in container.title


def test_conda_packages_are_read_by_py_rattler(machine: Machine) -> None:
    def verdict(rattler: str | None) -> tuple[bool, str]:
        found = abilities([tools.conda_section(host(machine), rattler)])
        return next((each.can, each.why) for each in found if each.id == "conda")

    assert verdict("0.28.1") == (True, "py-rattler 0.28.1")
    can, lacking = verdict(None)
    assert not can
    assert "pip install 'envbuild[conda]'" in lacking
    machine.tool("micromamba", "echo 2.0.5")
    can, why = verdict(None)
    assert not can
    assert why.startswith("micromamba ")
    assert lacking in why
    own = item(tools.conda_section(host(machine), None), "conda.py-rattler")
    assert own.status == "missing"
    assert "pip install 'envbuild[conda]'" in (own.without_root or "")


def test_py_rattler_is_found_in_this_python() -> None:
    try:
        there: str | None = version("py-rattler")
    except PackageNotFoundError:
        there = None
    assert tools.rattler_version() == there


@pytest.mark.integration
def test_user_namespaces_are_tried_where_unshare_is_here(machine: Machine) -> None:
    machine.file("/proc/sys/user/max_user_namespaces", "1000\n")
    machine.tool("unshare", "echo 'unshare failed: Operation not permitted' >&2; exit 1")
    found = item(tools.containers_section(host(machine)), "containers.userns")
    assert found.status == "problem"
    assert "Operation not permitted" in found.details[0]


@pytest.mark.integration
def test_a_scheduler_that_cannot_submit_is_a_problem(machine: Machine) -> None:
    machine.tool("sbatch", "echo 'sbatch: fatal: no configuration' >&2; exit 1")
    found = item(tools.scheduler_section(host(machine)), "scheduler")
    assert (found.status, found.facts["name"]) == ("problem", "Slurm")
    machine.says("sbatch", "srun-22.05.8")
    assert item(tools.scheduler_section(host(machine)), "scheduler").status == "ok"


def test_a_job_is_noted(machine: Machine) -> None:
    section = tools.scheduler_section(host(machine, SLURM_JOB_ID="17"))
    assert item(section, "scheduler.job").found == "SLURM_JOB_ID=17"


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build",
        "NVRM version: NVIDIA UNIX ppc64le Kernel Module  535.104.05  Thu Mar 1",
    ],
)
def test_driver_and_gpus_are_read_from_proc(line: str, machine: Machine) -> None:
    machine.file("/proc/driver/nvidia/version", f"{line}\nGCC version: gcc 12.2.0\n")
    for card in ("0000:01:00.0", "0000:02:00.0"):
        text = "Model: \t\t Tesla V100-SXM2-32GB\nIRQ: 1\n"
        machine.file(f"/proc/driver/nvidia/gpus/{card}/information", text)
    section = gpu_section(host(machine))
    assert item(section, "gpu.driver").facts == {"version": "535.104.05"}
    assert item(section, "gpu").found == "2 x Tesla V100-SXM2-32GB"
    assert item(section, "gpu").facts["count"] == 2


def test_a_driver_without_a_gpu_is_told(machine: Machine) -> None:
    machine.file("/proc/driver/nvidia/version", "NVRM version: garbage")
    section = gpu_section(host(machine))
    assert item(section, "gpu.driver").found == "unknown"
    assert item(section, "gpu").status == "missing"


@pytest.mark.integration
def test_nvidia_smi_speaks_where_proc_is_silent(machine: Machine) -> None:
    machine.tool("nvidia-smi", "echo '550.54.15, NVIDIA A100'; echo '550.54.15, NVIDIA A100'")
    section = gpu_section(host(machine))
    assert item(section, "gpu").found == "2 x NVIDIA A100"
    machine.tool("nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    assert capabilities(host(machine)) == ()
    found = item(gpu_section(host(machine)), "gpu")
    assert (found.status, found.details) == ("problem", ("exit code 9: NVIDIA-SMI has failed",))


@pytest.mark.integration
def test_the_local_site_knows_the_gpus_that_this_machine_shows(machine: Machine) -> None:
    """Rows about kinds of GPU and drivers are decided then. As an H100's nvidia-smi answers."""
    script = """case "$1" in *compute_cap) echo 9.0; echo 9.0;; *) echo 580.159.04;; esac"""
    machine.tool("nvidia-smi", script)
    environ = {"PATH": machine.environ["PATH"]}
    facts = local_site(environ).facts
    assert facts.gpu == ("sm_90",)
    # /proc of the machine that tests, where it has a driver, comes first.
    assert facts.driver == (driver_version(LocalMachine(environ)) or "580.159.04")
    assert local_site({"PATH": ""}).facts.gpu is None
