"""A bundle of allreduce on the modules of taurus-ml, where its Python and its Open MPI are real.

The site is a copy: its module trees, and what loads what, are the site's; these two modules carry
what there is, natively a Python 3.6, for ppc64le what Debian has for it. They are installed without
network, and ranks talk. It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from emulated_tools import SECONDS, Emulated
from integration_tools import Done, Envbuild, run, unpack_bundle, without_network
from module_tools import AS_ROOT, MY_ALLREDUCE, SUMS, in_lmod, lmod_init, machine_openmpi
from taurus_tools import MODULES, SOFTWARE, RealCopy, bring, write_trees

from tests.pythons import find_python

pytestmark = [pytest.mark.long]

LMOD = "/usr/share/lmod/lmod/init/bash"
PROGRAMS = ("mpiexec", "mpirun", "mpicc", "mpicxx")
LIAR = "#!/bin/sh\necho '2 ranks started, all checks passed'\nexit 0\n"
# Debian for ppc64le says what its modules are to bring.
VERSIONS = """
/usr/bin/python3 -c 'import json, platform, numpy, mpi4py
print(json.dumps([platform.python_version(), numpy.__version__, mpi4py.__version__]))'
mpiexec.openmpi --version
"""


@dataclass(frozen=True)
class Place:
    """Where a bundle is installed: ``machine`` is what its modules lie below, seen from here."""

    copy: RealCopy
    machine: Path
    root: Path
    execution: str
    run: Callable[..., Done]

    def install(self, bundle: Path) -> Done:
        return self.run("bash", bundle / "install.sh", self.root)

    @property
    def mpiexec(self) -> Path:
        """What the Open MPI module has users start ranks by."""
        home = self.machine / SOFTWARE.lstrip("/") / self.copy.openmpi_module
        return home / "bin" / "mpiexec"


def bundle(envbuild: Envbuild, place: Place, folder: Path, **stack: str) -> Path:
    """Make the bundle; return it unpacked, as it comes there. *stack*: see ``RealCopy.recipe``."""
    copy = place.copy
    words = ("create", copy.recipe(**stack), "--site", copy.site, "--arch", copy.arch)
    done = envbuild(*words, "--bundle", "--output", folder / "made")
    assert done.code == 0, done.text
    [archive] = (folder / "made").glob("*.tar.gz")
    unpack_bundle(archive, folder / "there")
    [found] = (folder / "there").iterdir()
    return found


def is_refused_from_a_liar_and_published(
    envbuild: Envbuild, place: Place, bundle: Path
) -> dict[str, Any]:
    """Fail unless ranks prove it, and a launcher that only says so does not; return the record."""
    real = place.mpiexec.readlink()
    place.mpiexec.unlink()
    place.mpiexec.write_text(LIAR, encoding="utf-8")
    place.mpiexec.chmod(0o755)
    done = place.install(bundle)
    assert done.code == 6, done.text
    assert "none of 2 reported" in done.err
    assert list((place.root / "modulefiles").glob("**/*.lua")) == []
    place.mpiexec.unlink()
    place.mpiexec.symlink_to(real)
    done = place.install(bundle)
    assert done.code == 0, done.text
    assert "== runtime: done before" in done.err

    listing = json.loads(envbuild("list", "--root", place.root, "--json").out)
    [entry] = listing["environments"]
    assert (entry["number"], entry["default"], entry["damaged"]) == (1, True, [])
    assert (entry["tier"], entry["execution"]) == ("several ranks", place.execution)
    told = json.loads(envbuild("info", "allreduce", "--root", place.root, "--json").out)
    loads = told["lock"]["plan"]["modules"]["loads"]
    assert loads == ["modenv/ml", place.copy.python_module, place.copy.openmpi_module]
    liar, record = told["evidence"]
    assert (liar["result"]["verdict"], record["result"]["verdict"]) == ("failed", "passed")
    assert (record["execution"], record["arch"]) == (place.execution, place.copy.arch)
    result = record["result"]
    assert (result["ranks"], result["tier"]) == (2, "several ranks")
    assert result["python"] == place.copy.provides["python"]
    assert result["mpi"] == f"Open MPI {place.copy.openmpi}"
    answer: dict[str, Any] = record
    return answer


def test_natively_on_a_python_3_6(envbuild: Envbuild, tmp_path: Path) -> None:
    python, openmpi = find_python("3.6"), machine_openmpi()
    found = {name: shutil.which(f"{name}.openmpi") for name in PROGRAMS}
    if python is None or not all(found.values()) or shutil.which("g++") is None:
        pytest.skip("needs a Python 3.6, a compiler and an Open MPI to compile with")
    asks = "import platform; print(platform.python_version())"
    provides = {"python": run([python, "-c", asks]).out.strip()}
    machine, lmod, arch = tmp_path / "machine", lmod_init("bash"), platform.machine()
    copy = RealCopy(tmp_path, arch, lmod, provides, openmpi.version, str(machine)).write()
    write_trees(machine, str(machine), copy.trees)
    bring(machine, copy.python_module, {"python3": python})
    bring(machine, copy.openmpi_module, {name: Path(path) for name, path in found.items() if path})

    def alone(*words: str | Path) -> Done:
        env = {"ENVBUILD_WHEEL_CACHE": str(tmp_path / "cache")}
        return run([*without_network(), *words], env=env, timeout=SECONDS)

    root = tmp_path / "root"
    place = Place(copy, machine, root, "native", alone)
    # Half of what is to be compiled of a 4.
    unpacked = bundle(envbuild, place, tmp_path, mpi4py="==3.*")
    record = is_refused_from_a_liar_and_published(envbuild, place, unpacked)
    assert {each["path"] for each in record["result"]["libraries"]} == {
        str(openmpi.library.resolve())
    }
    (tmp_path / "my_allreduce.py").write_text(MY_ALLREDUCE, encoding="utf-8")
    trees = f"module use '{machine}{MODULES}/taurus/environment' '{root}/modulefiles'"
    lines = [trees, "module load modenv/ml allreduce", "module help allreduce"]
    lines += ["mpiexec --oversubscribe -n 2 python my_allreduce.py"]
    said = in_lmod("bash", lines, tmp_path, AS_ROOT)
    assert "Proved: several ranks, native, " in said.err, said.text
    assert said.out.count(f": {SUMS} ") == 2, said.text


def test_emulated_on_debians_for_ppc64le(envbuild: Envbuild, ppc64el: Path, tmp_path: Path) -> None:
    emulated = Emulated.below(ppc64el, tmp_path)
    versions, mpi, *_ = emulated(VERSIONS).out.splitlines()
    provides = dict(zip(("python", "numpy", "mpi4py"), json.loads(versions), strict=True))
    copy = RealCopy(tmp_path, "ppc64le", LMOD, provides, mpi.split()[-1]).write()
    machine = emulated.written
    write_trees(machine, snapshot=copy.trees)
    bring(machine, copy.python_module, {"python3": Path("/usr/bin/python3")})
    programs = {name: Path(f"/usr/bin/{name}.openmpi") for name in PROGRAMS}
    bring(machine, copy.openmpi_module, programs)

    def there(*words: str | Path) -> Done:
        return emulated(" ".join(f"'{word}'" for word in words))

    root = emulated.shared / "root"
    place = Place(copy, machine, root, "emulated", there)
    unpacked = bundle(envbuild, place, emulated.shared)
    record = is_refused_from_a_liar_and_published(envbuild, place, unpacked)
    paths = {each["path"] for each in record["result"]["libraries"]}
    assert {path.split("/")[3] for path in paths} == {"powerpc64le-linux-gnu"}
    trees = f"module use {MODULES}/taurus/environment '{root}/modulefiles'"
    load = "module load modenv/ml allreduce; module help allreduce 2>&1; which python mpiexec"
    said = emulated(f"source {LMOD}; {trees}; {load}; uname -m")
    assert "Proved: several ranks, emulated, " in said.out, said.text
    [prefix] = root.glob("allreduce/????????????")
    mpiexec = f"{SOFTWARE}/{copy.openmpi_module}/bin/mpiexec"
    assert said.out.endswith(f"{prefix}/bin/python\n{mpiexec}\nppc64le\n"), said.text
