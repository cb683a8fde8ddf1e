"""A conda environment for ppc64le: solved and linked here, installed and proved under qemu.

Its channel has the Python, NumPy and mpi4py of a Debian for ppc64el, packed as conda has them; the
MPI is the Debian's. It takes minutes, so it runs when asked for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from emulated_tools import SECONDS, Emulated
from integration_tools import Envbuild, run, unpack_bundle

from envbuilder.images.sif import arch_of
from tests.conda_channel import from_wheel, write_channel
from tests.debian_channel import SERIES, module_of, python_of

pytest.importorskip("rattler")
pytestmark = [pytest.mark.long]

RECIPE = {
    "schema": 1,
    "name": "conda-power",
    "summary": "Collective runtime on numpy and mpi4py of a conda channel",
    "arch": ["ppc64le"],
    "backend": "conda",
    "channels": ["tests"],
    "stack": {"python": "*", "numpy": "*", "mpi4py": "*", "openmpi": "*"},
    "smoke": {"ranks": 2, "max-bytes": 65536},
}


@pytest.fixture(scope="module")
def channel(ppc64el: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if f"{sys.version_info[0]}.{sys.version_info[1]}" != SERIES:
        pytest.skip(f"a module of the Debian's Python is that of a Python {SERIES}")
    wheels = tmp_path_factory.mktemp("wheels")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", wheels]
    done = run([*words, "pip"])
    assert done.code == 0, done.text
    pip = from_wheel(next(wheels.glob("pip-*")), name="pip", depends=["python >=3.9"], noarch=True)
    packages = [
        python_of(ppc64el),
        module_of(ppc64el, "numpy"),
        module_of(ppc64el, "mpi4py"),
        pip,
    ]
    return write_channel(tmp_path_factory.mktemp("channel"), packages)


@pytest.fixture(scope="module")
def recipes(channel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the recipe, and where its channel is."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "knowledge").mkdir()
    (folder / "conda-power.yaml").write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    known = {"url": channel.as_uri(), "recorded": "2026-11-01", "sources": ["a test"]}
    said = {"schema": 1, "recorded": "2026-11-01", "source": "a test"}
    versions = {**said, "channels": {"tests": {**known, "packages": {}}}}
    (folder / "knowledge" / "versions.yaml").write_text(yaml.safe_dump(versions), encoding="utf-8")
    return folder


def test_a_bundle_of_a_conda_environment_is_made_there_and_its_ranks_talk(
    envbuild: Envbuild, ppc64el: Path, recipes: Path, tmp_path: Path
) -> None:
    emulated = Emulated.below(ppc64el, tmp_path)
    words = ("create", "conda-power", "--recipes", recipes, "--site", "debian-ppc64le")
    done = envbuild(*words, "--arch", "ppc64le", "--output", emulated.shared)
    assert done.code == 0, done.text
    (archive,) = emulated.shared.glob("*.tar.gz")
    unpack_bundle(archive, emulated.shared / "there")
    (bundle,) = (emulated.shared / "there").iterdir()
    assert envbuild("bundle", "verify", bundle).code == 0
    assert {"conda-prefix.tar.gz", "conda-prefix.json"} <= {
        each.name for each in (bundle / "build").iterdir()
    }

    root = emulated.shared / "root"
    installed = emulated(f"bash '{bundle}/install.sh' '{root}'")
    assert installed.code == 0, installed.text
    assert "linked by" not in installed.text
    (entry,) = json.loads(envbuild("list", "--root", root, "--json").out)["environments"]
    assert (entry["tier"], entry["execution"]) == ("several ranks", "emulated")
    (proof,) = json.loads(envbuild("info", "conda-power", "--root", root, "--json").out)["evidence"]
    result = proof["result"]
    assert (result["ranks"], result["python"], result["mpi"]) == (2, "3.11.2", "Open MPI 4.1.4")
    # Of the environment, not of the Debian, which has them all as well.
    prefix = root / "conda-power" / entry["id"]
    asks = "import json, sys, numpy, mpi4py.MPI, sysconfig as s; print(json.dumps([sys.prefix, "
    asks += "numpy.__file__, mpi4py.__file__, s.get_config_var('prefix')]))"
    there = emulated(f"'{prefix}/bin/python' -I -c \"{asks}\"")
    assert there.code == 0, there.text
    site = f"{prefix}/lib/python{SERIES}/site-packages"
    assert json.loads(there.out) == [
        str(prefix),
        f"{site}/numpy/__init__.py",
        f"{site}/mpi4py/__init__.py",
        str(prefix),
    ]


def test_an_image_of_a_conda_environment_is_built_and_proved_and_starts(
    envbuild: Envbuild, ppc64el: Path, recipes: Path, tmp_path: Path
) -> None:
    apptainer = shutil.which("apptainer")
    if apptainer is None:
        pytest.skip("apptainer is not on PATH: bash ci/apptainer.sh FOLDER unpacks it")
    words = ("image", "conda-power", "--recipes", recipes, "--base", ppc64el)
    done = envbuild(*words, "--output", tmp_path, timeout=SECONDS)
    assert done.code == 0, done.text
    assert "several ranks on ppc64le, emulated" in done.out
    (image,) = tmp_path.glob("*.sif")
    assert arch_of(image) == "ppc64le"
    asks = "import platform, sys, numpy; print(platform.machine(), sys.prefix, numpy.__file__)"
    there = run([apptainer, "run", image, "python", "-c", asks])
    assert there.code == 0, there.text
    machine, prefix, module = there.out.split()
    assert machine == "ppc64le"
    assert module == f"{prefix}/lib/python{SERIES}/site-packages/numpy/__init__.py"
