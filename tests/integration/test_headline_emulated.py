"""The headline command for ppc64le as far as it comes on a machine without Power, without CUDA.

A Horovod for PyTorch on CPUs is built from its bundle and proved: PyTorch 1.13.1, Open MPI and the
compiler are those of a Debian for ppc64le, the first two as modules. Horovod for TensorFlow with
NCCL, in a copy of the shipped site, ends at the first header of TensorFlow, which no index has for
ppc64le.
ENVBUILD_PPC64EL_DEVEL_ROOT names the Debian (docs/testing.md).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from emulated_tools import Emulated
from integration_tools import Done, Envbuild, unpack_bundle
from taurus_tools import SOFTWARE, Copy, bring, bring_package, write_trees

pytestmark = [pytest.mark.long]

LMOD = "/usr/share/lmod/lmod/init/bash"
# Horovod and its imports of PyTorch are slow under emulation, and slower beside other programs.
SECONDS = 5400.0
PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx", "ompi_info")
TREE = "/sw/modules/all"
PACKAGES = "/usr/lib/python3/dist-packages"
TENSORFLOW = "TensorFlow/1.14.0-PythonAnaconda-3.6"
HEADER = "include/tensorflow/core/framework/op.h"

MODULES = {"PyTorch/1.13.1": {"pytorch": "1.13.1"}, "OpenMPI/4.1.4": {"openmpi": "4.1.4"}}
# Debian 12 has them in these releases.
PYTHON = "3.11.2"
SYSTEM = {
    "gcc": ("/usr/bin/g++", "12.2.0"),
    "cmake": ("/usr/bin/cmake", "3.25.1"),
    "numpy": ("/usr/bin/python3", "1.24.2"),
    "mpi4py": ("/usr/bin/python3", "3.1.4"),
    "cloudpickle": ("/usr/bin/python3", "2.2.0"),
    "psutil": ("/usr/bin/python3", "5.9.4"),
    "pyyaml": ("/usr/bin/python3", "6.0"),
}
SITE = {
    "schema": 1,
    "name": "power",
    "summary": "Debian 12 for ppc64le, its PyTorch and Open MPI as modules",
    "arch": ["ppc64le"],
    "module-system": "lmod",
    "module-init": LMOD,
    "module-trees": [TREE],
    "snapshot": "power.snapshot.json",
    "origins": ["module", "system", "pip", "build"],
    "facts": {"os": "debian 12", "glibc": "2.36", "gpu": [], "network": []},
    "modules": [{"name": name, "provides": those} for name, those in MODULES.items()],
}
RECIPE = {
    "schema": 1,
    "name": "horovod-power",
    "summary": "Horovod for the PyTorch of a module over MPI, on CPUs",
    "arch": ["ppc64le"],
    "system-site-packages": True,
    "stack": {
        "python": f"=={PYTHON}",
        "pytorch": "==1.13.*",
        "openmpi": "*",
        "numpy": "*",
        "cmake": ">=3.13,<4",
    },
    "runtime": {
        "package": "horovod",
        "version": "==0.28.1",
        "flags": {
            "HOROVOD_WITH_MPI": 1,
            "HOROVOD_WITHOUT_GLOO": 1,
            "HOROVOD_WITH_PYTORCH": 1,
            "HOROVOD_WITHOUT_TENSORFLOW": 1,
            "HOROVOD_WITHOUT_MXNET": 1,
            "HOROVOD_CPU_OPERATIONS": "MPI",
        },
    },
    "smoke": {"ranks": 2, "max-bytes": 65536},
}


def write_documents(folder: Path) -> tuple[Path, Path]:
    """Write the recipe, and the site with its snapshot; return the files of both."""
    snapshot = {
        "schema": 1,
        "kind": "documented",
        "source": "the package lists of Debian 12 for ppc64el",
        "taken": "2026-11-01",
        "interpreters": [
            {
                "arch": "ppc64le",
                "can-make-venv": True,
                "path": "/usr/bin/python3",
                "version": PYTHON,
            }
        ],
        "modules": [{"name": name, "home": f"{SOFTWARE}/{name}"} for name in MODULES],
        "system": [
            {"component": name, "locator": locator, "version": version}
            for name, (locator, version) in SYSTEM.items()
        ],
    }
    recipe, site = folder / "horovod-power.yaml", folder / "power.yaml"
    recipe.write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    site.write_text(yaml.safe_dump(SITE), encoding="utf-8")
    (folder / "power.snapshot.json").write_text(json.dumps(snapshot), encoding="utf-8")
    return recipe, site


def write_modules(emulated: Emulated) -> None:
    """Expose the Debian's PyTorch and Open MPI as modules."""
    root = emulated.written
    bring(root, "OpenMPI/4.1.4", {each: Path(f"/usr/bin/{each}.openmpi") for each in PROGRAMS[:-1]})
    (root / SOFTWARE.lstrip("/") / "OpenMPI/4.1.4/bin/ompi_info").symlink_to("/usr/bin/ompi_info")
    home = bring(root, "PyTorch/1.13.1", {})
    (home / "site-packages").mkdir()
    for path in (emulated.system / PACKAGES.lstrip("/")).glob("torch*"):
        (home / "site-packages" / path.name).symlink_to(f"{PACKAGES}/{path.name}")
    for name, variable, folder in (
        ("OpenMPI/4.1.4", "PATH", "bin"),
        ("PyTorch/1.13.1", "PYTHONPATH", "site-packages"),
    ):
        file = root / TREE.lstrip("/") / f"{name}.lua"
        file.parent.mkdir(parents=True)
        file.write_text(f'prepend_path("{variable}", "{SOFTWARE}/{name}/{folder}")\n')


def installed(
    envbuild: Envbuild, emulated: Emulated, recipe: Path, site: str | Path, folder: Path
) -> tuple[Done, Path]:
    """Make the bundle and run its installer in the system; return what it says, and the root."""
    words = ("create", recipe, "--site", site, "--arch", "ppc64le", "--bundle")
    done = envbuild(*words, "--output", folder / "made")
    assert done.code == 0, done.text
    [archive] = (folder / "made").glob("*.tar.gz")
    unpack_bundle(archive, emulated.shared / "bundle")
    root = emulated.shared / "root"
    script = f"bash '{emulated.shared}'/bundle/*/install.sh '{root}'"
    return emulated(script, seconds=SECONDS), root


def test_horovod_for_pytorch_is_built_from_its_bundle_and_proved(
    envbuild: Envbuild, ppc64el_devel: Path, tmp_path: Path
) -> None:
    emulated = Emulated.below(ppc64el_devel, tmp_path)
    write_modules(emulated)
    recipe, site = write_documents(tmp_path)
    done, root = installed(envbuild, emulated, recipe, site, tmp_path)
    assert done.code == 0, done.text
    [entry] = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    assert (entry["number"], entry["default"], entry["damaged"]) == (1, True, [])
    assert (entry["tier"], entry["execution"]) == ("several ranks", "emulated")
    info = json.loads(envbuild("info", "horovod-power", "--root", root, "--json").out)
    assert info["lock"]["plan"]["modules"]["loads"] == ["OpenMPI/4.1.4", "PyTorch/1.13.1"]
    record = info["evidence"][-1]
    assert (record["execution"], record["arch"], record["stand-ins"]) == ("emulated", "ppc64le", [])
    result = record["result"]
    assert (result["tier"], result["verdict"], result["ranks"]) == ("several ranks", "passed", 2)
    assert (result["api"], result["transport"]) == ("horovod.torch", "mpi")
    libraries = [Path(each["path"]) for each in result["libraries"]]
    assert {"libmpi", "libgloo"} <= {path.name.partition(".")[0] for path in libraries}
    assert {path.parents[-3] for path in libraries} == {Path("/usr/lib")}


def test_horovod_for_tensorflow_ends_at_a_header_of_tensorflow(
    envbuild: Envbuild, ppc64el_devel: Path, tmp_path: Path
) -> None:
    """Its module brings the name and the release of TensorFlow, and nothing to compile with."""
    emulated = Emulated.below(ppc64el_devel, tmp_path)
    copy = Copy(tmp_path, PYTHON, LMOD, arch="ppc64le").write()
    write_trees(emulated.written)
    bring(emulated.written, "PythonAnaconda/3.6", {"python3": Path("/usr/bin/python3")})
    home = emulated.written / SOFTWARE.lstrip("/") / TENSORFLOW
    for package, version in (("tensorflow", "1.14.0"), ("numpy", "1.14.5")):
        bring_package(home, package, version)
    done, root = installed(envbuild, emulated, copy.recipe, copy.site, tmp_path)
    assert done.code == 5, done.text
    missing = f"{SOFTWARE}/{TENSORFLOW}/site-packages/tensorflow/{HEADER}"
    error = f"build.headers-missing: headers of TensorFlow cannot be found: {missing}"
    [line] = [line for line in done.err.splitlines() if "headers-missing" in line]
    assert line.endswith(error)
    done_steps = {each.stem for each in root.glob("copied-nccl/*.build/state/*.done")}
    assert {"venv", "fetch", "install", "tools"} <= done_steps
    assert not {each for each in done_steps if each.startswith("build-horovod")}
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []
