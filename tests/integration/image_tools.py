"""What images of the tests begin with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from emulated_tools import SECONDS
from integration_tools import run

PACKAGES = "python3,python3-venv,openmpi-bin,procps"
# With which Horovod is compiled.
COMPILERS = f"{PACKAGES},python3-dev,libopenmpi-dev,g++,make,patch"
# Quick to pack: what is tested is not how small an image is.
QUICK = {"APPTAINER_MKSQUASHFS_ARGS": "-comp lz4"}


def debian_base(
    tmp_path_factory: pytest.TempPathFactory,
    packages: str = PACKAGES,
    named: str = "ENVBUILD_IMAGE_BASE",
) -> Path:
    """Return a Debian to begin images with; the variable *named* may name one that is there."""
    there = os.environ.get(named)
    if there:
        return Path(there)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        pytest.skip("making a Debian needs mmdebstrap, and root")
    folder = tmp_path_factory.mktemp("debian") / "root"
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"]
    lines = run([*asked, "Created-By: Packages"]).out.splitlines()
    mirror = [line.split()[0] for line in lines if line.split()[1:] == ["Debian", "Debian"]][:1]
    words = ["mmdebstrap", "--variant=minbase", f"--include={packages}", "bookworm", str(folder)]
    done = run([*words, *mirror], timeout=SECONDS)
    if done.code != 0:
        pytest.skip(f"mmdebstrap made no Debian: {done.err.splitlines()[-1:]}")
    return folder
