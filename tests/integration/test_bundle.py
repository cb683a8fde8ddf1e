"""The bundle of horovod-nccl at its site: the site's module trees with Lmod, and no network.

The modules bring this machine's Python and MPI; whether they bring a TensorFlow is what differs. So
far as a bundle comes without the site's own software, it must come, and then say what is missing.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from integration_tools import Done, Envbuild, run, unpack_bundle, without_network
from module_tools import lmod_init
from taurus_tools import Copy, bring, bring_package, write_trees

from envbuilder.model.plan import Lock

# An installer runs all steps up to the one that fails.
SECONDS = 900.0
PYTHON = "PythonAnaconda/3.6"
TENSORFLOW = "TensorFlow/1.14.0-PythonAnaconda-3.6"


@dataclass(frozen=True)
class There:
    """An unpacked bundle, and a machine that has the site's modules below ``machine``."""

    bundle: Path
    machine: Path
    root: Path

    @property
    def lock(self) -> Lock:
        return Lock.model_validate_json((self.bundle / "build" / "lock.json").read_text())

    def install(self) -> Done:
        words = ["bash", self.bundle / "install.sh", self.root]
        return run([*without_network(), *words], timeout=SECONDS)

    def step(self, *steps: str) -> Done:
        [build] = self.root.glob("copied-nccl/*.build")
        return run([*without_network(), "bash", build / "build.sh", *steps])


@pytest.fixture(scope="module")
def there(envbuild: Envbuild, tmp_path_factory: pytest.TempPathFactory) -> There:
    lmod = lmod_init("bash")
    folder = tmp_path_factory.mktemp("copied")
    machine = folder / "machine"
    copy = Copy(folder, platform.python_version(), lmod, seen_as=str(machine)).write()
    words = ("create", copy.recipe, "--site", copy.site, "--bundle", "--output", folder, "--json")
    done = envbuild(*words)
    assert done.code == 0, done.text
    told = json.loads(done.out)
    # What the sender keeps is no help to who unpacks it.
    shutil.rmtree(told["folder"])
    unpack_bundle(told["archive"], folder / "there")
    [bundle] = (folder / "there").iterdir()
    write_trees(machine, str(machine))
    bring(machine, PYTHON, {"python3": Path(sys.executable).resolve()})
    return There(bundle, machine, folder / "root")


def test_everything_for_the_target_is_in_it(there: There) -> None:
    wheelhouse = {each.name for each in (there.bundle / "build" / "wheelhouse").iterdir()}
    assert wheelhouse == {each.filename for each in there.lock.index_files}
    sums = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    assert run(sums, cwd=there.bundle / "build").code == 0
    job = (there.bundle / "build" / "copied-nccl.slurm").read_text()
    assert "#SBATCH --partition=ml\n" in job
    assert "\nsrun " in job
    outside = {"SHA256SUMS", "build", "bundle.json", "install.sh", "modulefile.lua"}
    assert {each.name for each in there.bundle.iterdir()} == outside
    # Every file is checked, scripts included.
    files = {str(p.relative_to(there.bundle)) for p in there.bundle.rglob("*") if p.is_file()}
    named = {line[66:] for line in (there.bundle / "SHA256SUMS").read_text().splitlines()}
    assert named == files - {"SHA256SUMS"}


def test_a_missing_framework_is_named_before_anything_is_compiled(there: There) -> None:
    home = bring(there.machine, TENSORFLOW, {})
    bring_package(home, "numpy", "1.14.5")
    done = there.install()
    assert done.code == 5, done.text
    assert "error: tensorflow 1.14.0" in done.err
    assert f"module {TENSORFLOW} " in done.err
    # The modules were loaded, and in the order of the plan: the last one took 3.1.1's place.
    assert "OpenMPI/3.1.4-gcccuda-2018b" in done.out
    assert "OpenMPI/3.1.1" not in done.out
    assert list((there.root / "modulefiles").iterdir()) == []


@pytest.mark.long
def test_with_the_name_of_the_framework_it_ends_at_its_first_header(there: There) -> None:
    home = bring(there.machine, TENSORFLOW, {})
    shutil.rmtree(home, ignore_errors=True)
    for package, version in {"numpy": "1.14.5", "tensorflow": "1.14.0"}.items():
        bring_package(home, package, version)
    done = there.install()
    assert done.code == 5, done.text
    assert "all files are in wheelhouse/" in done.err
    header = home / "site-packages/tensorflow/include/tensorflow/core/framework/op.h"
    error = f"build.headers-missing: headers of TensorFlow cannot be found: {header}"
    [line] = [line for line in done.err.splitlines() if "headers-missing" in line]
    assert line.endswith(error)
    assert "step build-horovod failed" in done.err


def test_another_python_than_planned_is_named(there: There) -> None:
    other = next(filter(None, os.environ.get("ENVBUILD_TEST_PYTHONS", "").split(":")), None)
    if other is None or f"python{sys.version_info[0]}.{sys.version_info[1]}" in other:
        pytest.skip("needs another Python: ENVBUILD_TEST_PYTHONS names some")
    if not list(there.root.glob("copied-nccl/*.build")):
        there.install()
    program = there.machine / "sw" / "installed" / PYTHON / "bin" / "python3"
    program.unlink()
    program.symlink_to(other)
    done = there.step("venv")
    assert done.code == 1, done.text
    assert f"{program} is Python 3." in done.err
