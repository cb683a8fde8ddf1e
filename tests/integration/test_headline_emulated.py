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
from emulated_tools import Emulated
from integration_tools import Done, Envbuild, unpack_bundle
from power_tools import LMOD, PYTHON, write_documents, write_modules
from taurus_tools import SOFTWARE, Copy, bring, bring_package, write_trees

pytestmark = [pytest.mark.long]

# Horovod and its imports of PyTorch are slow under emulation, and slower beside other programs.
SECONDS = 5400.0
TENSORFLOW = "TensorFlow/1.14.0-PythonAnaconda-3.6"
HEADER = "include/tensorflow/core/framework/op.h"


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
    write_modules(emulated.written, emulated.system)
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
