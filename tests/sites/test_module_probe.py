"""The probe: modules loaded for real, their programs asked."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from envbuilder.knowledge.components import Component
from envbuilder.machine.modules.module_probe import probe
from envbuilder.machine.modules.site_modules import SiteModules
from envbuilder.machine.modules.trees import tree_sha256
from envbuilder.model.site import StatedModule
from tests.shipped import read_shipped

from .site_tools import modulefiles, read_tree

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def components() -> dict[str, Component]:
    return read_shipped().value.components


def module(probed: SiteModules, name: str) -> StatedModule:
    return next(each for each in probed.modules if each.name == name)


def python3() -> str:
    path = shutil.which("python3", path="/usr/bin:/bin")
    if path is None:
        pytest.skip("needs python3 in /usr/bin")
    return path


def program(folder: Path, name: str, prints: str) -> None:
    """Write a program that prints a text, whatever it is asked."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
    path.chmod(0o755)


def packages(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
    return folder


def adding(variable: str, folder: Path) -> str:
    return f'prepend_path("{variable}", "{folder}")\n'


def test_python_and_what_lies_beside_it(tmp_path: Path, components: dict[str, Component]) -> None:
    home = tmp_path / "sw"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3").symlink_to(python3())
    packages(home / "lib" / "python3.11" / "site-packages", "numpy-1.24.2.dist-info")
    tree = modulefiles(tmp_path / "tree", {"Python/3.99.lua": adding("PATH", home / "bin")})
    found = module(probe(read_tree(tree), components), "Python/3.99")
    version = subprocess.run([python3(), "-V"], capture_output=True, text=True, check=True)
    assert found.python == str(home / "bin" / "python3")
    assert found.provides == {"python": version.stdout.split()[1], "numpy": "1.24.2"}


def test_packages_on_pythonpath(tmp_path: Path, components: dict[str, Component]) -> None:
    folder = packages(
        tmp_path / "site-packages",
        "numpy-1.17.3-py3.7.egg-info",
        "mpi4py-3.0.2.dist-info",
        "torch-1.7.1+cu110.dist-info",
        "unheard_of-1.0.dist-info",
        "numpy",
        "odd.dist-info",
    )
    tree = modulefiles(
        tmp_path / "tree",
        {
            "Bundle/2019.10.lua": adding("PYTHONPATH", folder),
            "TensorFlow/2.1.0-foss.lua": adding("PYTHONPATH", packages(tmp_path / "none", "x")),
            "App/1.lua": 'load("Bundle/2019.10")\n',
        },
    )
    probed = probe(read_tree(tree), components)
    bundle = {"numpy": "1.17.3", "mpi4py": "3.0.2", "pytorch": "1.7.1+cu110"}
    assert module(probed, "Bundle/2019.10").provides == bundle
    # Its name says it already, and nothing was found that says otherwise.
    assert module(probed, "TensorFlow/2.1.0-foss").provides == {}
    # What comes with a module that is loaded along is that one's.
    assert module(probed, "App/1").provides == {}


def test_what_a_name_says_stays_said(tmp_path: Path, components: dict[str, Component]) -> None:
    folder = packages(tmp_path / "packages", "numpy-1.16.4.dist-info")
    tree = modulefiles(
        tmp_path / "tree", {"TensorFlow/1.14.0-Anaconda.lua": adding("PYTHONPATH", folder)}
    )
    found = module(probe(read_tree(tree), components), "TensorFlow/1.14.0-Anaconda")
    assert found.provides == {"numpy": "1.16.4", "tensorflow": "1.14.0"}


def test_this_machines_open_mpi(tmp_path: Path, components: dict[str, Component]) -> None:
    info, wrapper = (shutil.which(name, path="/usr/bin:/bin") for name in ("ompi_info", "mpicxx"))
    if info is None or wrapper is None:
        pytest.skip("needs Open MPI with its compiler wrappers (Debian: libopenmpi-dev)")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ompi_info").symlink_to(info)
    (folder / "mpicxx").symlink_to(wrapper)
    tree = modulefiles(tmp_path / "tree", {"OpenMPI/9.9.lua": adding("PATH", folder)})
    found = module(probe(read_tree(tree), components), "OpenMPI/9.9")
    said = subprocess.run([info, "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"Open MPI v(\S+)", said)
    assert version is not None
    assert found.provides == {"openmpi": version[1]}
    assert isinstance(found.facts["cuda_aware"], bool)
    assert "g++" in str(found.facts["cxx"])


def test_spectrum_mpi_is_not_open_mpi(tmp_path: Path, components: dict[str, Component]) -> None:
    # Recorded words of its programs; it is made from Open MPI and says that version too.
    program(
        tmp_path / "bin",
        "ompi_info",
        "Spectrum MPI: 10.3.0.01\nompi:version:full:3.1.0\n"
        "mca:mpi:base:param:mpi_built_with_cuda_support:value:true",
    )
    program(tmp_path / "bin", "mpicxx", "xlC_r -I/opt/ibm/spectrum_mpi/include -lmpiprofilesupport")
    tree = modulefiles(tmp_path / "tree", {"PowerAI/1.6.lua": adding("PATH", tmp_path / "bin")})
    found = module(probe(read_tree(tree), components), "PowerAI/1.6")
    assert found.provides == {"spectrum-mpi": "10.3.0.01"}
    assert found.facts == {"cuda_aware": True, "cxx": "xlC_r"}


def test_mpich(tmp_path: Path, components: dict[str, Component]) -> None:
    program(tmp_path / "bin", "mpichversion", "MPICH Version:    \t4.0.2\nMPICH Device:\tch4:ofi")
    tree = modulefiles(tmp_path / "tree", {"mpi/x.lua": adding("PATH", tmp_path / "bin")})
    found = module(probe(read_tree(tree), components), "mpi/x")
    assert found.provides == {"mpich": "4.0.2"}


def test_a_module_that_does_not_load(tmp_path: Path, components: dict[str, Component]) -> None:
    folder = packages(tmp_path / "packages", "numpy-1.16.4.dist-info")
    tree = modulefiles(
        tmp_path / "tree",
        {
            "Licensed/1.lua": adding("PYTHONPATH", folder)
            + 'if mode() == "load" then LmodError("no licence on this node") end\n'
        },
    )
    probed = probe(read_tree(tree), components)
    assert module(probed, "Licensed/1").provides == {}
    assert len(probed.notes) == 1
    assert probed.notes[0].startswith("module Licensed/1 ")


def test_behind_other_modules(tmp_path: Path, components: dict[str, Component]) -> None:
    folder = packages(tmp_path / "packages", "numpy-1.19.4.dist-info")
    files = {
        "core/GCC/10.lua": f'prepend_path("MODULEPATH", "{tmp_path}/behind")\n',
        "behind/SciPy/1.lua": adding("PYTHONPATH", folder),
    }
    modulefiles(tmp_path, files)
    probed = probe(read_tree(tmp_path / "core"), components)
    assert probed.notes == ()
    assert module(probed, "SciPy/1").provides == {"numpy": "1.19.4"}


def test_a_python_of_another_architecture(tmp_path: Path, components: dict[str, Component]) -> None:
    # Taken on a login node of another kind: the program is there and does not run.
    (tmp_path / "bin").mkdir()
    foreign = tmp_path / "bin" / "python3"
    machine = 0x15 if platform.machine() != "ppc64le" else 0x3E
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little")
    foreign.write_bytes(header + bytes(64))
    foreign.chmod(0o755)
    tree = modulefiles(tmp_path / "tree", {"Python/3.6.lua": adding("PATH", tmp_path / "bin")})
    found = module(probe(read_tree(tree), components), "Python/3.6")
    assert found.provides == {}
    assert found.python == str(foreign)


def test_it_only_reads(tmp_path: Path, components: dict[str, Component]) -> None:
    home = tmp_path / "sw"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3").symlink_to(python3())
    packages(home / "lib" / "python3.11" / "site-packages", "numpy-1.24.2.dist-info")
    tree = modulefiles(tmp_path / "tree", {"Python/3.lua": adding("PATH", home / "bin")})
    before = (tree_sha256(tree), sorted(home.rglob("*")))
    probe(read_tree(tree), components)
    assert (tree_sha256(tree), sorted(home.rglob("*"))) == before


def test_a_module_whose_home_is_the_system_brings_only_what_it_is_named_after(
    tmp_path: Path, components: dict[str, Component]
) -> None:
    python3()
    modulefiles(
        tmp_path / "tree",
        {
            "tools/1.0.lua": adding("PATH", Path("/usr/bin")),
            "python3/3.lua": adding("PATH", Path("/usr/bin")),
        },
    )
    probed = probe(read_tree(tmp_path / "tree"), components)
    assert module(probed, "tools/1.0").python is None
    assert module(probed, "tools/1.0").provides == {}
    assert module(probed, "python3/3").python == "/usr/bin/python3"
