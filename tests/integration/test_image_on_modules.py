"""An image of allreduce on the modules of taurus-ml, which it takes from the machine.

The site is a copy, see test_bundle_on_modules: its module trees are the site's, and two modules
carry what the Debian of the base has. It takes minutes, so it runs when asked for: ``bash
ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from emulated_tools import SECONDS, Emulated
from image_tools import QUICK
from integration_tools import Envbuild, run
from taurus_tools import MODULES, SOFTWARE, RealCopy, bring, write_trees

from envbuilder.images.sif import arch_of

pytestmark = [pytest.mark.long]

LMOD = "/usr/share/lmod/lmod/init/bash"
PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx")
VERSIONS = """
/usr/bin/python3 -c 'import json, platform, numpy, mpi4py
print(json.dumps([platform.python_version(), numpy.__version__, mpi4py.__version__]))'
mpiexec.openmpi --version
"""


@pytest.fixture
def copy(ppc64el: Path, tmp_path: Path) -> RealCopy:
    """Return the copy of the site; its /sw is below the folder ``machine``."""
    if shutil.which("apptainer") is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    versions, mpi, *_ = Emulated.below(ppc64el, tmp_path / "asked")(VERSIONS).out.splitlines()
    provides = dict(zip(("python", "numpy", "mpi4py"), json.loads(versions), strict=True))
    copy = RealCopy(tmp_path, "ppc64le", LMOD, provides, mpi.split()[-1]).write()
    machine = tmp_path / "machine"
    write_trees(machine, snapshot=copy.trees)
    bring(machine, copy.python_module, {"python3": Path("/usr/bin/python3")})
    programs = {name: Path(f"/usr/bin/{name}.openmpi") for name in PROGRAMS}
    bring(machine, copy.openmpi_module, programs)
    return copy


def test_it_is_proved_in_the_modules_and_started_in_them(
    envbuild: Envbuild, copy: RealCopy, ppc64el: Path, tmp_path: Path
) -> None:
    bind, output = f"{tmp_path}/machine/sw:/sw", tmp_path / "images"
    words = ("image", copy.recipe(), "--site", copy.site, "--arch", copy.arch, "--base", ppc64el)
    done = envbuild(*words, "--bind", bind, "--output", output, env=QUICK, timeout=SECONDS)
    assert done.code == 0, done.text
    assert "ranks on ppc64le, emulated" in done.out
    [image] = output.glob("*.sif")
    assert f"apptainer run --bind {bind} {image.name} mpiexec" in done.out
    assert arch_of(image) == "ppc64le"

    told = json.loads(envbuild("info", image, "--json").out)
    loads = ["modenv/ml", copy.python_module, copy.openmpi_module]
    assert told["lock"]["plan"]["modules"]["loads"] == loads
    (record,) = told["evidence"]
    assert (record["execution"], record["result"]["ranks"]) == ("emulated", 2)

    command = ("apptainer", "run", "--bind", bind, image)
    asked = run([*command, "bash", "-c", "echo $LOADEDMODULES; which mpiexec"], timeout=SECONDS)
    modules, launcher = asked.out.splitlines()
    assert set(loads) <= set(modules.split(":")), asked.text
    assert launcher == f"{SOFTWARE}/{copy.openmpi_module}/bin/mpiexec"

    # A site that has changed since: said, and not run as if nothing were.
    tree = tmp_path / "machine" / MODULES.lstrip("/") / "ml" / "all"
    (tree / f"{copy.openmpi_module}.lua").unlink()
    gone = run([*command, "true"], timeout=SECONDS)
    assert gone.code == 1
    assert f" the module {copy.openmpi_module} " in gone.err
    without = run(["apptainer", "run", image, "true"], timeout=SECONDS)
    assert without.code == 1
    assert "tree /sw/modules/taurus/environment" in without.err
