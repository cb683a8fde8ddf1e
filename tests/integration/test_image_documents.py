"""The stacks of the documents as images for Taurus and Summit, which bind in the site's modules.

They are rendered for the site's trees, which this machine has as modulefiles alone; one is built
where what they bring is real, see test_image_on_modules.py. It takes minutes, so it runs when asked
for: ``bash ci/test.sh -m long``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from integration_tools import Envbuild
from taurus_tools import write_trees

pytestmark = [pytest.mark.long]


@pytest.mark.parametrize(
    ("name", "site", "provides"),
    [
        ("horovod-nccl", "taurus-ml", {"tensorflow@1.14.0", "nccl@2.3.7", "horovod@0.19.5"}),
        ("horovod-mpi", "taurus-ml", {"tensorflow@1.14.0", "openmpi@3.1.4", "horovod@0.19.5"}),
        ("horovod-pytorch", "taurus-ml", {"pytorch@1.6.0", "horovod@0.21.3"}),
        ("horovod-pytorch-nccl", "taurus-ml", {"pytorch@1.6.0", "nccl@2.4.8"}),
        ("ddl", "summit", {"wmlce@1.6.2", "ddl@1.5.0", "tensorflow@1.15"}),
    ],
)
def test_on_the_modules_of_the_site_it_is_rendered(
    envbuild: Envbuild, ppc64el: Path, tmp_path: Path, name: str, site: str, provides: set[str]
) -> None:
    write_trees(tmp_path)
    (tmp_path / "sw/summit/modulefiles/core").mkdir(parents=True)
    folder = tmp_path / "rendered"
    words = ("render", name, "--as", "image", "--site", site, "--arch", "ppc64le")
    bound = ("--base", ppc64el, "--bind", f"{tmp_path}/sw:/sw")
    done = envbuild(*words, *bound, "--output", folder, timeout=SECONDS)
    assert done.code == 0, done.text
    lock = json.loads((folder / "bundle/build/lock.json").read_text())
    pins = {f"{each['component']}@{each['version']}": each for each in lock["plan"]["pins"]}
    assert provides <= pins.keys()
    assert lock["plan"]["modules"]["loads"]
    definition = (folder / f"{name}.def").read_text()
    assert "envbuild.binds /sw\n" in definition
    assert 'mkdir -p "${APPTAINER_ROOTFS:-$SINGULARITY_ROOTFS}"/sw\n' in definition
    assert "load_modules; enter_environment" in definition
    assert f"apptainer run --bind /sw {name}.sif mpiexec" in definition
