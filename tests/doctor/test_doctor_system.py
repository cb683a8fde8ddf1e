"""What the machine itself has: recorded answers, and the real programs where there are some."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from envbuilder.machine.detection import snapshot
from envbuilder.machine.host import LocalMachine, machine_arch
from envbuilder.machine.mpi import open_mpi_facts
from envbuilder.machine.system import system_components
from envbuilder.model.site import Site, StatedModule, SystemComponent

from .conftest import Machine, host

GCC = "echo 'g++ (Debian 12.2.0-14+deb12u1) 12.2.0'"
CMAKE = "echo 'cmake version 3.25.1'"
# Lines of ompi_info --parsable --all of Debian's Open MPI 4.1.4.
OMPI_INFO = """package:Debian OpenMPI
ompi:version:full:4.1.4
mca:hwloc:external:version:"component:4.1.4"
mca:pmix:isolated:version:"component:4.1.4"
mca:pmix:ext3x:version:"component:4.1.4"
mca:pml:ob1:version:"component:4.1.4"
mca:pml:ucx:version:"component:4.1.4"
mca:mpi:base:param:mpi_built_with_cuda_support:value:false
"""


def found(machine: Machine, *components: str, **environ: str) -> dict[str, SystemComponent]:
    those = system_components(host(machine, **environ), components or None)
    return {each.component: each for each in those}


def facts(each: SystemComponent) -> dict[str, bool | str]:
    return {name: value for name, value in each.facts.items() if name != "arch"}


def wrapper(machine: Machine, *, version: str, shows: str) -> None:
    """Put an mpicxx as Open MPI's on the search path."""
    machine.tool(
        "mpicxx",
        'case "$1" in\n'
        f"--showme:version) echo 'mpicxx: Open MPI {version} (Language: C++)' ;;\n"
        f"-show) echo '{shows}' ;;\n"
        "*) exit 1 ;;\nesac",
    )


def headers(machine: Machine) -> str:
    """Make a folder with mpi.h; return the option that names it."""
    folder = machine.folder / "include"
    folder.mkdir(exist_ok=True)
    (folder / "mpi.h").write_text("")
    return f"-I{folder}"


def test_an_empty_machine_has_nothing(machine: Machine) -> None:
    assert found(machine) == {}


@pytest.mark.integration
def test_a_compiler_and_cmake(machine: Machine) -> None:
    machine.tool("g++", GCC)
    machine.tool("cmake", CMAKE)
    those = found(machine)
    assert {name: each.version for name, each in those.items()} == {
        "cmake": "3.25.1",
        "gcc": "12.2.0",
    }
    assert those["gcc"].locator == str(machine.bin / "g++")
    assert those["gcc"].facts == {"arch": machine_arch()}


@pytest.mark.integration
@pytest.mark.parametrize(
    "script",
    [
        "echo 'Debian clang version 14.0.6'",
        "echo 'clang version 14.0.6 (vendor)'",
        f"{GCC}; exit 3",
    ],
)
def test_what_only_goes_by_the_name_of_gcc_is_none(script: str, machine: Machine) -> None:
    machine.tool("g++", script)
    assert found(machine) == {}


@pytest.mark.integration
def test_a_shim_that_fails_hides_no_program_behind_it(machine: Machine) -> None:
    machine.tool("cmake", "echo 'cmake: command not found in this version' >&2; exit 127")
    machine.tool("cmake", CMAKE, folder="later")
    both = f"{machine.bin}:{machine.folder / 'later'}"
    assert found(machine, PATH=both)["cmake"].locator == str(machine.folder / "later" / "cmake")


@pytest.mark.integration
def test_only_what_is_of_use_is_started(machine: Machine) -> None:
    machine.tool("g++", GCC)
    for name in ("cmake", "mpirun", "mpicxx", "ompi_info", "nvcc"):
        machine.tool(name, f"/usr/bin/touch {machine.home}/started")
    assert set(found(machine, "gcc", "python", "numpy")) == {"gcc"}
    assert not (machine.home / "started").exists()


@pytest.mark.integration
def test_one_mpi_wanted_is_not_another(machine: Machine) -> None:
    machine.says("mpirun", "openmpi-4.1.4-debian")
    machine.tool("ompi_info", f"/usr/bin/touch {machine.home}/started")
    assert found(machine, "mpich") == {}
    assert not (machine.home / "started").exists()
    assert set(found(machine, "openmpi")) == {"openmpi"}


@pytest.mark.integration
def test_an_open_mpi_that_builds(machine: Machine) -> None:
    machine.says("mpirun", "openmpi-4.1.4-debian")
    machine.tool("c++", "exit 0")
    wrapper(machine, version="4.1.4", shows=f"c++ {headers(machine)} -lmpi")
    machine.tool("ompi_info", f"/bin/cat <<'END'\n{OMPI_INFO}END")
    mpi = found(machine)["openmpi"]
    assert (mpi.version, mpi.locator) == ("4.1.4", str(machine.bin / "mpirun"))
    assert facts(mpi) == {
        "cuda_aware": False,
        "cxx": "c++",
        "development": True,
        "external_hwloc": True,
        "external_pmix": True,
        "ucx": True,
    }


@pytest.mark.integration
@pytest.mark.parametrize("lacking", ["wrapper", "compiler", "headers", "its own wrapper"])
def test_one_that_only_starts_ranks(lacking: str, machine: Machine) -> None:
    machine.says("mpirun", "openmpi-4.1.4-debian")
    if lacking != "compiler":
        machine.tool("c++", "exit 0")
    include = "-I/nowhere" if lacking == "headers" else headers(machine)
    if lacking == "headers" and Path("/usr/include/mpi.h").exists():
        pytest.skip("mpi.h is where every compiler looks on this machine")
    if lacking != "wrapper":
        version = "5.0.1" if lacking == "its own wrapper" else "4.1.4"
        wrapper(machine, version=version, shows=f"c++ {include}")
    assert found(machine)["openmpi"].facts["development"] is False


@pytest.mark.integration
def test_a_compiler_wrapper_without_a_launcher_is_no_mpi(machine: Machine) -> None:
    machine.tool("c++", "exit 0")
    wrapper(machine, version="4.1.4", shows=f"c++ {headers(machine)}")
    assert found(machine) == {}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("recorded", "component", "version"),
    [
        ("mpich-5.0.2", "mpich", "5.0.2"),
        ("mvapich-2.3.6", "mvapich2", "2.3.6"),
        ("spectrum-mpi-10.3.1", "spectrum-mpi", "10.3.1.02rtm0"),
        ("intel-mpi-2021.10", "impi", "2021.10"),
    ],
)
def test_other_mpis_by_their_canonical_names(
    recorded: str, component: str, version: str, machine: Machine
) -> None:
    machine.says("mpiexec", recorded)
    those = found(machine)
    assert {name: each.version for name, each in those.items()} == {component: version}


@pytest.mark.integration
def test_a_scheduler_s_mpiexec_is_no_mpi(machine: Machine) -> None:
    machine.says("mpiexec", "srun-22.05.8")
    assert found(machine) == {}


def test_what_ompi_info_does_not_say_is_left_out() -> None:
    assert open_mpi_facts("") == {}
    own = "\nmca:hwloc:hwloc201:version:x\nmca:pmix:pmix3x:version:x\nmca:pml:ob1:version:x\n"
    assert open_mpi_facts(own) == {"external_hwloc": False, "external_pmix": False, "ucx": False}
    aware = "mca:opal:base:param:opal_built_with_cuda_support:value:true"
    assert open_mpi_facts(aware) == {"cuda_aware": True}


def toolkit(machine: Machine, folder: str, number: int, release: str) -> Path:
    """Put a CUDA toolkit below the recorded machine's files."""
    home = machine.file(f"{folder}/include/cuda.h", f"#define CUDA_VERSION {number}\n").parents[1]
    (home / "bin").mkdir()
    nvcc = home / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release 0.0, V{release}'\n")
    nvcc.chmod(0o755)
    return home


@pytest.mark.integration
def test_cuda_where_installers_put_it(machine: Machine) -> None:
    home = toolkit(machine, "/usr/local/cuda", 11080, "11.8.89")
    cuda = found(machine)["cuda"]
    assert (cuda.version, cuda.locator) == ("11.8.89", f"{home}/bin/nvcc")
    assert facts(cuda) == {"home": str(home)}


@pytest.mark.integration
def test_a_script_on_path_that_calls_another_nvcc(machine: Machine) -> None:
    home = toolkit(machine, "/usr/local/cuda", 13000, "13.0.88")
    older = toolkit(machine, "/opt/cuda-9.2", 9020, "9.2.88")
    machine.tool("nvcc", f'exec {home}/bin/nvcc "$@"')
    cuda = found(machine, CUDA_HOME=str(older))["cuda"]
    assert cuda.locator == str(machine.bin / "nvcc")
    assert facts(cuda) == {"home": str(home)}, "the headers of the same version"
    (home / "include" / "cuda.h").unlink()
    assert facts(found(machine, CUDA_HOME=str(older))["cuda"]) == {}


NCCL_H = (
    '#define NCCL_MAJOR 2\n#define NCCL_MINOR 18\n#define NCCL_PATCH 5\n#define NCCL_SUFFIX ""\n'
)


@pytest.mark.parametrize(
    "place", ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/cuda/targets/sbsa-linux/lib"]
)
def test_nccl_with_its_header(place: str, machine: Machine) -> None:
    home = "/usr" if place.startswith("/usr/lib") else "/usr/local/cuda"
    header = machine.file(f"{home}/include/nccl.h", NCCL_H)
    assert found(machine) == {}, "a header without a library"
    machine.file(f"{place}/libnccl.so.2", "")
    nccl = found(machine)["nccl"]
    assert (nccl.version, nccl.locator) == ("2.18.5", str(header))
    assert facts(nccl) == {"home": str(header.parents[1]), "static_library": False}
    machine.file(f"{place}/libnccl_static.a", "")
    assert facts(found(machine)["nccl"])["static_library"] is True


def test_nccl_in_a_folder_of_its_own_comes_first(machine: Machine) -> None:
    machine.file("/usr/include/nccl.h", NCCL_H)
    machine.file("/usr/lib64/libnccl.so.2", "")
    own = machine.file("/opt/nccl/include/nccl.h", NCCL_H.replace("18", "27"))
    machine.file("/opt/nccl/lib/libnccl.so.2", "")
    home = str(own.parents[1])
    assert found(machine, NCCL_HOME=home)["nccl"].version == "2.27.5"
    assert found(machine, NCCL_HOME="nccl")["nccl"].version == "2.18.5", "a relative path is none"


@pytest.mark.integration
def test_what_is_in_an_environment_or_a_module_is_not_the_system_s(machine: Machine) -> None:
    for folder in ("venv/bin", "conda/bin", "module/bin", "loaded/bin"):
        (machine.folder / folder).mkdir(parents=True)
        machine.tool("cmake", CMAKE, folder=folder)
    (machine.folder / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    path = ":".join(
        str(machine.folder / folder)
        for folder in ("venv/bin", "conda/bin", "module/bin", "loaded/bin")
    )
    looked = host(
        machine,
        PATH=path,
        CONDA_PREFIX=str(machine.folder / "conda"),
        EBROOTCMAKE=str(machine.folder / "loaded"),
    )
    assert system_components(looked, module_folders=[str(machine.folder / "module")]) == ()
    assert len(system_components(looked)) == 1, "the module's, where nobody says that it is one"
    # A modulefile that names a folder of everything takes nothing away.
    assert len(system_components(looked, module_folders=["/"])) == 1


@pytest.mark.integration
def test_folders_of_everything_are_nobody_s(machine: Machine) -> None:
    everything = {"/", "/usr", "/usr/bin/", "/bin", "/usr/local", "/usr/local/bin", "/opt"}
    whole = host(machine, PATH="/usr/bin:/bin")
    assert system_components(whole, {"gcc"}, module_folders=everything) == system_components(
        whole, {"gcc"}
    )


def local(*origins: str, modules: tuple[StatedModule, ...] = ()) -> Site:
    return Site(
        schema_=1,
        name="here",
        summary="A site of the tests",
        arch=("x86_64",),
        origins=origins,
        modules=modules,
    )


@pytest.mark.integration
def test_a_snapshot_holds_them_where_the_site_has_the_system(machine: Machine) -> None:
    machine.tool("g++", GCC)
    machine.tool("cmake", CMAKE)

    def seen(site: Site, *components: str) -> list[str]:
        there = snapshot(site, machine.environ, components=components or None).snapshot.system
        return [each.component for each in there]

    # Without a choice all are looked for, a CUDA of this very machine among them.
    assert {"cmake", "gcc"} <= set(seen(local("system", "pip")))
    assert seen(local("system", "pip"), "gcc", "cmake") == ["cmake", "gcc"]
    assert seen(local("system", "pip"), "gcc") == ["gcc"]
    assert seen(local("module", "pip"), "gcc") == []


@pytest.mark.integration
def test_a_stated_module_s_programs_are_the_module_s(machine: Machine) -> None:
    machine.tool("cmake", CMAKE)
    module = StatedModule(name="CMake/3.25", home=str(machine.folder))
    site = local("module", "system", modules=(module,))
    assert snapshot(site, machine.environ, components={"cmake"}).snapshot.system == ()
    unstated = local("module", "system")
    assert len(snapshot(unstated, machine.environ, components={"cmake"}).snapshot.system) == 1


@pytest.mark.integration
def test_a_program_that_hangs_costs_its_component_alone(machine: Machine) -> None:
    machine.tool("g++", "exec /bin/sleep 30")
    machine.tool("cmake", CMAKE)
    looked = LocalMachine(machine.environ, files=machine.files, patience=0.5)
    assert [each.component for each in system_components(looked)] == ["cmake"]


@pytest.mark.integration
def test_this_machine_s_compiler_and_mpi(need: Callable[[str], str]) -> None:
    compiler, _ = need("g++"), need("mpicxx")
    said = subprocess.run(
        [compiler, "-dumpfullversion"], capture_output=True, text=True, check=True
    )
    those = {each.component: each for each in system_components(LocalMachine(os.environ))}
    assert those["gcc"].version == said.stdout.strip()
    mpi = those[next(name for name in ("openmpi", "mpich") if name in those)]
    assert mpi.facts["development"] is True
    assert "g++" in str(mpi.facts["cxx"])
    if mpi.component == "openmpi" and shutil.which("ompi_info"):
        assert isinstance(mpi.facts["cuda_aware"], bool)
