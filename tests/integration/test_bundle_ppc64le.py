"""The bundle of horovod-nccl for taurus-ml in an emulated ppc64el system, without network.

Every program there is a real one for ppc64le, run by qemu; Lmod is real, the site's trees are made
from its snapshot. It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``. Making
the system takes most of them: ENVBUILD_PPC64EL_ROOT names one that is there, and is left as it is.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from emulated_tools import SECONDS, Emulated
from integration_tools import Envbuild, run, unpack_bundle
from taurus_tools import SOFTWARE, Copy, bring, bring_package, write_trees

from envbuilder.build.emulation import NAMED

pytestmark = [pytest.mark.long]

LMOD = "/usr/share/lmod/lmod/init/bash"
# The prefix of a Python that was built for the place where the site has its own.
PYTHON36 = "ENVBUILD_PPC64LE_PYTHON36"
TENSORFLOW = "TensorFlow/1.14.0-PythonAnaconda-3.6"


@pytest.fixture
def emulated(ppc64el: Path, tmp_path: Path) -> Emulated:
    """Return the system with the site's module trees, whose Python is Debian's."""
    found = Emulated.below(ppc64el, tmp_path)
    write_trees(found.written)
    bring(found.written, "PythonAnaconda/3.6", {"python3": Path("/usr/bin/python3")})
    return found


def unpack(envbuild: Envbuild, emulated: Emulated, folder: Path, *words: str | Path) -> None:
    """Make a bundle and unpack it in the system."""
    done = envbuild("create", *words, "--arch", "ppc64le", "--output", folder)
    assert done.code == 0, done.text
    [archive] = folder.glob("*.tar.gz")
    unpack_bundle(archive, emulated.written / "bundle")


def publishes_nothing(envbuild: Envbuild, root: Path) -> None:
    """Fail unless a root holds no environment that could be loaded."""
    assert json.loads(envbuild("list", "--root", root, "--json").out)["environments"] == []
    assert list((root / "modulefiles").glob("**/*.lua")) == []


def debians_python(emulated: Emulated) -> str:
    said = emulated("/usr/bin/python3 -c 'import platform; print(platform.python_version())'")
    return said.out.strip()


def test_the_shipped_bundle_loads_the_modules_and_names_the_python(
    envbuild: Envbuild, emulated: Emulated, tmp_path: Path
) -> None:
    unpack(envbuild, emulated, tmp_path / "out", "horovod-nccl")
    root = emulated.shared / "envs"
    done = emulated(f"uname -m; bash /bundle/*/install.sh '{root}'")
    assert done.code == 5, done.text
    publishes_nothing(envbuild, root)
    # That of the site is for ppc64le too, and is 3.6; Debian has another.
    assert done.out.startswith("ppc64le\nCMake/3.12.1-GCCcore-7.3.0\n")
    assert "OpenMPI/3.1.4-gcccuda-2018b\n" in done.out
    assert "Python 3.6, but /sw/installed/PythonAnaconda/3.6" in done.err


def test_the_shipped_bundle_names_the_module_that_nobody_has(
    envbuild: Envbuild, emulated: Emulated, tmp_path: Path
) -> None:
    """With a Python as the site's, it comes to TensorFlow: site and recipe are the shipped ones."""
    python = os.environ.get(PYTHON36)
    if python is None:
        pytest.skip(
            f"{PYTHON36} names no Python 3.6 for ppc64le: docs/testing.md says how one is made"
        )
    software = emulated.written / SOFTWARE.lstrip("/")
    shutil.rmtree(software / "PythonAnaconda/3.6")
    shutil.copytree(python, software / "PythonAnaconda/3.6", symlinks=True)
    bring_package(software / TENSORFLOW, "numpy", "1.14.5")
    unpack(envbuild, emulated, tmp_path / "out", "horovod-nccl")
    root = emulated.shared / "envs"
    done = emulated(f"bash /bundle/*/install.sh '{root}'")
    assert done.code == 5, done.text
    assert f"tensorflow 1.14.0 is missing: module {TENSORFLOW} " in done.err
    publishes_nothing(envbuild, root)


def test_it_comes_as_far_as_the_sites_own_software(
    envbuild: Envbuild, emulated: Emulated, tmp_path: Path
) -> None:
    copy = Copy(tmp_path, debians_python(emulated), LMOD, arch="ppc64le").write()
    unpack(envbuild, emulated, tmp_path / "out", copy.recipe, "--site", copy.site)
    home = emulated.written / SOFTWARE.lstrip("/") / TENSORFLOW
    bring_package(home, "numpy", "1.14.5")
    root = emulated.shared / "envs"
    done = emulated(f"bash /bundle/*/install.sh '{root}'")
    assert done.code == 5, done.text
    publishes_nothing(envbuild, root)
    assert f"tensorflow 1.14.0 is missing: module {TENSORFLOW} " in done.err

    bring_package(home, "tensorflow", "1.14.0")
    build = f"{root}/copied-nccl/*.build/build.sh"
    done = emulated(f"bash {build} venv fetch install tools")
    assert done.code == 0, done.text
    assert "all files are in wheelhouse/" in done.err
    # A wheel with a library for ppc64le is installed, and is one that runs.
    done = emulated(f"{root}/copied-nccl/????????????/bin/python -c 'import _cffi_backend'")
    assert done.code == 0, done.text


def test_create_emulates_as_far_as_that_in_a_copy_of_the_site(
    envbuild: Envbuild, emulated: Emulated, ppc64el: Path, tmp_path: Path
) -> None:
    copy = Copy(tmp_path, debians_python(emulated), LMOD, arch="ppc64le").write()
    system = tmp_path / "system"
    copied = run(["cp", "-al", ppc64el, system])
    assert copied.code == 0 or run(["cp", "-aT", ppc64el, system]).code == 0, copied.text
    shutil.copytree(emulated.written / "sw", system / "sw", symlinks=True)
    bring_package(system / SOFTWARE.lstrip("/") / TENSORFLOW, "numpy", "1.14.5")
    root = tmp_path / "root"
    words = ("create", copy.recipe, "--site", copy.site, "--arch", "ppc64le", "--emulate")
    env = {NAMED: str(system), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = envbuild(*words, "--root", root, env=env, timeout=SECONDS)
    assert done.code == 5, done.text
    assert f"tensorflow 1.14.0 is missing: module {TENSORFLOW} " in done.err
    publishes_nothing(envbuild, root)
